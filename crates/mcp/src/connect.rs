//! From a specification to a connection: a process and its pipes, or an address.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, serve_client_with_lifecycle};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolwright_proc::{Child, Ended, Spec};

use crate::auth::{self, Vault};
use crate::hub::{Ear, Hub};
use crate::live::{Live, Process};
use crate::pipes::{MESSAGE_CAP_BYTES, Pipes};
use crate::servers::Sandboxes;
use crate::spec::{Launch, Oauth, Reach, RemoteKind, ServerSpec};
use crate::sse;
use crate::watched::Watched;

/// How long a server may take to go after its input has ended.
const LEAVE_GRACE: Duration = Duration::from_millis(500);

/// How long an ended server may take to tell how it ended.
const STATUS_GRACE: Duration = Duration::from_millis(200);

/// How long an address may take to be reached.
const REACH_LIMIT: Duration = Duration::from_secs(10);

/// Why there is no connection, and what may be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoConnection {
    /// It may work next time.
    Again(String),
    /// It will not, until somebody changes something.
    Never(String),
    /// Somebody has to sign in; with the server's own words about it, if it said some.
    SignIn { reason: String, challenge: Option<String> },
}

/// What all servers share.
pub(crate) struct Surroundings {
    /// Variables of ours that no server sees.
    pub(crate) withheld: Vec<String>,
    pub(crate) vault: Option<Arc<dyn Vault>>,
    pub(crate) sandboxes: Option<Sandboxes>,
}

pub(crate) async fn connect(
    spec: &ServerSpec,
    hub: &Arc<Hub>,
    around: &Surroundings,
) -> Result<Live, NoConnection> {
    hub.forget();
    let connecting = async {
        match &spec.launch {
            Launch::Local { command, directory, environment, reach } => {
                let spec = process(command, directory, environment, around)?;
                let spec = fenced(spec, *reach, around.sandboxes.as_ref());
                let child = spec.and_then(|spec| spec.spawn().map_err(|e| e.to_string()));
                local(child.map_err(NoConnection::Never)?, hub).await
            }
            Launch::Remote { url, headers, oauth, kind } => {
                let remote = Remote { name: &spec.name, url, headers, oauth, hub };
                remote.connect(*kind, around).await
            }
        }
    };
    tokio::time::timeout(spec.timeout, connecting).await.unwrap_or_else(|_| {
        let seconds = spec.timeout.as_secs_f32();
        Err(NoConnection::Again(format!("it was not ready within {seconds} s")))
    })
}

/// The process to start. The one place that decides what it sees of our environment.
fn process(
    command: &[String],
    directory: &std::path::Path,
    environment: &BTreeMap<String, String>,
    around: &Surroundings,
) -> Result<Spec, NoConnection> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(NoConnection::Never("its command is empty".to_owned()));
    };
    let mut spec = Spec::new(program, directory).conversation();
    spec.arguments.extend(arguments.iter().map(Into::into));
    spec.environment.clone_from(environment);
    // What people give a server by name it gets.
    let named = |name: &&String| !environment.contains_key(*name);
    spec.withheld = around.withheld.iter().filter(named).cloned().collect();
    Ok(spec)
}

/// Who asked for a fence gets one, or the server is not started.
fn fenced(spec: Spec, reach: Reach, sandboxes: Option<&Sandboxes>) -> Result<Spec, String> {
    let find = match reach {
        Reach::Free => return Ok(spec),
        Reach::Fenced => sandboxes.map(|all| &all.fenced),
        Reach::Offline => sandboxes.map(|all| &all.offline),
    };
    let spec = spec.fenced_by(find)?;
    if !spec.is_fenced() {
        return Err("it is to run in a sandbox, and there is none: `tw doctor` says why".to_owned());
    }
    Ok(spec)
}

async fn local(mut child: Child, hub: &Arc<Hub>) -> Result<Live, NoConnection> {
    let pipes = (child.input(), child.output(), child.errors());
    let (Some(input), Some(output), Some(errors)) = pipes else {
        return Err(NoConnection::Never("its pipes could not be made".to_owned()));
    };
    let (ended, leave) = (CancellationToken::new(), CancellationToken::new());
    let keeper = keep(child, errors, Arc::clone(hub), ended.clone(), leave.clone());
    let keeper = AbortOnDropHandle::new(tokio::spawn(keeper));
    let make = || Watched::new(Pipes::new(output, input, Arc::clone(&hub.tail)), &ended);
    let greeting = greet(make(), hub);
    let running = tokio::select! {
        running = greeting => running.map_err(|e| NoConnection::Again(refusal(&e))),
        () = ended.cancelled() => Err(NoConnection::Again(String::new())),
    };
    let running = match running {
        Ok(running) => running,
        Err(NoConnection::Again(reason)) => {
            // How it ended says more than that it did.
            let mut keeper = keeper;
            if tokio::time::timeout(STATUS_GRACE, &mut keeper).await.is_err() {
                leave.cancel();
                keeper.await.ok();
            }
            let reason = hub.how_it_ended().unwrap_or(reason);
            let reason = if reason.is_empty() { "it ended".to_owned() } else { reason };
            return Err(NoConnection::Again(format!("{reason} before it was ready")));
        }
        Err(other) => return Err(other),
    };
    let process = Process { leave, keeper };
    Live::new(running, Arc::clone(hub), ended, Some(process))
        .ok_or_else(|| NoConnection::Again("it did not say who it is".to_owned()))
}

