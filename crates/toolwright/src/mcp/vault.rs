//! Where the tokens of servers are kept: with the keys of providers, in the keyring where there is one.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolwright_mcp::{Vault, plain};

use crate::auth::{Credentials, Kept};
use crate::keyring::Keyring;

pub(crate) struct TokenVault {
    credentials: Credentials,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Under which name it stands among the keys. The keyring's commands take plain words.
fn entry(server: &str) -> String {
    format!("mcp_{}", plain(server))
}

impl TokenVault {
    pub(crate) fn new(credentials: Credentials) -> Self {
        Self { credentials }
    }
}

impl Vault for TokenVault {
    fn load(&self, server: &str) -> BoxFuture<'static, Result<Option<String>, String>> {
        let (credentials, entry) = (self.credentials.clone(), entry(server));
        async move {
            let kept = credentials.get(&entry);
            match kept.map_err(|e| format!("cannot read its tokens: {e}"))? {
                None => Ok(None),
                Some(Kept::InFile(text)) => Ok(Some(text)),
                Some(Kept::InKeyring) => {
                    let keyring = Keyring::find(&variable)
                        .ok_or("the keyring that holds its tokens is not there now")?;
                    keyring.look_up(&entry).await.map(Some).map_err(|e| e.to_string())
                }
            }
        }
        .boxed()
    }

    fn save(&self, server: &str, text: String) -> BoxFuture<'static, Result<(), String>> {
        let (credentials, entry) = (self.credentials.clone(), entry(server));
        async move {
            let keyring = Keyring::find(&variable);
            let kept = credentials.keep(&entry, &text, keyring.as_ref()).await;
            kept.map(drop).map_err(|e| format!("cannot use {}: {e}", credentials.path().display()))
        }
        .boxed()
    }

    fn clear(&self, server: &str) -> BoxFuture<'static, Result<(), String>> {
        let (credentials, entry) = (self.credentials.clone(), entry(server));
        async move {
            let kept = credentials.forget(&entry);
            let kept =
                kept.map_err(|e| format!("cannot use {}: {e}", credentials.path().display()))?;
            match (kept, Keyring::find(&variable)) {
                (Some(Kept::InKeyring), Some(keyring)) => {
                    keyring.remove(&entry).await.map_err(|e| e.to_string())
                }
                _ => Ok(()),
            }
        }
        .boxed()
    }
}

/// The tokens in what was kept, for whoever must not show them.
pub(crate) fn tokens_in(text: &str) -> Vec<String> {
    let Ok(kept) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let answer = &kept["credentials"]["token_response"];
    let tokens = ["access_token", "refresh_token"].iter().filter_map(|key| answer[key].as_str());
    tokens.map(str::to_owned).collect()
}
