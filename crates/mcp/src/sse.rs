//! The older way over HTTP: one stream of events from the server, and an address, named by its first
//! event, that messages are sent to. The SDK no longer has it; servers still do.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::{Client, StatusCode, Url};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::{AuthorizationManager, Transport};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;
use toolwright_llm::SseReader;

/// How long the first event may take.
const ADDRESS_LIMIT: Duration = Duration::from_secs(10);

/// How long sending one message may take.
const SEND_LIMIT: Duration = Duration::from_secs(30);

/// Messages that wait to be read.
const INBOX_CAP: usize = 64;

pub(crate) type Manager = Option<Arc<Mutex<AuthorizationManager>>>;

#[derive(Debug)]
pub(crate) enum Refused {
    SignIn,
    Other(String),
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SendError(String);

pub(crate) struct Sse {
    client: Client,
    address: Url,
    manager: Manager,
    inbox: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    _reading: AbortOnDropHandle<()>,
}

/// Opens the stream and waits for the address.
pub(crate) async fn connect(client: Client, url: &str, manager: Manager) -> Result<Sse, Refused> {
    let other = |why: String| Refused::Other(why);
    let base: Url = url.parse().map_err(|e| other(format!("{url} is no address: {e}")))?;
    let mut request = client.get(base.clone()).header("accept", "text/event-stream");
    if let Some(token) = token(&manager).await {
        request = request.bearer_auth(token);
    }
    let response = request.send().await.map_err(|e| other(crate::connect::chain(&e)))?;
    if response.status() == StatusCode::UNAUTHORIZED {
        return Err(Refused::SignIn);
    }
    if !response.status().is_success() {
        return Err(other(format!("HTTP {}", response.status())));
    }
    let kind = response.headers().get("content-type").and_then(|v| v.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return Err(other("it sends no stream of events".to_owned()));
    }
    let (told, address) = oneshot::channel();
    let (sender, inbox) = mpsc::channel(INBOX_CAP);
    let reading = AbortOnDropHandle::new(tokio::spawn(read(response, told, sender)));
    let address = tokio::time::timeout(ADDRESS_LIMIT, address).await;
    let Ok(Ok(address)) = address else {
        return Err(other("it did not say where to send to".to_owned()));
    };
    let address = base.join(&address).map_err(|e| other(format!("{address}: {e}")))?;
    // It could send our headers, and what we say, to anybody.
    if address.origin() != base.origin() {
        return Err(other(format!("it wants messages sent elsewhere: {address}")));
    }
    Ok(Sse { client, address, manager, inbox, _reading: reading })
}

async fn token(manager: &Manager) -> Option<String> {
    let manager = manager.as_ref()?.lock().await;
    manager.get_access_token().await.ok()
}

/// Ends with the stream, or when nobody reads any more.
async fn read(
    response: reqwest::Response,
    told: oneshot::Sender<String>,
    sender: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
) {
    let mut told = Some(told);
    let mut stream = response.bytes_stream();
    let mut reader = SseReader::default();
    while let Some(Ok(bytes)) = stream.next().await {
        let mut events = Vec::new();
        let pushed = reader.push(&bytes, &mut |event| {
            events.push((event.name.to_owned(), event.data.to_owned()));
        });
        if pushed.is_err() {
            return;
        }
        for (name, data) in events {
            match name.as_str() {
                "endpoint" => {
                    if let Some(told) = told.take() {
                        told.send(data.trim().to_owned()).ok();
                    }
                }
                // What is no message is noise here as it is in a pipe.
                _ => {
                    if let Ok(message) = serde_json::from_str(&data)
                        && sender.send(message).await.is_err()
                    {
                        return;
                    }
                }
            }
        }
    }
}

impl Transport<RoleClient> for Sse {
    type Error = SendError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let (client, address) = (self.client.clone(), self.address.clone());
        let manager = self.manager.clone();
        async move {
            let body = serde_json::to_vec(&message).map_err(|e| SendError(e.to_string()))?;
            let mut request = client
                .post(address)
                .header("content-type", "application/json")
                .timeout(SEND_LIMIT)
                .body(body);
            if let Some(token) = token(&manager).await {
                request = request.bearer_auth(token);
            }
            let response =
                request.send().await.map_err(|e| SendError(crate::connect::chain(&e)))?;
            match response.status() {
                status if status.is_success() => Ok(()),
                status => Err(SendError(format!("HTTP {status}"))),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.inbox.recv().await
    }

    async fn close(&mut self) -> Result<(), SendError> {
        self.inbox.close();
        Ok(())
    }
}