/// Owns the process until it ends, or may.
async fn keep(
    mut child: Child,
    mut errors: tokio::net::unix::pipe::Receiver,
    hub: Arc<Hub>,
    ended: CancellationToken,
    leave: CancellationToken,
) {
    let listening = async {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = errors.read(&mut buffer).await {
            hub.tail.push(&buffer[..count]);
        }
        // It may close its standard error and go on.
        std::future::pending::<()>().await;
    };
    tokio::pin!(listening);
    let (how, asked) = tokio::select! {
        how = child.wait() => (how, false),
        () = &mut listening => (child.end().await, true),
        () = leave.cancelled() => {
            match tokio::time::timeout(LEAVE_GRACE, child.wait()).await {
                Ok(how) => (how, true),
                Err(_) => (child.end().await, true),
            }
        }
    };
    // What it has started goes with it.
    child.kill().await;
    // Its last words may still be in the pipe.
    tokio::time::timeout(Duration::from_millis(100), listening).await.ok();
    if !asked {
        hub.has_ended(match how {
            Ended::Exit(code) => format!("it exited with code {code}"),
            Ended::Signal(signal) => format!("it was ended by signal {signal}"),
        });
    }
    ended.cancel();
}

type Running = rmcp::service::RunningService<RoleClient, Ear>;

async fn greet<T>(transport: T, hub: &Arc<Hub>) -> Result<Running, Box<ClientInitializeError>>
where
    T: Transport<RoleClient> + 'static,
{
    let ear = Ear(Arc::clone(hub));
    // The handshake first: every server answers it, if only with an error, while an unknown first
    // request makes some hang and others end.
    serve_client_with_lifecycle(ear, transport, ClientLifecycleMode::Initialize)
        .await
        .map_err(Box::new)
}

struct Remote<'a> {
    name: &'a str,
    url: &'a str,
    headers: &'a BTreeMap<String, String>,
    oauth: &'a Oauth,
    hub: &'a Arc<Hub>,
}

