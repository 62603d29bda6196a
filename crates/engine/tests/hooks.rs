//! What hooks can do at each point, and what becomes of those that misbehave: the real engine, with
//! a model and hooks in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_engine::{
    Budget, Engine, EngineOptions, Event, Hook, Hooks, OnFailure, PermissionGate, Point, Purse,
    Record, TurnEnd, Unrecorded, Verdict,
};
use toolwright_llm::{Content, Event as Said, Finish, FinishReason, Model, Origin, Request};
use toolwright_permission::{Action, Layer, LayerKind, Policy, Rule};
use toolwright_session::{Header, Session, TurnStatus};
use toolwright_tool::{Hint, Pipeline, PipelineOptions, Registry, ToolError, Workspace, tool_fn};

/// Says what it was told to say and keeps what it was asked.
struct Scripted {
    origin: Origin,
    answers: Mutex<VecDeque<Vec<Said>>>,
    requests: Mutex<Vec<Request>>,
}

impl Model for Scripted {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn stream(&self, request: Request) -> BoxStream<'static, Said> {
        self.requests.lock().unwrap().push(request);
        stream::iter(self.answers.lock().unwrap().pop_front().expect("an answer")).boxed()
    }
}

fn finish(reason: FinishReason) -> Said {
    Said::Finish(Finish { reason, raw: String::new() })
}

fn says(text: &str) -> Vec<Said> {
    let delta = text.to_owned();
    let end = Said::BlockEnd { block: 0, opaque: None };
    vec![Said::Text { block: 0, delta }, end, finish(FinishReason::Stop)]
}

/// A call of the only tool there is.
fn calls(text: &str) -> Vec<Said> {
    let (id, name) = ("c1".to_owned(), "say".to_owned());
    let delta = json!({ "text": text }).to_string();
    vec![
        Said::CallStart { block: 0, id, name },
        Said::CallArguments { block: 0, delta },
        Said::BlockEnd { block: 0, opaque: None },
        finish(FinishReason::ToolCalls),
    ]
}

type Act = Box<dyn Fn(Value, Value) -> BoxFuture<'static, Result<Verdict, String>> + Send + Sync>;

struct TestHook {
    name: String,
    point: Point,
    on_failure: OnFailure,
    act: Act,
}

impl Hook for TestHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, point: Point) -> bool {
        point == self.point
    }

    fn deadline(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    fn call<'a>(
        &'a self,
        _: Point,
        input: &'a Value,
        output: &'a Value,
    ) -> BoxFuture<'a, Result<Verdict, String>> {
        (self.act)(input.clone(), output.clone())
    }
}

fn acting(point: Point, act: Act) -> TestHook {
    TestHook { name: "tester".to_owned(), point, on_failure: OnFailure::Continue, act }
}

/// A hook that answers at once.
fn hook(
    point: Point,
    act: impl Fn(Value, Value) -> Result<Verdict, String> + Send + Sync + 'static,
) -> TestHook {
    acting(point, Box::new(move |input, output| std::future::ready(act(input, output)).boxed()))
}

#[derive(Deserialize, JsonSchema)]
struct Say {
    text: String,
}

struct Stage {
    engine: Engine,
    model: Arc<Scripted>,
    /// What the tool was called with.
    ran: Arc<Mutex<Vec<String>>>,
    _outputs: tempfile::TempDir,
}

/// How a turn went.
struct Turn {
    end: TurnEnd,
    events: Vec<Event>,
}

