//! `tw config`: what all files together say, and which of them said it.

use std::io::IsTerminal;

use serde_json::Value;
use toolwright::Workbench;
use toolwright::mcp_servers::without_keys;

use crate::args::{ConfigArguments, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{harmless, note, print};

/// What stands for a value that is nobody's business.
const HIDDEN: &str = "(hidden)";

pub fn config(shared: &Shared, options: &ConfigArguments) -> Result<Exit, Problem> {
    if options.schema {
        let schema = toolwright::config::schema();
        print(&format!("{}\n", serde_json::to_string_pretty(&schema).unwrap_or_default()));
        return Ok(Exit::Done);
    }
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let config = &workbench.config;
    for warning in &config.warnings {
        note(&format!("! {warning}"));
    }
    if options.show_origin {
        let mut lines = String::new();
        for (pointer, path) in &config.origins {
            let Some(value) = config.value.pointer(pointer) else { continue };
            let mut shown = if is_secret(pointer) { HIDDEN.into() } else { value.clone() };
            hide(&mut shown, pointer);
            let key = pointer.trim_start_matches('/').replace("~1", "/").replace("~0", "~");
            lines.push_str(&format!("{}\t{key} = {shown}\n", path.display()));
        }
        for source in
            config.sources.iter().filter(|s| !config.origins.values().any(|p| *p == s.path))
        {
            lines.push_str(&format!(
                "{}\t(read, and all of it said again nearer)\n",
                source.path.display()
            ));
        }
        print(&harmless(&lines));
        return Ok(Exit::Done);
    }
    let mut value = config.value.clone();
    hide(&mut value, "");
    let text = serde_json::to_string_pretty(&value).unwrap_or_default();
    // JSON leaves some of what a terminal obeys as it is.
    let text = if std::io::stdout().is_terminal() { harmless(&text) } else { text };
    print(&format!("{text}\n"));
    Ok(Exit::Done)
}

fn hide(value: &mut Value, pointer: &str) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let here = format!("{pointer}/{key}");
                if is_secret(&here) && !inner.is_null() {
                    *inner = HIDDEN.into();
                } else {
                    hide(inner, &here);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| hide(inner, pointer)),
        Value::String(text) if pointer.to_lowercase().ends_with("url") => {
            *text = without_keys(text)
        }
        _ => {}
    }
}

fn is_secret(pointer: &str) -> bool {
    let key = pointer.rsplit('/').next().unwrap_or_default().to_lowercase();
    let by_name = ["apikey", "api_key", "authorization", "token", "secret", "password", "cookie"];
    let counts = key.ends_with("tokens");
    !counts && (by_name.iter().any(|part| key.contains(part)) || pointer.contains("/headers/"))
}
