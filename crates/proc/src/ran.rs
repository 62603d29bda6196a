//! A child that is waited for: what it prints is kept up to a cap, and the rest is read and dropped.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::child::{Ended, SpawnError, Spec};

/// What a child that has ended may have left in its pipes comes at once. Whoever holds them open longer was
/// left behind by it, and is not waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long it may take, and how much of what it prints is kept.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub time: Duration,
    pub output_bytes: usize,
    /// Of its errors, where they are separate.
    pub errors_bytes: usize,
}

#[derive(Debug)]
pub struct Ran {
    /// Nothing if its time was over; it was ended then.
    pub ended: Option<Ended>,
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
}

impl Ran {
    /// Its output as text; what is no text is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    pub fn errors_text(&self) -> String {
        String::from_utf8_lossy(&self.errors).into_owned()
    }
}

impl Spec {
    /// Starts it and waits for its end. Dropping the future ends it, with everything that it started.
    pub async fn run(&self, bounds: Bounds) -> Result<Ran, SpawnError> {
        let mut child = self.spawn()?;
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let (out, err) = (child.output(), child.errors());
        let reading = async {
            tokio::join!(
                read(out, &mut output, bounds.output_bytes),
                read(err, &mut errors, bounds.errors_bytes)
            )
        };
        let whole = async {
            tokio::pin!(reading);
            let ended = tokio::select! {
                _ = &mut reading => return child.wait().await,
                ended = child.wait() => ended,
            };
            tokio::time::timeout(LAST_WORDS, reading).await.ok();
            ended
        };
        let ended = tokio::time::timeout(bounds.time, whole).await.ok();
        if ended.is_none() {
            child.end().await;
        }
        Ok(Ran { ended, output, errors })
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>, cap: usize) {
    let Some(mut stream) = stream else { return };
    let mut chunk = [0; 8192];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        let room = cap.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&chunk[..room]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Spec {
        Spec::new("/bin/sh", "/").arg("-c").arg(line).separate_errors()
    }

    const BOUNDS: Bounds =
        Bounds { time: Duration::from_secs(60), output_bytes: 1000, errors_bytes: 10 };

    #[tokio::test]
    async fn what_it_prints_is_kept_up_to_the_caps() {
        let ran = shell("seq 1000; seq 1000 >&2; exit 3").run(BOUNDS).await.unwrap();
        assert_eq!(ran.ended, Some(Ended::Exit(3)));
        assert_eq!((ran.output.len(), ran.errors_text().as_str()), (1000, "1\n2\n3\n4\n5\n"));
    }

    #[tokio::test]
    async fn one_that_never_ends_is_ended_and_what_it_said_is_kept() {
        let bounds = Bounds { time: Duration::from_secs(1), ..BOUNDS };
        let ran = shell("echo begun; sleep 1000").run(bounds).await.unwrap();
        assert_eq!((ran.ended, ran.text().as_str()), (None, "begun\n"));
    }

    #[tokio::test]
    async fn what_it_left_behind_is_not_waited_for() {
        let ran = shell("sleep 1000 & echo done").run(BOUNDS).await.unwrap();
        assert_eq!((ran.ended, ran.text().as_str()), (Some(Ended::Exit(0)), "done\n"));
    }
}
