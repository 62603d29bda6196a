//! One connection to a server, and requests over it: each with a deadline that signs of life move,
//! and a way out.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, GetPromptRequest,
    GetPromptRequestParams, InputRequest, InputRequiredResult, JsonObject, PaginatedRequestParams,
    PingRequest, ReadResourceRequest, ReadResourceRequestParams, RequestOptionalParam,
    ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};
use rmcp::{ErrorData, RoleClient};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::hub::{Active, Ear, Hub, Known};

/// Pages of one list.
const PAGES_CAP: usize = 1_000;

/// However often a server says that it goes on.
pub(crate) const LONGEST_CALL: Duration = Duration::from_secs(60 * 60);

/// How often a server may ask for something before it answers.
const ROUNDS_CAP: usize = 10;

/// What a server wanted to know before it answers, and its own note of where it was.
type Given = (Option<BTreeMap<String, Value>>, Option<String>);

/// How long telling a server that nobody waits any more may take.
const FAREWELL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    #[error("the connection ended before the answer came")]
    Ended,
    #[error("no sign of life for {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("{}", .0.message)]
    Refused(ErrorData),
    #[error("interrupted")]
    Interrupted,
    #[error("its answer makes no sense: {0}")]
    Senseless(String),
    #[error("{0}")]
    Transport(String),
    /// Signing in again may help.
    #[error("{text}")]
    Denied { text: String, challenge: String },
}

pub(crate) struct Live {
    pub(crate) info: Arc<ServerPeerInfo>,
    pub(crate) hub: Arc<Hub>,
    running: tokio::sync::Mutex<Option<RunningService<RoleClient, Ear>>>,
    peer: Peer<RoleClient>,
    pub(crate) ended: CancellationToken,
    /// Looks after the process, where there is one.
    process: std::sync::Mutex<Option<Process>>,
}

pub(crate) struct Process {
    /// Fires when it may go; it gets a little time, and then does not.
    pub(crate) leave: CancellationToken,
    pub(crate) keeper: AbortOnDropHandle<()>,
}

impl Live {
    pub(crate) fn new(
        running: RunningService<RoleClient, Ear>,
        hub: Arc<Hub>,
        ended: CancellationToken,
        process: Option<Process>,
    ) -> Option<Self> {
        let peer = running.peer().clone();
        let info = peer.peer_info()?;
        let running = tokio::sync::Mutex::new(Some(running));
        let process = std::sync::Mutex::new(process);
        Some(Self { info, hub, running, peer, ended, process })
    }

    /// Says goodbye and sees the process out.
    pub(crate) async fn close(&self) {
        if let Some(mut running) = self.running.lock().await.take() {
            running.close_with_timeout(FAREWELL).await.ok();
        }
        let process = self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(Process { leave, keeper }) = process {
            leave.cancel();
            keeper.await.ok();
        }
        self.ended.cancel();
    }

