//! Which of our variables a child gets.
//!
//! Keys, tokens and passwords are for us and not for whatever a command starts; variables that put
//! code into other programs are for nobody.

use std::ffi::OsString;

/// The last word of names that hold secrets.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "PAT",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// They make the dynamic linker load what they name.
const LINKER: &[&str] = &["LD_", "DYLD_"];

/// The way to programs that act for the user; no use inside a fence, where they are out of reach.
const AGENTS: &[&str] =
    &["SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS"];

/// Whether the name says that its value is a secret.
pub fn names_a_secret(name: &str) -> bool {
    let upper = name.to_uppercase();
    let words: Vec<&str> = upper.split('_').collect();
    let last = words.last().is_some_and(|word| SECRET_WORDS.contains(word));
    // `AWS_SECRET_ACCESS_KEY_FILE` names a place; `GITHUB_TOKEN_2` does not.
    let numbered = match words.as_slice() {
        [.., word, number] => number.parse::<u32>().is_ok() && SECRET_WORDS.contains(word),
        _ => false,
    };
    let inside = words.iter().any(|word| matches!(*word, "SECRET" | "PASSWORD"));
    let place = matches!(words.last(), Some(&"FILE" | &"PATH" | &"DIR"));
    last || numbered || (inside && !place)
}

/// Whether a child must not see a variable of ours, unless somebody has named it in `passed`.
pub fn is_withheld(name: &str, passed: &[String]) -> bool {
    let is_named = passed.iter().any(|own| own == name);
    let linker = LINKER.iter().any(|front| name.starts_with(front));
    !is_named && (linker || names_a_secret(name))
}

/// The variables of ours that a child does not get.
pub(crate) fn withheld(passed: &[String], fenced: bool) -> Vec<OsString> {
    let is_out = |name: &OsString| {
        let name = name.to_string_lossy();
        let is_agent =
            fenced && AGENTS.contains(&name.as_ref()) && !passed.iter().any(|p| *p == name);
        is_agent || is_withheld(&name, passed)
    };
    std::env::vars_os().map(|(name, _)| name).filter(is_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "github_token",
            "NPM_TOKEN_2",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "CLIENT_SECRET",
            "PGPASSWORD_SECRET",
            "DB_PASSWORD",
            "MYSQL_PASSWORD_ADMIN",
            "TOKEN",
            "GH_PAT",
        ] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "KEYBOARD",
            "XKB_KEYMAP",
            "TOKENIZERS_PARALLELISM",
            "MONKEY",
            "SSH_KEY_FILE",
            "DB_PASSWORD_FILE",
            "GIT_SSH_COMMAND",
            "AWS_REGION",
        ] {
            assert!(!names_a_secret(name), "{name}");
        }
    }

    #[test]
    fn what_somebody_named_is_passed() {
        let passed = ["GITHUB_TOKEN".to_owned(), "LD_LIBRARY_PATH".to_owned()];
        assert!(!is_withheld("GITHUB_TOKEN", &passed));
        assert!(!is_withheld("LD_LIBRARY_PATH", &passed));
        assert!(is_withheld("LD_PRELOAD", &passed));
        assert!(is_withheld("DYLD_INSERT_LIBRARIES", &[]));
        assert!(is_withheld("NPM_TOKEN", &passed));
        assert!(!is_withheld("PATH", &[]));
    }
}
