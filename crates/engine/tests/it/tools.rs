//! Tools as the loop uses them: too many of them, some that come later, slow ones, and ones with
//! words of their own.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_engine::{EngineOptions, Event, PermissionGate};
use toolwright_llm::{Block, Content, FinishReason, Turn};
use toolwright_permission::{Action, Layer, LayerKind, Policy, Rule};
use toolwright_tool::{
    Access, Audience, Extent, Plan, PlanContext, Planned, Registry, RunContext, Source, Tool,
    ToolError, ToolOutput, tool_fn,
};

use crate::support::{Bench, Scripted, all, allow_all, bench, bench_with, call, finish, text};

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

fn named(name: &str, description: &str) -> impl Tool {
    let name_said = name.to_owned();
    tool_fn(name, description, move |a: City| {
        std::future::ready(Ok(format!("{name_said} of {}", a.city)))
    })
}

/// Answers with these calls, one a step, then with words.
fn calling(calls: Vec<(&'static str, Value)>) -> Scripted {
    Scripted::new(move |n, _| match calls.get(n) {
        Some((name, arguments)) => {
            let arguments = arguments.to_string();
            all([&call(0, name, &arguments)[..], &[finish(FinishReason::ToolCalls)]].concat())
        }
        None => all([&text(0, "Done.")[..], &[finish(FinishReason::Stop)]].concat()),
    })
}

async fn go(bench: &mut Bench) -> Vec<Event> {
    let (sender, mut events) = mpsc::channel(1024);
    bench.engine.prompt(vec![Content::text("go")], &CancellationToken::new(), &sender).await;
    let mut seen = Vec::new();
    while let Some(event) = events.recv().now_or_never().flatten() {
        seen.push(event);
    }
    seen
}

/// What the model got for each call so far, in order.
fn results(bench: &Bench) -> Vec<String> {
    let requests = bench.requests.lock().unwrap();
    let turns = &requests.last().unwrap().turns;
    let mut found = Vec::new();
    for turn in turns {
        let Turn::Assistant { blocks, .. } = turn.as_ref() else { continue };
        for block in blocks {
            if let Block::Call { result, .. } = block
                && let Some(Content::Text { text }) = result.content.first()
            {
                found.push(text.clone());
            }
        }
    }
    found
}

#[tokio::test]
async fn tools_beyond_the_budget_are_found_by_search_and_called_through_one_door() {
    let registry = Registry::default().with_search();
    registry.register_from(Source::BuiltIn, Arc::new(named("own", "Always there.")));
    for n in 0..200 {
        let about = format!("Knows the {n}th thing about weather.");
        registry.register_from(Source::Mcp, Arc::new(named(&format!("server_fact{n}"), &about)));
    }
    let model = calling(vec![
        ("tool_search", json!({"query": "server_fact137"})),
        ("tool_call", json!({"name": "server_fact137", "arguments": {"city": "Bern"}})),
        ("tool_call", json!({"name": "server_fact138", "arguments": "{\"city\": \"Rome\"}"})),
        ("server_fact139", json!({"city": "Oslo"})),
        ("tool_call", json!({"name": "server_fact1", "arguments": {}})),
        ("tool_search", json!({"query": "zebra"})),
    ]);
    let mut options = EngineOptions::new("Be.");
    options.tools = Arc::new(|registry: &Registry| {
        let audience = Audience { model: "m", denied: &|_| false, budget_tokens: Some(1_000) };
        registry.offer(&audience).definitions
    });
    let gate = PermissionGate::new(allow_all(), None);
    let mut bench = bench_with(model, registry, gate, options).await;
    go(&mut bench).await;
    let requests = bench.requests.lock().unwrap().clone();
    let names: Vec<&str> = requests[0].tools.iter().map(|t| t.name.as_str()).collect();
    assert!(names.contains(&"own"));
    assert!(names.len() < 40, "{} tools", names.len());
    assert_eq!(names[names.len() - 2..], ["tool_search", "tool_call"]);
    // The list never changes, whatever was found.
    for request in &requests {
        assert_eq!(request.tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), names);
    }
    let results = results(&bench);
    assert!(results[0].contains("\"server_fact137\"") && results[0].contains("\"city\""));
    assert_eq!(results[1], "server_fact137 of Bern");
    assert_eq!(results[2], "server_fact138 of Rome");
    assert_eq!(results[3], "server_fact139 of Oslo", "by its own name too");
    assert!(results[4].contains("server_fact1 tool was called with invalid arguments"));
    assert!(results[5].contains("No tool fits"));
}