    /// Whether it still answers.
    pub(crate) async fn ping(&self, limit: Duration) -> bool {
        if !self.info.protocol_version.has_initialize() {
            return true;
        }
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let sent = async {
            let options = PeerRequestOptions::no_options();
            self.peer
                .send_request_with_option(ping, options)
                .await?
                .rx
                .await
                .map_err(|_| ServiceError::TransportClosed)?
        };
        match tokio::time::timeout(limit, sent).await {
            // An error is an answer too.
            Ok(Ok(_) | Err(ServiceError::McpError(_))) => true,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    pub(crate) async fn call_tool(
        &self,
        name: &str,
        arguments: JsonObject,
        waiting: &Waiting<'_>,
    ) -> Result<Value, CallError> {
        let call = |(responses, state): Given| {
            let mut params =
                CallToolRequestParams::new(name.to_owned()).with_arguments(arguments.clone());
            (params.input_responses, params.request_state) = (responses, state);
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        match self.in_rounds(call, waiting).await {
            Err(CallError::Refused(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                let refused = Err(CallError::Refused(error));
                self.call_as_task(name, &arguments, waiting, refused).await
            }
            Ok(answer) if crate::tasks::is_wanted(&answer, name) => {
                self.call_as_task(name, &arguments, waiting, Ok(answer)).await
            }
            answer => answer,
        }
    }

    pub(crate) async fn read_resource(
        &self,
        uri: &str,
        waiting: &Waiting<'_>,
    ) -> Result<Value, CallError> {
        let read = |(responses, state): Given| {
            let mut params = ReadResourceRequestParams::new(uri);
            (params.input_responses, params.request_state) = (responses, state);
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        };
        self.in_rounds(read, waiting).await
    }

    pub(crate) async fn get_prompt(
        &self,
        name: &str,
        arguments: JsonObject,
        waiting: &Waiting<'_>,
    ) -> Result<Value, CallError> {
        let get = |(responses, state): Given| {
            let mut params = GetPromptRequestParams::new(name).with_arguments(arguments.clone());
            (params.input_responses, params.request_state) = (responses, state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        };
        self.in_rounds(get, waiting).await
    }

    /// Asks again, with what the server wanted to know, until it has an answer.
    async fn in_rounds(
        &self,
        request: impl Fn(Given) -> ClientRequest,
        waiting: &Waiting<'_>,
    ) -> Result<Value, CallError> {
        let mut given = Given::default();
        for _ in 0..ROUNDS_CAP {
            match self.ask(request(given), waiting).await? {
                ServerResult::InputRequiredResult(more) => given = self.give(more, waiting).await?,
                other => return plain(other),
            }
        }
        Err(too_many_rounds())
    }

    /// All pages of a list; what stands under `key` of each. A server that does not know the request
    /// has none.
    pub(crate) async fn list(
        &self,
        what: Listing,
        waiting: &Waiting<'_>,
    ) -> Result<Vec<Value>, CallError> {
        let mut found = Vec::new();
        let mut cursors = HashSet::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_CAP {
            let params = cursor
                .clone()
                .map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let request = what.request(params);
            let page = match self.ask(request, waiting).await {
                Ok(page) => plain(page)?,
                Err(CallError::Refused(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                    return Ok(found);
                }
                Err(error) => return Err(error),
            };
            let items = page[what.key()].as_array().cloned().unwrap_or_default();
            found.extend(items);
            match page["nextCursor"].as_str().filter(|next| !next.is_empty()) {
                None => return Ok(found),
                Some(next) if !cursors.insert(next.to_owned()) => {
                    return Err(CallError::Senseless("its list goes in a circle".to_owned()));
                }
                Some(next) => cursor = Some(next.to_owned()),
            }
        }
        Err(CallError::Senseless(format!("its list has more than {PAGES_CAP} pages")))
    }

    pub(crate) async fn plain(
        &self,
        request: ClientRequest,
        waiting: &Waiting<'_>,
    ) -> Result<Value, CallError> {
        plain(self.ask(request, waiting).await?)
    }

    /// Sends a request and waits for as long as there are signs of life.
    async fn ask(
        &self,
        request: ClientRequest,
        waiting: &Waiting<'_>,
    ) -> Result<ServerResult, CallError> {
        let call: &Active = &waiting.known.call;
        let sending = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let mut handle = tokio::select! {
            handle = sending => handle.map_err(failed)?,
            () = waiting.cancel.cancelled() => return Err(CallError::Interrupted),
            () = self.ended.cancelled() => return Err(CallError::Ended),
            () = tokio::time::sleep(waiting.timeout) => {
                return Err(CallError::TimedOut(waiting.timeout));
            }
        };
        call.is_called(handle.id.clone(), handle.progress_token.clone());
        let latest = Instant::now() + LONGEST_CALL;
        let mut deadline = Instant::now() + waiting.timeout;
        let (reason, error) = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    return answer.map_err(|_| CallError::Ended)?.map_err(failed);
                }
                () = waiting.cancel.cancelled() => break ("interrupted", CallError::Interrupted),
                () = call.alive.notified() => deadline = Instant::now() + waiting.timeout,
                () = self.ended.cancelled() => {
                    // The answer may be the last that it said.
                    return match handle.rx.try_recv() {
                        Ok(answer) => answer.map_err(failed),
                        Err(_) => Err(CallError::Ended),
                    };
                }
                () = tokio::time::sleep_until(deadline.min(latest)) => {
                    if call.is_asking() && Instant::now() < latest {
                        deadline = Instant::now() + waiting.timeout;
                        continue;
                    }
                    break ("timeout", CallError::TimedOut(waiting.timeout));
                }
            }
        };
        tokio::time::timeout(FAREWELL, handle.cancel(Some(reason.to_owned()))).await.ok();
        Err(error)
    }

    /// What a server without requests of its own wants to know before it answers.
    async fn give(
        &self,
        more: InputRequiredResult,
        waiting: &Waiting<'_>,
    ) -> Result<Given, CallError> {
        let call = Some(&*waiting.known.call);
        let mut responses = BTreeMap::new();
        for (key, request) in more.input_requests.unwrap_or_default() {
            let answer = async {
                match request {
                    InputRequest::CreateMessage(request) => {
                        let sampled = self.hub.sample(call, request.params).await;
                        sampled.map_err(CallError::Refused).map(to_value)
                    }
                    InputRequest::Elicitation(request) => {
                        Ok(to_value(self.hub.elicit(call, request.params).await))
                    }
                    InputRequest::ListRoots(_) => Ok(to_value(self.hub.roots())),
                    _ => Err(CallError::Senseless("it asks for something unknown".to_owned())),
                }
            };
            let answer = tokio::select! {
                answer = answer => answer?,
                () = waiting.cancel.cancelled() => return Err(CallError::Interrupted),
            };
            responses.insert(key, answer);
        }
        Ok(((!responses.is_empty()).then_some(responses), more.request_state))
    }
}

/// Who waits for an answer, and for how long.
pub(crate) struct Waiting<'a> {
    pub(crate) known: &'a Known,
    pub(crate) timeout: Duration,
    pub(crate) cancel: &'a CancellationToken,
}

/// What servers can be asked to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    Tools,
    Prompts,
    Resources,
    ResourceTemplates,
}

impl Listing {
    fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
        }
    }

    fn request(self, params: Option<PaginatedRequestParams>) -> ClientRequest {
        fn of<M: Default>(
            params: Option<PaginatedRequestParams>,
        ) -> RequestOptionalParam<M, PaginatedRequestParams> {
            let method = M::default();
            RequestOptionalParam { method, params, extensions: Default::default() }
        }
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(of(params)),
            Self::Prompts => ClientRequest::ListPromptsRequest(of(params)),
            Self::Resources => ClientRequest::ListResourcesRequest(of(params)),
            Self::ResourceTemplates => ClientRequest::ListResourceTemplatesRequest(of(params)),
        }
    }
}

