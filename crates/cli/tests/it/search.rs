//! Looking around: what a model is given when it reads, lists and searches.

use serde_json::json;
use toolwright_testkit::{Answer, ModelServer, Wire};

use crate::{assert_history_is_valid, folder, results};

#[test]
fn a_model_lists_finds_and_reads_and_gets_nearby_instructions_once() {
    let read = |file: &str| Answer::call("read", json!({ "filePath": file }));
    let server = ModelServer::start([
        Answer::call("list", json!({})),
        Answer::call("glob", json!({ "pattern": "**/*.txt" })),
        Answer::call("grep", json!({ "pattern": "NEEDLE", "ignoreCase": true, "output": "count" })),
        read("sub/nested/one.txt"),
        read("sub/nested/two.txt"),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.write("AGENTS.md", "rules of the root");
    folder.write("sub/AGENTS.md", "rules of sub");
    folder.write("sub/nested/one.txt", "a needle\n");
    folder.write("sub/nested/two.txt", "another needle\n");
    folder.tw(&["run", "-m", "anthropic/m", "look around"]).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    let system = String::from_utf8_lossy(&request.raw).into_owned();
    assert_eq!(system.matches("rules of the root").count(), 1, "in the prompt and nowhere else");
    let results = results(&request);
    assert!(
        results[0].contains("\n  sub/\n    nested/\n      one.txt\n      two.txt\n"),
        "{}",
        results[0]
    );
    assert_eq!(results[1].lines().count(), 2, "{}", results[1]);
    assert!(results[2].starts_with("Found 2 matches in 2 files\n"), "{}", results[2]);
    assert!(
        results[3].contains("1: a needle")
            && results[3].contains("\nrules of sub\n</system-reminder>"),
        "{}",
        results[3]
    );
    assert!(!results[4].contains("system-reminder"), "{}", results[4]);
    // The session goes on in another process; its conversation still holds them.
    folder.write("sub/nested/three.txt", "the last needle\n");
    server.then(read("sub/nested/three.txt"));
    server.then(Answer::text("ok"));
    folder.tw(&["run", "-c", "look again"]).expect(0);
    let body = String::from_utf8_lossy(&server.last_request().raw).into_owned();
    assert!(body.contains("1: the last needle"), "{body}");
    assert_eq!(body.matches("rules of sub").count(), 1, "{body}");
}

#[test]
fn instructions_that_are_in_the_prompt_are_not_given_again() {
    let server = ModelServer::start([
        Answer::call("read", json!({ "filePath": "sub/f" })),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    // A link to what the prompt holds already.
    folder.write("sub/f", "text");
    folder.write("CLAUDE.md", "rules of the root");
    let work = folder.work();
    std::os::unix::fs::symlink(work.join("CLAUDE.md"), work.join("sub/CLAUDE.md")).unwrap();
    folder.tw(&["run", "-m", "anthropic/m", "read it"]).expect(0);
    let body = String::from_utf8_lossy(&server.last_request().raw).into_owned();
    assert_eq!(body.matches("rules of the root").count(), 1, "{body}");
}
