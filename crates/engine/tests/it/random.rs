//! Ten thousand turns with random scripts, faults and interruptions at random points. Whatever
//! happens: the history is valid, every call has exactly one result, what was sent is a prefix of
//! what is sent next, the log folds to what is in memory, and nothing is left running.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_engine::{Answer, Budget, EngineOptions, Event, PermissionGate, RoomOptions};
use toolwright_llm::{
    Block, Content, Event as ModelEvent, Failure, FailureKind, FinishReason, Request, Turn,
};
use toolwright_permission::{Action, Layer, LayerKind, Policy, Rule};
use toolwright_session::{Entry, Mark, ReplyPart, Session};
use toolwright_tool::{
    Access, Extent, Plan, PlanContext, Planned, Registry, RunContext, Source, Tool, ToolError,
    ToolOutput,
};

use crate::support::{Bench, Scripted, bench_with, finish, header, text, usage};

/// A tool that does as its arguments say.
struct Puppet;

#[derive(Deserialize, JsonSchema)]
struct Strings {
    /// Which file it is about.
    file: u8,
    writes: bool,
    asks: bool,
    act: Act,
}

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Act {
    Work,
    Sleep,
    /// Does not react to being stopped.
    Hang,
    Fail,
    Panic,
    Talk,
}

impl Tool for Puppet {
    type Arguments = Strings;
    type Prepared = Strings;

    fn name(&self) -> &str {
        "puppet"
    }

    fn description(&self) -> &str {
        "for tests"
    }

    async fn plan(&self, strings: Strings, context: &PlanContext) -> Planned<Strings> {
        let path = context.workspace.resolve(&format!("file-{}", strings.file));
        let mut accesses = vec![if strings.writes {
            Access::Write { path, diff: String::new() }
        } else {
            Access::Read { path, extent: Extent::Single }
        }];
        if strings.asks {
            let (permission, pattern) = ("risky".to_owned(), "*".to_owned());
            accesses.push(Access::Custom { permission, pattern, read_only: true });
        }
        Planned::ready(Plan::new("pull", accesses), strings)
    }

    async fn run(&self, strings: Strings, context: RunContext) -> Result<ToolOutput, ToolError> {
        match strings.act {
            Act::Work => Ok(ToolOutput::text("worked ".repeat(80))),
            Act::Sleep => {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(50)) => Ok(ToolOutput::text("slept")),
                    () = context.cancel.cancelled() => {
                        Ok(ToolOutput { interrupted: true, ..ToolOutput::text("woken") })
                    }
                }
            }
            Act::Hang => {
                tokio::time::sleep(Duration::from_secs(3_600)).await;
                Ok(ToolOutput::text("never"))
            }
            Act::Fail => Err(ToolError::for_model("it did not work")),
            Act::Panic => std::panic::panic_any(AsTold),
            Act::Talk => {
                for n in 0..5 {
                    context.progress.update(format!("at {n}"));
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
                Ok(ToolOutput::text("talked"))
            }
        }
    }
}

struct AsTold;

/// Panics that belong to the play are not printed.
fn quiet_puppets() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<AsTold>() {
                usual(info);
            }
        }));
    });
}

/// One answer of the model.
#[derive(Debug, Clone)]
struct Script {
    parts: Vec<Part>,
    end: End,
    /// Milliseconds before each event.
    pause: u64,
    input: u64,
}

