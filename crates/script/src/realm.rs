//! One script at work: an engine on a thread of its own, with a limit for its memory and a way to stop
//! it. Calls and answers cross as JSON; the thread does nothing but run the script.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::host::{Guard, Host};
use crate::modules::{Loaded, place_in};
use crate::patience::{Limit, Patience, Timed};

/// What one script may hold.
const MEMORY_BYTES: usize = 64 << 20;

/// How long a call that was told to stop may take to do so.
const GRACE: Duration = Duration::from_millis(300);

/// A stretch of work without a pause that is longer than this is in the way of those that must stop.
const LONG_SLICE: Duration = Duration::from_millis(250);

/// Nobody's work may take longer without a pause.
const LONGEST_SLICE: Duration = Duration::from_secs(60);

/// What a script asks of the host at the same time; each answer may be many megabytes.
const AT_ONCE: usize = 16;

/// Lines and bytes of a call's console that are kept.
const LOG_LINES: usize = 500;
const LOG_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// What the script threw, with where it did.
    #[error("{message}")]
    Thrown { message: String, code: Option<String> },
    #[error("the script was still at work after {} s and was stopped", .0.as_secs_f64())]
    Deadline(Duration),
    #[error("the call was stopped")]
    Stopped,
    #[error("the script used more than {} MiB of memory and was stopped", MEMORY_BYTES >> 20)]
    Memory,
    #[error("the script engine cannot start: {0}")]
    Engine(String),
}

/// What a call may use, and for how long.
pub struct CallTerms {
    pub guard: Option<Arc<dyn Guard>>,
    pub limit: Limit,
    pub cancel: CancellationToken,
}

/// What a call left beside its answer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Aside {
    /// The newest of what it said about itself.
    pub(crate) note: Option<Value>,
    pub(crate) log: Vec<String>,
    log_bytes: usize,
}

pub(crate) enum Message {
    Call { id: u64, kind: &'static str, payload: String },
    Reply { id: u64, good: bool, payload: String },
    Abort { id: u64 },
    End,
}

struct Active {
    reply: oneshot::Sender<(Result<Value, ScriptError>, Aside)>,
    guard: Option<Arc<dyn Guard>>,
    aside: Aside,
}

/// What the thread and those who call it share.
pub(crate) struct Shared {
    /// The newest last.
    active: Mutex<Vec<(u64, Active)>>,
    next: AtomicU64,
    /// The thread must stop, whatever it does.
    stop: AtomicBool,
    dead: AtomicBool,
    /// Milliseconds since `began` at which the present stretch of work began, plus one; zero if idle.
    slice: AtomicU64,
    began: Instant,
    pub(crate) host: Arc<Host>,
    pub(crate) runtime: Handle,
    pub(crate) inbox: mpsc::Sender<Message>,
    /// Work for the script that is under way ends with it.
    pub(crate) end: CancellationToken,
    pub(crate) loaded: Mutex<HashMap<PathBuf, Loaded>>,
    /// The folder of the file that it is for; nothing where it may import none.
    pub(crate) home: Option<PathBuf>,
    /// Requests that are under way, and how many of them work at once.
    pub(crate) pending: AtomicUsize,
    pub(crate) at_once: Arc<Semaphore>,
    /// The script waits for the host without a promise.
    pub(crate) waits: AtomicBool,
    patience: Patience,
}

impl Shared {
    fn active(&self) -> MutexGuard<'_, Vec<(u64, Active)>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX) + 1
    }

    fn in_slice_for(&self) -> Option<Duration> {
        match self.slice.load(Ordering::Relaxed) {
            0 => None,
            since => Some(Duration::from_millis(self.now().saturating_sub(since))),
        }
    }

    /// While the script waits without a promise, the time that it takes is not its own.
    pub(crate) fn pause(&self, waits: bool) {
        self.waits.store(waits, Ordering::Relaxed);
        self.slice.store(if waits { 0 } else { self.now() }, Ordering::Relaxed);
    }

