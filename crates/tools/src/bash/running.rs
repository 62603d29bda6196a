//! A command that runs: its output is taken in as it comes, whoever is or is not waiting for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolwright_proc::sandbox::PutBack;
use toolwright_proc::{Child, Ended, Remains};
use toolwright_tool::{Capture, Captured};

use super::plain::{Manner, Plain};
use super::{AfterCommand, Ran};

/// How long output is waited for after the command itself has ended: something that it left in the
/// background may hold the pipe open for ever.
const DRAIN_GRACE: Duration = Duration::from_millis(200);

/// Read at once: as much as a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// How long a command may take to read what it is given.
const INPUT_GRACE: Duration = Duration::from_secs(5);

/// Dropping it ends the command.
pub(crate) struct Running {
    capture: Arc<Mutex<Capture>>,
    news: watch::Receiver<News>,
    /// Taken out when its end has been told.
    input: tokio::sync::Mutex<Option<pipe::Sender>>,
    manner: Manner,
    term: CancellationToken,
    kill: CancellationToken,
    /// What became of protected files that it changed.
    put_back: Arc<Mutex<PutBack>>,
    /// What there is to say of what it left in the workspace.
    noted: Arc<Mutex<String>>,
    remains: Remains,
    /// What it left was ended.
    is_cleared: AtomicBool,
    _supervisor: AbortOnDropHandle<()>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Bytes that have come.
    pub(crate) bytes: u64,
    pub(crate) finish: Option<Finish>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finish {
    pub(crate) how: Ended,
    /// Something of its group goes on.
    pub(crate) left_running: bool,
}

impl Finish {
    /// What a shell would report.
    pub(crate) fn exit_code(&self) -> i32 {
        match self.how {
            Ended::Exit(code) => code,
            Ended::Signal(signal) => 128 + signal,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputProblem {
    /// It was started without.
    None,
    /// It reads no more, or has ended.
    Closed,
    /// It does not read now.
    Full,
}

impl Running {
    /// `after` is called when it has ended, and told what it was.
    pub(crate) fn new(
        mut child: Child,
        capture: Capture,
        manner: Manner,
        after: Option<(AfterCommand, Ran)>,
    ) -> Self {
        let capture = Arc::new(Mutex::new(capture));
        let (tell, news) = watch::channel(News::default());
        let (term, kill) = (CancellationToken::new(), CancellationToken::new());
        let (input, remains) = (child.input(), child.remains());
        let put_back: Arc<Mutex<PutBack>> = Arc::default();
        let noted: Arc<Mutex<String>> = Arc::default();
        let intake = Intake {
            output: child.output(),
            plain: Plain::new(manner),
            buffer: vec![0; READ_BYTES],
            capture: Arc::clone(&capture),
            tell,
            put_back: Arc::clone(&put_back),
            noted: Arc::clone(&noted),
            after,
        };
        let supervisor = tokio::spawn(supervise(child, intake, term.clone(), kill.clone()));
        Self {
            capture,
            news,
            input: tokio::sync::Mutex::new(input),
            manner,
            term,
            kill,
            put_back,
            noted,
            remains,
            is_cleared: AtomicBool::new(false),
            _supervisor: AbortOnDropHandle::new(supervisor),
        }
    }

    pub(crate) fn news(&self) -> News {
        let mut news = *self.news.borrow();
        if let Some(finish) = &mut news.finish {
            finish.left_running &= !self.is_cleared.load(Ordering::Relaxed);
        }
        news
    }

    /// Told once.
    pub(crate) fn take_put_back(&self) -> PutBack {
        std::mem::take(&mut *self.put_back.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn noted(&self) -> String {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn manner(&self) -> Manner {
        self.manner
    }

    /// Waits until it has ended.
    pub(crate) async fn finish(&self) -> Option<Finish> {
        self.news_where(|news| news.finish.is_some()).await.finish
    }

    /// Waits until more than `bytes` have come or it has ended.
    pub(crate) async fn more_than(&self, bytes: u64) -> News {
        self.news_where(|news| news.bytes > bytes || news.finish.is_some()).await
    }

    async fn news_where(&self, wanted: impl FnMut(&News) -> bool) -> News {
        let mut news = self.news.clone();
        // A supervisor that is gone has nothing more to tell.
        news.wait_for(wanted).await.map(|found| *found).unwrap_or_else(|_| self.news())
    }

    /// Asks it to end, and makes it after a little while.
    pub(crate) async fn end(&self) -> Option<Finish> {
        self.term.cancel();
        self.finish().await
    }

    /// Ends it at once.
    pub(crate) async fn kill(&self) -> Option<Finish> {
        self.kill.cancel();
        self.finish().await
    }

    /// Ends what it left in the background when it ended, daemons too.
    pub(crate) async fn clear(&self) {
        let remains = self.remains.clone();
        // Looking through all processes takes a moment.
        if tokio::task::spawn_blocking(move || remains.end()).await.is_ok() {
            self.is_cleared.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) async fn write(&self, bytes: &[u8]) -> Result<(), InputProblem> {
        let mut slot = self.input.lock().await;
        let Some(input) = slot.as_mut() else { return Err(InputProblem::None) };
        if self.news().finish.is_some() {
            return Err(InputProblem::Closed);
        }
        match tokio::time::timeout(INPUT_GRACE, input.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(InputProblem::Closed),
            Err(_) => Err(InputProblem::Full),
        }
    }

    /// Nothing more will be written: a reader of a pipe sees its end.
    pub(crate) async fn close_input(&self) {
        self.input.lock().await.take();
    }

    pub(crate) fn capture(&self) -> MutexGuard<'_, Capture> {
        lock(&self.capture)
    }

    /// What came since it was last asked.
    pub(crate) fn take(&self) -> Captured {
        self.capture().take()
    }
}

fn lock(capture: &Mutex<Capture>) -> MutexGuard<'_, Capture> {
    capture.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn supervise(
    mut child: Child,
    mut intake: Intake,
    term: CancellationToken,
    kill: CancellationToken,
) {
    let how = {
        let ended = end_of(&mut child, &term, &kill);
        tokio::pin!(ended);
        // Also while it is being ended: a full pipe would hold up its last words.
        loop {
            tokio::select! {
                biased;
                how = &mut ended => break how,
                () = intake.more() => {}
            }
        }
    };
    // What does not come to its end in time is read on, and dropped.
    if !intake.drain().await
        && let Some(output) = intake.output.take()
    {
        child.keep_reading(output);
    }
    lock(&intake.capture).close();
    *intake.put_back.lock().unwrap_or_else(PoisonError::into_inner) = child.put_back().clone();
    if let Some((after, ran)) = intake.after.take() {
        let said = tokio::task::spawn_blocking(move || after(ran)).await.unwrap_or_default();
        *intake.noted.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }
    let left_running = child.left_something();
    intake.tell.send_modify(|news| news.finish = Some(Finish { how, left_running }));
}

async fn end_of(child: &mut Child, term: &CancellationToken, kill: &CancellationToken) -> Ended {
    tokio::select! {
        biased;
        () = kill.cancelled() => {}
        () = term.cancelled() => tokio::select! {
            biased;
            () = kill.cancelled() => {}
            how = child.end() => return how,
        },
        how = child.wait() => return how,
    }
    child.kill().await
}

/// Takes in what a command writes.
struct Intake {
    /// Until it has come to its end.
    output: Option<pipe::Receiver>,
    plain: Plain,
    buffer: Vec<u8>,
    capture: Arc<Mutex<Capture>>,
    tell: watch::Sender<News>,
    put_back: Arc<Mutex<PutBack>>,
    noted: Arc<Mutex<String>>,
    after: Option<(AfterCommand, Ran)>,
}

impl Intake {
    /// Waits for ever when there is nothing more to come.
    async fn more(&mut self) {
        let Some(output) = &mut self.output else { return std::future::pending().await };
        match output.read(&mut self.buffer).await {
            Ok(0) | Err(_) => self.output = None,
            Ok(count) => {
                let bytes = self.plain.push(&self.buffer[..count]);
                lock(&self.capture).push(&bytes);
                self.tell.send_modify(|news| news.bytes += bytes.len() as u64);
            }
        }
    }

    /// Reads what is left. Says whether it came to its end.
    async fn drain(&mut self) -> bool {
        let until = Instant::now() + DRAIN_GRACE;
        while self.output.is_some() {
            if tokio::time::timeout_at(until, self.more()).await.is_err() {
                return false;
            }
        }
        true
    }
}
