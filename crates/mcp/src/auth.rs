//! Signing in at a server: the SDK's OAuth 2.1 (discovery, registration, PKCE, refresh), with our own
//! place for tokens and our own ear for the browser's answer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::transport::auth::{AuthError, OAuthClientConfig};
use rmcp::transport::{
    AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialStore,
    StoredCredentials, WWWAuthenticateParams,
};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::spec::OauthSpec;

/// How long a person may take in the browser.
pub const SIGN_IN_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Where the browser comes back to. The port is OpenCode's where a client was registered by hand, so
/// that what people have registered there goes on to work.
const CALLBACK_PATH: &str = "/mcp/oauth/callback";
const REGISTERED_PORT: u16 = 19_876;

/// Bytes of the browser's request.
const REQUEST_CAP_BYTES: usize = 16 << 10;

/// Keeps one text for each server, safely.
pub trait Vault: Send + Sync {
    fn load(&self, server: &str) -> BoxFuture<'static, Result<Option<String>, String>>;
    fn save(&self, server: &str, text: String) -> BoxFuture<'static, Result<(), String>>;
    fn clear(&self, server: &str) -> BoxFuture<'static, Result<(), String>>;
}

/// What is kept of a server.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    /// What was given for one address is not shown to another.
    server_url: String,
    credentials: Option<StoredCredentials>,
    /// What it refused for want of rights.
    #[serde(default)]
    challenge: Option<String>,
    /// Given to us when we registered.
    #[serde(default)]
    client_secret: Option<String>,
}

#[derive(Clone)]
struct Store {
    vault: Arc<dyn Vault>,
    server: String,
    url: String,
    client_secret: Arc<Mutex<Option<String>>>,
}

impl Store {
    fn new(vault: &Arc<dyn Vault>, server: &str, url: &str) -> Self {
        let (vault, server) = (Arc::clone(vault), server.to_owned());
        Self { vault, server, url: url.to_owned(), client_secret: Arc::default() }
    }

    fn secret(&self) -> MutexGuard<'_, Option<String>> {
        self.client_secret.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn kept(&self) -> Result<Option<Kept>, String> {
        let Some(text) = self.vault.load(&self.server).await? else { return Ok(None) };
        // What cannot be read is as good as nothing: signing in again replaces it.
        let kept: Option<Kept> = serde_json::from_str(&text).ok();
        Ok(kept.filter(|kept| kept.server_url == self.url))
    }

    async fn keep(&self, kept: &Kept) -> Result<(), String> {
        let text = serde_json::to_string(kept).map_err(|e| e.to_string())?;
        self.vault.save(&self.server, text).await
    }
}

#[async_trait::async_trait]
impl CredentialStore for Store {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let kept = self.kept().await.map_err(AuthError::CredentialStoreError)?;
        Ok(kept.and_then(|kept| kept.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let server_url = self.url.clone();
        let client_secret = self.secret().clone();
        let credentials = Some(credentials);
        let kept = Kept { server_url, credentials, challenge: None, client_secret };
        self.keep(&kept).await.map_err(AuthError::CredentialStoreError)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.vault.clear(&self.server).await.map_err(AuthError::CredentialStoreError)
    }
}

async fn manager(url: &str, store: &Store) -> Result<AuthorizationManager, String> {
    // As a side effect the ways of encryption are chosen, which the SDK leaves to us.
    drop(toolwright_llm::client_builder(url, None)?);
    let mut manager = AuthorizationManager::new(url).await.map_err(|e| e.to_string())?;
    manager.set_credential_store(store.clone());
    Ok(manager)
}

/// A manager with the tokens that there are for the server; nothing if there are none.
pub(crate) async fn signed_in(
    server: &str,
    url: &str,
    oauth: &OauthSpec,
    vault: &Arc<dyn Vault>,
) -> Result<Option<AuthorizationManager>, String> {
    let store = Store::new(vault, server, url);
    let Some(Kept { credentials: Some(credentials), client_secret, .. }) = store.kept().await?
    else {
        return Ok(None);
    };
    store.secret().clone_from(&client_secret);
    let mut manager = manager(url, &store).await?;
    if !manager.initialize_from_store().await.map_err(|e| e.to_string())? {
        return Ok(None);
    }
    if let Some(secret) = oauth.client_secret.clone().or(client_secret) {
        // Renewing tokens needs no place to come back to, but its form.
        let usual = format!("http://127.0.0.1:{REGISTERED_PORT}{CALLBACK_PATH}");
        let redirect = oauth.redirect_uri.clone().unwrap_or(usual);
        let client =
            OAuthClientConfig::new(credentials.client_id, redirect).with_client_secret(secret);
        manager.configure_client(client).map_err(|e| e.to_string())?;
    }
    Ok(Some(manager))
}

/// Remembers what the server would have wanted, for the next time that somebody signs in.
pub(crate) async fn remember_challenge(
    server: &str,
    url: &str,
    vault: &Arc<dyn Vault>,
    challenge: String,
) {
    let store = Store::new(vault, server, url);
    if let Ok(Some(kept)) = store.kept().await {
        // Without it the person is still told to sign in.
        store.keep(&Kept { challenge: Some(challenge), ..kept }).await.ok();
    }
}

/// A person who is signing in.
pub struct SignIn {
    session: AuthorizationSession,
    listener: TcpListener,
    callback: String,
}

/// Finds out where to sign in, and prepares it. `challenge` is what the server said when it refused.
pub async fn begin_sign_in(
    server: &str,
    url: &str,
    oauth: &OauthSpec,
    vault: &Arc<dyn Vault>,
    challenge: Option<String>,
) -> Result<SignIn, String> {
    let store = Store::new(vault, server, url);
    let kept = store.kept().await?;
    let challenge = challenge.or(kept.as_ref().and_then(|kept| kept.challenge.clone()));
    let mut manager = manager(url, &store).await?;
    let found = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
    let found = found.map_err(|e| format!("cannot find out where to sign in: {e}"))?;
    manager.set_metadata(found.metadata);

    let (listener, callback, redirect) = listen(oauth).await?;
    let mut scopes = scopes(oauth, challenge.as_deref(), url, kept.and_then(|k| k.credentials));
    if scopes.is_empty() {
        scopes = manager.select_initial_scopes(&[]).await;
    }
    let (client, secret) = match &oauth.client_id {
        Some(id) => (id.clone(), oauth.client_secret.clone()),
        None => {
            let names: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let made = manager.register_client("Toolwright", &redirect, &names).await;
            let made = made.map_err(|e| {
                format!(
                    "it does not let us register ({e}); set oauth.clientId to a client of your own"
                )
            })?;
            store.secret().clone_from(&made.client_secret);
            (made.client_id, made.client_secret)
        }
    };
    let mut request = AuthorizationRequest::new(redirect)
        .with_client_name("Toolwright")
        .with_initial_scope_selection()
        .with_preregistered_client(client);
    if let Some(secret) = secret {
        request = request.with_client_secret(secret);
    }
    if !scopes.is_empty() {
        request = request.with_scopes(scopes);
    }
    let session = AuthorizationSession::new(manager, request).await;
    let session = session.map_err(|(_, error)| error.to_string())?;
    Ok(SignIn { session, listener, callback })
}

/// What is asked for where the SDK's own choice is not enough: what people configured, or what was
/// granted together with what was missing.
fn scopes(
    oauth: &OauthSpec,
    challenge: Option<&str>,
    url: &str,
    had: Option<StoredCredentials>,
) -> Vec<String> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut wanted: BTreeSet<String> =
        oauth.scope.as_deref().map(words).unwrap_or_default().into_iter().collect();
    let missing = challenge.zip(url.parse().ok()).and_then(|(challenge, base)| {
        let params = WWWAuthenticateParams::parse(challenge, &base);
        params.is_insufficient_scope().then_some(params.scope).flatten()
    });
    if let Some(missing) = missing {
        wanted.extend(words(&missing));
        wanted.extend(had.into_iter().flat_map(|had| had.granted_scopes));
    }
    wanted.into_iter().collect()
}

