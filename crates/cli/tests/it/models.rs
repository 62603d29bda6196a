//! Models, prices, effort and what is kept of the wire.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, ModelServer, Wire};

use crate::folder;

/// Two dollars for each of the scripted model's answers (10 tokens in, 20 out).
const PRICED: &str =
    r#"{"provider":{"anthropic":{"models":{"m":{"cost":{"input":0,"output":100000}}}}}}"#;

#[test]
fn costs_are_told_per_step_and_per_run() {
    let server =
        ModelServer::start([Answer::call("glob", json!({"pattern": "*"})), Answer::text("ok")]);
    let folder = folder().user_config(PRICED).with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--format", "json", "-m", "anthropic/m", "go"]).expect(0);
    let lines = run.lines();
    let steps: Vec<f64> = lines
        .iter()
        .filter(|l| l["type"] == "step_finish")
        .map(|l| l["part"]["cost"].as_f64().unwrap())
        .collect();
    assert_eq!(steps, [2.0, 2.0]);
    assert_eq!(lines.last().unwrap()["cost"], 4.0);
}

#[test]
fn an_unknown_price_is_not_told_as_nothing() {
    let server = ModelServer::start([Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--format", "json", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(run.lines().last().unwrap()["cost"], Value::Null);
}

#[test]
fn running_out_of_money_ends_with_a_summary() {
    let look = || Answer::call("glob", json!({"pattern": "*"}));
    let server = ModelServer::start([look(), look(), Answer::text("Summary.")]);
    let folder = folder().user_config(PRICED).with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--max-cost", "3", "-m", "anthropic/m", "go"]).expect(4);
    assert_eq!(run.stdout, "Summary.\n");
    assert!(run.stderr.contains("the budget ran out (money)"), "{}", run.stderr);
}

#[test]
fn effort_reaches_every_wire_in_its_own_words() {
    for (wire, pointer, expected) in [
        (Wire::Anthropic, "/thinking/type", json!("enabled")),
        (Wire::Chat, "/reasoning_effort", json!("high")),
        (Wire::Responses, "/reasoning/effort", json!("high")),
        (Wire::Gemini, "/generationConfig/thinkingConfig/thinkingBudget", json!(16_384)),
    ] {
        let server = ModelServer::start([Answer::text("ok")]);
        let folder = folder().with_model(&server, wire);
        folder.tw(&["run", "--effort", "high", "-m", wire.model(), "go"]).expect(0);
        assert_eq!(server.last_request().body.pointer(pointer), Some(&expected), "{wire:?}");
    }
}

#[test]
fn models_are_listed_with_limits_and_prices_and_refreshed_on_demand() {
    let folder = folder().env("ANTHROPIC_API_KEY", "x");
    let text = folder.tw(&["models"]).expect(0).stdout;
    assert!(text.contains("anthropic/claude-sonnet-5") && !text.contains("openai/"), "{text}");
    let all: Value =
        serde_json::from_str(&folder.tw(&["models", "--all", "--json"]).expect(0).stdout).unwrap();
    assert!(all.as_array().unwrap().len() > 500);
    let run = folder.tw(&["models", "nowhere"]).expect(2);
    assert!(run.stderr.contains("no provider \"nowhere\""), "{}", run.stderr);

    let list = r#"{"anthropic":{"models":{"brand-new":{"limit":{"context":5000}}}}}"#;
    let server = ModelServer::start([Answer::status(200, list), Answer::status(200, "<html>")]);
    let folder = folder.env("TOOLWRIGHT_MODELS_URL", &format!("{}/api.json", server.url()));
    let text = folder.tw(&["models", "--refresh"]).expect(0).stdout;
    assert!(text.contains("anthropic/brand-new"), "{text}");
    let run = folder.tw(&["models", "--refresh"]).expect(1);
    assert!(run.stderr.contains("not JSON") && run.stderr.contains("is kept"), "{}", run.stderr);
    assert!(folder.tw(&["models"]).expect(0).stdout.contains("brand-new"));
}

#[test]
fn keys_can_be_kept_listed_and_removed_and_are_never_shown() {
    let server = ModelServer::start([Answer::text("ok"), Answer::status(401, "{}")]);
    let folder = folder().env("ANTHROPIC_BASE_URL", &server.url());
    let mut command = folder.command(&["auth", "login", "anthropic"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"kept-secret\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = folder.root().join("data/toolwright/auth.json");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(server.last_request().header("x-api-key"), Some("kept-secret"));
    let list = folder.tw(&["auth", "list"]).expect(0).stdout;
    assert!(list.contains("anthropic") && !list.contains("kept-secret"), "{list}");
    assert!(!folder.tw(&["doctor"]).expect(0).stdout.contains("kept-secret"));
    assert!(!folder.session_text().contains("kept-secret"));
    folder.tw(&["auth", "logout", "anthropic"]).expect(0);
    assert!(!folder.tw(&["auth", "list"]).expect(0).stdout.contains("stored"));
    folder.tw(&["auth", "logout", "anthropic"]).expect(2);
    folder.tw(&["auth", "login", "nobody"]).expect(2);
}

#[test]
fn a_trace_keeps_requests_and_raw_answers_without_the_key_and_can_be_decoded() {
    let server =
        ModelServer::start([Answer::call("glob", json!({"pattern": "*"})), Answer::text("Done.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--trace", "trace", "-m", "anthropic/m", "go"]).expect(0);
    let mut names: Vec<String> = std::fs::read_dir(folder.work().join("trace"))
        .unwrap()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["0001.request.json", "0001.response", "0002.request.json", "0002.response"]);
    for name in &names {
        assert!(!folder.read(&format!("trace/{name}")).contains("test-key"), "{name}");
    }
    let request: Value = serde_json::from_str(&folder.read("trace/0002.request.json")).unwrap();
    assert_eq!(request["headers"]["x-api-key"], "***");
    assert_eq!(request["body"], server.last_request().body);
    let run = folder
        .tw(&["debug", "decode", "--wire", "anthropic-messages", "trace/0002.response"])
        .expect(0);
    assert!(run.stdout.contains("\"text\":\"Done.\""), "{}", run.stdout);
}

const FORM: &str = r#"{"type":"object","required":["name","count"],"properties":{"name":{"type":"string"},"count":{"type":"integer","minimum":1}}}"#;

#[test]
fn an_answer_in_a_form_is_validated_and_its_mistakes_go_back_to_the_model() {
    let server = ModelServer::start([
        Answer::text("It is called x."),
        Answer::call("final_answer", json!({"name": "x", "count": 0})),
        Answer::call("final_answer", json!({"name": "x", "count": 2})),
    ]);
    let folder = folder().file("form.json", FORM).with_model(&server, Wire::Anthropic);
    let run =
        folder.tw(&["run", "--output-schema", "form.json", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(run.stdout.lines().last(), Some(r#"{"name":"x","count":2}"#));
    let last = server.last_request();
    assert!(last.raw.windows(20).any(|w| w == b"[\\\"count\\\"]: 0 is le"), "the error goes back");
    crate::assert_history_is_valid(&last);
}

#[test]
fn a_provider_that_holds_answers_to_a_form_is_given_the_schema_and_its_text_is_the_answer() {
    for wire in [Wire::Responses, Wire::Chat] {
        let server = ModelServer::start([
            Answer::text(r#"{"name": "x", "count": 0}"#),
            Answer::text(r#"{"name": "x", "count": 2}"#),
        ]);
        let folder = folder().file("form.json", FORM).with_model(&server, wire);
        let run =
            folder.tw(&["run", "--output-schema", "form.json", "-m", wire.model(), "go"]).expect(0);
        assert_eq!(run.stdout, "{\"name\":\"x\",\"count\":2}\n", "{wire:?}");
        let last = server.last_request();
        let place = match wire {
            Wire::Responses => "/text/format/schema/properties/count/minimum",
            _ => "/response_format/json_schema/schema/properties/count/minimum",
        };
        assert_eq!(last.body.pointer(place), Some(&json!(1)), "{}", last.body);
        assert!(!last.body["tools"].to_string().contains("final_answer"), "no tool beside it");
        let sent = String::from_utf8_lossy(&last.raw);
        assert!(sent.contains("0 is less than the minimum"), "the error goes back: {sent}");
        crate::assert_history_is_valid(&last);
    }
}

#[test]
fn a_server_that_refuses_the_schema_is_asked_without_it_and_the_answer_is_checked_here() {
    let refusal = r#"{"error":{"message":"'response_format.type' json_schema is not supported"}}"#;
    let server = ModelServer::start([
        Answer::status(400, refusal),
        Answer::text("It is called x."),
        Answer::text("```json\n{\"name\": \"x\", \"count\": 2}\n```"),
    ]);
    let folder = folder().file("form.json", FORM).with_model(&server, Wire::Chat);
    let run = folder
        .tw(&["run", "--output-schema", "form.json", "-m", Wire::Chat.model(), "go"])
        .expect(0);
    assert_eq!(run.stdout, "{\"name\":\"x\",\"count\":2}\n");
    assert!(run.stderr.contains("does not take the schema"), "{}", run.stderr);
    let last = server.last_request();
    assert!(last.body.get("response_format").is_none());
    assert!(String::from_utf8_lossy(&last.raw).contains("in the form of this JSON Schema"));
}

#[test]
fn a_model_that_never_uses_the_form_fails_and_a_bad_schema_is_refused() {
    let server = ModelServer::start((0..3).map(|_| Answer::text("words")));
    let folder = folder()
        .file("form.json", FORM)
        .file("bad.json", "{\"type\": 5}")
        .with_model(&server, Wire::Anthropic);
    let run =
        folder.tw(&["run", "--output-schema", "form.json", "-m", "anthropic/m", "go"]).expect(1);
    assert!(run.stderr.contains("in the form that was asked for"), "{}", run.stderr);
    let run =
        folder.tw(&["run", "--output-schema", "bad.json", "-m", "anthropic/m", "go"]).expect(2);
    assert!(run.stderr.contains("not a JSON Schema"), "{}", run.stderr);
    folder.tw(&["run", "--output-schema", "none.json", "-m", "anthropic/m", "go"]).expect(2);
}

#[test]
fn what_a_model_does_not_take_is_left_out_and_told_once() {
    let list = r#"{"anthropic":{"models":{"m":{"attachment":false}}}}"#;
    let server =
        ModelServer::start([Answer::call("glob", json!({"pattern": "*"})), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.write_bytes("x.png", &crate::images::png(1, 1));
    std::fs::create_dir_all(folder.root().join("data/toolwright")).unwrap();
    std::fs::write(folder.root().join("data/toolwright/models.json"), list).unwrap();
    let run = folder.tw(&["run", "-f", "x.png", "-m", "anthropic/m", "look"]).expect(0);
    assert_eq!(run.stderr.matches("this model takes none").count(), 1, "{}", run.stderr);
    let content = server.last_request().messages()[0]["content"].to_string();
    assert!(
        content.contains("x.png (image/png) left out") && !content.contains("base64"),
        "{content}"
    );
}

/// Without the marks, which move with the newest message.
fn unmarked(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    text.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[test]
fn fifty_steps_keep_their_prefix_and_move_only_the_marks() {
    let steps = (0..50).map(|n| Answer::call("bash", json!({"command": format!("echo {n}")})));
    let server = ModelServer::start(steps.chain([Answer::text("ok")]));
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let requests = server.requests();
    assert_eq!(requests.len(), 51);
    for pair in requests.windows(2) {
        let (before, after) = (unmarked(&pair[0].raw), unmarked(&pair[1].raw));
        assert!(after.starts_with(before.strip_suffix("]}").expect("messages come last")));
        let marks = String::from_utf8_lossy(&pair[1].raw).matches("cache_control").count();
        assert_eq!(marks, 2, "the system prompt and the newest message");
    }
}