#[tokio::test]
async fn a_tool_that_comes_later_joins_at_the_end_of_the_list() {
    let registry = Registry::default();
    registry.register(named("middle", "x"));
    let joining = registry.clone();
    let model = Scripted::new(move |n, _| match n {
        0 => {
            joining.register(named("a_late_one", "y"));
            let call = call(0, "middle", r#"{"city":"Bern"}"#);
            all([&call[..], &[finish(FinishReason::ToolCalls)]].concat())
        }
        _ => all([&text(0, "Done.")[..], &[finish(FinishReason::Stop)]].concat()),
    });
    let mut bench = bench(model, registry).await;
    go(&mut bench).await;
    let requests = bench.requests.lock().unwrap();
    let names =
        |n: usize| -> Vec<String> { requests[n].tools.iter().map(|t| t.name.clone()).collect() };
    assert_eq!(names(0), ["middle"]);
    assert_eq!(names(1), ["middle", "a_late_one"]);
}

#[test]
fn what_can_never_run_or_does_not_suit_the_model_is_not_offered() {
    struct Picky;
    impl Tool for Picky {
        type Arguments = City;
        type Prepared = ();
        fn name(&self) -> &str {
            "picky"
        }
        fn description(&self) -> &str {
            "x"
        }
        fn suits(&self, model: &str, has: &dyn Fn(&str) -> bool) -> bool {
            model.contains("gpt-") && has("other")
        }
        async fn plan(&self, _: City, _: &PlanContext) -> Planned<()> {
            Planned::ready(Plan::new("x", Vec::new()), ())
        }
        async fn run(&self, (): (), _: RunContext) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::default())
        }
    }
    let registry = Registry::default();
    registry.register(Picky).register(named("other", "x")).register(named("secret", "x"));
    let offered = |model: &str| {
        let audience = Audience { model, denied: &|key| key == "secret", budget_tokens: None };
        let offer = registry.offer(&audience);
        offer.definitions.into_iter().map(|d| d.name).collect::<Vec<_>>()
    };
    assert_eq!(offered("gpt-5"), ["other", "picky"]);
    assert_eq!(offered("claude"), ["other"]);
    assert!(registry.unregister("other"));
    assert!(!registry.unregister("other"));
    assert_eq!(offered("gpt-5"), Vec::<String>::new());
}

/// Takes its time, and has words of its own for arguments that do not fit.
struct Slow {
    heeds: bool,
}

impl Tool for Slow {
    type Arguments = City;
    type Prepared = ();

    fn name(&self) -> &str {
        if self.heeds { "slow" } else { "deaf" }
    }

    fn description(&self) -> &str {
        "for tests"
    }

    fn explain_invalid(&self, problems: &[String], _: &Value) -> Option<String> {
        Some(format!("{} thing(s) wrong, in my own words", problems.len()))
    }

    async fn plan(&self, _: City, _: &PlanContext) -> Planned<()> {
        Planned::ready(Plan::new("wait", Vec::new()).within(Duration::from_secs(5)), ())
    }

