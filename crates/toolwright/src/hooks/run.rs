//! Runs one command to its end. Whoever drops this ends the command and all that it started.

use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use toolwright_proc::{Ended, Spec};

/// Bytes kept of what a command says on each channel; the rest is read and dropped.
const KEPT_BYTES: usize = 1 << 20;

/// How long to wait for the last words of a command that has ended but left something behind.
const DRAIN_GRACE: Duration = Duration::from_millis(100);

pub(super) struct Finished {
    pub(super) how: Ended,
    pub(super) output: String,
    pub(super) errors: String,
}

pub(super) async fn run(
    command: &str,
    directory: &Path,
    project: &Path,
    input: String,
    (passed, withheld): (&[String], &[String]),
) -> Result<Finished, String> {
    let project = project.display().to_string();
    let mut spec = Spec::new("/bin/sh", directory)
        .arg("-c")
        .arg(command)
        .env("CLAUDE_PROJECT_DIR", &project)
        .env("TOOLWRIGHT_PROJECT_DIR", &project)
        .stdin(input)
        .separate_errors();
    spec.passed = passed.to_vec();
    spec.withheld = withheld.to_vec();
    let mut child = spec.spawn().map_err(|e| e.to_string())?;
    let mut output = Channel::new(child.output());
    let mut errors = Channel::new(child.errors());
    let how = {
        let listening = async { tokio::join!(output.listen(), errors.listen()) };
        tokio::pin!(listening);
        tokio::select! {
            _ = &mut listening => child.wait().await,
            how = child.wait() => {
                // What it left in the background may keep the channels open.
                tokio::time::timeout(DRAIN_GRACE, listening).await.ok();
                how
            }
        }
    };
    for open in [output.pipe.take(), errors.pipe.take()].into_iter().flatten() {
        child.keep_reading(open);
    }
    Ok(Finished { how, output: output.text(), errors: errors.text() })
}

struct Channel {
    /// Gone once it has come to its end.
    pipe: Option<pipe::Receiver>,
    kept: Vec<u8>,
}

impl Channel {
    fn new(pipe: Option<pipe::Receiver>) -> Self {
        Self { pipe, kept: Vec::new() }
    }

    async fn listen(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            let room = KEPT_BYTES.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&buffer[..count.min(room)]);
        }
        self.pipe = None;
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}
