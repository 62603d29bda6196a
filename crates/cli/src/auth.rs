//! `tw auth`: keys that are kept for the user.

use std::io::{BufRead, IsTerminal};

use toolwright::Workbench;
use toolwright::llm::{PROVIDERS, Provider, provider};

use crate::args::{Auth, AuthAction, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{note, print};

pub fn auth(shared: &Shared, options: &Auth) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let store = workbench.credentials();
    let failed = |e| Problem::failed(format!("cannot use {}: {e}", store.path().display()));
    match &options.action {
        AuthAction::Login { provider } => {
            let row = known(provider)?;
            let key = read_key(row)?;
            store.set(row.id, &key).map_err(failed)?;
            note(&format!("The key for {} is kept in {}.", row.name, store.path().display()));
        }
        AuthAction::Logout { provider } => {
            if !store.remove(provider).map_err(failed)? {
                return Err(Problem::usage(format!("there is no stored key for {provider:?}")));
            }
            note(&format!("The key for {provider} is removed."));
        }
        AuthAction::List => {
            let stored = store.all().map_err(failed)?;
            let mut out = String::new();
            for row in PROVIDERS.iter().filter(|row| !row.local) {
                let variable = row
                    .key_variables
                    .iter()
                    .find(|v| std::env::var(v).is_ok_and(|v| !v.is_empty()));
                match (variable, stored.contains_key(row.id)) {
                    (Some(variable), _) => out.push_str(&format!("{:<16} {variable}\n", row.id)),
                    (None, true) => out.push_str(&format!("{:<16} stored\n", row.id)),
                    (None, false) => {}
                }
            }
            if out.is_empty() {
                note(
                    "There are no keys. Set a variable such as ANTHROPIC_API_KEY, or: tw auth login anthropic",
                );
            }
            print(&out);
        }
    }
    Ok(Exit::Done)
}

fn known(id: &str) -> Result<&'static Provider, Problem> {
    provider(id).filter(|row| !row.key_variables.is_empty()).ok_or_else(|| {
        let known: Vec<&str> =
            PROVIDERS.iter().filter(|p| !p.key_variables.is_empty()).map(|p| p.id).collect();
        Problem::usage(format!(
            "there is no provider {id:?} with a key; known: {}",
            known.join(", ")
        ))
    })
}

/// From standard input, so that it stands in no history and no process list.
fn read_key(row: &Provider) -> Result<String, Problem> {
    if std::io::stdin().is_terminal() {
        note(&format!(
            "Paste the key for {} and press Enter (it is shown as you paste it):",
            row.name
        ));
    }
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|e| Problem::failed(format!("cannot read the key: {e}")))?;
    match line.trim() {
        "" => Err(Problem::usage("no key was given")),
        key => Ok(key.to_owned()),
    }
}
