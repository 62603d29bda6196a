//! The process of one server and its pipes: what is said goes in, what is heard comes out, and in the
//! end there is a reason.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::net::unix::pipe::Sender;
use tokio::sync::mpsc;
use toolwright_proc::{Child, Ended};

use crate::hear::Hearing;
use crate::wire::{self, Decoder};

/// Bytes of its standard error that are kept for the one who is told of its end.
const ERRORS_CAP_BYTES: usize = 2 << 10;

/// How long an ended server may take to tell how it ended.
const STATUS_GRACE: Duration = Duration::from_millis(200);

/// How long a server may leave its input unread while it wants answers.
pub(crate) const UNREAD_LIMIT: Duration = Duration::from_secs(5);

/// The ends of the pipes, and what is to go through them.
pub(crate) struct Talk {
    pub(crate) input: Sender,
    pub(crate) output: pipe::Receiver,
    pub(crate) errors: pipe::Receiver,
    pub(crate) letters: mpsc::Receiver<Vec<u8>>,
    pub(crate) outbox: mpsc::Sender<Vec<u8>>,
}

/// Owns the process: talks with it until one side ends, then sees it out.
pub(crate) async fn keep(mut child: Child, talk: Talk, hearing: Arc<Hearing>) {
    let Talk { input, output, mut errors, letters, outbox } = talk;
    let last_words = Mutex::new(Vec::new());
    let (reason, ended) = tokio::select! {
        reason = listen(output, &hearing, &outbox) => (Some(reason), None),
        () = speak(input, letters) => (None, None),
        // A server may close its standard error and go on.
        () = async { overhear(&mut errors, &last_words).await; std::future::pending().await } => (None, None),
        ended = child.wait() => (None, Some(ended)),
    };
    let ended = match ended {
        Some(ended) => Some(ended),
        None => tokio::time::timeout(STATUS_GRACE, child.wait()).await.ok(),
    };
    child.kill().await;
    // Something that it left behind may hold the pipe.
    tokio::time::timeout(STATUS_GRACE, overhear(&mut errors, &last_words)).await.ok();
    let how = match (reason.flatten(), ended) {
        (Some(reason), _) => reason,
        (None, Some(Ended::Exit(code))) => format!("it exited with code {code}"),
        (None, Some(Ended::Signal(signal))) => format!("it was ended by signal {signal}"),
        (None, None) => "it closed its pipes".to_owned(),
    };
    let said = last_words.into_inner().unwrap_or_else(PoisonError::into_inner);
    let said = String::from_utf8_lossy(&said);
    let said = telling_line(&said);
    hearing.end(match said {
        Some(line) => format!("{how}; its last words: {line}"),
        None => how,
    });
}

/// Ends with the reason, where there is one beyond the pipe's end.
async fn listen(
    mut output: pipe::Receiver,
    hearing: &Hearing,
    outbox: &mpsc::Sender<Vec<u8>>,
) -> Option<String> {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match output.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => decoder.push(&buffer[..count]),
        }
        loop {
            let body = match decoder.next() {
                Ok(Some(body)) => body,
                Ok(None) => break,
                Err(error) => return Some(error.to_string()),
            };
            let Some(reply) = hearing.hear(&body) else { continue };
            let sent = outbox.send(wire::encode(&reply));
            if tokio::time::timeout(UNREAD_LIMIT, sent).await.is_err() {
                return Some("it asks and does not read the answers".to_owned());
            }
        }
    }
}

async fn speak(mut input: Sender, mut letters: mpsc::Receiver<Vec<u8>>) {
    while let Some(letter) = letters.recv().await {
        if input.write_all(&letter).await.is_err() {
            return;
        }
    }
}

/// Keeps the end of what it writes to standard error.
async fn overhear(errors: &mut pipe::Receiver, last_words: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        let mut kept = last_words.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(ERRORS_CAP_BYTES);
        kept.drain(..excess);
    }
}

/// The line that tells most of what went wrong: the first that speaks of an error, or else the last.
fn telling_line(said: &str) -> Option<&str> {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find(|line| line.to_lowercase().contains("error"));
    error.or_else(|| lines().next_back())
}

#[cfg(test)]
mod tests {
    use super::telling_line;

    #[test]
    fn the_last_words_are_those_that_tell_something() {
        let cases = [
            ("", None),
            ("\n \n", None),
            ("starting\nboom\n\n", Some("boom")),
            (
                "info\nerror: no such toolchain\n 1: main\n 2: <unknown>",
                Some("error: no such toolchain"),
            ),
        ];
        for (said, expected) in cases {
            assert_eq!(telling_line(said), expected);
        }
    }
}