impl Turn {
    fn notices(&self) -> Vec<&str> {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Notice { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn output(&self) -> &str {
        let outcome = self.events.iter().find_map(|event| match event {
            Event::CallSettled { outcome, .. } => Some(outcome.output.as_str()),
            _ => None,
        });
        outcome.expect("a settled call")
    }
}

impl Stage {
    async fn new(
        rule: Action,
        answers: impl IntoIterator<Item = Vec<Said>>,
        hooks: Vec<TestHook>,
    ) -> Self {
        Self::with_purse(rule, answers, hooks, Arc::default()).await
    }

    async fn with_purse(
        rule: Action,
        answers: impl IntoIterator<Item = Vec<Said>>,
        hooks: Vec<TestHook>,
        purse: Arc<Purse>,
    ) -> Self {
        let origin = Origin { provider: "test".to_owned(), model: "m".to_owned() };
        let answers = Mutex::new(answers.into_iter().collect());
        let model = Arc::new(Scripted { origin, answers, requests: Mutex::default() });
        let ran = Arc::new(Mutex::new(Vec::new()));
        let registry = Registry::default();
        let kept = Arc::clone(&ran);
        registry.register(tool_fn("say", "Says it.", move |say: Say| {
            kept.lock().unwrap().push(say.text.clone());
            async move { Ok::<_, ToolError>(format!("said {}", say.text)) }
        }));
        let outputs = tempfile::tempdir().unwrap();
        let hooks = hooks.into_iter().map(|hook| Arc::new(hook) as Arc<dyn Hook>).collect();
        let hooks = Arc::new(Hooks::new(hooks));
        let rules = vec![Rule { permission: "say".into(), pattern: "*".into(), action: rule }];
        let policy =
            Policy::new(vec![Layer { kind: LayerKind::User, origin: "test".into(), rules }]);
        let gate = PermissionGate::new(policy, None).with_hooks(Arc::clone(&hooks));
        let mut options = PipelineOptions::new(outputs.path());
        options.hooks = hooks.watch_calls().then(|| Arc::clone(&hooks) as _);
        let workspace = Arc::new(Workspace::new(outputs.path()).unwrap());
        let pipeline = Pipeline::new(registry, workspace, Arc::new(gate), options);
        let header = Header {
            session: "s".to_owned(),
            directory: "/".to_owned(),
            made_by: "test".to_owned(),
            forked_from: None,
            parent: None,
        };
        let record = Record::new(Session::new(header), Unrecorded);
        let budget = Budget { purse, ..Budget::default() };
        let options = EngineOptions { hooks, budget, ..EngineOptions::new("Be brief.") };
        let engine = Engine::new(Arc::clone(&model) as _, pipeline, record, options).await;
        Self { engine: engine.unwrap(), model, ran, _outputs: outputs }
    }

    async fn prompt(&mut self) -> Turn {
        let (sender, mut receiver) = mpsc::channel(1024);
        let cancel = CancellationToken::new();
        let end = self.engine.prompt(vec![Content::text("go")], &cancel, &sender).await;
        let mut events = Vec::new();
        while let Ok(event) = receiver.try_recv() {
            events.push(event);
        }
        Turn { end, events }
    }

    fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }

    fn request(&self, number: usize) -> Request {
        self.model.requests.lock().unwrap()[number].clone()
    }

    /// Everything that a request says, for looking something up in it.
    fn sent(&self, number: usize) -> String {
        format!("{:?}", self.request(number).turns)
    }
}

/// A turn with one call.
async fn one_call(rule: Action, hooks: Vec<TestHook>) -> (Stage, Turn) {
    let mut stage = Stage::new(rule, [calls("hello"), says("ok")], hooks).await;
    let turn = stage.prompt().await;
    (stage, turn)
}

#[tokio::test]
async fn hooks_run_in_order_and_each_sees_what_the_one_before_left() {
    let adding = |word: &'static str| {
        hook(Point::ToolBefore, move |_, output| {
            let text = format!("{} {word}", output["args"]["text"].as_str().unwrap());
            Ok(Verdict { output: Some(json!({ "args": { "text": text } })), ..Verdict::default() })
        })
    };
    let (stage, turn) = one_call(Action::Allow, vec![adding("one"), adding("two")]).await;
    assert_eq!(stage.ran(), ["hello one two"]);
    assert_eq!(turn.output(), "said hello one two");
}

#[tokio::test]
async fn changed_arguments_are_validated_again() {
    let wrong = hook(Point::ToolBefore, |_, _| {
        Ok(Verdict { output: Some(json!({ "args": { "text": 5 } })), ..Verdict::default() })
    });
    let (stage, turn) = one_call(Action::Allow, vec![wrong]).await;
    assert_eq!(stage.ran(), Vec::<String>::new());
    assert!(turn.output().contains("text"), "{}", turn.output());
    assert_eq!(turn.end.status, TurnStatus::Done);
}

