//! A model that follows a script, tools that do as they are told, and a journal that can be read.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::Notify;
use toolwright_engine::{Engine, EngineOptions, Journal, PermissionGate, Record};
use toolwright_llm::{Event, Finish, FinishReason, Model, Origin, Request, Usage};
use toolwright_permission::{Action, Layer, LayerKind, Policy, Rule};
use toolwright_session::{Entry, Header, LogError, Mark, Session};
use toolwright_tool::{Pipeline, PipelineOptions, Registry, Workspace};

pub type Answering = Box<dyn Fn(usize, &Request) -> BoxStream<'static, Event> + Send + Sync>;

/// Answers request number n, and remembers what it was asked.
pub struct Scripted {
    origin: Origin,
    answer: Answering,
    pub requests: Arc<Mutex<Vec<Request>>>,
}

impl Scripted {
    pub fn new(
        answer: impl Fn(usize, &Request) -> BoxStream<'static, Event> + Send + Sync + 'static,
    ) -> Self {
        let origin = Origin { provider: "test".into(), model: "m".into() };
        Self { origin, answer: Box::new(answer), requests: Arc::default() }
    }
}

impl Model for Scripted {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let mut requests = self.requests.lock().unwrap();
        let stream = (self.answer)(requests.len(), &request);
        requests.push(request);
        stream
    }
}

pub fn finish(reason: FinishReason) -> Event {
    Event::Finish(Finish { reason, raw: String::new() })
}

pub fn call(block: u32, name: &str, arguments: &str) -> [Event; 3] {
    [
        Event::CallStart { block, id: String::new(), name: name.to_owned() },
        Event::CallArguments { block, delta: arguments.to_owned() },
        Event::BlockEnd { block, opaque: None },
    ]
}

pub fn text(block: u32, text: &str) -> [Event; 2] {
    [Event::Text { block, delta: text.to_owned() }, Event::BlockEnd { block, opaque: None }]
}

pub fn usage(input: u64) -> Event {
    let usage = Usage { input, output: 5, ..Usage::default() };
    Event::Usage { usage, raw: serde_json::Value::Null }
}

/// Some events, then a word to wait for, then more.
pub fn after(first: Vec<Event>, word: Arc<Notify>, then: Vec<Event>) -> BoxStream<'static, Event> {
    let wait = futures_util::stream::once(async move { word.notified().await });
    let rest = wait.flat_map(move |()| futures_util::stream::iter(then.clone()));
    futures_util::stream::iter(first).chain(rest).boxed()
}

pub fn all(events: Vec<Event>) -> BoxStream<'static, Event> {
    futures_util::stream::iter(events).boxed()
}

#[derive(Clone, Default)]
pub struct Memory(pub Arc<Mutex<Vec<Entry>>>);

impl Journal for Memory {
    fn append(&mut self, entry: &Entry) -> Result<Mark, LogError> {
        self.0.lock().unwrap().push(entry.clone());
        Ok(Mark::default())
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), LogError>> {
        std::future::ready(Ok(())).boxed()
    }
}

pub fn header() -> Header {
    Header {
        session: "ses_test".into(),
        directory: "/".into(),
        made_by: "test".into(),
        forked_from: None,
        parent: None,
    }
}

pub fn allow_all() -> Policy {
    let rule = Rule { permission: "*".into(), pattern: "*".into(), action: Action::Allow };
    let layer = Layer { kind: LayerKind::Session, origin: "test".into(), rules: vec![rule] };
    Policy::new(vec![layer])
}

pub struct Bench {
    pub journal: Memory,
    pub requests: Arc<Mutex<Vec<Request>>>,
    pub engine: Engine,
}

pub async fn bench(model: Scripted, registry: Registry) -> Bench {
    let gate = PermissionGate::new(allow_all(), None);
    bench_with(model, registry, gate, EngineOptions::new("Be.")).await
}

pub async fn bench_with(
    model: Scripted,
    registry: Registry,
    gate: PermissionGate,
    options: EngineOptions,
) -> Bench {
    let workspace = Workspace::new(&std::env::temp_dir()).unwrap();
    let mut pipeline_options = PipelineOptions::new(std::env::temp_dir().join("tw-test-outputs"));
    if options.hooks.watch_calls() {
        pipeline_options.hooks = Some(Arc::clone(&options.hooks) as _);
    }
    let pipeline = Pipeline::new(registry, Arc::new(workspace), Arc::new(gate), pipeline_options);
    let journal = Memory::default();
    let record = Record::new(Session::new(header()), journal.clone());
    let requests = Arc::clone(&model.requests);
    let engine = Engine::new(Arc::new(model), pipeline, record, options).await.unwrap();
    Bench { journal, requests, engine }
}
