//! Tests through the seam: the built binary, a scripted model over real HTTP, real files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod after_edit;
mod archive;
mod asking;
mod bad_input;
mod bad_scripts;
mod corpus;
mod crash;
mod demo;
mod edits;
mod guards;
mod harness;
mod harness_back;
mod harness_power;
mod harness_shown;
mod hooks;
mod images;
mod import;
mod jobs;
mod keyring;
mod lifted;
mod loop_basics;
mod masking;
mod mcp;
mod mcp_chaos;
mod mcp_edges;
mod mcp_http;
mod mcp_serve;
mod models;
mod modes;
mod nested;
mod network;
mod openings;
mod output_budget;
mod outside;
mod permission;
mod person;
mod planning;
mod plugin_hooks;
mod processes;
mod put_back;
mod queues;
mod renewed;
mod resume;
mod retention;
mod room;
mod sandbox;
mod sandbox_git;
mod scripts;
mod search;
mod sessions;
mod shell_floor;
mod stats;
mod subagents;
mod terminal;
mod titles;
mod tools_command;
mod tree;
mod trust;
mod tui;
mod tui_face;
mod tui_fuzz;
mod tui_kit;
mod tui_raw;
mod tui_terminal;
mod tui_tmux;
mod undo;
mod yours;

use serde_json::Value;
use toolwright_testkit::{Captured, Folder};

fn folder() -> Folder {
    Folder::new(env!("CARGO_BIN_EXE_tw"))
}

/// Every `tool_use` of an Anthropic request has exactly one result, right behind it.
fn assert_history_is_valid(request: &Captured) {
    let messages = request.messages();
    for (n, message) in messages.iter().enumerate() {
        let ids = ids(message, "tool_use", "id");
        if ids.is_empty() {
            continue;
        }
        let next = messages.get(n + 1).expect("a message with the results");
        assert_eq!(next["role"], "user");
        assert_eq!(ids, self::ids(next, "tool_result", "tool_use_id"), "{next}");
    }
    let uses: usize = messages.iter().map(|m| ids(m, "tool_use", "id").len()).sum();
    let results: usize = messages.iter().map(|m| ids(m, "tool_result", "tool_use_id").len()).sum();
    assert_eq!(uses, results);
}

fn ids(message: &Value, kind: &str, key: &str) -> Vec<String> {
    let content = message["content"].as_array().cloned().unwrap_or_default();
    let wanted = content.iter().filter(|part| part["type"] == kind);
    wanted.map(|part| part[key].as_str().unwrap().to_owned()).collect()
}

/// The text of all tool results in a request, in order.
fn results(request: &Captured) -> Vec<String> {
    let parts = request
        .messages()
        .iter()
        .flat_map(|m| m["content"].as_array().cloned().unwrap_or_default());
    parts
        .filter(|part| part["type"] == "tool_result")
        .map(|part| part["content"][0]["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}
