//! Toolwright run by itself: what would change its own trust, rules and keys, or start it with less in its
//! way. Those are for people.

use super::parse::Raw;
use super::word::Word;

/// Options whose next word is a value.
const VALUED: &[&str] = &[
    "--dir",
    "--sandbox",
    "-m",
    "--model",
    "-a",
    "--agent",
    "-s",
    "--session",
    "--prompt",
    "--mode",
];

/// Variables that set rules.
const SETTING: &[&str] =
    &["TOOLWRIGHT_PERMISSION", "TOOLWRIGHT_CONFIG", "TOOLWRIGHT_MANAGED_DIR", "TOOLWRIGHT_SANDBOX"];

pub(super) fn refusal(name: &str, raw: &Raw) -> Option<String> {
    if !matches!(name, "tw" | "toolwright") {
        return None;
    }
    let words: Vec<&str> = raw.words.iter().skip(1).map(Word::text).collect();
    let own: Vec<&str> = words.iter().copied().take_while(|word| *word != "--").collect();
    if own.iter().any(|word| matches!(*word, "--help" | "-h")) {
        return None;
    }
    let mut told: Vec<&str> = Vec::new();
    let mut rest = own.iter();
    while let Some(word) = rest.next() {
        match word.starts_with('-') {
            true if VALUED.contains(word) => drop(rest.next()),
            true => {}
            false => told.push(word),
        }
    }
    let action = told.get(1).copied().unwrap_or_default();
    let has = |option: &str| own.contains(&option);
    let changes = match told.first().copied() {
        Some("trust") => !has("--list"),
        Some("permission") => action == "forget",
        Some("auth") => matches!(action, "login" | "logout"),
        Some("mcp") => matches!(action, "add" | "remove" | "auth" | "logout"),
        Some("plugin") => matches!(action, "install" | "remove"),
        Some("agent") => action == "create" && has("--global"),
        _ => false,
    };
    if changes {
        return Some(format!("it changes what Toolwright itself may do: {}", raw.text));
    }
    // It only says what would be decided.
    if told.first() == Some(&"permission") {
        return None;
    }
    let pair = |option: &str, value: &str| {
        own.windows(2).any(|pair| pair == [option, value])
            || own.iter().any(|word| {
                word.strip_prefix(option).and_then(|rest| rest.strip_prefix('=')) == Some(value)
            })
    };
    const LIFTS: &[&str] = &[
        "--dangerously-allow-everything",
        "--dangerously-skip-permissions",
        "--auto",
        "--yolo",
        "--trust",
    ];
    let sets = |name: &String| SETTING.iter().any(|begin| name.starts_with(begin));
    let lifts = LIFTS.iter().any(|option| has(option))
        || pair("--mode", "auto")
        || pair("--sandbox", "off")
        || raw.assigned.iter().any(sets);
    lifts.then(|| format!("it starts Toolwright with less in its way: {}", raw.text))
}
