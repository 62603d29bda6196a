//! `tw mcp add` and `tw mcp remove`: changes to settings files.

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolwright::Workbench;
use toolwright::config::set_entry;

use crate::exit::{Exit, Problem};
use crate::mcp::args::Add;
use crate::terminal::note;

pub fn add(bench: &Workbench, options: &Add) -> Result<Exit, Problem> {
    let value = match &options.url {
        Some(url) => {
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(Problem::usage(format!("{url:?} must begin with http:// or https://")));
            }
            let mut value = json!({ "type": "remote", "url": url });
            if !options.headers.is_empty() {
                value["headers"] = pairs("--header", &options.headers)?;
            }
            value
        }
        None => {
            let mut value = json!({ "type": "local", "command": options.command });
            if !options.environment.is_empty() {
                value["environment"] = pairs("--env", &options.environment)?;
            }
            value
        }
    };
    let folder = match options.project {
        true => bench.workspace.directory().to_owned(),
        false => bench.paths.config.join("toolwright"),
    };
    let file = existing(&folder);
    change(&file, "mcp", &options.name, Some(&value))?;
    note(&format!("{} is in {}. See how it stands:  tw mcp list", options.name, file.display()));
    Ok(Exit::Done)
}

pub fn remove(bench: &Workbench, name: &str) -> Result<Exit, Problem> {
    let Some(origin) = bench.config.mcp_origins.get(name) else {
        let names: Vec<_> = bench.config.mcp_origins.keys().map(String::as_str).collect();
        let list = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Problem::usage(format!("there is no MCP server {name:?}; configured: {list}")));
    };
    let shared =
        origin.path.file_name().is_some_and(|file| file.to_string_lossy().ends_with("mcp.json"));
    // Others write such a file in two ways.
    let sections: &[&str] = if shared { &["mcpServers", "servers"] } else { &["mcp"] };
    let removed = sections.iter().map(|section| change(&origin.path, section, name, None));
    removed.reduce(Result::or).unwrap_or(Ok(()))?;
    note(&format!("{name} is no longer in {}.", origin.path.display()));
    Ok(Exit::Done)
}

/// The settings file of a folder, or the one that is made.
fn existing(folder: &Path) -> PathBuf {
    let names = ["toolwright.jsonc", "toolwright.json"];
    let found = names.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| folder.join("toolwright.json"))
}

fn change(file: &Path, section: &str, name: &str, value: Option<&Value>) -> Result<(), Problem> {
    // A link stays one: people keep the file itself elsewhere.
    let file = &std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let shown = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Problem::failed(format!("cannot read {shown}: {error}"))),
    };
    let changed = set_entry(&text, section, name, value)
        .map_err(|problem| Problem::usage(format!("{shown}: {problem}")))?;
    let written = || {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let beside = file.with_extension("new");
        // Headers and variables may hold keys: private from the first byte on, and as private as before
        // where there was a file.
        let known = std::fs::metadata(file).map(|data| data.permissions());
        let private = std::fs::Permissions::from_mode(0o600);
        let mut options = std::fs::OpenOptions::new();
        let mut new = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        new.set_permissions(private.clone())?;
        new.write_all(changed.as_bytes())?;
        new.set_permissions(known.unwrap_or(private))?;
        new.sync_all()?;
        std::fs::rename(&beside, file)
    };
    written().map_err(|error| Problem::failed(format!("cannot write {shown}: {error}")))
}

fn pairs(option: &str, given: &[String]) -> Result<Value, Problem> {
    let pair = |text: &String| {
        let (name, value) = text
            .split_once('=')
            .filter(|(name, _)| !name.trim().is_empty())
            .ok_or_else(|| Problem::usage(format!("{option} {text}: write it as NAME=VALUE")))?;
        Ok((name.trim().to_owned(), Value::from(value)))
    };
    Ok(Value::Object(given.iter().map(pair).collect::<Result<Map<_, _>, Problem>>()?))
}