#[derive(Debug, Clone)]
enum Part {
    Text(&'static str),
    Reasoning,
    Call {
        name: &'static str,
        arguments: String,
    },
    /// A call whose block never ends.
    HalfCall,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Finish(FinishReason),
    Fail(FailureKind),
    /// The stream stops against its contract.
    Vanish,
    /// Nothing more ever comes.
    Stall,
}

/// Something that somebody does while the turn runs, after so many milliseconds.
#[derive(Debug, Clone)]
enum Disturbance {
    Abort,
    Steer,
    FollowUp,
    Withdraw(u64),
    Compact,
}

#[derive(Debug, Clone)]
struct Scenario {
    scripts: Vec<Script>,
    disturbances: Vec<(u64, Disturbance)>,
    /// How questions are answered, one after the other; nobody is there if it is empty.
    answers: Vec<u8>,
    steps: usize,
    time: Option<u64>,
    window: Option<u64>,
}

fn part() -> impl Strategy<Value = Part> {
    let act = prop_oneof![
        6 => Just("work"), 2 => Just("sleep"), 1 => Just("hang"), 1 => Just("fail"),
        1 => Just("panic"), 1 => Just("talk"),
    ];
    let call = (0..3_u8, any::<bool>(), prop::bool::weighted(0.2), act).prop_map(
        |(file, writes, asks, act)| {
            let arguments =
                format!(r#"{{"file":{file},"writes":{writes},"asks":{asks},"act":"{act}"}}"#);
            Part::Call { name: "puppet", arguments }
        },
    );
    let odd = prop_oneof![
        Just(("puppet", "{")),
        Just(("puppet", "")),
        Just(("puppet", r#"{"file":"many"}"#)),
        Just(("Puppet", r#"{"file":1,"writes":false,"asks":false,"act":"work",}"#)),
        Just(("", "{}")),
        Just(("nobody", "{}")),
        Just(("puppet", "null")),
    ]
    .prop_map(|(name, arguments)| Part::Call { name, arguments: arguments.to_owned() });
    prop_oneof![
        3 => prop_oneof![Just("Well."), Just(""), Just("  \n")].prop_map(Part::Text),
        1 => Just(Part::Reasoning),
        6 => call,
        2 => odd,
        1 => Just(Part::HalfCall),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    let end = prop_oneof![
        12 => Just(End::Finish(FinishReason::ToolCalls)),
        4 => Just(End::Finish(FinishReason::Stop)),
        1 => Just(End::Finish(FinishReason::Length)),
        1 => Just(End::Finish(FinishReason::Pause)),
        1 => Just(End::Finish(FinishReason::Unknown)),
        1 => Just(End::Finish(FinishReason::ContentFilter)),
        1 => Just(End::Fail(FailureKind::ContextOverflow)),
        1 => Just(End::Fail(FailureKind::Truncated)),
        1 => Just(End::Vanish),
        1 => Just(End::Stall),
    ];
    let input = prop_oneof![3 => Just(0_u64), 3 => Just(100_u64), 1 => Just(900_u64)];
    (prop::collection::vec(part(), 0..5), end, 0..3_u64, input)
        .prop_map(|(parts, end, pause, input)| Script { parts, end, pause, input })
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let disturbance = prop_oneof![
        3 => Just(Disturbance::Abort),
        4 => Just(Disturbance::Steer),
        2 => Just(Disturbance::FollowUp),
        1 => (0..3_u64).prop_map(Disturbance::Withdraw),
        2 => Just(Disturbance::Compact),
    ];
    (
        prop::collection::vec(script(), 1..6),
        prop::collection::vec((0..200_u64, disturbance), 0..4),
        prop::collection::vec(0..4_u8, 0..4),
        1..8_usize,
        prop::option::weighted(0.2, 1..300_u64),
        prop::option::weighted(0.4, Just(1_000_u64)),
    )
        .prop_map(|(scripts, disturbances, answers, steps, time, window)| Scenario {
            scripts,
            disturbances,
            answers,
            steps,
            time,
            window,
        })
}

fn events(script: &Script) -> BoxStream<'static, ModelEvent> {
    let mut events = Vec::new();
    for (number, part) in script.parts.iter().enumerate() {
        let block = number as u32;
        match part {
            Part::Text(words) => events.extend(text(block, words)),
            Part::Reasoning => {
                events.push(ModelEvent::Reasoning { block, delta: "Hm.".into() });
                events.push(ModelEvent::BlockEnd { block, opaque: None });
            }
            Part::Call { name, arguments } => {
                // The same id again and again: it must be made unique.
                let id = if number % 2 == 0 { "twin".to_owned() } else { String::new() };
                events.push(ModelEvent::CallStart { block, id, name: (*name).to_owned() });
                for piece in arguments.as_bytes().chunks(7) {
                    let delta = String::from_utf8_lossy(piece).into_owned();
                    events.push(ModelEvent::CallArguments { block, delta });
                }
                events.push(ModelEvent::BlockEnd { block, opaque: None });
            }
            Part::HalfCall => {
                let name = "puppet".to_owned();
                events.push(ModelEvent::CallStart { block, id: "half".into(), name });
            }
        }
    }
    if script.input > 0 {
        events.push(usage(script.input));
    }
    let stalls = matches!(script.end, End::Stall);
    match script.end {
        End::Finish(reason) => events.push(finish(reason)),
        End::Fail(kind) => events.push(ModelEvent::Failed(Failure::new(kind, "as told"))),
        End::Vanish | End::Stall => {}
    }
    let pause = Duration::from_millis(script.pause);
    let paced = futures_util::stream::iter(events).then(move |event| async move {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        event
    });
    if stalls { paced.chain(futures_util::stream::pending()).boxed() } else { paced.boxed() }
}

fn policy() -> Policy {
    let rule = |permission: &str, action| Rule {
        permission: permission.into(),
        pattern: "*".into(),
        action,
    };
    let rules =
        vec![rule("*", Action::Allow), rule("risky", Action::Ask), rule("doom_loop", Action::Ask)];
    Policy::new(vec![Layer { kind: LayerKind::Session, origin: "test".into(), rules }])
}

async fn run(scenario: Scenario) {
    let scripts = scenario.scripts.clone();
    let model = Scripted::new(move |number, request| {
        if request.tools.is_empty() {
            // Somebody takes notes.
            return crate::support::all(
                [&text(0, "Notes.")[..], &[finish(FinishReason::Stop)]].concat(),
            );
        }
        match scripts.get(number) {
            Some(script) => events(script),
            None => {
                crate::support::all([&text(0, "Done.")[..], &[finish(FinishReason::Stop)]].concat())
            }
        }
    });
    let registry = Registry::default();
    registry.register_from(Source::BuiltIn, Arc::new(Puppet));
    let (sender, mut receiver) = mpsc::channel(4);
    let asker = (!scenario.answers.is_empty()).then(|| sender.clone());
    let gate = PermissionGate::new(policy(), asker);
    let questions = gate.questions();
    let mut options = EngineOptions::new("Be.");
    options.budget = Budget {
        steps: scenario.steps,
        time: scenario.time.map(Duration::from_millis),
        ..Budget::default()
    };
    options.room = RoomOptions {
        window: scenario.window,
        reserved: 100,
        keep: Some(50),
        ..RoomOptions::default()
    };
    let Bench { journal, requests, mut engine } = bench_with(model, registry, gate, options).await;
    let cancel = CancellationToken::new();
    let inbox = engine.inbox();

    let mut answers = scenario.answers.clone().into_iter().cycle();
    let listening = async {
        let mut ends = 0;
        while let Some(event) = receiver.recv().await {
            match event {
                Event::Question { id, .. } => match answers.next() {
                    Some(0) => questions.answer(id, Answer::Once),
                    Some(1) => questions.answer(id, Answer::Always),
                    Some(2) => questions.answer(id, Answer::Reject { message: None }),
                    // Somebody who never answers is there until the abort.
                    _ => {}
                },
                Event::TurnEnded(_) => ends += 1,
                Event::Idle => break,
                _ => {}
            }
        }
        ends
    };
    let disturbing = async {
        let mut plan = scenario.disturbances.clone();
        plan.sort_by_key(|(at, _)| *at);
        let start = tokio::time::Instant::now();
        for (at, disturbance) in plan {
            tokio::time::sleep_until(start + Duration::from_millis(at)).await;
            match disturbance {
                Disturbance::Abort => cancel.cancel(),
                Disturbance::Steer => {
                    inbox.steer(vec![Content::text("rather this")]);
                }
                Disturbance::FollowUp => {
                    inbox.follow_up(vec![Content::text("and this")]);
                }
                Disturbance::Withdraw(id) => inbox.withdraw(id),
                Disturbance::Compact => inbox.compact(),
            }
        }
        // What hangs is ended by a person's patience.
        tokio::time::sleep(Duration::from_secs(600)).await;
        cancel.cancel();
        std::future::pending::<()>().await;
    };
    let working = async {
        let mut turns = 1;
        engine.prompt(vec![Content::text("go")], &cancel, &sender).await;
        while engine.follow_up(&cancel, &sender).await.is_some() {
            turns += 1;
        }
        sender.send(Event::Idle).await.ok();
        turns
    };
    let both = async { tokio::join!(working, listening) };
    let (turns, ends) = tokio::select! {
        both = both => both,
        () = disturbing => unreachable!("it never ends"),
    };
    assert_eq!(turns, ends, "one last event a turn");
    check_log(&journal.0.lock().unwrap(), engine.session());
    check_requests(&requests.lock().unwrap(), &journal.0.lock().unwrap());
    drop(engine);
    // What was dropped gets the time to go.
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    let left = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(left, 0, "tasks left");
}

/// The log alone gives the same session, and in it every call has exactly one result.
fn check_log(entries: &[Entry], session: &Session) {
    let mut folded = Session::new(header());
    let mut open = 0_usize;
    let mut settled = Vec::new();
    for entry in entries {
        match entry {
            Entry::Reply { parts, .. } => {
                assert!(settled.iter().all(|s| *s), "a call of the step before has no result");
                open = parts.iter().filter(|p| matches!(p, ReplyPart::Call { .. })).count();
                settled = vec![false; open];
            }
            Entry::CallSettled { call, .. } => {
                assert!(*call < open, "a result for a call that nobody made");
                assert!(!settled[*call], "a second result");
                settled[*call] = true;
            }
            Entry::CallStarted { call, .. } => assert!(!settled[*call], "started after its end"),
            Entry::Prompt { .. } | Entry::StepStarted { .. } | Entry::TurnEnded { .. } => {
                assert!(settled.iter().all(|s| *s), "{entry:?} before all results");
            }
            _ => {}
        }
        folded.apply(entry.clone(), Mark::default());
    }
    assert!(settled.iter().all(|s| *s), "a call without a result");
    assert_eq!(folded.items(), session.items());
    assert_eq!(folded.queued(), session.queued());
    assert_eq!(folded.usage(), session.usage());
    assert_eq!(folded.compaction(), session.compaction());
    let mut ids: Vec<String> = Vec::new();
    for turn in folded.turns() {
        let Turn::Assistant { blocks, .. } = turn.as_ref() else { continue };
        for block in blocks {
            if let Block::Call { id, result, .. } = block {
                assert!(!ids.contains(id), "{id} twice");
                ids.push(id.clone());
                assert!(!result.content.is_empty());
            }
        }
    }
}

/// Each request begins with the one before, unless room was made in between.
fn check_requests(requests: &[Request], entries: &[Entry]) {
    let made_room =
        entries.iter().any(|entry| matches!(entry, Entry::Pruned { .. } | Entry::Compacted { .. }));
    let steps: Vec<&Request> = requests.iter().filter(|r| !r.tools.is_empty()).collect();
    for pair in steps.windows(2) {
        assert_eq!(pair[0].system, pair[1].system);
        if made_room {
            continue;
        }
        assert!(pair[0].turns.len() <= pair[1].turns.len());
        for (before, after) in pair[0].turns.iter().zip(&pair[1].turns) {
            assert_eq!(format!("{before:?}"), format!("{after:?}"), "the prefix moved");
        }
    }
    // A model is always asked by somebody else's words or results, never by its own.
    for request in requests {
        match request.turns.last().map(AsRef::as_ref) {
            Some(Turn::User(content)) => assert!(!content.is_empty()),
            Some(Turn::Assistant { blocks, .. }) => {
                let waits = blocks.iter().any(|b| matches!(b, Block::Call { .. }));
                let paused = entries.iter().any(|e| {
                    matches!(e, Entry::Reply { finish, .. } if finish.reason == FinishReason::Pause)
                });
                assert!(waits || paused, "nothing new to answer: {blocks:?}");
            }
            None => panic!("an empty conversation"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 10_000,
        max_shrink_iters: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_the_history_is_valid_and_nothing_is_left(scenario in scenario()) {
        quiet_puppets();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(scenario));
    }
}
