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
    Local {
        command: Vec<String>,
        directory: PathBuf,
        environment: BTreeMap<String, String>,
        reach: Reach,
    },
    Remote {
        url: String,
        headers: BTreeMap<String, String>,
        oauth: Oauth,
        kind: RemoteKind,
    },
}

/// How far a process of this machine reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// As far as we do.
    #[default]
    Free,
    /// Files are those of the sandbox; the network is open.
    Fenced,
    /// No network either.
    Offline,
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
            Launch::Remote { url, .. } => without_keys(url),
        }
    }
}

/// The text with its addresses cut down to what is no secret: who signs in, and what is asked for behind
/// the `?`, are often keys.
pub fn without_keys(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let ends = |c: char| c.is_whitespace() || matches!(c, ')' | '"' | '\'' | '<' | '>' | '`');
        let (url, behind) = after.split_at(after.find(ends).unwrap_or(after.len()));
        let (place, asked) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
        let host = place.find('/').unwrap_or(place.len());
        let host_at = place[..host].rfind('@').map_or(0, |at| at + 1);
        out.push_str(&place[host_at..]);
        if !asked.is_empty() {
            out.push_str("?…");
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_what_may_be_a_key() {
        for (text, shown) in [
            ("http://a/b", "http://a/b"),
            ("https://me:pw@a.b/c?key=x&y#z", "https://a.b/c?…"),
            (
                "for url (http://a/?k=1): refused; https://x@b/d@e!",
                "for url (http://a/?…): refused; https://b/d@e!",
            ),
            ("http://", "http://"),
            ("no address: ? # @", "no address: ? # @"),
        ] {
            assert_eq!(without_keys(text), shown);
        }
    }
}
