//! One running server: its process, its documents, and questions to it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use toolwright_proc::Spec;

use crate::connection::{Talk, UNREAD_LIMIT, keep};
use crate::find::{Launch, Options};
use crate::hear::{Hearing, Refusal, folders};
use crate::table::Server;
use crate::{language, text, uri, wire};

/// Messages that wait to be written. A server that reads keeps it empty.
const OUTBOX_CAP: usize = 64;

/// Documents that are open at a time; the one not touched for longest is closed for a new one.
const OPEN_CAP: usize = 200;

/// The protocol's codes for "ask again": the project changed, or was not ready.
const ASK_AGAIN: [i64; 2] = [-32801, -32802];
const ASK_AGAIN_PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("it ended: {0}")]
    Ended(String),
    #[error("it did not answer {method} within {} ms", limit.as_millis())]
    TimedOut { method: String, limit: Duration },
    #[error("it refused: {0}")]
    Refused(Refusal),
}

pub(crate) struct Client {
    pub(crate) server: Server,
    pub(crate) root: PathBuf,
    pub(crate) hearing: Arc<Hearing>,
    pub(crate) capabilities: Value,
    pub(crate) born: Instant,
    outbox: mpsc::Sender<Vec<u8>>,
    documents: tokio::sync::Mutex<Documents>,
    connection: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Documents {
    open: HashMap<PathBuf, Document>,
    clock: u64,
}

struct Document {
    version: i64,
    fingerprint: u64,
    end: (u32, u32),
    /// How many publications there were before this version was sent.
    publications: u64,
    touched: u64,
}

/// What the server knows of a file now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Synced {
    pub(crate) version: i64,
    pub(crate) publications: u64,
    /// It did not know before.
    pub(crate) is_news: bool,
}

