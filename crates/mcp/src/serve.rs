//! Toolwright as a server itself: its own tools, through its own pipeline, for other programs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_session::{Ending, Outcome};
use toolwright_tool::{CallRequest, Pipeline, Update};

use crate::pipes::MESSAGE_CAP_BYTES;

/// What the tool that starts an agent is called.
pub const AGENT: &str = "agent";

/// How long to wait after a connection could not be taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Works on a prompt as a whole agent and gives its last words.
pub type RunAgent = Arc<
    dyn Fn(String, CancellationToken) -> BoxFuture<'static, Result<String, String>> + Send + Sync,
>;

/// What is offered to others.
#[derive(Clone)]
pub struct Offering {
    pub pipeline: Pipeline,
    /// Tools by name, with whether they only read.
    pub tools: Vec<(String, bool)>,
    pub agent: Option<RunAgent>,
}

/// Over pipes, until the other side ends.
pub async fn serve_pipes<R, W>(offering: Offering, input: R, output: W) -> Result<(), String>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let transport = AsyncRwTransport::new_server(input, output);
    let transport = transport.with_max_line_length(MESSAGE_CAP_BYTES);
    let running = Own { offering }.serve(transport).await.map_err(|e| e.to_string())?;
    running.waiting().await.map(drop).map_err(|e| e.to_string())
}

/// Over HTTP at `/mcp` of an address on this machine, until `cancel` fires. `ready` is told the address.
pub async fn serve_http(
    offering: Offering,
    address: SocketAddr,
    cancel: CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), String> {
    if !address.ip().is_loopback() {
        return Err(format!(
            "{address} can be reached from elsewhere, and there is no password: use 127.0.0.1"
        ));
    }
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|e| format!("cannot listen at {address}: {e}"))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let mut config = StreamableHttpServerConfig::default();
    config.cancellation_token = cancel.child_token();
    // A page in a browser on this machine is not who this is for.
    let config = config.enforce_origin_validation();
    let make = move || Ok(Own { offering: offering.clone() });
    let service =
        StreamableHttpService::new(make, Arc::new(LocalSessionManager::default()), config);
    ready(address);
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Too many open files pass; asking again at once would only take time from the others.
                Err(_) => {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = cancel.cancelled() => return Ok(()),
        };
        let service = TowerToHyperService::new(service.clone());
        let cancel = cancel.clone();
        tokio::spawn(async move {
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                // A client that goes away is no fault of ours.
                served = serving => drop(served),
                () = cancel.cancelled() => {}
            }
        });
    }
}

struct Own {
    offering: Offering,
}

impl Own {
    fn list(&self) -> Vec<Tool> {
        let definitions = self.offering.pipeline.registry().definitions();
        let mut tools: Vec<Tool> = definitions
            .into_iter()
            .filter_map(|definition| {
                let (_, read_only) =
                    self.offering.tools.iter().find(|(name, _)| *name == definition.name)?;
                let schema = definition.parameters.as_object().cloned().unwrap_or_default();
                let notes = ToolAnnotations::new().read_only(*read_only);
                Some(Tool::new(definition.name, definition.description, schema).annotate(notes))
            })
            .collect();
        if self.offering.agent.is_some() {
            let schema = json!({"type": "object", "required": ["prompt"], "properties": {
                "prompt": {"type": "string", "description": "What to do; it sees nothing else."}}});
            let schema = schema.as_object().cloned().unwrap_or_default();
            let about = "Gives a task to a coding agent that works in this folder with tools of its own, and returns its answer.";
            tools.push(Tool::new(AGENT, about, schema));
        }
        tools
    }

    async fn agent(
        &self,
        run: &RunAgent,
        arguments: &Value,
        cancel: CancellationToken,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(prompt) = arguments["prompt"].as_str().filter(|p| !p.trim().is_empty()) else {
            return Err(ErrorData::invalid_params("\"prompt\" is needed", None));
        };
        let result = match run(prompt.to_owned(), cancel).await {
            Ok(answer) => CallToolResult::success(vec![ContentBlock::text(answer)]),
            Err(problem) => CallToolResult::error(vec![ContentBlock::text(problem)]),
        };
        Ok(result.into())
    }

    async fn run(
        &self,
        name: &str,
        arguments: &Value,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = CallRequest {
            id: "call".to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_string(),
            cut: false,
        };
        let (sender, mut updates) = mpsc::channel(16);
        let running = self.offering.pipeline.run_calls(vec![call], context.ct.clone(), sender);
        let token = context.meta.get_progress_token();
        let watching = async {
            let (mut settled, mut steps) = (None, 0.0);
            while let Some(update) = updates.recv().await {
                match update {
                    Update::Starting { go, .. } => {
                        go.send(()).ok();
                    }
                    Update::Settled { outcome, .. } => settled = Some(outcome),
                    Update::Progress { text, .. } => {
                        steps += 1.0;
                        if let Some(token) = token.clone() {
                            let params = ProgressNotificationParam::new(token, steps);
                            let params = params.with_message(text);
                            context.peer.notify_progress(params).await.ok();
                        }
                    }
                    Update::Fatal { .. } | Update::Changed(_) => {}
                }
            }
            settled
        };
        match tokio::join!(running, watching).1 {
            Some(outcome) => Ok(answer(outcome).into()),
            None => Err(ErrorData::internal_error("the call gave no outcome", None)),
        }
    }
}

fn answer(outcome: Outcome) -> CallToolResult {
    let mut blocks = vec![ContentBlock::text(outcome.output)];
    for media in outcome.attachments {
        if media.mime.starts_with("image/") {
            blocks.push(ContentBlock::image(media.base64.to_string(), media.mime));
        }
    }
    match outcome.ending {
        Ending::Completed => CallToolResult::success(blocks),
        _ => CallToolResult::error(blocks),
    }
}

impl ServerHandler for Own {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("toolwright", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let name = request.name.as_ref();
        if let Some(run) = self.offering.agent.as_ref().filter(|_| name == AGENT) {
            return self.agent(run, &arguments, context.ct.clone()).await;
        }
        if !self.offering.tools.iter().any(|(offered, _)| offered == name) {
            return Err(ErrorData::invalid_params(format!("there is no tool {name:?}"), None));
        }
        self.run(name, &arguments, context).await
    }
}
