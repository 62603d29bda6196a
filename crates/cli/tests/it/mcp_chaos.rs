//! Servers that behave badly: each has an end, in bounded time, with words that help.

use serde_json::json;
use toolwright_testkit::{Answer, ModelServer, Wire, processes_with};

use crate::mcp::{RUN, call, config, fake, offered};
use crate::{folder, results};

#[test]
fn floods_noise_and_wrong_answers_do_not_harm_the_right_one() {
    let folder = folder().user_config(&config(json!({"fake": fake(&["noise"])})));
    for (tool, expected) in [
        ("flood_stderr", "flooded"),
        ("flood_notifications", "flooded"),
        ("wrong_id", "right"),
        ("invalid_json", "valid"),
    ] {
        let (code, outcome) = call(&folder, tool, json!({}));
        assert_eq!((code, &outcome["output"]), (0, &json!(expected)), "{tool}: {outcome}");
    }
}

#[test]
fn an_answer_of_a_hundred_megabytes_is_an_error_that_says_so() {
    let folder = folder().user_config(&config(json!({"fake": fake(&["ok"])})));
    let (code, outcome) = call(&folder, "huge", json!({}));
    assert_eq!(code, 1);
    let said = outcome["output"].as_str().unwrap();
    assert!(said.contains("the answer has 104857") && said.contains("not taken"), "{said}");
}

#[test]
fn a_call_that_is_never_answered_is_given_up_and_the_server_goes_on() {
    let server = ModelServer::start([
        Answer::call("fake_never", json!({})),
        Answer::call("fake_echo", json!({"text": "alive"})),
        Answer::call("fake_cancelled", json!({})),
        Answer::text("Done."),
    ]);
    let mut entry = fake(&["ok"]);
    // The start has to fit into it as well.
    entry["timeout"] = json!(3_000);
    entry["required"] = json!(true);
    let folder = folder()
        .user_config(&config(json!({ "fake": entry })))
        .with_model(&server, Wire::Anthropic);
    folder.tw(&RUN).expect(0);
    let told = results(&server.last_request());
    assert!(told[0].contains("no sign of life for 3 s"), "{}", told[0]);
    assert_eq!(told[1], "alive");
    // It was told that nobody waits any more.
    assert_ne!(told[2], "[]");
}

#[test]
fn a_server_that_ends_during_a_call_is_started_again() {
    let server = ModelServer::start([
        Answer::call("fake_exit", json!({})),
        Answer::call("fake_echo", json!({"text": "again"})),
        Answer::text("Done."),
    ]);
    let mut entry = fake(&["starts", "starts"]);
    entry["required"] = json!(true);
    let folder = folder()
        .user_config(&config(json!({ "fake": entry })))
        .with_model(&server, Wire::Anthropic);
    folder.tw(&RUN).expect(0);
    let told = results(&server.last_request());
    assert!(
        told[0].contains("ended during the call") && told[0].contains("out of cheese"),
        "{}",
        told[0]
    );
    assert_eq!(told[1], "again");
    assert_eq!(folder.read("starts").lines().count(), 2);
}

#[test]
fn tools_that_change_during_a_call_are_changed_in_the_next_request() {
    let model = ModelServer::answering(|request| {
        let names = offered(request);
        let turns = request.messages().len();
        match names.contains(&"fake_fresh".to_owned()) {
            false if turns == 1 => Answer::call("fake_change_tools", json!({})),
            false => Answer::call("bash", json!({"command": format!("sleep 0.05 # {turns}")})),
            true if names.contains(&"fake_add".to_owned()) => Answer::text("it is still there"),
            true => Answer::text("Done."),
        }
    });
    let mut entry = fake(&["ok"]);
    entry["required"] = json!(true);
    let folder =
        folder().user_config(&config(json!({ "fake": entry }))).with_model(&model, Wire::Anthropic);
    assert_eq!(folder.tw(&RUN).expect(0).stdout.trim(), "Done.");
}

#[test]
fn a_server_that_never_speaks_is_given_up_after_its_time() {
    let mut entry = fake(&["silent"]);
    entry["timeout"] = json!(500);
    let folder = folder().user_config(&config(json!({ "fake": entry })));
    let list = folder.tw(&["mcp", "list"]).expect(0).stdout;
    assert!(list.contains("it was not ready within 0.5 s"), "{list}");
}

#[test]
fn neither_forked_children_nor_ignored_signals_leave_a_process_behind() {
    for mode in ["fork", "stubborn"] {
        let marker = format!("mark-{mode}-{}", std::process::id());
        let folder = folder().user_config(&config(json!({"fake": fake(&[mode, &marker])})));
        let (_, outcome) = call(&folder, "echo", json!({"text": "x"}));
        assert_eq!(outcome["output"], "x");
        assert_eq!(processes_with(&marker), Vec::<String>::new(), "{mode}");
    }
}

/// The whole sweep is `SWEEP_SESSIONS=200`; some of it runs always.
#[test]
fn many_sessions_with_five_servers_each_leave_no_process() {
    let sessions: usize =
        std::env::var("SWEEP_SESSIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let marker = format!("mark-sweep-{}", std::process::id());
    let modes = ["ok", "fork", "stubborn", "silent", "die"];
    let servers: serde_json::Map<_, _> =
        modes.iter().map(|mode| ((*mode).to_owned(), fake(&[mode, &marker]))).collect();
    for n in 0..sessions {
        let server = ModelServer::start([
            Answer::call("ok_echo", json!({"text": "x"})),
            Answer::text("Done."),
        ]);
        let folder =
            folder().user_config(&config(json!(servers))).with_model(&server, Wire::Anthropic);
        folder.tw(&RUN).expect(0);
        assert_eq!(processes_with(&marker), Vec::<String>::new(), "after session {n}");
    }
}
