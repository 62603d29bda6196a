//! All servers of a project. They start side by side in the background, and nobody waits for them who
//! does not want to.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use toolwright_proc::sandbox::Find;
use toolwright_tool::Registry;

use crate::auth::Vault;
use crate::connect::Surroundings;
use crate::desks::Desks;
use crate::hub::Hub;
use crate::roster::{All, Roster};
use crate::sampling::Sampler;
use crate::server::{Phase, Server};
use crate::spec::{Launch, Oauth, OauthSpec, ServerSpec};

#[derive(Default)]
pub struct Options {
    pub servers: Vec<ServerSpec>,
    /// Folders that servers are told of.
    pub roots: Vec<PathBuf>,
    /// Variables of ours that no server sees.
    pub withheld: Vec<String>,
    pub vault: Option<Arc<dyn Vault>>,
    /// For servers that are not to reach everything.
    pub sandboxes: Option<Sandboxes>,
}

/// The fences that [`Reach`](crate::Reach) names.
#[derive(Debug, Clone)]
pub struct Sandboxes {
    pub fenced: Find,
    pub offline: Find,
    /// The settings that they are drawn from: where these are the same, the fences are.
    pub drawn_from: Value,
}

/// A handle: clones share the servers. When the last is dropped, all of them end.
#[derive(Clone)]
pub struct Servers {
    inner: Arc<Inner>,
}

struct Inner {
    servers: Arc<Roster>,
    desks: Arc<Desks>,
    started: AtomicBool,
    /// By the server that they look after.
    keepers: Mutex<Vec<(String, AbortOnDropHandle<()>)>>,
}

/// How it stands with a server.
#[derive(Debug, Clone, Serialize)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    /// Why it is not connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it said last besides the protocol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_words: Vec<String>,
    /// Under the names that models use.
    pub tools: Vec<String>,
    /// Its own name and version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The command or the address.
    pub runs: String,
    pub origin: String,
    #[serde(skip)]
    pub required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    Connected,
    Starting,
    Disabled,
    Failed,
    NeedsAuth,
}

impl ServerState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Starting => "starting",
            Self::Disabled => "disabled",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs sign-in",
        }
    }
}

impl Servers {
    pub fn new(options: Options) -> Self {
        let Options { servers, roots, withheld, vault, sandboxes } = options;
        let around = Arc::new(Surroundings { withheld, vault, sandboxes });
        let make = |spec: ServerSpec| {
            let hub = Hub::new(&spec.name, roots.clone());
            Server::new(spec, hub, Arc::clone(&around))
        };
        let inner = Inner {
            servers: Roster::new(servers.into_iter().map(make).collect()),
            desks: Arc::default(),
            started: AtomicBool::new(false),
            keepers: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    pub(crate) fn all(&self) -> All {
        self.inner.servers.now()
    }

    pub(crate) fn named(&self, name: &str) -> Result<Arc<Server>, String> {
        let all = self.all();
        all.iter().find(|server| server.spec.name == name).cloned().ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|s| s.spec.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("There is no MCP server {name:?}; configured: {known}.")
        })
    }

    /// Starts what is not running yet. Returns at once.
    pub fn start(&self) {
        if self.inner.started.swap(true, Ordering::SeqCst) {
            return;
        }
        self.all().iter().filter(|server| server.spec.enabled).for_each(|s| self.begin(s));
    }

    fn begin(&self, server: &Arc<Server>) {
        server.announce_start();
        let close = server.begin_life();
        let keeper = Arc::clone(server).keep(Arc::clone(&self.inner.desks), close);
        let keeper = AbortOnDropHandle::new(tokio::spawn(keeper));
        let mut keepers = self.inner.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.push((server.spec.name.clone(), keeper));
    }

    /// Turns one on that is off, tries one again that is down, and waits for what comes of it.
    pub async fn connect(&self, name: &str) -> Result<(), String> {
        let server = self.named(name)?;
        self.start();
        match server.phase() {
            Phase::Off => self.begin(&server),
            _ => {
                server.try_again().await;
            }
        }
        server.settled().await;
        Ok(())
    }

    /// Says goodbye to one: it is off until somebody turns it on.
    pub async fn disconnect(&self, name: &str) -> Result<(), String> {
        let server = self.named(name)?;
        self.end(&server).await;
        Ok(())
    }

    async fn end(&self, server: &Arc<Server>) {
        server.end();
        let name = &server.spec.name;
        let own: Vec<_> = {
            let mut keepers = self.inner.keepers.lock().unwrap_or_else(PoisonError::into_inner);
            keepers.extract_if(.., |(of, _)| of == name).collect()
        };
        join_all(own.into_iter().map(|(_, keeper)| keeper)).await;
        server.turn_off(&self.inner.desks);
    }

    /// These become what `next` says, of which nothing runs yet. One that is the same there goes on, in
    /// its process and with all that it knows; the others end, and new ones begin where these had
    /// begun. Says whether anything is another.
    pub async fn change_to(&self, next: &Self) -> bool {
        let (before, wanted) = (self.all(), next.all());
        let gone: Vec<_> =
            before.iter().filter(|old| !wanted.iter().any(|new| old.is_as(new))).collect();
        join_all(gone.iter().map(|server| self.end(server))).await;
        let mut new = Vec::new();
        let now = wanted.iter().map(|wanted| {
            let same =
                before.iter().find(|old| old.is_as(wanted)).inspect(|old| old.move_to(wanted));
            Arc::clone(same.unwrap_or_else(|| {
                new.push(wanted);
                wanted
            }))
        });
        self.inner.servers.replace(now.collect());
        if self.inner.started.load(Ordering::SeqCst) {
            new.iter().filter(|server| server.spec.enabled).for_each(|server| self.begin(server));
        }
        !gone.is_empty() || !new.is_empty()
    }

