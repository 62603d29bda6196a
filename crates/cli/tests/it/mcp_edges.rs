//! MCP servers at the edges: media that are none, calls that must not run twice, keys in addresses.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use toolwright_testkit::{Answer, ModelServer, Wire};

use crate::mcp::{RUN, config, fake};
use crate::{folder, results};

#[test]
fn media_are_what_their_bytes_say_or_a_note() {
    let server = ModelServer::start([Answer::call("fake_misnamed", json!({})), Answer::text("ok")]);
    let mut entry = fake(&["ok"]);
    entry["required"] = json!(true);
    let folder =
        folder().user_config(&config(json!({"fake": entry}))).with_model(&server, Wire::Anthropic);
    folder.tw(&RUN).expect(0);
    let request = server.last_request();
    let told = &results(&request)[0];
    assert!(told.contains("the image could not be decoded"), "{told}");
    assert!(told.contains("an attachment of the type \"video/mp4\" is left out"), "{told}");
    assert!(told.contains("an attachment of the type \"application/pdf\" is left out"), "{told}");
    let raw = String::from_utf8_lossy(&request.raw).into_owned();
    assert_eq!(raw.matches("\"media_type\":\"image/png\"").count(), 1, "{raw}");
    assert!(!raw.contains("\"png\"") && !raw.contains("AAAA\""), "{raw}");
}

#[test]
fn a_tool_that_failed_with_strange_words_is_not_called_again() {
    let folder = folder().user_config(&config(json!({"fake": fake(&["ok"])})));
    let (code, outcome) = crate::mcp::call(&folder, "relay", json!({"file": "ran"}));
    assert_eq!(code, 1, "{outcome}");
    assert_eq!(folder.read("ran"), "ran\n");
}

#[test]
fn keys_in_an_address_are_not_shown() {
    // Nobody listens there.
    let url = "http://me:pass-word-1@127.0.0.1:9/mcp?apiKey=key-in-the-address";
    let entry = json!({"type": "remote", "url": url, "oauth": false});
    let folder = folder().user_config(&config(json!({"far": entry})));
    for arguments in [
        &["mcp", "list"][..],
        &["mcp", "list", "--json"],
        &["mcp", "debug", "far"],
        &["config"],
        &["config", "--show-origin"],
    ] {
        let run = folder.tw(arguments);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert!(all.contains("127.0.0.1:9/mcp"), "{arguments:?}: {all}");
        assert!(!all.contains("key-in-the-address") && !all.contains("pass-word-1"), "{all}");
    }
}

#[test]
fn what_is_added_is_private_and_a_link_stays_a_link() {
    let folder = folder();
    let place = folder.root().join("home/.config/toolwright");
    let file = place.join("toolwright.json");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let add = |name: &str| {
        let header = "Authorization=Bearer abc";
        folder
            .tw(&["mcp", "add", name, "--url", "http://127.0.0.1:9", "--header", header])
            .expect(0);
    };
    add("one");
    assert_eq!(mode(&file), 0o600);
    // Kept elsewhere, and readable for a group: both are the user's choice.
    let kept = folder.root().join("dotfiles.json");
    std::fs::rename(&file, &kept).unwrap();
    std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&kept, &file).unwrap();
    add("two");
    assert!(std::fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(mode(&kept), 0o640);
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.contains("one") && text.contains("two"), "{text}");
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_server_is_removed_from_either_section_of_a_shared_file() {
    for section in ["mcpServers", "servers"] {
        let shared = json!({ section: {"fake": {"command": "x"}, "other": {"command": "y"}} });
        let folder = folder().file(".mcp.json", &shared.to_string());
        folder.tw(&["mcp", "remove", "fake", "--trust"]).expect(0);
        let text = folder.read(".mcp.json");
        assert!(!text.contains("fake") && text.contains("other"), "{text}");
    }
}

#[test]
fn a_tool_of_a_server_does_not_take_the_name_of_a_script() {
    let server = ModelServer::start([
        Answer::call("fake_echo", json!({"text": "hello"})),
        Answer::call("fake_echo_2", json!({"text": "hello"})),
        Answer::text("ok"),
    ]);
    let mut entry = fake(&["ok"]);
    entry["required"] = json!(true);
    let script = "export default { description: 'd', args: {}, execute: async () => 'mine' }";
    let folder = folder()
        .user_config(&config(json!({"fake": entry})))
        .file(".opencode/tool/fake_echo.js", script)
        .with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--trust", "-m", "anthropic/m", "go"]).expect(3);
    let told = results(&server.last_request());
    assert_eq!(told[0], "mine");
    assert!(told[1].contains("nobody can be asked"), "the script's name does not speak for it");
}

#[test]
fn an_agent_that_takes_over_is_told_what_servers_say_about_their_use() {
    let server = ModelServer::start([
        Answer::call("plan_exit", json!({})),
        Answer::text("Waiting."),
        Answer::text("Built."),
    ]);
    let mut entry = fake(&["ok"]);
    entry["required"] = json!(true);
    let folder =
        folder().user_config(&config(json!({"fake": entry}))).with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&[
        "run",
        "--format",
        "json",
        "--commands",
        "--agent",
        "plan",
        "-m",
        "anthropic/m",
        "go",
    ]);
    run.wait_for("\"inquiry\"");
    run.say(r#"{"type":"reply","id":0,"answers":[["Yes"]]}"#);
    run.wait().expect(0);
    for request in server.requests() {
        let system = request.body["system"].to_string();
        assert!(system.contains("Echo what you want to hear."), "{system}");
    }
}