    /// Asked by the engine while it works.
    pub(crate) fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.in_slice_for().is_some_and(|time| time > LONGEST_SLICE)
    }

    /// Who decides for the script now: calls of one script all belong to one agent.
    pub(crate) fn guard(&self) -> Option<Arc<dyn Guard>> {
        let inner = self.active().last().and_then(|(_, active)| active.guard.clone())?;
        Some(Arc::new(Timed { inner, patience: self.patience.clone() }))
    }

    pub(crate) fn log(&self, level: &str, text: &str) {
        let text = &text[..text.floor_char_boundary(LOG_BYTES)];
        let mut active = self.active();
        let Some((_, Active { aside, guard, .. })) = active.last_mut() else {
            drop(active);
            return self.host.log(level, text);
        };
        if aside.log.len() < LOG_LINES && aside.log_bytes + text.len() <= LOG_BYTES {
            aside.log_bytes += text.len();
            let mark =
                if matches!(level, "log" | "info") { String::new() } else { format!("[{level}] ") };
            aside.log.push(format!("{mark}{text}"));
        }
        let guard = guard.clone();
        drop(active);
        if let Some(guard) = guard {
            guard.progress(text);
        }
    }

    pub(crate) fn note(&self, note: Value) {
        if let Some((_, active)) = self.active().last_mut() {
            if let (Some(title), Some(guard)) = (note["title"].as_str(), &active.guard) {
                guard.progress(title);
            }
            active.aside.note = Some(note);
        }
    }

    /// Nothing more is begun here.
    pub(crate) fn close(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    pub(crate) fn done(&self, id: u64, result: Result<Value, ScriptError>) {
        let mut active = self.active();
        if let Some(at) = active.iter().position(|(known, _)| *known == id) {
            let (_, Active { reply, aside, .. }) = active.remove(at);
            drop(active);
            // Whoever called may have left.
            reply.send((result, aside)).ok();
        }
    }
}

/// A handle to the thread. Dropping the last one ends it.
pub(crate) struct Realm {
    shared: Arc<Shared>,
}

impl Drop for Realm {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.end.cancel();
        self.shared.inbox.send(Message::End).ok();
    }
}