async fn listen(oauth: &OauthSpec) -> Result<(TcpListener, String, String), String> {
    let given: Option<reqwest::Url> = match &oauth.redirect_uri {
        None => None,
        Some(uri) => Some(uri.parse().map_err(|e| format!("oauth.redirectUri: {e}"))?),
    };
    let of_uri = given.as_ref().and_then(|uri| uri.port_or_known_default());
    let usual = if oauth.client_id.is_some() { REGISTERED_PORT } else { 0 };
    let port = oauth.callback_port.or(of_uri).unwrap_or(usual);
    let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(|e| {
        format!(
            "cannot wait for the browser at port {port}: {e}; oauth.callbackPort chooses another"
        )
    })?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    let callback = given.as_ref().map_or(CALLBACK_PATH.to_owned(), |uri| uri.path().to_owned());
    let redirect = oauth
        .redirect_uri
        .clone()
        .unwrap_or_else(|| format!("http://127.0.0.1:{port}{CALLBACK_PATH}"));
    Ok((listener, callback, redirect))
}

impl SignIn {
    /// What the person opens.
    pub fn url(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// Waits for the browser to come back, and takes the tokens.
    pub async fn finish(self) -> Result<(), String> {
        let answer = tokio::time::timeout(SIGN_IN_LIMIT, self.wait()).await;
        let answer = answer.map_err(|_| {
            format!("nobody came back within {} minutes", SIGN_IN_LIMIT.as_secs() / 60)
        })??;
        let base: reqwest::Url =
            self.session.redirect_uri.parse().map_err(|e| format!("oauth.redirectUri: {e}"))?;
        let full = base.join(&answer).map_err(|e| e.to_string())?;
        let refused = full.query_pairs().find(|(key, _)| key == "error");
        if let Some((_, error)) = refused {
            let about = full.query_pairs().find(|(key, _)| key == "error_description");
            let about = about.map_or(String::new(), |(_, text)| format!(": {text}"));
            return Err(format!("signing in was refused: {error}{about}"));
        }
        self.session.handle_callback_url(full.as_str()).await.map_err(|e| e.to_string())?;
        Ok(())
    }

    /// The path that the browser came back with.
    async fn wait(&self) -> Result<String, String> {
        loop {
            let (stream, _) = self.listener.accept().await.map_err(|e| e.to_string())?;
            // One browser that hangs must not keep the other out for long.
            let heard = tokio::time::timeout(Duration::from_secs(5), hear(stream, &self.callback));
            if let Ok(Some(path)) = heard.await {
                return Ok(path);
            }
        }
    }
}

/// Reads one request and answers it. Gives its path, if it is the one that is waited for.
async fn hear(mut stream: TcpStream, callback: &str) -> Option<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) if request.len() < REQUEST_CAP_BYTES => {
                request.extend_from_slice(&buffer[..count]);
            }
            _ => break,
        }
    }
    let text = String::from_utf8_lossy(&request);
    let path = text.strip_prefix("GET ").and_then(|rest| rest.split(' ').next())?.to_owned();
    let is_it = path.split('?').next() == Some(callback) && path.contains('?');
    let (status, words) = match is_it {
        true => ("200 OK", "You can close this window and go back to the terminal."),
        false => ("404 Not Found", "There is nothing here."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>Toolwright</title><p>{words}");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    stream.write_all(answer.as_bytes()).await.ok();
    stream.shutdown().await.ok();
    is_it.then_some(path)
}