impl Remote<'_> {
    async fn connect(&self, kind: RemoteKind, around: &Surroundings) -> Result<Live, NoConnection> {
        let headers = headers(self.headers).map_err(NoConnection::Never)?;
        let client = http_client(self.url, &headers).map_err(NoConnection::Never)?;
        if kind == RemoteKind::Sse {
            return self.older(client, around).await;
        }
        let signed_in = self.manager(around).await?;
        let error = match signed_in {
            Some(manager) => {
                let client = rmcp::transport::AuthClient::new(client.clone(), manager);
                match self.streamable(client, ClientLifecycleMode::Initialize).await {
                    Ok(live) => return Ok(live),
                    Err(error) => error,
                }
            }
            None => match self.streamable(client.clone(), ClientLifecycleMode::Initialize).await {
                Ok(live) => return Ok(live),
                Err(error) => error,
            },
        };
        if error.is_authorization_required() || error.auth_challenge().is_some() {
            return Err(self.sign_in(error.auth_challenge()));
        }
        let said = refusal(&error);
        if knows_no_handshake(&said) {
            let modern =
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
            if let Ok(live) = self.streamable(client.clone(), modern).await {
                return Ok(live);
            }
        }
        // Servers that have only the older way refuse the newer in many words.
        if is_refused_post(&said)
            && let Ok(live) = self.older(client, around).await
        {
            return Ok(live);
        }
        Err(NoConnection::Again(said))
    }

    fn sign_in(&self, challenge: Option<&str>) -> NoConnection {
        let name = self.name;
        if *self.oauth == Oauth::Off || has_authorization(self.headers) {
            return NoConnection::Never(
                "it does not accept the authorization that is configured".to_owned(),
            );
        }
        NoConnection::SignIn {
            reason: format!("it wants you to sign in: tw mcp auth {name}"),
            challenge: challenge.map(str::to_owned),
        }
    }

    /// For a server that we have signed in at.
    async fn manager(
        &self,
        around: &Surroundings,
    ) -> Result<Option<rmcp::transport::AuthorizationManager>, NoConnection> {
        let (Oauth::On(oauth), Some(vault)) = (self.oauth, &around.vault) else { return Ok(None) };
        if has_authorization(self.headers) {
            return Ok(None);
        }
        let manager = auth::signed_in(self.name, self.url, oauth, vault).await;
        manager.map_err(NoConnection::Again)
    }

    async fn streamable<C>(
        &self,
        client: C,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Live, Box<ClientInitializeError>>
    where
        C: rmcp::transport::streamable_http_client::StreamableHttpClient + Sync,
    {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url)
            .max_sse_event_size(MESSAGE_CAP_BYTES)
            .reinit_on_expired_session(true);
        let ended = CancellationToken::new();
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let ear = Ear(Arc::clone(self.hub));
        let transport = Watched::new(transport, &ended);
        let running = serve_client_with_lifecycle(ear, transport, lifecycle).await?;
        Live::new(running, Arc::clone(self.hub), ended, None).ok_or_else(|| {
            Box::new(ClientInitializeError::ConnectionClosed("nobody there".to_owned()))
        })
    }

    async fn older(
        &self,
        client: reqwest::Client,
        around: &Surroundings,
    ) -> Result<Live, NoConnection> {
        let manager = self.manager(around).await?;
        let manager = manager.map(|manager| Arc::new(tokio::sync::Mutex::new(manager)));
        let transport = sse::connect(client, self.url, manager).await;
        let transport = transport.map_err(|refused| match refused {
            sse::Refused::SignIn => self.sign_in(None),
            sse::Refused::Other(why) => NoConnection::Again(why),
        })?;
        let ended = CancellationToken::new();
        let running = greet(Watched::new(transport, &ended), self.hub).await;
        let running = running.map_err(|e| NoConnection::Again(refusal(&e)))?;
        Live::new(running, Arc::clone(self.hub), ended, None)
            .ok_or_else(|| NoConnection::Again("it did not say who it is".to_owned()))
    }
}

fn has_authorization(headers: &BTreeMap<String, String>) -> bool {
    headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
}

fn headers(wanted: &BTreeMap<String, String>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let header = |(name, value): (&String, &String)| {
        let name: HeaderName =
            name.parse().map_err(|_| format!("headers.{name} is no name of a header"))?;
        let mut value: HeaderValue = value
            .trim()
            .parse()
            .map_err(|_| format!("headers.{name} has a value that cannot be sent"))?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    wanted.iter().map(header).collect()
}

/// Without a limit for a whole answer: streams stay open for hours.
fn http_client(
    url: &str,
    headers: &HashMap<HeaderName, HeaderValue>,
) -> Result<reqwest::Client, String> {
    let builder = toolwright_llm::client_builder(url, None)?;
    builder
        .connect_timeout(REACH_LIMIT)
        .default_headers(headers.clone().into_iter().collect())
        // A header that signs in goes nowhere else.
        .redirect(same_origin())
        .build()
        .map_err(|e| e.to_string())
}

/// Follows where the server itself goes, not to another.
fn same_origin() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let first = attempt.previous().first().map(reqwest::Url::origin);
        if first == Some(attempt.url().origin()) && attempt.previous().len() < 5 {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// A server of the newest kind refuses the handshake by its method or by its version.
fn knows_no_handshake(said: &str) -> bool {
    let said = said.to_lowercase();
    said.contains("method not found")
        || said.contains("unsupported protocol version")
        || said.contains("-32601")
        || said.contains("-32022")
}

fn is_refused_post(said: &str) -> bool {
    ["400", "404", "405", "406", "415", "501", "content type", "unexpected server response"]
        .iter()
        .any(|sign| said.to_lowercase().contains(sign))
}

/// Why the beginning failed, without the SDK's names for its own types.
fn refusal(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refused: {} ({})", error.message, error.code.0)
        }
        ClientInitializeError::ConnectionClosed(_) => String::new(),
        ClientInitializeError::TransportError { error, .. } => chain(error.error.as_ref()),
        other => chain(other),
    }
}

/// An error with its causes, each said once.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = below(error);
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text.push_str(&format!(": {words}"));
        }
        cause = below(inner);
    }
    crate::content::cut(&crate::spec::without_keys(&text), 600)
}

/// The cause of an error. The SDK does not pass on what its HTTP client says.
fn below<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(inner)) => Some(inner),
        _ => error.source(),
    }
}
