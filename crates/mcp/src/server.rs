//! One server of a project: started in the background, kept alive, started again when it ends, and given
//! up when that leads nowhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connect::{NoConnection, Surroundings, connect};
use crate::desks::Desks;
use crate::hub::Hub;
use crate::live::{CallError, Listing, Live, Waiting};
use crate::spec::{Launch, Reach, ServerSpec};

/// Tries in a row, without a time of calm between them, before a server is given up.
pub const TRIES: u32 = 5;

/// A connection that has lasted as long is no part of a row of failures any more.
const CALM: Duration = Duration::from_secs(60);

/// The pause before the second try; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// How long a server may be silent before it is asked whether it lives.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_LIMIT: Duration = Duration::from_secs(10);

/// A list that changes all the time is read again no more often than this.
const LIST_PAUSE: Duration = Duration::from_millis(500);

/// How soon somebody who calls may have a server tried again that was given up.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) enum Phase {
    Off,
    /// Nobody has asked for it yet.
    Idle,
    Starting,
    Ready(Arc<Live>),
    /// With the reason, its last words, and whether it is tried again by itself.
    Down {
        reason: String,
        words: Vec<String>,
        again: bool,
    },
    SignIn {
        reason: String,
        challenge: Option<String>,
    },
}

pub(crate) struct Server {
    me: Weak<Self>,
    pub(crate) spec: ServerSpec,
    pub(crate) hub: Arc<Hub>,
    /// Counts when a process is started; what runs has what it was given.
    around: Mutex<Arc<Surroundings>>,
    phase: watch::Sender<Phase>,
    /// Somebody needs it, although it was given up.
    wanted: Notify,
    gave_up: Mutex<Option<Instant>>,
    tools: Mutex<Arc<[Value]>>,
    has_resources: AtomicBool,
    /// Ends the life that it has now; a later one has another.
    close: Mutex<CancellationToken>,
}

