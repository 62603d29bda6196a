//! All servers of a project: started when first needed, kept, started again, told apart by root.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::client::Client;
use crate::diagnostics::{Diagnostic, merge};
use crate::find::{NoProgram, Options};
use crate::table::Server;

/// How long things may take.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Until a new server is ready; one that takes longer is not used.
    pub initialize: Duration,
    /// That an edit waits for a server which is just starting.
    pub start_wait: Duration,
    /// After its start, in which a server has longer than others to find something.
    pub warm_up: Duration,
    /// For the findings about a file.
    pub findings: Duration,
    /// For findings that are asked for.
    pub pull: Duration,
    /// Without a further word from the server, before its findings count as complete.
    pub debounce: Duration,
    /// For an answer to anything else.
    pub request: Duration,
    /// Of silence, in the background, before a server that said nothing counts as hanging.
    pub alive: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            initialize: Duration::from_secs(45),
            start_wait: Duration::from_secs(10),
            warm_up: Duration::from_secs(10),
            findings: Duration::from_secs(5),
            pull: Duration::from_secs(3),
            debounce: Duration::from_millis(150),
            request: Duration::from_secs(20),
            alive: Duration::from_secs(10),
        }
    }
}

/// How often one server is started again after it ended by itself. More would be a loop.
const RESTARTS: u32 = 3;

/// Bytes of a file that servers are told of.
const CONTENT_CAP_BYTES: u64 = 4 << 20;

pub struct Servers {
    options: Options,
    timing: Timing,
    slots: Mutex<HashMap<(PathBuf, String), Slot>>,
    notices: Mutex<Notices>,
}

struct Slot {
    phase: watch::Receiver<Phase>,
    restarts: u32,
    _starting: AbortOnDropHandle<()>,
    /// Asks a silent server whether it lives.
    probe: Option<AbortOnDropHandle<()>>,
}

#[derive(Clone)]
enum Phase {
    Starting,
    Ready(Arc<Client>),
    /// For good, with the reason.
    Broken(String),
}

/// Each is told once.
#[derive(Default)]
struct Notices {
    told: HashSet<String>,
    untold: Vec<String>,
}

/// Whether findings are waited for that are known already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Always,
    IfNews,
}

/// Which servers there are for a file, and why there is none.
pub(crate) struct Presence {
    pub(crate) clients: Vec<Arc<Client>>,
    pub(crate) missing: Option<String>,
}

/// What servers find wrong.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub findings: BTreeMap<PathBuf, Vec<Diagnostic>>,
    /// About the servers themselves; each is told once.
    pub notices: Vec<String>,
}

