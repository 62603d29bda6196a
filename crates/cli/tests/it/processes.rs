//! After any run, however it ended, no process of ours is left.

use serde_json::json;
use toolwright_testkit::{Answer, ModelServer, Wire, eventually, processes_with};

use crate::{folder, results};

fn marker(n: u32) -> String {
    format!("sleep 8{n}765.{}", std::process::id())
}

#[test]
fn background_and_daemonised_processes_end_with_the_run() {
    let marker = marker(1);
    let command = format!(
        "{marker} & (setsid {marker} >/dev/null 2>&1 &) ; nohup {marker} >/dev/null 2>&1 & echo started"
    );
    let server =
        ModelServer::start([Answer::call("bash", json!({"command": command})), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(processes_with(&marker), Vec::<String>::new());
    let result = &results(&server.last_request())[0];
    assert!(result.contains("started") && result.contains("left something running"), "{result}");
}

#[test]
fn a_command_that_ignores_term_ends_at_its_timeout_with_its_output() {
    let marker = marker(2);
    let command = format!("trap '' TERM; echo before; {marker}; {marker}");
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": command, "timeout": 300})),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let result = &results(&server.last_request())[0];
    assert!(result.contains("before") && result.contains("exceeding timeout 300 ms"), "{result}");
    assert_eq!(processes_with(&marker), Vec::<String>::new());
}

#[test]
fn every_signal_that_ends_us_ends_our_children() {
    for (n, (signal, code)) in
        [("INT", Some(130)), ("TERM", Some(130)), ("HUP", Some(130)), ("KILL", None)]
            .into_iter()
            .enumerate()
    {
        let marker = marker(30 + u32::try_from(n).unwrap());
        let server = ModelServer::start([Answer::call(
            "bash",
            json!({"command": format!("{marker}; {marker}")}),
        )]);
        let folder = folder().with_model(&server, Wire::Anthropic);
        let child = folder.start(&["run", "--auto", "-m", "anthropic/m", "go"]);
        eventually("the command", || (processes_with(&marker).len() >= 2).then_some(()));
        child.signal(signal);
        assert_eq!(child.wait().code, code, "{signal}");
        eventually("no process left", || processes_with(&marker).is_empty().then_some(()));
    }
}

#[test]
fn a_command_has_no_terminal_no_input_and_a_group_of_its_own() {
    let command = "cat; tty; ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo leader";
    let server =
        ModelServer::start([Answer::call("bash", json!({"command": command})), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let result = &results(&server.last_request())[0];
    assert!(result.starts_with("not a tty"), "{result}");
}
