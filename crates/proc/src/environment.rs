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
    "APITOKEN",
    "AUTHTOKEN",
    "ACCESSTOKEN",
    "TOKEN",
    "TOKENS",
    "PAT",
    "SECRET",
    "SECRETS",
    "PASS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "PWD",
    "AUTH",
    "JWT",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Those that say it wherever they stand, as in `GITHUB_TOKEN_ORG`.
const SECRET_ANYWHERE: &[&str] = &[
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIALS",
];

/// The end of a last word that is written in one: `PGPASSWORD`, `SSHPASS`, `npm_config__authToken`.
const SECRET_ENDINGS: &[&str] = &["PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "APIKEY"];

/// Last words that make something else of it: where it is, how long it lives, what it is called.
const ABOUT: &[&str] = &[
    "FILE",
    "FILES",
    "PATH",
    "DIR",
    "DIRECTORY",
    "FOLDER",
    "ID",
    "NAME",
    "TYPE",
    "URL",
    "URI",
    "HOST",
    "PORT",
    "TTL",
    "EXPIRY",
    "EXPIRES",
    "LENGTH",
    "SIZE",
    "LIMIT",
    "MAX",
    "MIN",
    "COUNT",
    "METHOD",
    "ALGORITHM",
    "FORMAT",
    "TIMEOUT",
    "DELAY",
    "RATE",
    "REPEAT",
    "ENABLED",
    "DISABLED",
    "CMD",
    "COMMAND",
    "SOCK",
    "BACKEND",
    "PROVIDER",
];

/// Names that only look like it.
const HARMLESS: &[&str] = &["PWD", "KEY_BINDINGS"];

/// Names that do not look like it.
const KNOWN: &[&str] = &["SSHPASS"];

/// They make the dynamic linker load what they name.
const LINKER: &[&str] = &["LD_", "DYLD_"];

/// The way to programs that act for the user; no use inside a fence, where they are out of reach.
const AGENTS: &[&str] =
    &["SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS"];

/// Whether the name says that its value is a secret.
pub fn names_a_secret(name: &str) -> bool {
    let upper = name.to_uppercase();
    if HARMLESS.contains(&upper.as_str()) {
        return false;
    }
    let words: Vec<&str> = upper.split(['_', '-', '.']).filter(|word| !word.is_empty()).collect();
    let Some(last) = words.last() else { return false };
    let ends = SECRET_ENDINGS.iter().any(|ending| last.ends_with(ending));
    // `AWS_SECRET_ACCESS_KEY_FILE` names a place; `GITHUB_TOKEN_2` does not.
    let anywhere = words.iter().any(|word| SECRET_ANYWHERE.contains(word));
    KNOWN.contains(&upper.as_str())
        || SECRET_WORDS.contains(last)
        || ends
        || (anywhere && !ABOUT.contains(last))
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
            "GITHUB_TOKEN_ORG",
            "NPM_TOKEN_2",
            "NODE_AUTH_TOKEN",
            "npm_config__authToken",
            "npm_config_//registry.npmjs.org/:_authToken",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "OPENAI_KEY_PROD",
            "OPENAI_APIKEY",
            "CLIENT_SECRET",
            "PGPASSWORD",
            "PGPASSWORD_SECRET",
            "MYSQL_PWD",
            "SSHPASS",
            "DB_PASS",
            "DB_PASSWORD",
            "MYSQL_PASSWORD_ADMIN",
            "DB_PASS_PROD",
            "GH_AUTH",
            "TWILIO_AUTH",
            "REDISCLI_AUTH",
            "DOCKER_AUTH_CONFIG_SECRET",
            "GPG_PASSPHRASE",
            "TOKEN",
            "GH_PAT",
            "SESSION_JWT",
            "ROOT_PWD",
            "GOOGLE_CREDENTIALS",
        ] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "PWD",
            "OLDPWD",
            "SHELL",
            "TERM",
            "LANG",
            "USER",
            "DISPLAY",
            "XAUTHORITY",
            "SSH_CONNECTION",
            "SSH_CLIENT",
            "KEYBOARD",
            "KEYBOARD_LAYOUT",
            "XKB_KEYMAP",
            "XKB_DEFAULT_LAYOUT",
            "KEYTIMEOUT",
            "KEY_BINDINGS",
            "TOKENIZERS_PARALLELISM",
            "MAX_TOKEN_LIMIT",
            "MONKEY",
            "TURKEY",
            "COMPASS",
            "BYPASS",
            "PASSAGE",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_COMMITTER_NAME",
            "GIT_SSH_COMMAND",
            "SSH_KEY_FILE",
            "SSH_KEY_PATH",
            "DB_PASSWORD_FILE",
            "AWS_ACCESS_KEY_ID",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "TOKEN_URL",
            "AWS_REGION",
            "CARGO_HOME",
            "PATTERN",
            "_",
            "",
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