    /// Waits a little for those that are quick, and as long as it takes for those without which nothing
    /// is to begin. Fails with the words about the first of these that cannot be had.
    pub async fn settle(&self, patience: Duration) -> Result<(), String> {
        if !self.inner.started.load(Ordering::SeqCst) {
            return Ok(());
        }
        let servers = self.all();
        let all = join_all(servers.iter().map(|server| server.settled()));
        // Who is late joins later.
        tokio::time::timeout(patience, all).await.ok();
        for server in servers.iter().filter(|s| s.spec.required && s.spec.enabled) {
            let reason = match server.settled().await {
                Phase::Ready(_) => continue,
                Phase::Down { reason, .. } | Phase::SignIn { reason, .. } => reason,
                Phase::Off | Phase::Idle | Phase::Starting => "it was not started".to_owned(),
            };
            let words = self.last_words(server);
            return Err(format!(
                "the MCP server {} is required and is not there: {reason}{words}",
                server.spec.name
            ));
        }
        Ok(())
    }

    fn last_words(&self, server: &Server) -> String {
        let lines = server.last_words();
        let shown = lines.iter().rev().take(5).rev();
        shown.map(|line| format!("\n    {line}")).collect()
    }

    /// Waits until each is ready, or is not going to be.
    pub async fn settle_all(&self) {
        join_all(self.all().iter().map(|server| server.settled())).await;
    }

    /// Waits until one is ready, or is not going to be.
    pub async fn settle_one(&self, name: &str) {
        if let Ok(server) = self.named(name) {
            server.settled().await;
        }
    }

    /// Tries one again that waits for somebody to do something.
    pub async fn try_again(&self, name: &str) {
        if let Ok(server) = self.named(name) {
            server.try_again().await;
        }
    }

    /// The name under which models call a tool.
    pub fn tool_name(&self, server: &str, tool: &str) -> String {
        self.inner.desks.name_of(server, tool)
    }

    /// The address of a remote server, and how to sign in there, if that can be done.
    pub fn oauth(&self, name: &str) -> Result<(String, OauthSpec), String> {
        match &self.named(name)?.spec.launch {
            Launch::Local { .. } => {
                Err(format!("{name} runs on this machine: there is no signing in"))
            }
            Launch::Remote { oauth: Oauth::Off, .. } => {
                Err(format!("mcp.{name}.oauth is false: signing in is turned off"))
            }
            Launch::Remote { url, oauth: Oauth::On(spec), .. } => Ok((url.clone(), spec.clone())),
        }
    }

    /// Brings the tools of all servers to a registry, now and when they come. `sampler` answers for the
    /// registry's session.
    pub fn attach(&self, registry: &Registry, sampler: Option<Arc<dyn Sampler>>) {
        self.inner.desks.open(registry, sampler, &self.inner.servers);
    }

    /// What the connected servers say about their use, by name.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let of = |server: &Arc<Server>| match server.phase() {
            Phase::Ready(live) => {
                let words = live.info.instructions.clone().filter(|w| !w.trim().is_empty())?;
                Some((server.spec.name.clone(), words))
            }
            _ => None,
        };
        self.all().iter().filter_map(of).collect()
    }

    pub fn status(&self) -> Vec<ServerStatus> {
        self.all().iter().map(|server| self.status_of(server)).collect()
    }

    fn status_of(&self, server: &Server) -> ServerStatus {
        let mut status = ServerStatus {
            name: server.spec.name.clone(),
            state: ServerState::Starting,
            reason: None,
            last_words: server.last_words(),
            tools: Vec::new(),
            server: None,
            protocol: None,
            runs: server.spec.describe(),
            origin: server.spec.origin.clone(),
            required: server.spec.required,
        };
        match server.phase() {
            Phase::Off => status.state = ServerState::Disabled,
            Phase::Idle | Phase::Starting => {}
            Phase::Ready(live) => {
                status.state = ServerState::Connected;
                let who = live.info.server_info.as_ref();
                status.server = who.map(|who| format!("{} {}", who.name, who.version));
                status.protocol = Some(live.info.protocol_version.to_string());
                let name = |tool: &serde_json::Value| {
                    Some(self.inner.desks.name_of(&server.spec.name, tool["name"].as_str()?))
                };
                status.tools = server.tools().iter().filter_map(name).collect();
            }
            Phase::Down { reason, .. } => {
                status.state = ServerState::Failed;
                status.reason = Some(reason);
            }
            Phase::SignIn { reason, .. } => {
                status.state = ServerState::NeedsAuth;
                status.reason = Some(reason);
            }
        }
        status
    }

    /// What a server said when it wanted somebody to sign in.
    pub fn challenge(&self, name: &str) -> Option<String> {
        match self.named(name).ok()?.phase() {
            Phase::SignIn { challenge, .. } => challenge,
            _ => None,
        }
    }

    /// Says goodbye to all of them and sees their processes out.
    pub async fn close(&self) {
        let keepers: Vec<_> = {
            let mut keepers = self.inner.keepers.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *keepers)
        };
        for server in self.all().iter() {
            server.end();
        }
        join_all(keepers.into_iter().map(|(_, keeper)| keeper)).await;
    }
}