/// A server that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub id: String,
    pub root: PathBuf,
    pub connected: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Servers {
    pub fn new(options: Options, timing: Timing) -> Self {
        Self { options, timing, slots: Mutex::default(), notices: Mutex::default() }
    }

    /// Whether anything was turned on at all.
    pub fn is_off(&self) -> bool {
        self.options.servers.is_empty()
    }

    pub fn status(&self) -> Vec<Status> {
        let slots = lock(&self.slots);
        let mut all: Vec<Status> = slots
            .iter()
            .map(|((root, id), slot)| {
                let phase = slot.phase.borrow();
                let connected = matches!(&*phase, Phase::Ready(client) if client.ended().is_none());
                Status { id: id.clone(), root: root.clone(), connected }
            })
            .collect();
        all.sort_by(|a, b| (&a.id, &a.root).cmp(&(&b.id, &b.root)));
        all
    }

    /// What is wrong with `files` as they lie on the disk now, and with whatever else the servers
    /// told of. Waits a little for servers that start and for what they find, never longer.
    pub async fn check(&self, files: &[PathBuf]) -> Report {
        let checks = files.iter().map(|file| self.check_one(file));
        let looked_at: Vec<_> = join_all(checks).await;
        let mut report = Report::default();
        for client in self.running() {
            for (file, findings) in client.hearing.all_published() {
                // Of the files themselves only what is known to be about their newest content.
                if !files.contains(&file) {
                    merge(report.findings.entry(file).or_default(), findings);
                }
            }
        }
        for (file, findings) in files.iter().zip(looked_at) {
            merge(report.findings.entry(file.clone()).or_default(), findings);
        }
        report.findings.retain(|_, findings| !findings.is_empty());
        report.notices = std::mem::take(&mut lock(&self.notices).untold);
        report
    }

    async fn check_one(&self, file: &Path) -> Vec<Diagnostic> {
        if !file.exists() {
            for client in self.running().iter().filter(|client| client.server.takes(file)) {
                client.removed(file).await.ok();
            }
            return Vec::new();
        }
        let clients = self.clients(file, self.timing.start_wait).await.clients;
        let Some(content) = content(file).await else { return Vec::new() };
        self.let_look(file, &content, &clients, Look::Always).await
    }

    /// Tells `clients` what the file holds and waits for what they find in it.
    pub(crate) async fn let_look(
        &self,
        file: &Path,
        content: &str,
        clients: &[Arc<Client>],
        look: Look,
    ) -> Vec<Diagnostic> {
        let looks = clients.iter().map(|client| async {
            let synced = client.sync(file, content, true).await.ok()?;
            if look == Look::IfNews && !synced.is_news {
                return None;
            }
            let waited = client.findings(file, synced, &self.timing).await;
            if !waited.answered {
                self.probe(client, file);
            }
            Some(waited.findings)
        });
        let mut findings = Vec::new();
        for found in join_all(looks).await.into_iter().flatten() {
            merge(&mut findings, found);
        }
        for client in clients {
            if let Some(reason) = client.ended() {
                self.tell_end(client, reason);
            }
        }
        findings
    }

    /// Starts what `file` needs, without waiting for it.
    pub fn warm(&self, file: &Path) {
        for (server, root) in self.matching(file) {
            self.phase(server, &root).ok();
        }
    }

    pub(crate) fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The servers that are ready for `file` within `patience`.
    pub(crate) async fn clients(&self, file: &Path, patience: Duration) -> Presence {
        let deadline = Instant::now() + patience;
        let mut presence = Presence { clients: Vec::new(), missing: None };
        let mut starting = Vec::new();
        for (server, root) in self.matching(file) {
            match self.phase(server, &root) {
                Ok(phase) => starting.push((server, phase)),
                Err(reason) => presence.missing = Some(reason),
            }
        }
        for (server, mut phase) in starting {
            let decided = phase.wait_for(|phase| !matches!(phase, Phase::Starting));
            let phase = match timeout_at(deadline, decided).await {
                Ok(Ok(phase)) => phase.clone(),
                Ok(Err(_)) => Phase::Broken("its start was given up".to_owned()),
                Err(_) => Phase::Starting,
            };
            match phase {
                Phase::Ready(client) => presence.clients.push(client),
                Phase::Broken(reason) => {
                    self.tell(&server.id, "broken", || {
                        format!("The language server {} cannot be used: {reason}.", server.id)
                    });
                    presence.missing = Some(format!("{} cannot be used: {reason}", server.id));
                }
                Phase::Starting => {
                    presence.missing = Some(format!("{} is still starting", server.id));
                    self.tell(&server.id, "slow", || {
                        format!("The language server {} is still starting; its findings will come later.", server.id)
                    });
                }
            }
        }
        presence
    }

    fn matching(&self, file: &Path) -> Vec<(&Server, PathBuf)> {
        let place = &self.options.place;
        if !place.contains(file) {
            return Vec::new();
        }
        let servers = self.options.servers.iter().filter(|server| server.takes(file));
        servers.filter_map(|server| Some((server, place.root_of(server, file)?))).collect()
    }

    fn running(&self) -> Vec<Arc<Client>> {
        let slots = lock(&self.slots);
        let ready = slots.values().filter_map(|slot| match &*slot.phase.borrow() {
            Phase::Ready(client) if client.ended().is_none() => Some(Arc::clone(client)),
            _ => None,
        });
        ready.collect()
    }

    /// How it stands with a server, which is started if it is not there. Fails with the reason why
    /// it cannot be.
    fn phase(&self, server: &Server, root: &Path) -> Result<watch::Receiver<Phase>, String> {
        let key = (root.to_owned(), server.id.clone());
        let mut slots = lock(&self.slots);
        let mut restarts = 0;
        if let Some(slot) = slots.get(&key) {
            let phase = slot.phase.borrow().clone();
            match phase {
                Phase::Ready(client) if client.ended().is_some() => {
                    self.tell_end(&client, client.ended().unwrap_or_default());
                    if slot.restarts >= RESTARTS {
                        let reason = format!("{} stopped {} times", server.id, RESTARTS + 1);
                        self.tell(&server.id, "limit", || {
                            format!("The language server {reason} and is not started again.")
                        });
                        return Err(reason);
                    }
                    restarts = slot.restarts + 1;
                }
                _ => return Ok(slot.phase.clone()),
            }
        }
        let launch = self.options.place.launch(server, root).map_err(|reason| {
            if let NoProgram::Untrusted { .. } = reason {
                self.tell(&server.id, "trust", || format!("No language server: {reason}."));
            }
            reason.to_string()
        })?;
        let (told, phase) = watch::channel(Phase::Starting);
        let (server, root) = (server.clone(), root.to_owned());
        let (options, limit) = (self.options.clone(), self.timing.initialize);
        let starting = async move {
            let started = Client::start(server, root, launch, &options, limit).await;
            // Nobody may be waiting any more; the next one looks here first.
            told.send_replace(match started {
                Ok(client) => Phase::Ready(Arc::new(client)),
                Err(reason) => Phase::Broken(reason),
            });
        };
        let starting = AbortOnDropHandle::new(tokio::spawn(starting));
        let slot = Slot { phase: phase.clone(), restarts, _starting: starting, probe: None };
        slots.insert(key, slot);
        Ok(phase)
    }

    /// Finds out in the background whether a server that did not answer still lives, and ends it if not.
    fn probe(&self, client: &Arc<Client>, file: &Path) {
        let mut slots = lock(&self.slots);
        let key = (client.root.clone(), client.server.id.clone());
        let Some(slot) = slots.get_mut(&key) else { return };
        if slot.probe.as_ref().is_some_and(|probe| !probe.is_finished()) {
            return;
        }
        let (client, file, limit) = (Arc::clone(client), file.to_owned(), self.timing.alive);
        slot.probe = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            if !client.is_alive(&file, limit).await {
                client.give_up("it no longer answers");
            }
        })));
    }

    fn tell_end(&self, client: &Client, reason: &str) {
        let id = &client.server.id;
        self.tell(id, "ended", || {
            format!("The language server {id} stopped ({reason}); it is started again when it is needed.")
        });
    }

    fn tell(&self, server: &str, what: &str, words: impl FnOnce() -> String) {
        let mut notices = lock(&self.notices);
        if notices.told.insert(format!("{server} {what}")) {
            let words = words();
            notices.untold.push(words);
        }
    }
}

/// What servers are told of a file: text without its byte-order mark. Nothing where there is none or
/// too much of it.
pub(crate) async fn content(file: &Path) -> Option<String> {
    let data = tokio::fs::metadata(file).await.ok()?;
    if !data.is_file() || data.len() > CONTENT_CAP_BYTES {
        return None;
    }
    let bytes = tokio::fs::read(file).await.ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}
