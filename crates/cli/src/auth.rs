//! `tw auth`: keys that are kept for the user.

use std::io::{BufRead, IsTerminal};

use toolwright::llm::{PROVIDERS, Provider, provider};
use toolwright::{Kept, Keyring, Workbench};

use crate::args::{Auth, AuthAction, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{note, print};

pub async fn auth(shared: &Shared, options: &Auth) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let store = workbench.credentials();
    let failed = |e| Problem::failed(format!("cannot use {}: {e}", store.path().display()));
    match &options.action {
        AuthAction::Login { provider } => {
            let row = known(provider)?;
            let key = read_key(row)?;
            let keyring = Keyring::find(&variable);
            let (kept, problem) =
                store.keep(row.id, &key, keyring.as_ref()).await.map_err(failed)?;
            if let Some(problem) = problem {
                note(&format!("! {problem}; the key goes into a file."));
            }
            let place = match kept {
                Kept::InFile(_) => store.path().display().to_string(),
                Kept::InKeyring => "the system's keyring".to_owned(),
            };
            note(&format!("The key for {} is kept in {place}.", row.name));
        }
        AuthAction::Logout { provider } => {
            match store.forget(provider).map_err(failed)? {
                None => {
                    let text = format!("there is no stored key for {provider:?}");
                    return Err(Problem::usage(text));
                }
                Some(Kept::InFile(_)) => {}
                Some(Kept::InKeyring) => forget_in_keyring(provider).await?,
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
                let place = match (variable, stored.get(row.id)) {
                    (Some(variable), _) => variable,
                    (None, Some(Kept::InFile(_))) => "stored",
                    (None, Some(Kept::InKeyring)) => "stored (keyring)",
                    (None, None) => continue,
                };
                out.push_str(&format!("{:<16} {place}\n", row.id));
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

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

async fn forget_in_keyring(provider: &str) -> Result<(), Problem> {
    let Some(keyring) = Keyring::find(&variable) else {
        let text = "the key is no longer used, but the keyring that holds it is not there now";
        return Err(Problem::failed(text));
    };
    keyring.remove(provider).await.map_err(|problem| {
        Problem::failed(format!("the key is no longer used, but it is still kept: {problem}"))
    })
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