impl Client {
    /// Starts it and waits until it is ready.
    pub(crate) async fn start(
        server: Server,
        root: PathBuf,
        launch: Launch,
        options: &Options,
        limit: Duration,
    ) -> Result<Self, String> {
        let mut spec = Spec::new(&launch.program, &root).conversation();
        spec.arguments.extend(launch.arguments.iter().map(Into::into));
        spec.environment.extend(server.env.clone());
        spec.withheld.clone_from(&options.withheld);
        spec.passed.clone_from(&options.passed);
        let spec = spec.fenced_by(options.sandbox.as_ref())?;
        let is_fenced = spec.is_fenced();
        let mut child = spec.spawn().map_err(|e| e.to_string())?;
        let pipes = (child.input(), child.output(), child.errors());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err("its pipes could not be made".to_owned());
        };
        let configuration = launch.initialization.clone().unwrap_or_default();
        let hearing = Arc::new(Hearing::new(&root, configuration));
        let (outbox, letters) = mpsc::channel(OUTBOX_CAP);
        let talk = Talk { input, output, errors, letters, outbox: outbox.clone() };
        let connection = tokio::spawn(keep(child, talk, Arc::clone(&hearing)));
        let mut client = Self {
            server,
            root,
            hearing,
            capabilities: Value::Null,
            born: Instant::now(),
            outbox,
            documents: tokio::sync::Mutex::default(),
            connection: AbortOnDropHandle::new(connection),
        };
        let hello = client.hello(launch.initialization.as_ref(), is_fenced);
        let answer = client.request("initialize", hello, limit).await.map_err(|e| e.to_string())?;
        client.capabilities = answer["capabilities"].clone();
        let greet = async {
            client.notify("initialized", json!({})).await?;
            match launch.initialization {
                Some(settings) => {
                    let settings = json!({ "settings": settings });
                    client.notify("workspace/didChangeConfiguration", settings).await
                }
                None => Ok(()),
            }
        };
        greet.await.map_err(|e: RequestError| e.to_string())?;
        Ok(client)
    }

    fn hello(&self, initialization: Option<&Value>, is_fenced: bool) -> Value {
        let dynamic = json!({ "dynamicRegistration": true });
        // In a sandbox there may be no such process, and servers end when it is gone.
        let process = (!is_fenced).then(std::process::id);
        json!({
            "processId": process,
            "clientInfo": { "name": "toolwright", "version": env!("CARGO_PKG_VERSION") },
            "rootPath": self.root, "rootUri": uri::of_path(&self.root),
            "workspaceFolders": folders(&self.root),
            "initializationOptions": initialization,
            "capabilities": {
                "general": { "positionEncodings": ["utf-16"] },
                "window": { "workDoneProgress": true },
                "workspace": {
                    "configuration": true, "workspaceFolders": true,
                    "didChangeConfiguration": dynamic, "didChangeWatchedFiles": dynamic,
                    "diagnostics": { "refreshSupport": true }, "symbol": {},
                    "workspaceEdit": { "documentChanges": true },
                },
                "textDocument": {
                    "synchronization": { "didSave": true },
                    "publishDiagnostics": { "versionSupport": true, "relatedInformation": true },
                    "diagnostic": { "dynamicRegistration": true, "relatedDocumentSupport": false },
                    "hover": { "contentFormat": ["markdown", "plaintext"] },
                    "definition": {}, "implementation": {}, "references": {}, "callHierarchy": {},
                    "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
                    "rename": { "prepareSupport": false },
                },
            },
        })
    }

    /// Why it is no more, once it is.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.hearing.ended()
    }

    /// Ends it from our side, with the reason.
    pub(crate) fn give_up(&self, reason: &str) {
        self.hearing.end(reason.to_owned());
        self.connection.abort();
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        parameters: Value,
        limit: Duration,
    ) -> Result<Value, RequestError> {
        let asked = async {
            loop {
                match self.ask(method, &parameters).await {
                    Err(RequestError::Refused(r)) if ASK_AGAIN.contains(&r.code) => {
                        tokio::time::sleep(ASK_AGAIN_PAUSE).await;
                    }
                    other => return other,
                }
            }
        };
        let late = || RequestError::TimedOut { method: method.to_owned(), limit };
        tokio::time::timeout(limit, asked).await.map_err(|_| late())?
    }

    async fn ask(&self, method: &str, parameters: &Value) -> Result<Value, RequestError> {
        let (id, answer) = self.hearing.expect();
        let asked = Asked { client: self, id };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters });
        self.send(&message).await?;
        let answer = answer.await.map_err(|_| self.end_error())?;
        drop(asked);
        answer.map_err(RequestError::Refused)
    }

    pub(crate) async fn notify(&self, method: &str, parameters: Value) -> Result<(), RequestError> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters })).await
    }

    async fn send(&self, message: &Value) -> Result<(), RequestError> {
        let sent = self.outbox.send(wire::encode(message));
        match tokio::time::timeout(UNREAD_LIMIT, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.end_error()),
            Err(_) => {
                self.give_up("it no longer reads what it is sent");
                Err(self.end_error())
            }
        }
    }

    fn end_error(&self) -> RequestError {
        RequestError::Ended(self.ended().unwrap_or("its connection closed").to_owned())
    }

    /// Tells the server what the file holds now; `saved` if that is what lies on the disk since just
    /// now.
    pub(crate) async fn sync(
        &self,
        file: &Path,
        content: &str,
        saved: bool,
    ) -> Result<Synced, RequestError> {
        // Kept until everything is sent: versions must arrive in order.
        let mut documents = self.documents.lock().await;
        documents.clock += 1;
        let clock = documents.clock;
        let fingerprint = fingerprint(content);
        let publications = self.hearing.publications();
        let address = uri::of_path(file);
        let changed = |kind: u8| json!({ "changes": [{ "uri": address, "type": kind }] });
        let synced = match documents.open.get_mut(file) {
            Some(document) if document.fingerprint == fingerprint => {
                document.touched = clock;
                Synced {
                    version: document.version,
                    publications: document.publications,
                    is_news: false,
                }
            }
            Some(document) => {
                let end = std::mem::replace(&mut document.end, text::end_of(content));
                document.version += 1;
                (document.fingerprint, document.touched) = (fingerprint, clock);
                document.publications = publications;
                let version = document.version;
                self.notify("workspace/didChangeWatchedFiles", changed(2)).await?;
                let changes = json!({
                    "textDocument": { "uri": address, "version": version },
                    "contentChanges": [self.whole(content, end)],
                });
                self.notify("textDocument/didChange", changes).await?;
                Synced { version, publications, is_news: true }
            }
            None => {
                let end = text::end_of(content);
                let document =
                    Document { version: 0, fingerprint, end, publications, touched: clock };
                documents.open.insert(file.to_owned(), document);
                let kind = if saved { 2 } else { 1 };
                self.notify("workspace/didChangeWatchedFiles", changed(kind)).await?;
                let opened = json!({ "textDocument": {
                    "uri": address, "languageId": language::of(file), "version": 0, "text": content,
                } });
                self.notify("textDocument/didOpen", opened).await?;
                self.close_oldest(&mut documents).await?;
                Synced { version: 0, publications, is_news: true }
            }
        };
        let save = &self.capabilities["textDocumentSync"]["save"];
        if saved && synced.is_news && !matches!(save, Value::Null | Value::Bool(false)) {
            let mut told = json!({ "textDocument": { "uri": address } });
            if save["includeText"] == true {
                told["text"] = json!(content);
            }
            self.notify("textDocument/didSave", told).await?;
        }
        Ok(synced)
    }

    /// The whole text as one change. Servers that want parts are told which part it replaces.
    fn whole(&self, content: &str, old_end: (u32, u32)) -> Value {
        let sync = &self.capabilities["textDocumentSync"];
        let kind = sync.as_u64().or_else(|| sync["change"].as_u64());
        if kind != Some(2) {
            return json!({ "text": content });
        }
        let end = json!({ "line": old_end.0, "character": old_end.1 });
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": end });
        json!({ "range": range, "text": content })
    }

    /// Tells the server that the file is gone.
    pub(crate) async fn removed(&self, file: &Path) -> Result<(), RequestError> {
        let address = uri::of_path(file);
        let mut documents = self.documents.lock().await;
        if documents.open.remove(file).is_some() {
            self.close(&address).await?;
        }
        self.hearing.forget_file(file);
        let gone = json!({ "changes": [{ "uri": address, "type": 3 }] });
        self.notify("workspace/didChangeWatchedFiles", gone).await
    }

    async fn close_oldest(&self, documents: &mut Documents) -> Result<(), RequestError> {
        if documents.open.len() <= OPEN_CAP {
            return Ok(());
        }
        let oldest = documents.open.iter().min_by_key(|(_, document)| document.touched);
        let Some(file) = oldest.map(|(file, _)| file.clone()) else { return Ok(()) };
        documents.open.remove(&file);
        self.close(&uri::of_path(&file)).await
    }

    async fn close(&self, address: &str) -> Result<(), RequestError> {
        self.notify("textDocument/didClose", json!({ "textDocument": { "uri": address } })).await
    }
}

fn fingerprint(content: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

/// A question that is open. Whoever drops it no longer wants the answer, and the server is told so.
struct Asked<'a> {
    client: &'a Client,
    id: i64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.client.hearing.forget(self.id) {
            let message = json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": self.id } });
            // A server that reads nothing will not answer either.
            self.client.outbox.try_send(wire::encode(&message)).ok();
        }
    }
}
