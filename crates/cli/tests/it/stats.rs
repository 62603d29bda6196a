//! What was spent, by day and by model.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, ModelServer, Wire};

use crate::folder;

fn total(folder: &toolwright_testkit::Folder, arguments: &[&str]) -> Value {
    let run = folder.tw(arguments).expect(0);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn nothing_was_spent_in_an_empty_store() {
    let folder = folder();
    let run = folder.tw(&["stats"]).expect(0);
    assert!(run.stdout.is_empty() && run.stderr.contains("Nothing was asked"), "{}", run.stderr);
    let report = total(&folder, &["stats", "--json"]);
    assert_eq!((&report["days"], &report["total"]["cost"]), (&json!([]), &json!(0.0)));
}

#[test]
fn sessions_of_all_folders_are_added_up_by_day_and_by_model_and_copies_count_once() {
    let config = r#"{"provider": {"anthropic": {"models": {"m": {"cost": {"input": 100, "output": 1000}}}}}}"#;
    let server = ModelServer::start([
        Answer::call("glob", json!({"pattern": "*"})),
        Answer::text("One."),
        Answer::text("Two."),
        Answer::text("Three."),
    ]);
    let folder = folder().user_config(config).with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "one"]).expect(0);
    let before = total(&folder, &["stats", "--json"]);
    folder.tw(&["run", "-c", "--fork", "two"]).expect(0);
    let forked = total(&folder, &["stats", "--json"]);
    std::fs::create_dir(folder.work().join("inner")).unwrap();
    folder.tw(&["run", "-m", "anthropic/m", "--dir", "inner", "three"]).expect(0);
    let after = total(&folder, &["stats", "--json", "--days", "2"]);

    assert_eq!(before["total"]["sessions"], 1);
    assert_eq!((&before["total"]["steps"], &before["total"]["calls"]), (&json!(2), &json!(1)));
    assert!(before["total"]["cost"].as_f64().unwrap() > 0.0, "{before}");
    assert_eq!((&forked["total"]["sessions"], &forked["total"]["steps"]), (&json!(2), &json!(3)));
    assert_eq!(forked["total"]["calls"], 1, "the copy made no call of its own");
    assert_eq!((&after["total"]["sessions"], &after["total"]["steps"]), (&json!(3), &json!(4)));
    assert_eq!(after["models"][0]["model"], "anthropic/m");
    assert_eq!(after["models"][0]["tokens"], after["total"]["tokens"]);
    let days = after["days"].as_array().unwrap();
    let sum: f64 = days.iter().map(|day| day["cost"].as_f64().unwrap()).sum();
    assert!((sum - after["total"]["cost"].as_f64().unwrap()).abs() < 1e-9, "{after}");

    let run = folder.tw(&["stats"]).expect(0);
    for words in ["cache read", "total", "anthropic/m", "$"] {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
}

#[test]
fn days_before_the_first_that_counts_are_left_out() {
    let folder = folder();
    let old = json!({
        "info": { "id": "ses_old", "time": { "created": 1_000_000_000_000_u64 } },
        "messages": [{ "info": { "role": "user", "time": { "created": 1_000_000_000_000_u64 } },
                       "parts": [{ "type": "text", "text": "Long ago" }] }],
    });
    folder.write("old.json", &old.to_string());
    folder.tw(&["import", "old.json"]).expect(0);
    let all = total(&folder, &["stats", "--json"]);
    assert!(all["days"][0]["date"].as_str().unwrap().starts_with("2001-09-"), "{all}");
    assert_eq!(total(&folder, &["stats", "--json", "--days", "7"])["days"], json!([]));
    folder.tw(&["stats", "--days", "0"]).expect(2);
}

#[test]
fn spending_is_told_by_project_and_tool_with_bars() {
    let server = ModelServer::start([
        Answer::call("glob", json!({"pattern": "*"})),
        Answer::call("read", json!({"filePath": "nowhere"})),
        Answer::text("One."),
        Answer::text("Two."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "one"]).expect(0);
    std::fs::create_dir(folder.work().join("inner")).unwrap();
    folder.tw(&["run", "-m", "anthropic/m", "--dir", "inner", "two"]).expect(0);

    let report = total(&folder, &["stats", "--json"]);
    let projects = report["projects"].as_array().unwrap();
    assert_eq!(projects.len(), 2);
    assert!(projects[1]["project"].as_str().unwrap().ends_with("/inner"), "{report}");
    let tools = json!([
        {"tool": "glob", "calls": 1, "failed_calls": 0},
        {"tool": "read", "calls": 1, "failed_calls": 1},
    ]);
    assert_eq!(report["tools"], tools);
    let here = total(&folder, &["stats", "--json", "--here", "--dir", "inner"]);
    assert_eq!((&here["total"]["steps"], &here["total"]["calls"]), (&json!(1), &json!(0)));

    let text = folder.tw(&["stats", "--by", "tool", "--all"]).expect(0).stdout;
    assert!(text.contains("glob") && text.contains("█") && !text.contains("sessions"), "{text}");
    let text = folder.tw(&["stats", "--by", "project"]).expect(0).stdout;
    assert!(text.contains("/inner") && !text.contains("glob"), "{text}");
    folder.tw(&["stats", "--here", "--all"]).expect(2);
}