#[tokio::test]
async fn the_first_hook_that_blocks_ends_it_and_the_model_is_told_why() {
    let block = hook(Point::ToolBefore, |input, _| {
        assert_eq!(input, json!({ "tool": "say", "callID": "c1" }));
        Ok(Verdict { block: Some("not today".to_owned()), ..Verdict::default() })
    });
    let never = hook(Point::ToolBefore, |_, _| panic!("nobody asks it"));
    let (stage, turn) = one_call(Action::Allow, vec![block, never]).await;
    assert_eq!(stage.ran(), Vec::<String>::new());
    assert_eq!(turn.output(), "A hook blocked this call: not today");
    assert!(stage.sent(1).contains("not today"));
    assert_eq!(turn.notices(), Vec::<&str>::new());
}

#[tokio::test]
async fn a_hook_changes_a_result_and_says_something_about_it() {
    let before = hook(Point::ToolBefore, |_, _| {
        Ok(Verdict { context: Some("before".to_owned()), ..Verdict::default() })
    });
    let after = hook(Point::ToolAfter, |input, mut output| {
        assert_eq!(input["args"], json!({ "text": "hello" }));
        output["output"] = "nothing".into();
        let context = Some("after".to_owned());
        Ok(Verdict { output: Some(output), context, ..Verdict::default() })
    });
    let (_, turn) = one_call(Action::Allow, vec![before, after]).await;
    assert_eq!(turn.output(), "nothing\n\n(A hook says: before)\n\n(A hook says: after)");
}