fn too_many_rounds() -> CallError {
    CallError::Senseless(format!("it asked more than {ROUNDS_CAP} times before it answered"))
}

fn failed(error: ServiceError) -> CallError {
    match error {
        ServiceError::McpError(error) => CallError::Refused(error),
        ServiceError::TransportClosed => CallError::Ended,
        ServiceError::Cancelled { .. } => CallError::Interrupted,
        other => {
            let text = crate::connect::chain(&other);
            match challenge(&other) {
                Some(challenge) => CallError::Denied { text, challenge },
                None => CallError::Transport(text),
            }
        }
    }
}

/// The server's own words about the rights that are missing.
fn challenge(error: &ServiceError) -> Option<String> {
    let ServiceError::TransportSend(error) = error else { return None };
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error.error.as_ref());
    while let Some(current) = cause {
        if let Some(refused) = current.downcast_ref::<InsufficientScopeError>() {
            return Some(refused.www_authenticate_header.clone());
        }
        if let Some(refused) = current.downcast_ref::<AuthRequiredError>() {
            return Some(refused.www_authenticate_header.clone());
        }
        cause = current.source();
    }
    None
}

fn to_value(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// An answer as data: types that fit one version of the protocol refuse the next.
fn plain(result: ServerResult) -> Result<Value, CallError> {
    serde_json::to_value(result).map_err(|e| CallError::Senseless(e.to_string()))
}
