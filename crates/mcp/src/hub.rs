//! What a server may ask of us and tell us, and which of our calls it belongs to.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorData,
    FormElicitationCapability, Implementation, ListRootsResult, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId, Root, RootsCapabilities,
    SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolwright_tool::{Door, Progress};

use crate::sampling::{self, Sampler};
use crate::tail::Tail;
use crate::{elicit, roots};

/// One for each server, across all of its connections.
pub(crate) struct Hub {
    pub(crate) server: String,
    pub(crate) tail: Arc<Tail>,
    /// How its process ended, once it has.
    how: Mutex<Option<String>>,
    roots: Vec<PathBuf>,
    calls: Mutex<Vec<Arc<Active>>>,
    /// Its list of tools is no longer what it was.
    pub(crate) tools_changed: Notify,
}

/// A request of ours that it works on.
#[derive(Default)]
pub(crate) struct Active {
    key: Mutex<Option<(RequestId, ProgressToken)>>,
    /// Gave a sign of life.
    pub(crate) alive: Notify,
    /// Questions to people that are open: nobody hurries them.
    asking: AtomicUsize,
    pub(crate) desk: Option<CallDesk>,
    pub(crate) samplings: AtomicUsize,
    pub(crate) spent: Mutex<Option<f64>>,
    /// Nobody waits for it any more: what it asked for is of no use.
    over: CancellationToken,
}

/// Who stands behind a call.
pub(crate) struct CallDesk {
    pub(crate) door: Door,
    pub(crate) progress: Progress,
    pub(crate) sampler: Option<Arc<dyn Sampler>>,
}

/// While it lives, the call is known to the hub.
pub(crate) struct Known {
    hub: Arc<Hub>,
    pub(crate) call: Arc<Active>,
}

/// While it lives, a person is being asked.
pub(crate) struct Asking<'a>(&'a Active);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(crate) fn new(server: &str, roots: Vec<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            server: server.to_owned(),
            tail: Arc::default(),
            how: Mutex::default(),
            roots,
            calls: Mutex::default(),
            tools_changed: Notify::new(),
        })
    }

    /// A new try: what was said before belongs to the one before.
    pub(crate) fn forget(&self) {
        self.tail.clear();
        *lock(&self.how) = None;
    }

    pub(crate) fn has_ended(&self, how: String) {
        *lock(&self.how) = Some(how);
    }

    pub(crate) fn how_it_ended(&self) -> Option<String> {
        lock(&self.how).clone()
    }

    pub(crate) fn begin(self: &Arc<Self>, desk: Option<CallDesk>) -> Known {
        let call = Arc::new(Active { desk, ..Active::default() });
        lock(&self.calls).push(Arc::clone(&call));
        Known { hub: Arc::clone(self), call }
    }

    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.calls).is_empty()
    }

    /// The call that a request of the server's belongs to: the one whose answer it came with, where the
    /// transport tells, or else the one begun last.
    fn call_of(&self, context: &RequestContext<RoleClient>) -> Option<Arc<Active>> {
        let calls = lock(&self.calls);
        let origin = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            _ => None,
        };
        let is_origin = |call: &&Arc<Active>| {
            lock(&call.key).as_ref().is_some_and(|(id, _)| Some(id) == origin)
        };
        let with_desk = |call: &&Arc<Active>| call.desk.is_some();
        let found = calls.iter().filter(with_desk).find(is_origin);
        found.or_else(|| calls.iter().rfind(with_desk)).cloned()
    }

    pub(crate) async fn sample(
        &self,
        call: Option<&Active>,
        params: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        let Some(call) = call else {
            return Err(ErrorData::invalid_request("no call of ours is running", None));
        };
        let _asking = call.asking();
        sampling::answer(&self.server, call, params).await
    }

    pub(crate) async fn elicit(
        &self,
        call: Option<&Active>,
        params: ElicitRequestParams,
    ) -> ElicitResult {
        let Some((call, desk)) = call.and_then(|call| Some((call, call.desk.as_ref()?))) else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let _asking = call.asking();
        elicit::answer(&self.server, &desk.door, params).await
    }

    pub(crate) fn roots(&self) -> ListRootsResult {
        ListRootsResult::new(self.roots.iter().map(|path| Root::new(roots::uri(path))).collect())
    }

    /// What we say about ourselves.
    pub(crate) fn introduction() -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        capabilities.sampling = Some(SamplingCapability::default());
        let form = FormElicitationCapability::default();
        let elicitation = ElicitationCapability::new()
            .with_form(form)
            .with_url(UrlElicitationCapability::default());
        capabilities.elicitation = Some(elicitation);
        let who = Implementation::new("toolwright", env!("CARGO_PKG_VERSION"));
        // The newest that begins with a handshake: the one that every server knows how to answer.
        ClientConfig::new(capabilities, who)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

impl Active {
    pub(crate) fn is_called(&self, id: RequestId, token: ProgressToken) {
        *lock(&self.key) = Some((id, token));
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::SeqCst) > 0
    }

    fn asking(&self) -> Asking<'_> {
        self.asking.fetch_add(1, Ordering::SeqCst);
        Asking(self)
    }

    pub(crate) fn spend(&self, dollars: Option<f64>) {
        if let Some(dollars) = dollars {
            let mut spent = lock(&self.spent);
            *spent = Some(spent.unwrap_or_default() + dollars);
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::SeqCst);
        // Its time begins again.
        self.0.alive.notify_one();
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.call.over.cancel();
        lock(&self.hub.calls).retain(|call| !Arc::ptr_eq(call, &self.call));
    }
}

/// When the call that a server's request belongs to has ended. Without one, its own end counts.
async fn over(call: Option<&Active>) {
    match call {
        Some(call) => call.over.cancelled().await,
        None => std::future::pending().await,
    }
}

/// The hub as the SDK calls it.
#[derive(Clone)]
pub(crate) struct Ear(pub(crate) Arc<Hub>);

impl ClientHandler for Ear {
    fn get_info(&self) -> ClientConfig {
        Hub::introduction()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let call = self.0.call_of(&context);
        tokio::select! {
            answer = self.0.sample(call.as_deref(), params) => answer,
            () = over(call.as_deref()) => Err(ErrorData::internal_error("the call is over", None)),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let call = self.0.call_of(&context);
        tokio::select! {
            answer = self.0.elicit(call.as_deref(), params) => Ok(answer),
            () = over(call.as_deref()) => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.0.roots())
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let of_token = |call: &&Arc<Active>| {
            lock(&call.key).as_ref().is_some_and(|(_, token)| *token == params.progress_token)
        };
        let Some(call) = lock(&self.0.calls).iter().find(of_token).cloned() else { return };
        call.alive.notify_one();
        if let Some(desk) = &call.desk {
            let far = match params.total {
                Some(total) => format!("{} of {total}", params.progress),
                None => params.progress.to_string(),
            };
            desk.progress.update(match params.message {
                Some(message) => format!("{far}: {message}"),
                None => far,
            });
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
        self.0.tail.line(&format!("[{:?}] {text}", params.level));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.tools_changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_server_asks_for_is_over_when_the_call_is() {
        let hub = Hub::new("s", Vec::new());
        let known = hub.begin(None);
        let call = Arc::clone(&known.call);
        let waiting = tokio::spawn(async move { over(Some(&call)).await });
        drop(known);
        waiting.await.unwrap();
        assert!(!hub.is_busy());
    }
}