/// Takes a call off the table however its caller leaves.
struct Leaving<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut active = self.shared.active();
        let before = active.len();
        active.retain(|(id, _)| *id != self.id);
        let left = active.len() < before;
        drop(active);
        if left {
            self.shared.inbox.send(Message::Abort { id: self.id }).ok();
            // What does not pause cannot hear it.
            let long = self.shared.in_slice_for().is_some_and(|time| time > LONG_SLICE);
            if long || self.shared.waits.load(Ordering::Relaxed) {
                self.shared.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Realm {
    pub(crate) fn start(host: Arc<Host>, home: Option<PathBuf>) -> Result<Self, ScriptError> {
        let (inbox, messages) = mpsc::channel();
        let shared = Arc::new(Shared {
            active: Mutex::default(),
            next: AtomicU64::new(1),
            stop: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            slice: AtomicU64::new(0),
            began: Instant::now(),
            host,
            runtime: Handle::current(),
            inbox,
            end: CancellationToken::new(),
            loaded: Mutex::default(),
            home,
            pending: AtomicUsize::new(0),
            at_once: Arc::new(Semaphore::new(AT_ONCE)),
            waits: AtomicBool::new(false),
            patience: Patience::new(),
        });
        let own = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("script".to_owned())
            .stack_size(16 << 20)
            .spawn(move || work(&own, &messages))
            .map_err(|e| ScriptError::Engine(e.to_string()))?;
        Ok(Self { shared })
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.shared.dead.load(Ordering::SeqCst) || self.shared.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn loaded(&self) -> Vec<(PathBuf, Loaded)> {
        let loaded = self.shared.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.iter().map(|(path, file)| (path.clone(), file.clone())).collect()
    }

    /// One call of the script. Comes back when it has ended, when it is cancelled or when its time is
    /// over, whatever the script does; with nothing where it came too late to be begun.
    pub(crate) async fn call(
        &self,
        kind: &'static str,
        payload: &Value,
        terms: &CallTerms,
    ) -> Option<(Result<Value, ScriptError>, Aside)> {
        let shared = &self.shared;
        let id = shared.next.fetch_add(1, Ordering::Relaxed);
        let (reply, mut answer) = oneshot::channel();
        let active = Active { reply, guard: terms.guard.clone(), aside: Aside::default() };
        shared.active().push((id, active));
        let leaving = Leaving { shared, id };
        let message = Message::Call { id, kind, payload: payload.to_string() };
        // Looked at after the call is on the table: the thread clears the table after it has closed.
        if self.is_dead() || shared.inbox.send(message).is_err() {
            return None;
        }
        let gone = || (Err(ScriptError::Stopped), Aside::default());
        let why = tokio::select! {
            answer = &mut answer => return Some(answer.unwrap_or_else(|_| gone())),
            () = terms.cancel.cancelled() => ScriptError::Stopped,
            () = shared.patience.run_out(terms.limit) => {
                ScriptError::Deadline(terms.limit.time())
            }
        };
        shared.inbox.send(Message::Abort { id }).ok();
        // It may have something to say about where it was; that it was stopped counts all the same.
        let late = tokio::time::timeout(GRACE, &mut answer).await;
        let answer = match late {
            Ok(Ok((Ok(value), aside))) => (Ok(value), aside),
            Ok(Ok((Err(_), aside))) => (Err(why), aside),
            Ok(Err(_)) => (Err(why), Aside::default()),
            Err(_) => {
                let mut active = shared.active();
                let own = active.iter_mut().find(|(known, _)| *known == id);
                let aside = own.map(|(_, active)| std::mem::take(&mut active.aside));
                (Err(why), aside.unwrap_or_default())
            }
        };
        drop(leaving);
        Some(answer)
    }
}

/// The thread: takes what comes, in order, and lets the script go on until it waits.
fn work(shared: &Arc<Shared>, messages: &mpsc::Receiver<Message>) {
    let finish = |why: ScriptError| {
        shared.close();
        shared.end.cancel();
        let ids: Vec<u64> = shared.active().iter().map(|(id, _)| *id).collect();
        for id in ids {
            shared.done(id, Err(why.clone()));
        }
    };
    shared.slice.store(shared.now(), Ordering::Relaxed);
    let engine = match Engine::new(shared, MEMORY_BYTES) {
        Ok(engine) => engine,
        Err(problem) => return finish(ScriptError::Engine(problem)),
    };
    loop {
        shared.slice.store(0, Ordering::Relaxed);
        let Ok(message) = messages.recv() else { return finish(ScriptError::Stopped) };
        shared.slice.store(shared.now(), Ordering::Relaxed);
        let result = match message {
            Message::Call { id, kind, payload } => engine.call(id, kind, &payload),
            Message::Reply { id, good, payload } => engine.reply(id, good, &payload),
            Message::Abort { id } => engine.abort(id),
            Message::End => return finish(ScriptError::Stopped),
        };
        let result = result.and_then(|()| engine.run_pending());
        if engine.is_out_of_memory() {
            return finish(ScriptError::Memory);
        }
        if shared.stop.load(Ordering::Relaxed) {
            return finish(ScriptError::Stopped);
        }
        if let Err(problem) = result {
            let message = format!("the script engine failed: {problem}");
            return finish(ScriptError::Thrown { message, code: None });
        }
    }
}

/// What a script threw, in one text: its words, and where it happened.
pub(crate) fn thrown(shared: &Shared, payload: &str) -> ScriptError {
    let given: Value =
        serde_json::from_str(payload).unwrap_or_else(|_| json!({ "message": payload }));
    let message = given["message"].as_str().unwrap_or("it failed without words");
    // What a script itself says of memory is its own matter.
    if message.contains("out of memory") && given["name"] == "InternalError" {
        return ScriptError::Memory;
    }
    let name = given["name"].as_str().filter(|name| !matches!(*name, "Error" | ""));
    let code = given["code"].as_str().map(str::to_owned);
    let mut said = match name.filter(|_| code.is_none()) {
        Some(name) => format!("{name}: {message}"),
        None => message.to_owned(),
    };
    if let Some(place) = place_in(shared, given["stack"].as_str().unwrap_or_default()) {
        said.push_str(&format!(" (at {place})"));
    }
    ScriptError::Thrown { message: said, code }
}
