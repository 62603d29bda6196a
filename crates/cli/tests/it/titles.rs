//! Names for sessions: from the prompt, from a small model beside the work, from a person.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Folder, ModelServer, Wire};

use crate::folder;

const SMALL: &str = r#"{"small_model": "anthropic/small"}"#;

fn is_small(request: &toolwright_testkit::Captured) -> bool {
    request.body["model"] == "small"
}

fn titles(folder: &Folder) -> Vec<String> {
    let list = folder.tw(&["sessions", "--json"]).expect(0).stdout;
    let list: Value = serde_json::from_str(&list).unwrap();
    list.as_array().unwrap().iter().map(|s| s["title"].as_str().unwrap().to_owned()).collect()
}

fn answering(title: Answer) -> ModelServer {
    ModelServer::answering(move |request| match is_small(request) {
        true => title.clone(),
        false if request.messages().len() > 2 => Answer::text("More."),
        false => Answer::text("The answer."),
    })
}

#[test]
fn a_small_model_names_a_new_session_once_and_its_cost_counts() {
    let server = answering(Answer::text("\"Parser repair.\"\nand more"));
    let folder = folder().user_config(SMALL).with_model(&server, Wire::Anthropic);
    let prompt = "Hi! Please repair the parser. It fails.";
    let run = folder.tw(&["run", "-m", "anthropic/m", prompt]).expect(0);
    assert_eq!(run.stdout, "The answer.\n");
    assert_eq!(titles(&folder), ["Parser repair"]);
    let asked: Vec<_> = server.requests().into_iter().filter(is_small).collect();
    assert_eq!(asked.len(), 1);
    let said = asked[0].messages()[0]["content"].to_string();
    assert!(said.contains("It fails.") && asked[0].body.get("tools").is_none(), "{said}");

    folder.tw(&["run", "-c", "Go on"]).expect(0);
    assert_eq!(server.requests().iter().filter(|r| is_small(r)).count(), 1, "once a session");
    let stats: Value =
        serde_json::from_str(&folder.tw(&["stats", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(stats["total"]["steps"], 3);
    assert!(stats["models"].as_array().unwrap().iter().any(|m| m["model"] == "anthropic/small"));
}

#[test]
fn without_a_small_model_nothing_more_is_asked_and_the_prompt_names_the_session() {
    let server = answering(Answer::text("unused"));
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "Hi! Please repair the parser. It fails."]).expect(0);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(titles(&folder), ["Repair the parser"]);
}

#[test]
fn a_small_model_that_fails_or_says_nothing_costs_no_run() {
    for answer in [Answer::status(400, "no"), Answer::text("  "), Answer::Close, Answer::Silence] {
        let server = answering(answer);
        let folder = folder().user_config(SMALL).with_model(&server, Wire::Anthropic);
        let run = folder.tw(&["run", "-m", "anthropic/m", "Repair it"]).expect(0);
        assert_eq!((run.stdout.as_str(), run.stderr.contains("small")), ("The answer.\n", false));
        assert_eq!(titles(&folder), ["Repair it"]);
    }
}

#[test]
fn the_name_that_a_person_gives_stays() {
    let server = answering(Answer::text("By the model"));
    let folder = folder().user_config(SMALL).with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "Repair it"]).expect(0);
    let list: Value =
        serde_json::from_str(&folder.tw(&["sessions", "--json"]).expect(0).stdout).unwrap();
    let id = list[0]["id"].as_str().unwrap();
    folder.tw(&["sessions", "rename", &id[..20], "My", "own", "name"]).expect(0);
    assert_eq!(titles(&folder), ["My own name"]);
    folder.tw(&["run", "-c", "Go on"]).expect(0);
    assert_eq!(titles(&folder), ["My own name"]);
    folder.tw(&["sessions", "rename", id, " "]).expect(2);
    let found = folder.tw(&["sessions", "--search", "own name"]).expect(0).stdout;
    assert_eq!(found.lines().count(), 1, "{found}");
    assert_eq!(json!(found.contains("My own name")), json!(true));
}
