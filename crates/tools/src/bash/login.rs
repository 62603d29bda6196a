//! What the user's login shell sets (`~/.profile` and its like), asked for once in the life of this
//! program. Somebody who starts us from a desktop or a service expects their own PATH all the same.
//!
//! It only ever adds: what our own environment has is what the person wanted for this run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use toolwright_proc::{Ended, Spec};

/// How long a login shell may take; some load a lot.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long the first command waits for it. Later ones find it there.
const FIRST_WAIT: Duration = Duration::from_millis(300);

/// Bytes of an environment; the kernel takes no more than 2 MiB.
const CAP_BYTES: u64 = 2 << 20;

/// Stands before the variables: a profile may print something itself.
const MARK: &str = "toolwright-environment";

/// Of the shell that was asked, not of the person.
const ITS_OWN: &[&str] = &["_", "PWD", "OLDPWD", "SHLVL", "TERM", "PAGER", "TOOLWRIGHT_CHILD_OF"];

/// What a login shell has, or why that is not known.
pub(super) type Answer = Result<Arc<Found>, String>;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found(BTreeMap<String, String>);

static ANSWER: OnceLock<watch::Receiver<Option<Answer>>> = OnceLock::new();

/// The answer, if it is there or comes soon.
pub(super) async fn environment(shell: &Path, withheld: &[String]) -> Option<Answer> {
    let mut answer = ANSWER.get_or_init(|| ask(shell.to_owned(), withheld.to_vec())).clone();
    if let Some(known) = answer.borrow().clone() {
        return Some(known);
    }
    let coming = answer.wait_for(Option::is_some);
    tokio::time::timeout(FIRST_WAIT, coming).await.ok()?.ok()?.clone()
}

/// Asks in the background.
fn ask(shell: PathBuf, withheld: Vec<String>) -> watch::Receiver<Option<Answer>> {
    let (tell, answer) = watch::channel(None);
    tokio::spawn(async move {
        let found = tokio::time::timeout(DEADLINE, run(&shell, withheld)).await;
        let found = found.unwrap_or_else(|_| {
            Err(format!("{} -l took longer than {} s", shell.display(), DEADLINE.as_secs()))
        });
        tell.send_replace(Some(found.map(Arc::new)));
    });
    answer
}

/// Dropping it ends the shell.
async fn run(shell: &Path, withheld: Vec<String>) -> Result<Found, String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    let home = home.unwrap_or_else(|| PathBuf::from("/"));
    let script = format!("printf '\\0%s\\0' {MARK}; exec env -0");
    let mut spec = Spec::new(shell, home).arg("-l").arg("-c").arg(script).separate_errors();
    spec = spec.env("TERM", "dumb");
    spec.withheld.clone_from(&withheld);
    let mut child = spec.spawn().map_err(|e| e.to_string())?;
    let (output, errors) = (child.output(), child.errors());
    if let Some(errors) = errors {
        child.keep_reading(errors);
    }
    let mut bytes = Vec::new();
    if let Some(output) = output {
        output.take(CAP_BYTES).read_to_end(&mut bytes).await.map_err(|e| e.to_string())?;
    }
    match child.wait().await {
        Ended::Exit(0) => {}
        how => return Err(format!("{} -l ended with {how:?}", shell.display())),
    }
    let mut found = parse(&bytes).ok_or_else(|| format!("{} -l told nothing", shell.display()))?;
    // A profile may set a key of ours again.
    withheld.iter().for_each(|name| drop(found.0.remove(name)));
    Ok(found)
}

fn parse(bytes: &[u8]) -> Option<Found> {
    let mark = format!("\0{MARK}\0");
    let at = bytes.windows(mark.len()).rposition(|window| window == mark.as_bytes())?;
    let variables = bytes[at + mark.len()..].split(|byte| *byte == 0).filter_map(|variable| {
        let (name, value) = std::str::from_utf8(variable).ok()?.split_once('=')?;
        let named = !name.is_empty() && !ITS_OWN.contains(&name);
        named.then(|| (name.to_owned(), value.to_owned()))
    });
    Some(Found(variables.collect()))
}

impl Found {
    /// What it adds to our own environment: variables that we do not have, and folders at the end
    /// of PATH.
    pub(super) fn beside(&self, own: &dyn Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
        let addition = |(name, value): (&String, &String)| {
            let added = match own(name) {
                None => value.clone(),
                Some(ours) if name == "PATH" => joined_paths(&ours, value)?,
                Some(_) => return None,
            };
            Some((name.clone(), added))
        };
        self.0.iter().filter_map(addition).collect()
    }
}

fn joined_paths(ours: &str, theirs: &str) -> Option<String> {
    let mut folders: Vec<&str> = ours.split(':').collect();
    let had = folders.len();
    for folder in theirs.split(':').filter(|folder| !folder.is_empty()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    (folders.len() > had).then(|| folders.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(&str, &str)]) -> Found {
        Found(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn a_login_shell_only_adds() {
        let theirs =
            found(&[("PATH", "/usr/bin:/home/x/bin:"), ("LANG", "de"), ("JAVA_HOME", "/jdk")]);
        let own = |name: &str| match name {
            "PATH" => Some("/venv/bin:/usr/bin".to_owned()),
            "LANG" => Some("en".to_owned()),
            _ => None,
        };
        let added = theirs.beside(&own);
        assert_eq!(added["PATH"], "/venv/bin:/usr/bin:/home/x/bin");
        assert_eq!(added["JAVA_HOME"], "/jdk");
        assert_eq!(added.len(), 2);
        assert!(found(&[("PATH", "/usr/bin")]).beside(&own).is_empty());
    }

    #[test]
    fn what_a_profile_prints_is_no_variable() {
        let text = format!("Welcome=home\n\0{MARK}\0A=1\0B=two\nlines\0PWD=/\0=x\0junk\0C=\0");
        let wanted = found(&[("A", "1"), ("B", "two\nlines"), ("C", "")]);
        assert_eq!(parse(text.as_bytes()), Some(wanted));
        assert_eq!(parse(b"A=1\0"), None);
    }
}
