//! What we depend on: licences that allow it, none of what we decided against, arrows between our
//! own crates that point down only, and files that still tell one story.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Licences that ask for nothing but their text.
const ALLOWED_LICENCES: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "0BSD",
    "Unlicense",
    "CC0-1.0",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
];

/// With the reason, so that the next person knows.
const BANNED: &[(&str, &str)] = &[
    ("openssl", "TLS is rustls on ring: no system library"),
    ("openssl-sys", "as above"),
    ("native-tls", "as above"),
    ("aws-lc-rs", "a large C and assembly build; ring does the same"),
    ("aws-lc-sys", "as above"),
    ("serde_yaml", "archived"),
    ("backoff", "archived"),
    ("async-std", "one runtime: tokio"),
    ("chrono", "time is jiff (transitive use, by the MCP SDK, is tolerated below)"),
    ("lazy_static", "std has LazyLock"),
    ("once_cell", "std has OnceLock (transitive use is tolerated below)"),
];

/// Of those, what others may bring along.
const TOLERATED: &[&str] = &["chrono", "once_cell"];

/// From the ground up; a crate may use those before it and none after.
const FLOORS: &[&str] = &[
    "toolwright-llm",
    "toolwright-proc",
    "toolwright-lsp",
    "toolwright-session",
    "toolwright-permission",
    "toolwright-tool",
    "toolwright-tools",
    "toolwright-script",
    "toolwright-mcp",
    "toolwright-config",
    "toolwright-engine",
    "toolwright",
    "toolwright-testkit",
    "toolwright-tui",
    "toolwright-cli",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline", "--all-features"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether one side of each `OR` is allowed, and all sides of each `AND`.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], " ");
    expression.split(" OR ").any(|choice| {
        choice.split(" AND ").all(|licence| ALLOWED_LICENCES.contains(&licence.trim()))
    })
}

#[test]
fn every_dependency_has_a_licence_we_allow() {
    let metadata = metadata();
    let used: HashSet<&str> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n["id"].as_str().unwrap())
        .collect();
    let wrong: Vec<String> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| used.contains(p["id"].as_str().unwrap()))
        .filter(|p| !p["license"].as_str().is_some_and(is_allowed))
        .map(|p| format!("{} {}: {}", p["name"], p["version"], p["license"]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_that_we_decided_against_is_used() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let names: HashMap<&str, &str> =
        packages.iter().map(|p| (p["id"].as_str().unwrap(), p["name"].as_str().unwrap())).collect();
    let mut wrong = Vec::new();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let name = names[node["id"].as_str().unwrap()];
        if let Some((_, reason)) = BANNED.iter().find(|(b, _)| *b == name && !TOLERATED.contains(b))
        {
            wrong.push(format!("{name}: {reason}"));
        }
    }
    for package in packages.iter().filter(|p| p["source"].is_null()) {
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap();
            if let Some((_, reason)) = BANNED.iter().find(|(b, _)| *b == name) {
                wrong.push(format!("{} uses {name}: {reason}", package["name"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arrows_between_our_crates_point_down_only() {
    let metadata = metadata();
    let floor = |name: &str| FLOORS.iter().position(|f| *f == name);
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap().iter().filter(|p| p["source"].is_null())
    {
        let name = package["name"].as_str().unwrap();
        let own = floor(name).unwrap_or_else(|| panic!("{name} has no floor in this test"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            if dependency["kind"] != "dev" && floor(used).is_some_and(|f| f >= own) {
                wrong.push(format!("{name} uses {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_loop_fits_in_one_file_and_no_other_file_grows_beyond_600_lines() {
    fn walk(folder: &Path, found: &mut Vec<(usize, PathBuf)>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|x| x == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((text.lines().take_while(|l| *l != "#[cfg(test)]").count(), path));
            }
        }
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap().flatten() {
        walk(&entry.path().join("src"), &mut files);
    }
    let is_test = |path: &Path| path.to_string_lossy().contains("tests");
    let long: Vec<_> =
        files.iter().filter(|(lines, path)| *lines > 600 && !is_test(path)).collect();
    assert!(long.is_empty(), "{long:?}");
    assert!(files.iter().any(|(lines, path)| path.ends_with("agent_loop.rs") && *lines <= 700));
}
