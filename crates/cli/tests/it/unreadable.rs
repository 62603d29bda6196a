//! What `sandbox.unreadable` names inside the folder is kept from every command, or the sandbox does not count.

use std::fs;

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Wire};

use crate::{folder, results};

fn fenced(layer: &str) -> Folder {
    let folder = folder();
    let temp = folder.root().join("temp");
    fs::create_dir(&temp).unwrap();
    let config = json!({"sandbox": {"layer": layer, "unreadable": ["secrets"]}});
    let folder = folder.user_config(&config.to_string()).env("TOOLWRIGHT_SANDBOX", "on");
    folder.env("TMPDIR", temp.to_str().unwrap()).file("look.sh", "cat secrets/a; echo looked\n")
}

/// What the model is told of a script whose words nobody sees.
fn told(folder: Folder, code: i32) -> String {
    let look = Answer::call("bash", json!({"command": "sh look.sh"}));
    let server = ModelServer::start([look, Answer::text("ok")]);
    let folder = folder.with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(code);
    results(&server.last_request())[0].clone()
}

#[test]
fn what_is_unreadable_in_the_folder_is_read_by_no_command() {
    for layer in toolwright::sandbox_layers() {
        let result = told(fenced(layer.name()).file("secrets/a", "TOPSECRET"), 0);
        assert!(result.contains("looked") && !result.contains("TOPSECRET"), "{layer}: {result}");
    }
}

#[test]
fn where_landlock_cannot_hold_it_commands_are_asked_about_and_doctor_says_so() {
    if !toolwright::sandbox_layers().iter().any(|layer| layer.name() == "landlock") {
        println!("no Landlock here: nothing is proved");
        return;
    }
    let result = told(fenced("landlock"), 3);
    assert!(!result.contains("looked"), "{result}");
    let doctor = fenced("landlock").tw(&["doctor"]).stdout;
    assert!(doctor.contains("secrets cannot be kept unreadable"), "{doctor}");
}
