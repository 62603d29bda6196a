//! What one server has said: answers for those who wait, findings for those who ask later.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::diagnostics::Diagnostic;
use crate::uri;

/// Files whose findings are kept, and findings of one file. A server that looks at a whole tree
/// tells of everything in it.
const FILES_CAP: usize = 5_000;
const FINDINGS_CAP: usize = 500;

/// The protocol's code for a method that the other side does not have.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

pub(crate) type Answer = Result<Value, Refusal>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
}

pub(crate) struct Hearing {
    pending: Mutex<HashMap<i64, oneshot::Sender<Answer>>>,
    next_id: AtomicI64,
    heard: Mutex<Heard>,
    /// Grows with everything that somebody may wait for.
    changed: watch::Sender<u64>,
    messages: AtomicU64,
    ended: OnceLock<String>,
    /// What it is told when it asks for its configuration.
    configuration: Value,
    root: PathBuf,
}

#[derive(Default)]
struct Heard {
    published: HashMap<PathBuf, Published>,
    /// Counts publications, to tell newer from older where the server gives no version.
    publications: u64,
    /// Identifiers by registration, for findings that must be asked for.
    registrations: BTreeMap<String, Option<String>>,
    /// Grows when there is a reason to ask again.
    round: u64,
}

/// The newest findings that the server told of by itself.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) findings: Vec<Diagnostic>,
    pub(crate) version: Option<i64>,
    pub(crate) publication: u64,
    pub(crate) at: Instant,
    /// How often it told of this file.
    pub(crate) times: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hearing {
    pub(crate) fn new(root: &Path, configuration: Value) -> Self {
        Self {
            pending: Mutex::default(),
            next_id: AtomicI64::new(1),
            heard: Mutex::default(),
            changed: watch::Sender::new(0),
            messages: AtomicU64::new(0),
            ended: OnceLock::new(),
            configuration,
            root: root.to_owned(),
        }
    }

    /// An id, and where its answer will come.
    pub(crate) fn expect(&self) -> (i64, oneshot::Receiver<Answer>) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        // After the end nobody would answer; a dropped sender says so.
        if self.ended.get().is_none() {
            lock(&self.pending).insert(id, sender);
        }
        (id, receiver)
    }

    /// Whether the answer was still awaited.
    pub(crate) fn forget(&self, id: i64) -> bool {
        lock(&self.pending).remove(&id).is_some()
    }

    pub(crate) fn end(&self, reason: String) {
        self.ended.get_or_init(|| reason);
        lock(&self.pending).clear();
        self.tell();
    }

    /// Why it is no more, once it is.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    pub(crate) fn publications(&self) -> u64 {
        lock(&self.heard).publications
    }

    pub(crate) fn published(&self, file: &Path) -> Option<Published> {
        lock(&self.heard).published.get(file).cloned()
    }

    pub(crate) fn all_published(&self) -> Vec<(PathBuf, Vec<Diagnostic>)> {
        let heard = lock(&self.heard);
        heard.published.iter().map(|(file, p)| (file.clone(), p.findings.clone())).collect()
    }

    pub(crate) fn forget_file(&self, file: &Path) {
        lock(&self.heard).published.remove(file);
    }

    /// The round, and the identifiers that findings are asked for with.
    pub(crate) fn registrations(&self) -> (u64, Vec<Option<String>>) {
        let heard = lock(&self.heard);
        (heard.round, heard.registrations.values().cloned().collect())
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Takes in one message; what must be answered is answered at once.
    pub(crate) fn hear(&self, body: &[u8]) -> Option<Value> {
        self.messages.fetch_add(1, Ordering::Relaxed);
        // Something that is no JSON can answer nobody.
        let mut message: Value = serde_json::from_slice(body).ok()?;
        let parameters = message.get_mut("params").map(Value::take).unwrap_or_default();
        match (message["method"].as_str(), message.get("id").cloned()) {
            (Some(method), Some(id)) => {
                let reply = match self.reply(method, &parameters) {
                    Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                    None => json!({ "jsonrpc": "2.0", "id": id, "error": {
                        "code": METHOD_NOT_FOUND, "message": format!("{method} is not known here"),
                    } }),
                };
                Some(reply)
            }
            (Some("textDocument/publishDiagnostics"), None) => {
                self.publish(parameters);
                None
            }
            (Some(_), None) => None,
            (None, id) => {
                let sender = lock(&self.pending).remove(&id?.as_i64()?)?;
                let answer = match message.get("error") {
                    Some(error) if !error.is_null() => Err(Refusal {
                        code: error["code"].as_i64().unwrap_or_default(),
                        message: error["message"].as_str().unwrap_or("an error").to_owned(),
                    }),
                    _ => Ok(message["result"].take()),
                };
                // Whoever asked may have gone.
                sender.send(answer).ok();
                None
            }
        }
    }

    fn reply(&self, method: &str, parameters: &Value) -> Option<Value> {
        match method {
            "workspace/configuration" => {
                let items = parameters["items"].as_array().cloned().unwrap_or_default();
                let sections = items.iter().map(|item| self.section(item["section"].as_str()));
                Some(sections.collect())
            }
            "workspace/workspaceFolders" => Some(folders(&self.root)),
            "client/registerCapability" => {
                self.register(&parameters["registrations"], true);
                Some(Value::Null)
            }
            "client/unregisterCapability" => {
                // The protocol itself spells it this way.
                self.register(&parameters["unregisterations"], false);
                Some(Value::Null)
            }
            "workspace/diagnostic/refresh" => {
                lock(&self.heard).round += 1;
                self.tell();
                Some(Value::Null)
            }
            // A server may propose; only a planned call changes files.
            "workspace/applyEdit" => {
                Some(json!({ "applied": false, "failureReason": "edits are not taken unasked" }))
            }
            "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/codeLens/refresh"
            | "workspace/inlineValue/refresh"
            | "workspace/foldingRange/refresh" => Some(Value::Null),
            _ => None,
        }
    }

    fn section(&self, name: Option<&str>) -> Value {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return self.configuration.clone();
        };
        let whole = self.configuration.get(name);
        let parts = || name.split('.').try_fold(&self.configuration, |value, part| value.get(part));
        whole.or_else(parts).cloned().unwrap_or_default()
    }

    fn register(&self, registrations: &Value, added: bool) {
        let own = registrations.as_array().into_iter().flatten();
        let own = own.filter(|r| r["method"] == "textDocument/diagnostic");
        let mut heard = lock(&self.heard);
        let mut any = false;
        for registration in own {
            any = true;
            let id = registration["id"].as_str().unwrap_or_default().to_owned();
            if added {
                let identifier = registration["registerOptions"]["identifier"].as_str();
                heard.registrations.insert(id, identifier.map(str::to_owned));
            } else {
                heard.registrations.remove(&id);
            }
        }
        heard.round += u64::from(any);
        drop(heard);
        if any {
            self.tell();
        }
    }

    fn publish(&self, mut parameters: Value) {
        let Some(file) = parameters["uri"].as_str().and_then(uri::to_path) else { return };
        let Value::Array(mut findings) = parameters["diagnostics"].take() else { return };
        findings.truncate(FINDINGS_CAP);
        let mut heard = lock(&self.heard);
        heard.publications += 1;
        let publication = heard.publications;
        let times = heard.published.get(&file).map_or(0, |p| p.times) + 1;
        if times == 1 && heard.published.len() >= FILES_CAP {
            return;
        }
        let published = Published {
            findings: findings.into_iter().map(Diagnostic).collect(),
            version: parameters["version"].as_i64(),
            publication,
            at: Instant::now(),
            times,
        };
        heard.published.insert(file, published);
        drop(heard);
        self.tell();
    }
}