/// Each way to misbehave, with what is reported of it.
fn misbehaving() -> Vec<(TestHook, &'static str)> {
    let at = Point::ToolBefore;
    vec![
        (hook(at, |_, _| Err("broken".to_owned())), "broken"),
        (acting(at, Box::new(|_, _| std::future::pending().boxed())), "it took longer than 30 s"),
        (hook(at, |_, _| panic!("on purpose")), "it crashed"),
        (acting(at, Box::new(|_, _| async { panic!("on purpose, later") }.boxed())), "it crashed"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_hangs_or_crashes_is_reported_and_does_not_stand_in_the_way() {
    for (hook, problem) in misbehaving() {
        let (stage, turn) = one_call(Action::Allow, vec![hook]).await;
        assert_eq!(stage.ran(), ["hello"], "{problem}");
        let expected = format!("hook tester at tool.execute.before: {problem}");
        assert_eq!(turn.notices(), [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_whose_failing_counts_as_a_refusal_blocks() {
    for (hook, problem) in misbehaving() {
        let hook = TestHook { on_failure: OnFailure::Block, ..hook };
        let (stage, turn) = one_call(Action::Allow, vec![hook]).await;
        assert_eq!(stage.ran(), Vec::<String>::new(), "{problem}");
        assert!(turn.output().contains(problem), "{}", turn.output());
        assert_eq!(turn.notices().len(), 1, "{problem}");
    }
}

#[tokio::test]
async fn parameters_are_changed_for_each_request() {
    let cooler = hook(Point::ChatParams, |_, mut output| {
        assert_eq!(output["temperature"], Value::Null);
        output["temperature"] = 0.5.into();
        output["maxOutputTokens"] = 77.into();
        Ok(Verdict { output: Some(output), ..Verdict::default() })
    });
    let (stage, _) = one_call(Action::Allow, vec![cooler]).await;
    for number in 0..2 {
        let request = stage.request(number);
        assert_eq!(request.sampling.temperature, Some(0.5));
        assert_eq!(request.max_output_tokens, Some(77));
    }
}

#[tokio::test]
async fn the_system_prompt_is_changed_once_for_a_session() {
    let times = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&times);
    let more = hook(Point::SystemTransform, move |_, mut output| {
        *counted.lock().unwrap() += 1;
        output["system"].as_array_mut().unwrap().push("Rhyme.".into());
        Ok(Verdict { output: Some(output), ..Verdict::default() })
    });
    let (stage, _) = one_call(Action::Allow, vec![more]).await;
    assert_eq!(&*stage.request(0).system, "Be brief.\n\nRhyme.");
    assert_eq!(stage.request(1).system, stage.request(0).system);
    assert_eq!(*times.lock().unwrap(), 1);
}

#[tokio::test]
async fn a_question_can_be_answered_by_a_hook_and_a_deny_is_none() {
    let answering = |status: &'static str| {
        hook(Point::PermissionAsk, move |input, output| {
            assert_eq!(output, json!({ "status": "ask" }));
            assert_eq!(input["args"], json!({ "text": "hello" }));
            Ok(Verdict { output: Some(json!({ "status": status })), ..Verdict::default() })
        })
    };
    for (rule, status, runs) in [
        (Action::Ask, "allow", true),
        (Action::Ask, "deny", false),
        (Action::Ask, "ask", false),
        (Action::Deny, "allow", false),
        (Action::Allow, "deny", true),
    ] {
        let (stage, _) = one_call(rule, vec![answering(status)]).await;
        assert_eq!(!stage.ran().is_empty(), runs, "{rule:?} and {status}");
    }
}

#[tokio::test]
async fn a_hint_before_a_call_allows_asks_and_never_lifts_a_deny() {
    for (rule, hint, runs) in [
        (Action::Ask, Hint::Allow, true),
        (Action::Allow, Hint::Ask, false),
        (Action::Deny, Hint::Allow, false),
    ] {
        let hinting =
            hook(Point::ToolBefore, move |_, _| Ok(Verdict { hint, ..Verdict::default() }));
        let (stage, _) = one_call(rule, vec![hinting]).await;
        assert_eq!(!stage.ran().is_empty(), runs, "{rule:?} and {hint:?}");
    }
}

#[tokio::test]
async fn a_prompt_is_changed_added_to_and_refused() {
    let change = hook(Point::ChatMessage, |_, mut output| {
        output["parts"][0]["text"] = "stop".into();
        let context = Some("it is late".to_owned());
        Ok(Verdict { output: Some(output), context, ..Verdict::default() })
    });
    let mut stage = Stage::new(Action::Allow, [says("ok")], vec![change]).await;
    stage.prompt().await;
    let sent = stage.sent(0);
    assert!(sent.contains("stop") && sent.contains("it is late") && !sent.contains("go"), "{sent}");

    let refuse = hook(Point::ChatMessage, |_, _| {
        Ok(Verdict { block: Some("a secret".to_owned()), ..Verdict::default() })
    });
    let mut stage = Stage::new(Action::Allow, [], vec![refuse]).await;
    let turn = stage.prompt().await;
    assert_eq!(turn.end.status, TurnStatus::Failed);
    assert!(turn.end.problem.unwrap().contains("a secret"));
}

#[tokio::test]
async fn a_stop_hook_cannot_keep_the_model_busy_for_ever() {
    let more = hook(Point::Stop, |_, _| {
        Ok(Verdict { block: Some("more".to_owned()), ..Verdict::default() })
    });
    let answers = std::iter::repeat_with(|| says("done")).take(20);
    let mut stage = Stage::new(Action::Allow, answers, vec![more]).await;
    assert_eq!(stage.prompt().await.end.status, TurnStatus::Done);
    assert_eq!(stage.model.requests.lock().unwrap().len(), 6);
}

#[tokio::test]
async fn a_stop_hook_spends_no_money_that_is_not_there() {
    let more = hook(Point::Stop, |_, _| {
        Ok(Verdict { block: Some("more".to_owned()), ..Verdict::default() })
    });
    let answers = [says("done"), says("a summary")];
    let purse = Purse::new(Some(0.0));
    let mut stage = Stage::with_purse(Action::Allow, answers, vec![more], purse).await;
    let end = stage.prompt().await.end;
    assert_eq!((end.status, end.answer.as_ref()), (TurnStatus::OutOfBudget, "a summary"));
    assert!(stage.sent(1).contains("used up (money)"), "{}", stage.sent(1));
}

#[tokio::test]
async fn a_hook_ends_the_turn_before_its_next_request_and_not_the_one_after() {
    let enough = hook(Point::ToolAfter, |_, _| {
        Ok(Verdict { stop: Some("enough".to_owned()), ..Verdict::default() })
    });
    let answers = [calls("hello"), says("again")];
    let mut stage = Stage::new(Action::Allow, answers, vec![enough]).await;
    let turn = stage.prompt().await;
    assert_eq!(turn.end.status, TurnStatus::Failed);
    assert_eq!(turn.end.problem.as_deref(), Some("a hook stopped the turn: enough"));
    assert_eq!(turn.output(), "said hello", "what has happened stays told");
    assert_eq!(stage.prompt().await.end.status, TurnStatus::Done);
}

#[tokio::test]
async fn compacting_takes_what_hooks_want_to_be_kept() {
    let keep = hook(Point::Compacting, |input, mut output| {
        assert_eq!(input, json!({ "reason": "asked for" }));
        output["context"].as_array_mut().unwrap().push("keep the goal".into());
        let context = Some("and the date".to_owned());
        Ok(Verdict { output: Some(output), context, ..Verdict::default() })
    });
    let again = hook(Point::SessionStart, |input, _| {
        let context = (input["source"] == "compact").then(|| "once more".to_owned());
        Ok(Verdict { context, ..Verdict::default() })
    });
    let answers = [says("hello"), says("notes"), says("ok")];
    let mut stage = Stage::new(Action::Allow, answers, vec![keep, again]).await;
    stage.prompt().await;
    let (sender, _receiver) = mpsc::channel(64);
    assert!(stage.engine.compact(&CancellationToken::new(), &sender).await.unwrap());
    let sent = stage.sent(1);
    assert!(sent.contains("keep the goal") && sent.contains("and the date"), "{sent}");
    stage.prompt().await;
    assert!(stage.sent(2).contains("once more"));
}

#[tokio::test]
async fn a_listener_hears_of_calls_in_order() {
    let (sender, mut heard) = mpsc::unbounded_channel();
    let listener = hook(Point::Event, move |input, _| {
        sender.send(input["event"]["type"].as_str().unwrap().to_owned()).ok();
        Ok(Verdict::default())
    });
    let (_stage, _) = one_call(Action::Allow, vec![listener]).await;
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "session.idle") {
        kinds.push(heard.recv().await.unwrap());
    }
    let expected = [
        "session.status",
        "message.updated",
        "message.part.updated",
        "message.part.updated",
        "session.status",
        "message.part.updated",
        "message.updated",
        "session.status",
        "session.idle",
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn a_listener_that_never_comes_back_holds_nothing_up() {
    let (begun, mut waiting) = mpsc::unbounded_channel();
    let stuck = acting(
        Point::Event,
        Box::new(move |_, _| {
            begun.send(()).ok();
            std::future::pending().boxed()
        }),
    );
    // No clock is turned here: a turn that waited for the listener would take thirty seconds.
    let (stage, turn) = one_call(Action::Allow, vec![stuck]).await;
    assert_eq!(turn.end.status, TurnStatus::Done);
    assert_eq!(stage.ran(), ["hello"]);
    waiting.recv().await.expect("it was called");
}

#[tokio::test]
async fn what_a_session_begins_with_waits_for_the_first_prompt_that_is_taken() {
    let start = hook(Point::SessionStart, |_, _| {
        Ok(Verdict { context: Some("mind the gap".to_owned()), ..Verdict::default() })
    });
    let times = Mutex::new(0);
    let refuse_once = hook(Point::ChatMessage, move |_, _| {
        let mut times = times.lock().unwrap();
        *times += 1;
        let block = (*times == 1).then(|| "not this one".to_owned());
        Ok(Verdict { block, ..Verdict::default() })
    });
    let mut stage =
        Stage::new(Action::Allow, [says("ok"), says("ok")], vec![start, refuse_once]).await;
    assert_eq!(stage.prompt().await.end.status, TurnStatus::Failed);
    stage.prompt().await;
    assert!(stage.sent(0).contains("mind the gap"));
}
