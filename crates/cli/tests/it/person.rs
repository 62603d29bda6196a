//! What goes between the model and the person: questions, and the list of what is to be done.

use serde_json::json;
use toolwright_testkit::{Answer, Captured, ModelServer, Wire};

use crate::{folder, results};

const TALK: [&str; 7] = ["run", "--format", "json", "--commands", "-m", "anthropic/m", "go"];

fn offered(request: &Captured) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn ask() -> Answer {
    let options = json!([{"label": "red", "description": "warm"}, {"label": "blue"}]);
    let question = json!({"question": "Which colour?", "header": "Colour", "options": options});
    Answer::call("question", json!({"questions": [question]}))
}

#[test]
fn a_question_reaches_the_program_and_its_answer_the_model() {
    let server = ModelServer::start([ask(), Answer::text("Red it is.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("\"inquiry\"");
    run.say(r#"{"type":"reply","id":0,"answers":[["red"]]}"#);
    let run = run.wait().expect(0);
    let lines = run.lines();
    let inquiry = lines.iter().find(|line| line["type"] == "inquiry").unwrap();
    assert_eq!(inquiry["questions"][0]["options"][1]["label"], "blue");
    assert!(offered(&server.last_request()).contains(&"question".to_owned()));
    let result = &results(&server.last_request())[0];
    assert!(
        result.starts_with("User has answered your questions: \"Which colour?\"=\"red\""),
        "{result}"
    );
}

#[test]
fn a_question_can_be_dismissed() {
    let server = ModelServer::start([ask(), Answer::text("As you wish.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("\"inquiry\"");
    run.say(r#"{"type":"reply","id":0}"#);
    run.wait().expect(0);
    assert_eq!(results(&server.last_request())[0], "The user dismissed this question");
}

#[test]
fn where_nobody_can_be_asked_the_tool_is_not_offered_and_says_so_when_called() {
    let server = ModelServer::start([ask(), Answer::text("I assumed red.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(!offered(&server.last_request()).contains(&"question".to_owned()));
    let result = &results(&server.last_request())[0];
    assert!(result.starts_with("Nobody can be asked in this run."), "{result}");
}

#[test]
fn the_list_of_what_is_to_be_done_is_there_again_when_a_session_goes_on() {
    let todos = json!([{"content": "first", "status": "in_progress", "priority": "high"}]);
    let server = ModelServer::start([
        Answer::call("todowrite", json!({ "todos": todos })),
        Answer::text("Noted."),
        Answer::call("todoread", json!({})),
        Answer::text("Still there."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "note it"]).expect(0);
    folder.tw(&["run", "-c", "what was it?"]).expect(0);
    let results = results(&server.last_request());
    assert!(results[1].contains("\"content\": \"first\""), "{results:?}");
    assert_eq!(results[0], results[1]);
}