pub(crate) fn folders(root: &Path) -> Value {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    json!([{ "uri": uri::of_path(root), "name": name }])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// JSON of any shape, made of the words that are looked for.
    fn anything() -> impl Strategy<Value = Value> {
        let word = proptest::sample::select(vec![
            "id",
            "method",
            "params",
            "result",
            "error",
            "code",
            "message",
            "uri",
            "diagnostics",
            "items",
            "section",
            "registrations",
            "unregisterations",
            "version",
            "file:///a",
            "textDocument/publishDiagnostics",
            "client/registerCapability",
            "workspace/configuration",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3i64..4).prop_map(Value::from),
            word.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            let entry = (word.clone().prop_map(str::to_owned), inner.clone());
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(Value::from),
                proptest::collection::vec(entry, 0..6)
                    .prop_map(|e| Value::Object(e.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic_and_every_request_is_answered(message in anything()) {
            let asks = message["method"].is_string() && message.get("id").is_some();
            prop_assert_eq!(heard(&hearing(), message).is_some(), asks);
        }
    }

    fn hearing() -> Hearing {
        Hearing::new(Path::new("/w"), json!({ "python": { "analysis": { "mode": 1 } }, "a.b": 2 }))
    }

    fn heard(hearing: &Hearing, message: Value) -> Option<Value> {
        hearing.hear(message.to_string().as_bytes())
    }

    #[test]
    fn requests_of_the_server_are_answered() {
        let hearing = hearing();
        let items =
            json!([{ "section": "python.analysis" }, { "section": "a.b" }, { "section": "x.y" }]);
        let cases = [
            ("workspace/configuration", json!({ "items": items }), json!([{ "mode": 1 }, 2, null])),
            (
                "workspace/workspaceFolders",
                json!(null),
                json!([{ "uri": "file:///w", "name": "w" }]),
            ),
            ("window/workDoneProgress/create", json!({}), json!(null)),
        ];
        for (method, parameters, expected) in cases {
            let request = json!({ "id": "x", "method": method, "params": parameters });
            let reply = heard(&hearing, request).unwrap();
            assert_eq!((&reply["id"], &reply["result"]), (&json!("x"), &expected), "{method}");
        }
        let edit = heard(&hearing, json!({ "id": 1, "method": "workspace/applyEdit" })).unwrap();
        assert_eq!(edit["result"]["applied"], false);
        let unknown = heard(&hearing, json!({ "id": 1, "method": "custom/thing" })).unwrap();
        assert_eq!(unknown["error"]["code"], METHOD_NOT_FOUND);
    }

    #[test]
    fn answers_reach_whoever_waits_and_nobody_else() {
        let hearing = hearing();
        let (id, mut answer) = hearing.expect();
        for strange in [json!(7), json!([]), json!({ "id": 999, "result": 1 }), json!({ "id": {} })]
        {
            assert_eq!(heard(&hearing, strange), None);
        }
        assert_eq!(hearing.hear(b"not json"), None);
        assert!(answer.try_recv().is_err());
        heard(&hearing, json!({ "id": id, "error": { "code": 3, "message": "no" } }));
        assert_eq!(answer.try_recv().unwrap(), Err(Refusal { code: 3, message: "no".into() }));
        let (_, mut open) = hearing.expect();
        hearing.end("gone".into());
        assert_eq!(open.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(hearing.expect().1.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[tokio::test]
    async fn findings_are_kept_by_file_and_within_limits() {
        let hearing = hearing();
        let many: Vec<Value> = (0..2_000).map(|n| json!({ "message": n.to_string() })).collect();
        let told = json!({ "method": "textDocument/publishDiagnostics",
            "params": { "uri": "file:///w/a%20b", "version": 4, "diagnostics": many } });
        heard(&hearing, told);
        let published = hearing.published(Path::new("/w/a b")).unwrap();
        assert_eq!((published.findings.len(), published.version), (FINDINGS_CAP, Some(4)));
        heard(&hearing, json!({ "method": "textDocument/publishDiagnostics", "params": "x" }));
        assert_eq!(hearing.all_published().len(), 1);
    }

    #[test]
    fn a_registration_is_a_reason_to_ask_again() {
        let hearing = hearing();
        let changed = hearing.watch();
        let entry = json!([{ "id": "1", "method": "textDocument/diagnostic", "registerOptions": { "identifier": "x" } },
            { "id": "2", "method": "workspace/didChangeWatchedFiles" }]);
        heard(
            &hearing,
            json!({ "id": 1, "method": "client/registerCapability", "params": { "registrations": entry } }),
        );
        assert_eq!(hearing.registrations(), (1, vec![Some("x".to_owned())]));
        assert!(changed.has_changed().unwrap());
        heard(
            &hearing,
            json!({ "id": 2, "method": "client/unregisterCapability", "params": { "unregisterations": entry } }),
        );
        assert_eq!(hearing.registrations(), (2, vec![]));
    }
}
