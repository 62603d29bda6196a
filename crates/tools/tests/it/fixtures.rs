//! What other tools were observed to do with edits and patches. The observations are not part of this
//! repository: without them these tests say so and pass.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwright_session::Ending;

use crate::support::{Session, tree};

fn fixtures(kind: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures").join(kind);
    let found = folder.is_dir().then_some(folder);
    if found.is_none() {
        println!("skipped: the observed cases for {kind} are not here");
    }
    found
}

/// Where we differ on purpose, and why: (case, what we do, reason).
const DIFFERENT_EDITS: &[(&str, &str, &str)] = &[(
    "line_trimmed_ambiguous",
    "ambiguous",
    "two places match equally well; the observed tool takes the first, we ask",
)];

#[tokio::test]
async fn every_observed_edit_comes_out_as_observed() {
    let Some(folder) = fixtures("edit") else { return };
    let cases: Vec<Value> =
        serde_json::from_slice(&fs::read(folder.join("cases.json")).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let content = case["content"].as_str().unwrap();
        let session = Session::new(&[("f", content.as_bytes())]);
        let mut arguments = json!({
            "filePath": "f", "oldString": case["oldString"], "newString": case["newString"],
        });
        if let Some(all) = case.get("replaceAll") {
            arguments["replaceAll"] = all.clone();
        }
        let outcome = session.call("edit", arguments).await;
        let after = String::from_utf8(session.bytes("f")).unwrap();
        let is_ok = outcome.ending == Ending::Completed;
        let kind = [
            ("not_found", "Could not find oldString"),
            ("ambiguous", "Found multiple matches for oldString"),
            ("identical", "identical"),
            ("empty_old", "oldString cannot be empty"),
        ]
        .iter()
        .find(|(_, text)| outcome.output.contains(text))
        .map_or("other", |(kind, _)| kind);
        let different = DIFFERENT_EDITS.iter().find(|(case, ..)| *case == name);
        let expected = match (different, case["ok"].as_bool().unwrap()) {
            (Some((_, what, _)), _) => !is_ok && kind == *what && after == content,
            (None, true) => is_ok && after == case["after"],
            (None, false) => !is_ok && kind == case["error"] && after == content,
        };
        let either = case["either"] == true && !is_ok && kind == "ambiguous" && after == content;
        if !expected && !either {
            wrong.push(format!("{name}: {}\n{after:?}", outcome.output));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn every_observed_patch_leaves_the_observed_tree() {
    let Some(folder) = fixtures("apply_patch") else { return };
    let mut wrong = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten().filter(|e| e.path().is_dir()) {
        let case = entry.path();
        let scenario: Value =
            serde_json::from_slice(&fs::read(case.join("scenario.json")).unwrap()).unwrap();
        let before = tree(&case.join("input"));
        let files: Vec<(&str, &[u8])> =
            before.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
        let session = Session::new(&files);
        let patch = fs::read_to_string(case.join("patch.txt")).unwrap();
        let outcome = session.call("apply_patch", json!({ "patchText": patch })).await;
        let is_ok = outcome.ending == Ending::Completed;
        // A patch that fails changes nothing, also where the observed tool left it half done.
        let expected = if is_ok { tree(&case.join("expected")) } else { before.clone() };
        if scenario["ok"] != is_ok || session.tree() != expected {
            wrong.push(format!("{}: {}", case.display(), outcome.output));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
