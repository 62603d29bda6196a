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
    let server = ModelServer::start([Answer::text("One.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "one"]).expect(0);
    let file = folder.session_files().pop().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let old: String = text
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line["time"] = json!(1_000_000_000_000_u64);
            format!("{line}\n")
        })
        .collect();
    std::fs::write(&file, old).unwrap();
    let all = total(&folder, &["stats", "--json"]);
    assert!(all["days"][0]["date"].as_str().unwrap().starts_with("2001-09-"), "{all}");
    assert_eq!(total(&folder, &["stats", "--json", "--days", "7"])["days"], json!([]));
    folder.tw(&["stats", "--days", "0"]).expect(2);
}
