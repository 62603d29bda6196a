//! Questions about code, and their answers as the protocol gives them.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::{Client, RequestError};
use crate::hear::METHOD_NOT_FOUND;
use crate::servers::{Look, Presence, Servers};
use crate::uri;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    Definition,
    References,
    Hover,
    Implementation,
    DocumentSymbols,
    WorkspaceSymbols { query: String },
    PrepareCalls,
    IncomingCalls,
    OutgoingCalls,
    Rename { new_name: String },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// With the reason, where there is one beyond the file's kind.
    #[error("No LSP server available for this file type.{}", reason.as_ref().map(|r| format!(" ({r}.)")).unwrap_or_default())]
    NoServer { reason: Option<String> },
    #[error("The language server {server} gave no answer: {reason}.")]
    Failed { server: String, reason: String },
}

/// Kinds of symbols that are worth a place in a list of ten: class, method, enum, interface,
/// function, variable, constant, struct.
const SYMBOL_KINDS: [u64; 8] = [5, 6, 10, 11, 12, 13, 14, 23];
const SYMBOLS_PER_SERVER: usize = 10;

impl Servers {
    /// Asks every server that `file` belongs to; a line and a character are counted from 0. The
    /// answers are put together; an error is one only if nobody answered.
    pub async fn ask(
        &self,
        file: &Path,
        position: (u32, u32),
        query: &Query,
    ) -> Result<Vec<Value>, AskError> {
        let mut answer = self.ask_once(file, position, query).await;
        if let Err((_, RequestError::Ended(_))) = &answer {
            // It crashed over this or before: one that is started afresh may know.
            answer = self.ask_once(file, position, query).await;
        }
        answer.map_err(|(server, error)| match error {
            RequestError::Ended(reason) if server.is_empty() => {
                AskError::NoServer { reason: Some(reason).filter(|r| !r.is_empty()) }
            }
            error => AskError::Failed { server, reason: error.to_string() },
        })
    }

    async fn ask_once(
        &self,
        file: &Path,
        position: (u32, u32),
        query: &Query,
    ) -> Result<Vec<Value>, (String, RequestError)> {
        let Presence { clients, missing } = self.clients(file, self.timing().initialize).await;
        if clients.is_empty() {
            return Err((String::new(), RequestError::Ended(missing.unwrap_or_default())));
        }
        if let Some(content) = crate::servers::content(file).await {
            self.let_look(file, &content, &clients, Look::IfNews).await;
        }
        let limit = self.timing().request;
        let asked = clients.iter().map(|client| async {
            let answer = answer(client, file, position, query, limit).await;
            (client.server.id.clone(), answer)
        });
        let (mut found, mut failed) = (Vec::new(), None);
        let mut any = false;
        for (server, answer) in join_all(asked).await {
            match answer {
                Ok(values) => {
                    any = true;
                    found.extend(values);
                }
                Err(RequestError::Refused(refusal)) if refusal.code == METHOD_NOT_FOUND => {
                    any = true
                }
                Err(error) => failed = Some((server, error)),
            }
        }
        match failed {
            Some(failed) if !any => Err(failed),
            _ => Ok(found),
        }
    }
}

async fn answer(
    client: &Client,
    file: &Path,
    position: (u32, u32),
    query: &Query,
    limit: Duration,
) -> Result<Vec<Value>, RequestError> {
    let document = json!({ "uri": uri::of_path(file) });
    let place = json!({ "line": position.0, "character": position.1 });
    let at = json!({ "textDocument": document, "position": place });
    let ask = |method: &'static str, parameters: Value| client.request(method, parameters, limit);
    let calls = |direction: &'static str| {
        let at = at.clone();
        async move {
            let items = listed(ask("textDocument/prepareCallHierarchy", at).await?);
            match items.into_iter().next() {
                Some(item) => ask(direction, json!({ "item": item })).await,
                None => Ok(Value::Null),
            }
        }
    };
    let value = match query {
        Query::Definition => ask("textDocument/definition", at).await?,
        Query::Implementation => ask("textDocument/implementation", at).await?,
        Query::Hover => ask("textDocument/hover", at).await?,
        Query::References => {
            let mut at = at;
            at["context"] = json!({ "includeDeclaration": true });
            ask("textDocument/references", at).await?
        }
        Query::DocumentSymbols => {
            ask("textDocument/documentSymbol", json!({ "textDocument": document })).await?
        }
        Query::WorkspaceSymbols { query } => {
            let symbols = listed(ask("workspace/symbol", json!({ "query": query })).await?);
            let wanted = |symbol: &Value| {
                symbol["kind"].as_u64().is_some_and(|kind| SYMBOL_KINDS.contains(&kind))
            };
            return Ok(symbols.into_iter().filter(wanted).take(SYMBOLS_PER_SERVER).collect());
        }
        Query::PrepareCalls => ask("textDocument/prepareCallHierarchy", at).await?,
        Query::IncomingCalls => calls("callHierarchy/incomingCalls").await?,
        Query::OutgoingCalls => calls("callHierarchy/outgoingCalls").await?,
        Query::Rename { new_name } => {
            let mut at = at;
            at["newName"] = json!(new_name);
            ask("textDocument/rename", at).await?
        }
    };
    Ok(listed(value))
}

/// One thing, several or none.
fn listed(value: Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(values) => values.into_iter().filter(|value| !value.is_null()).collect(),
        one => vec![one],
    }
}
