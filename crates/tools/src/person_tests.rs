//! Lists and questions: what the model, the person and the log see of them.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolwright_tool::Unanswered;

use crate::kit::{Door, Kit};
use crate::{PlanEnter, PlanExit, Question, Todos};

#[tokio::test]
async fn a_list_is_replaced_whole_and_read_back_in_order() {
    let kit = Kit::new(Todos::default().tools());
    let empty = kit.ok("todoread", json!({})).await;
    assert_eq!((empty.output.as_str(), empty.title.as_str()), ("[]", "0 todos"));
    let todos = json!([
        {"content": "b", "status": "completed", "priority": "high"},
        {"content": "a", "status": "cancelled", "priority": "low"},
        {"content": "c", "status": "in_progress", "priority": "medium"},
    ]);
    let written = kit.ok("todowrite", json!({ "todos": todos })).await;
    assert_eq!(written.title, "2 todos", "cancelled counts, completed does not");
    assert_eq!(written.details, json!({ "todos": todos }));
    assert!(written.output.starts_with("[\n  {\n    \"content\": \"b\",\n    \"status\": "));
    let read = kit.ok("todoread", json!({})).await;
    assert_eq!(read.output, written.output);
    let fewer = kit.ok("todowrite", json!({ "todos": [{"content": "only"}] })).await;
    assert_eq!(fewer.details["todos"][0]["status"], "pending");
    assert_eq!(kit.asked()[0], ("todowrite".to_owned(), "*".to_owned()));
}

#[tokio::test]
async fn answers_come_back_as_pairs_and_an_empty_one_says_so() {
    let door = Door {
        replies: Mutex::new(vec![Ok(vec![vec!["red".into(), "blue".into()], vec![]])]),
        ..Door::default()
    };
    let kit = Kit::behind(door, [Arc::new(Question) as _]);
    let outcome = kit
        .ok(
            "question",
            json!({"questions": [
                {"question": "Which?", "header": "Colour", "multiple": true,
                 "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": ""}]},
                {"question": "Why?", "header": "Reason", "options": []},
            ]}),
        )
        .await;
    assert!(
        outcome.output.starts_with(
            "User has answered your questions: \"Which?\"=\"red, blue\", \"Why?\"=\"Unanswered\""
        ),
        "{}",
        outcome.output
    );
    assert_eq!(outcome.title, "Asked 2 questions");
    let details = json!({"answers": [["red", "blue"], []], "questions": ["Which?", "Why?"]});
    assert_eq!(outcome.details, details);
    let inquiries = kit.door.inquiries.lock().unwrap();
    assert!(inquiries[0].items[0].custom && inquiries[0].items[0].multiple);
    assert!(kit.asked().is_empty(), "asking needs no permission");
}

#[tokio::test]
async fn one_question_may_have_a_long_header_and_is_counted_in_the_singular() {
    let replies = Mutex::new(vec![Ok(vec![vec!["Dog".into()]])]);
    let kit = Kit::behind(Door { replies, ..Door::default() }, [Arc::new(Question) as _]);
    let options =
        json!([{"label": "Dog", "description": "barks"}, {"label": "Cat", "description": ""}]);
    let header = "A header that is much longer than the thirty characters that are asked for";
    let question = json!({"question": "Which pet?", "header": header, "options": options});
    let outcome = kit.ok("question", json!({"questions": [question]})).await;
    assert!(outcome.output.contains("\"Which pet?\"=\"Dog\""), "{}", outcome.output);
    assert_eq!(outcome.title, "Asked 1 question");
}

#[tokio::test]
async fn a_question_that_nobody_answers_says_why() {
    let ask = json!({"questions": [{"question": "Q", "header": "", "options": []}]});
    let door = Door { replies: Mutex::new(vec![Err(Unanswered::Dismissed)]), ..Door::default() };
    let kit = Kit::behind(door, [Arc::new(Question) as _]);
    assert_eq!(kit.error("question", ask.clone()).await, "The user dismissed this question");
    assert!(kit.error("question", ask).await.starts_with("Nobody can be asked in this run."));
    assert!(kit.error("question", json!({"questions": []})).await.contains("at least one"));
    let missing = kit.error("question", json!({"questions": [{"header": "x"}]})).await;
    assert!(missing.contains("question"), "{missing}");
}

#[tokio::test]
async fn only_a_clear_yes_leads_to_the_other_agent() {
    let yes = || Ok(vec![vec!["Yes".to_owned()]]);
    let no = || Ok(vec![vec!["No".to_owned()]]);
    let replies = vec![yes(), yes(), no(), Ok(vec![vec![]]), Err(Unanswered::Dismissed)];
    let door = Door { replies: Mutex::new(replies), ..Door::default() };
    let file = || "plans/a.md".to_owned();
    let tools =
        [Arc::new(PlanEnter { file: file() }) as _, Arc::new(PlanExit { file: file() }) as _];
    let kit = Kit::behind(door, tools);
    let entered = kit.ok("plan_enter", json!({})).await;
    assert_eq!(entered.details, json!({"switch_agent": "plan", "plan": "plans/a.md"}));
    assert!(entered.output.contains("plans/a.md"));
    let left = kit.ok("plan_exit", json!({})).await;
    assert_eq!(left.details["switch_agent"], "build");
    for _ in 0..3 {
        let error = kit.error("plan_exit", json!({})).await;
        assert!(error.starts_with("The user dismissed this question"), "{error}");
    }
    assert!(kit.error("plan_exit", json!({})).await.starts_with("Nobody can be asked"));
    let inquiries = kit.door.inquiries.lock().unwrap();
    let headers: Vec<&str> = inquiries.iter().map(|i| i.items[0].header.as_str()).collect();
    assert_eq!(headers[..2], ["Plan Mode", "Build Agent"]);
    assert!(!inquiries[0].items[0].custom, "yes or no");
}
