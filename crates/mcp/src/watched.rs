//! A transport that tells when it has ended: a connection nobody calls should not look alive.

use std::borrow::Cow;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) struct Watched<T> {
    inner: T,
    ended: CancellationToken,
    _at_last: DropGuard,
}

impl<T> Watched<T> {
    pub(crate) fn new(inner: T, ended: &CancellationToken) -> Self {
        Self { inner, ended: ended.clone(), _at_last: ended.clone().drop_guard() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await;
        if message.is_none() {
            self.ended.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
