//! Our own keys reach neither the model nor our files, wherever a tool comes upon them.

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Wire};

use crate::{folder, results};

const KEY: &str = "sk-ant-Zq8/x+31kPw7";
const STORED: &str = "gsk_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9";

fn folder_with(server: &ModelServer, text: &str) -> Folder {
    let folder = folder()
        .file("notes.env", text)
        .env("ANTHROPIC_BASE_URL", &server.url())
        .env("ANTHROPIC_API_KEY", KEY);
    let data = folder.root().join("data/toolwright");
    std::fs::create_dir_all(&data).unwrap();
    let stored = json!({ "groq": { "type": "api", "key": STORED } });
    std::fs::write(data.join("auth.json"), stored.to_string()).unwrap();
    folder
}

/// The bodies of all requests, the log and every file that an output was kept in.
fn everything_kept(server: &ModelServer, folder: &Folder) -> Vec<(String, String)> {
    let requests = server.requests().into_iter();
    let mut kept: Vec<_> = requests
        .map(|r| ("a request".to_owned(), String::from_utf8_lossy(&r.raw).into_owned()))
        .collect();
    for log in folder.session_files() {
        kept.push((log.display().to_string(), std::fs::read_to_string(&log).unwrap()));
        let outputs = std::fs::read_dir(log.with_extension("outputs")).into_iter().flatten();
        for file in outputs.flatten().map(|entry| entry.path()) {
            kept.push((file.display().to_string(), std::fs::read_to_string(&file).unwrap()));
        }
    }
    kept
}

#[test]
fn a_key_that_a_command_prints_is_in_no_request_no_log_and_no_spill_file() {
    let text = format!("KEY={KEY}\nOTHER={STORED}\n");
    let server = ModelServer::start([
        Answer::call("bash", json!({ "command": "cat notes.env; base64 -w0 notes.env" })),
        Answer::call("bash", json!({ "command": "yes \"$(cat notes.env)\" | head -n 6000" })),
        Answer::call("read", json!({ "filePath": "notes.env" })),
        Answer::call("grep", json!({ "pattern": "KEY" })),
        Answer::call("read", json!({ "filePath": format!("{KEY}/missing") })),
        Answer::text("ok"),
    ]);
    let folder = folder_with(&server, &text);
    let run =
        folder.tw(&["run", "--format", "json", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let results = results(&server.last_request());
    let plain = "KEY=[masked: ANTHROPIC_API_KEY]\nOTHER=[masked: stored key of groq]\n";
    assert!(results[0].starts_with(plain), "{}", results[0]);
    let in_base64 = &results[0][plain.len()..];
    assert!(in_base64.contains("[masked: ANTHROPIC_API_KEY]"), "{in_base64}");
    assert!(results[1].contains("Output cut"), "{}", results[1]);
    assert!(results[2].contains("1: KEY=[masked: ANTHROPIC_API_KEY]"), "{}", results[2]);
    assert!(results[3].contains("KEY=[masked: ANTHROPIC_API_KEY]"), "{}", results[3]);
    let mut kept = everything_kept(&server, &folder);
    assert!(kept.iter().any(|(name, _)| name.contains("outputs/tool_")), "no spill file");
    kept.push(("standard output".to_owned(), run.stdout));
    let calls_of_the_model = format!("{KEY}/missing");
    for (name, text) in kept {
        // What the model itself wrote is its own; that is how it comes back.
        let text = text.replace(&calls_of_the_model, "");
        assert!(!text.contains(KEY), "{name}: {text}");
        assert!(!text.contains(STORED), "{name}: {text}");
    }
}

#[test]
fn a_file_that_is_written_back_as_it_was_shown_does_not_lose_its_key() {
    let server = ModelServer::start([
        Answer::call(
            "write",
            json!({
                "filePath": "notes.env",
                "content": "KEY=[masked: ANTHROPIC_API_KEY]\nPORT=2\n",
            }),
        ),
        Answer::call(
            "edit",
            json!({ "filePath": "notes.env", "oldString": "PORT=1", "newString": "PORT=2" }),
        ),
        Answer::text("ok"),
    ]);
    let folder = folder_with(&server, &format!("KEY={KEY}\nPORT=1\n"));
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let results = results(&server.last_request());
    assert!(results[0].contains("would replace a secret"), "{}", results[0]);
    assert_eq!(folder.read("notes.env"), format!("KEY={KEY}\nPORT=2\n"));
    // The diff of the edit has the line beside it in it.
    for (name, text) in everything_kept(&server, &folder) {
        assert!(!text.contains(KEY), "{name}: {text}");
    }
}

#[test]
fn commands_do_not_see_the_variables_that_the_configuration_takes_keys_from() {
    let server = ModelServer::start([
        Answer::call("bash", json!({ "command": "echo \"<$OWN_TOKEN>\"" })),
        Answer::text("ok"),
    ]);
    let folder = folder()
        .with_model(&server, Wire::Anthropic)
        .env("OWN_TOKEN", "token-of-my-own")
        .user_config(r#"{"provider":{"own":{"env":["OWN_TOKEN"]}}}"#);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(results(&server.last_request())[0].starts_with("<>"));
}
