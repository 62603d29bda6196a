//! What is known of a server before it is started.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How long a server may take to be ready, and a call to give a sign of life, when nobody says.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    pub name: String,
    pub launch: Launch,
    pub enabled: bool,
    /// Nothing begins without it.
    pub required: bool,
    /// Until it is ready; for a call, without a sign of life.
    pub timeout: Duration,
    /// Where it was configured, for people.
    pub origin: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    Local { command: Vec<String>, directory: PathBuf, environment: BTreeMap<String, String> },
    Remote { url: String, headers: BTreeMap<String, String>, oauth: Oauth, kind: RemoteKind },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteKind {
    /// Streamable HTTP, and the older way where the server has only that.
    Find,
    /// The older way: one stream of events, and an address to send to.
    Sse,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Oauth {
    Off,
    On(OauthSpec),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OauthSpec {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub scope: Option<String>,
    pub callback_port: Option<u16>,
    pub redirect_uri: Option<String>,
}

impl ServerSpec {
    /// What it is, in one line.
    pub fn describe(&self) -> String {
        match &self.launch {
            Launch::Local { command, .. } => command.join(" "),
            Launch::Remote { url, .. } => url.clone(),
        }
    }
}