    async fn run(&self, (): (), context: RunContext) -> Result<ToolOutput, ToolError> {
        context.progress.update("half of it");
        if self.heeds {
            context.cancel.cancelled().await;
            return Ok(ToolOutput::text("what I had"));
        }
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_has_its_own_time_and_keeps_what_it_had_whether_it_heeds_the_end_or_not() {
    let registry = Registry::default();
    registry.register(Slow { heeds: true }).register(Slow { heeds: false });
    let model = calling(vec![
        ("slow", json!({"city": "x"})),
        ("deaf", json!({"city": "x"})),
        ("slow", json!({"town": 1})),
    ]);
    let mut bench = bench(model, registry).await;
    let began = tokio::time::Instant::now();
    go(&mut bench).await;
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let results = results(&bench);
    assert!(results[0].contains("longer than 5 s") && results[0].contains("what I had"));
    assert!(results[1].contains("longer than 5 s") && results[1].contains("half of it"));
    assert_eq!(results[2], "1 thing(s) wrong, in my own words");
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_at_most_ten_times_a_second_and_the_newest_is_never_lost() {
    struct Chatty;
    impl Tool for Chatty {
        type Arguments = City;
        type Prepared = ();
        fn name(&self) -> &str {
            "chatty"
        }
        fn description(&self) -> &str {
            "x"
        }
        async fn plan(&self, _: City, _: &PlanContext) -> Planned<()> {
            Planned::ready(Plan::new("x", Vec::new()), ())
        }
        async fn run(&self, (): (), context: RunContext) -> Result<ToolOutput, ToolError> {
            for n in 0..1_000 {
                context.progress.update(format!("{n}"));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(ToolOutput::text("x"))
        }
    }
    let registry = Registry::default();
    registry.register(Chatty);
    let mut bench = bench(calling(vec![("chatty", json!({"city": "x"}))]), registry).await;
    let events = go(&mut bench).await;
    let told: Mutex<Vec<String>> = Mutex::default();
    for event in events {
        if let Event::CallProgress { text, .. } = event {
            told.lock().unwrap().push(text);
        }
    }
    let told = told.into_inner().unwrap();
    assert!((5..=12).contains(&told.len()), "{} updates in a second", told.len());
    assert_eq!(told.last().unwrap(), "999");
}

/// A policy that allows everything but what these rules say.
fn allowing_all_but(rules: &[(&str, &str)]) -> Policy {
    let all = Rule { permission: "*".into(), pattern: "*".into(), action: Action::Allow };
    let denied = rules.iter().map(|(permission, pattern)| Rule {
        permission: (*permission).to_owned(),
        pattern: (*pattern).to_owned(),
        action: Action::Deny,
    });
    let rules = std::iter::once(all).chain(denied).collect();
    Policy::new(vec![Layer { kind: LayerKind::User, origin: "test".into(), rules }])
}

#[tokio::test]
async fn a_search_for_tools_does_not_find_what_can_never_be_called() {
    let registry = Registry::default().with_search();
    for name in ["server_weather", "server_tides"] {
        registry.register_from(Source::Mcp, Arc::new(named(name, "Knows about the sea.")));
    }
    let model = calling(vec![
        ("tool_search", json!({"query": "sea"})),
        ("tool_search", json!({"query": "server_tides"})),
        ("tool_call", json!({"name": "server_tides", "arguments": {"city": "Bern"}})),
    ]);
    let gate = PermissionGate::new(allowing_all_but(&[("server_tides", "*")]), None);
    let mut bench = bench_with(model, registry, gate, EngineOptions::new("Be.")).await;
    go(&mut bench).await;
    let results = results(&bench);
    assert!(results[0].contains("server_weather") && !results[0].contains("server_tides"));
    assert!(!results[1].contains("\"server_tides\",\"description\""), "{}", results[1]);
    assert!(results[2].contains("Permission denied"), "{}", results[2]);
}

/// A tool of a program's own that declares to read one file and then wants more.
struct Greedy;

#[derive(Deserialize, JsonSchema)]
struct Wish {
    path: String,
}

impl Tool for Greedy {
    type Arguments = Wish;
    type Prepared = PathBuf;

    fn name(&self) -> &str {
        "greedy"
    }

    fn description(&self) -> &str {
        "Reads, and wants to write."
    }

    async fn plan(&self, wish: Wish, context: &PlanContext) -> Planned<PathBuf> {
        let path = context.workspace.resolve(&wish.path);
        let access = Access::Read { path: path.clone(), extent: Extent::Single };
        Planned::ready(Plan::new("look", vec![access]), path)
    }

    async fn run(&self, path: PathBuf, context: RunContext) -> Result<ToolOutput, ToolError> {
        // What it did not declare is not opened for it.
        let Err(refused) = context.files.write(&path, b"x") else {
            return Ok(ToolOutput::text("it wrote without a word"));
        };
        // And asking for it goes by the same rules.
        let access = Access::Write { path: path.clone(), diff: String::new() };
        context.door.ask(&Plan::new("write after all", vec![access])).await?;
        Err(refused)
    }
}

#[tokio::test]
async fn a_tool_of_a_programs_own_cannot_do_more_than_its_rules_allow() {
    let registry = Registry::default();
    registry.register(Greedy);
    registry.register(named("own_tool", "x"));
    let model = calling(vec![
        ("greedy", json!({"path": "Cargo.toml"})),
        ("own_tool", json!({"city": "Bern"})),
    ]);
    let gate = PermissionGate::new(allowing_all_but(&[("edit", "*"), ("own_tool", "*")]), None);
    let mut bench = bench_with(model, registry, gate, EngineOptions::new("Be.")).await;
    go(&mut bench).await;
    let results = results(&bench);
    assert!(results[0].contains("Permission denied: write after all"), "{results:?}");
    assert!(results[1].contains("Permission denied"), "{results:?}");
}
