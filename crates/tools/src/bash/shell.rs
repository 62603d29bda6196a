//! Which shell runs commands, and what it finds in its environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::login;

/// What makes programs behave when no person looks.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // A message that is not given is the one that git suggests.
    ("GIT_EDITOR", "true"),
    // `cd` goes where it says.
    ("CDPATH", ""),
];

const UTF8: &str = "C.UTF-8";

/// What is set for every command, on top of our own environment: first what only a login shell
/// knows, then what is always so.
pub(super) fn environment(
    login: Option<&login::Found>,
    passed: &[String],
) -> BTreeMap<String, String> {
    let own = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut all = login.map(|found| found.beside(&own)).unwrap_or_default();
    // A profile may export what we keep to ourselves.
    all.retain(|name, _| !toolwright_proc::is_withheld(name, passed));
    all.extend(locale(&own));
    all.extend(ENVIRONMENT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    all
}

/// What it takes for text to be UTF-8. The language and all else stay as they are.
fn locale(own: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)> {
    let order = ["LC_ALL", "LC_CTYPE", "LANG"];
    let set = order.iter().find_map(|name| Some((*name, own(name)?)));
    let name = match set {
        None => "LANG",
        Some((_, value)) if value.to_lowercase().replace('-', "").contains("utf8") => return None,
        Some(("LC_ALL", _)) => "LC_ALL",
        Some(_) => "LC_CTYPE",
    };
    Some((name.to_owned(), UTF8.to_owned()))
}

/// The configured shell, else the user's own, where it is one that takes commands as POSIX has them.
pub(super) fn choose(configured: Option<&str>) -> PathBuf {
    let own = std::env::var("SHELL").ok();
    let wanted = configured.map(str::to_owned).or(own);
    let posix = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        matches!(name.as_ref(), "bash" | "zsh" | "sh" | "dash" | "ksh") && path.is_file()
    };
    wanted
        .map(PathBuf::from)
        .filter(posix)
        .or_else(|| find_on_path("bash"))
        .unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_utf8_and_nothing_else_is_changed() {
        type Variables = &'static [(&'static str, &'static str)];
        let cases: &[(Variables, Option<&str>)] = &[
            (&[], Some("LANG")),
            (&[("LANG", "de_DE.UTF-8")], None),
            (&[("LANG", "en_US.utf8")], None),
            (&[("LANG", "C")], Some("LC_CTYPE")),
            (&[("LANG", "C"), ("LC_CTYPE", "C.UTF-8")], None),
            (&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "POSIX")], Some("LC_ALL")),
        ];
        for (variables, wanted) in cases {
            let own = |name: &str| {
                variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
            };
            let set = locale(&own);
            assert_eq!(set.as_ref().map(|(name, _)| name.as_str()), *wanted, "{variables:?}");
        }
    }

    #[test]
    fn a_shell_that_does_not_exist_or_is_no_posix_shell_is_not_taken() {
        for configured in ["/nowhere/bash", "/usr/bin/fish", "nu", ""] {
            let chosen = choose(Some(configured));
            assert!(chosen.is_file(), "{configured}: {}", chosen.display());
        }
        assert_eq!(choose(Some("/bin/sh")), PathBuf::from("/bin/sh"));
    }
}