impl Server {
    pub(crate) fn new(spec: ServerSpec, hub: Arc<Hub>, around: Arc<Surroundings>) -> Arc<Self> {
        let first = if spec.enabled { Phase::Idle } else { Phase::Off };
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            spec,
            hub,
            around: Mutex::new(around),
            phase: watch::Sender::new(first),
            wanted: Notify::new(),
            gave_up: Mutex::default(),
            tools: Mutex::new(Arc::new([])),
            has_resources: AtomicBool::new(false),
            close: Mutex::default(),
        })
    }

    pub(crate) fn me(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    fn around(&self) -> Arc<Surroundings> {
        Arc::clone(&self.around.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a process of this one is what a process of the other would be.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let is_free = match &self.spec.launch {
            Launch::Local { reach, .. } => *reach == Reach::Free,
            Launch::Remote { .. } => true,
        };
        let drawn_from = |around: &Surroundings| {
            around.sandboxes.as_ref().map(|sandboxes| sandboxes.drawn_from.clone())
        };
        self.spec == other.spec
            && (is_free || drawn_from(&self.around()) == drawn_from(&other.around()))
    }

    /// What is started from now on has what is around the other.
    pub(crate) fn move_to(&self, other: &Self) {
        *self.around.lock().unwrap_or_else(PoisonError::into_inner) = other.around();
    }

    pub(crate) fn has_resources(&self) -> bool {
        self.has_resources.load(Ordering::SeqCst)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// The tools as it listed them last.
    pub(crate) fn tools(&self) -> Arc<[Value]> {
        Arc::clone(&self.tools.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn announce_start(&self) {
        self.phase.send_replace(Phase::Starting);
    }

    /// Ends the life that it has now.
    pub(crate) fn end(&self) {
        self.close.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// For a new life.
    pub(crate) fn begin_life(&self) -> CancellationToken {
        let mut close = self.close.lock().unwrap_or_else(PoisonError::into_inner);
        if close.is_cancelled() {
            *close = CancellationToken::new();
        }
        close.clone()
    }

    /// Its tools go, and it is as if it had been turned off.
    pub(crate) fn turn_off(&self, desks: &Desks) {
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new([]);
        desks.bring(self, &[]);
        self.phase.send_replace(Phase::Off);
    }

    /// Until it is ready or is not going to be.
    pub(crate) async fn settled(&self) -> Phase {
        let mut phase = self.phase.subscribe();
        let decided = phase.wait_for(|phase| !matches!(phase, Phase::Starting | Phase::Idle)).await;
        decided.map_or(Phase::Off, |phase| phase.clone())
    }

    /// The connection; where there is none, one is waited for, or tried once more.
    pub(crate) async fn live(&self, cancel: &CancellationToken) -> Result<Arc<Live>, String> {
        let deadline = Instant::now() + self.spec.timeout;
        let mut phase = self.phase.subscribe();
        loop {
            let now = phase.borrow_and_update().clone();
            let reason = match now {
                Phase::Ready(live) if !live.ended.is_cancelled() => return Ok(live),
                Phase::Off => return Err("it is turned off".to_owned()),
                Phase::SignIn { reason, .. } => return Err(reason),
                Phase::Down { reason, again: false, .. } => {
                    if !self.may_try_again() {
                        return Err(reason);
                    }
                    self.phase.send_replace(Phase::Starting);
                    self.wanted.notify_one();
                    reason
                }
                Phase::Down { reason, .. } => reason,
                Phase::Idle | Phase::Starting | Phase::Ready(_) => {
                    "it is still starting".to_owned()
                }
            };
            tokio::select! {
                changed = phase.changed() => if changed.is_err() { return Err(reason) },
                () = cancel.cancelled() => return Err("interrupted".to_owned()),
                () = tokio::time::sleep_until(deadline) => return Err(reason),
            }
        }
    }

    /// Tries again what waits for somebody, whatever became of it before.
    pub(crate) async fn try_again(&self) -> Phase {
        if matches!(self.phase(), Phase::SignIn { .. } | Phase::Down { .. }) {
            self.announce_start();
            self.wanted.notify_one();
        }
        self.settled().await
    }

    fn may_try_again(&self) -> bool {
        let gave_up = self.gave_up.lock().unwrap_or_else(PoisonError::into_inner);
        gave_up.is_none_or(|then| then.elapsed() >= RETRY_PAUSE)
    }

    /// Runs for as long as the project is worked on.
    pub(crate) async fn keep(self: Arc<Self>, desks: Arc<Desks>, close: CancellationToken) {
        let mut tries = 0;
        loop {
            // A row of failures is no start: whoever looks sees why it is down.
            if tries == 0 {
                self.announce_start();
            }
            let began = tokio::select! {
                began = self.begin(&desks) => began,
                () = close.cancelled() => return,
            };
            let failed = match began {
                Ok(live) => {
                    let since = Instant::now();
                    let reason = tokio::select! {
                        reason = self.attend(&live, &desks) => reason,
                        () = close.cancelled() => {
                            live.close().await;
                            return;
                        }
                    };
                    live.close().await;
                    if since.elapsed() >= CALM {
                        tries = 0;
                    }
                    NoConnection::Again(reason)
                }
                Err(failed) => failed,
            };
            tries += 1;
            let signed_out = matches!(failed, NoConnection::SignIn { .. });
            let pause = match failed {
                NoConnection::SignIn { reason, challenge } => {
                    self.phase.send_replace(Phase::SignIn { reason, challenge });
                    None
                }
                NoConnection::Never(reason) => {
                    self.give_up(reason);
                    None
                }
                NoConnection::Again(reason) if tries >= TRIES => {
                    self.give_up(format!(
                        "{reason}; it failed {tries} times and is not tried again"
                    ));
                    None
                }
                NoConnection::Again(reason) => {
                    self.down(reason, true);
                    Some(FIRST_PAUSE * 2_u32.pow(tries - 1))
                }
            };
            let waiting = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => {
                        self.wanted.notified().await;
                        // One more try, not a new row of them; somebody who has signed in begins anew.
                        tries = if signed_out { 0 } else { TRIES - 1 };
                    }
                }
            };
            tokio::select! {
                () = waiting => {}
                () = close.cancelled() => return,
            }
        }
    }

    fn give_up(&self, reason: String) {
        *self.gave_up.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.down(reason, false);
    }

    fn down(&self, reason: String, again: bool) {
        let words = self.hub.tail.lines();
        self.phase.send_replace(Phase::Down { reason, words, again });
    }

    async fn begin(&self, desks: &Desks) -> Result<Arc<Live>, NoConnection> {
        let live = Arc::new(connect(&self.spec, &self.hub, &self.around()).await?);
        match self.list_tools(&live).await {
            Ok(()) => {}
            Err(error) => {
                live.close().await;
                return Err(match error {
                    CallError::Denied { challenge, .. } => NoConnection::SignIn {
                        reason: format!("it wants you to sign in: tw mcp auth {}", self.spec.name),
                        challenge: Some(challenge),
                    },
                    other => NoConnection::Again(format!("it does not list its tools: {other}")),
                });
            }
        }
        let resources = live.info.capabilities.resources.is_some();
        self.has_resources.store(resources, Ordering::SeqCst);
        // First the tools, then the word that it is ready.
        desks.bring(self, &self.tools());
        self.phase.send_replace(Phase::Ready(Arc::clone(&live)));
        Ok(live)
    }

    async fn list_tools(&self, live: &Live) -> Result<(), CallError> {
        let tools = match live.info.capabilities.tools {
            None => Vec::new(),
            Some(_) => self.list(live, Listing::Tools).await?,
        };
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools.into();
        Ok(())
    }

    pub(crate) async fn list(&self, live: &Live, what: Listing) -> Result<Vec<Value>, CallError> {
        let known = self.hub.begin(None);
        let cancel = CancellationToken::new();
        let waiting = Waiting { known: &known, timeout: self.spec.timeout, cancel: &cancel };
        live.list(what, &waiting).await
    }

    /// Looks after a connection until it ends; gives the reason.
    async fn attend(&self, live: &Live, desks: &Desks) -> String {
        loop {
            tokio::select! {
                () = live.ended.cancelled() => {
                    let how = self.hub.how_it_ended();
                    return how.unwrap_or_else(|| "the connection ended".to_owned());
                }
                () = self.hub.tools_changed.notified() => {
                    // The list of before holds until there is a new one.
                    if self.list_tools(live).await.is_ok() {
                        desks.bring(self, &self.tools());
                    }
                    tokio::select! {
                        () = tokio::time::sleep(LIST_PAUSE) => {}
                        () = live.ended.cancelled() => {}
                    }
                }
                () = tokio::time::sleep(PING_EVERY) => {
                    // One that works may be too busy to answer, and its calls have deadlines.
                    if !self.hub.is_busy() && !live.ping(PING_LIMIT).await && !self.hub.is_busy() {
                        return "it no longer answers".to_owned();
                    }
                }
            }
        }
    }

    /// What a failed request says to whoever made it.
    pub(crate) async fn explain(&self, error: CallError) -> String {
        let name = &self.spec.name;
        match error {
            CallError::Refused(error) => {
                let data = error.data.map_or(String::new(), |data| format!(" {data}"));
                format!("The MCP server {name} refused: {} ({}){data}", error.message, error.code.0)
            }
            CallError::TimedOut(limit) => format!(
                "The MCP server {name} gave no sign of life for {} s, so the call was given up. Whether it took effect is not known.",
                limit.as_secs_f32()
            ),
            CallError::Ended => {
                // How it ended is known a moment later.
                tokio::time::sleep(Duration::from_millis(50)).await;
                let mut words = self.last_words();
                words.extend(self.hub.how_it_ended());
                let last = words.iter().rev().take(3).rev().cloned().collect::<Vec<_>>().join("\n");
                let last =
                    if last.is_empty() { last } else { format!("\nIts last words:\n{last}") };
                format!(
                    "The MCP server {name} ended during the call. Whether it took effect is not known. It is started again.{last}"
                )
            }
            CallError::Transport(text) => self.explain_transport(text),
            CallError::Denied { text, challenge } => {
                self.remember(challenge).await;
                format!(
                    "The MCP server {name} wants you to sign in again with more rights: tw mcp auth {name} ({text})"
                )
            }
            other => format!("The MCP server {name}: {other}."),
        }
    }

    /// The newest that it said, from this life or the one before.
    pub(crate) fn last_words(&self) -> Vec<String> {
        match self.phase() {
            Phase::Down { words, .. } if !words.is_empty() => words,
            _ => self.hub.tail.lines(),
        }
    }

    fn explain_transport(&self, text: String) -> String {
        format!("The MCP server {} cannot be reached: {text}", self.spec.name)
    }

    async fn remember(&self, challenge: String) {
        if let (Launch::Remote { url, .. }, Some(vault)) = (&self.spec.launch, &self.around().vault)
        {
            crate::auth::remember_challenge(&self.spec.name, url, vault, challenge).await;
        }
    }
}
