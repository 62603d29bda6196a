//! A line put together again from what was read of it.

use super::parse::{self, Raw};
use super::word::Word;

/// The commands of a line with their words in quotes, one command a line: what we believe it says, in
/// a spelling that has no second reading. A line that is judged harmless must still be when it is
/// written like this, and print the same: otherwise something was read that is not there.
///
/// Nothing for a line whose words are computed.
pub fn reprint(line: &str) -> Option<String> {
    let parsed = parse::parse(line, &[], parse::Reader::First);
    if !parsed.problems.is_empty() || parsed.tainted {
        return None;
    }
    let commands: Option<Vec<String>> = parsed.commands.iter().map(command).collect();
    Some(commands?.join("\n"))
}

fn command(raw: &Raw) -> Option<String> {
    if raw.words.is_empty() || !raw.assigned.is_empty() {
        return None;
    }
    let mut parts: Vec<String> = raw.words.iter().map(word).collect::<Option<_>>()?;
    for redirect in &raw.redirects {
        let sign = if redirect.writes { ">" } else { "<" };
        let to = match redirect.to.text() {
            // Written as it is: in quotes it is the same, but nobody would know.
            "/dev/null" => "/dev/null".to_owned(),
            _ => word(&redirect.to)?,
        };
        parts.push(format!("{sign} {to}"));
    }
    Some(parts.join(" "))
}

fn word(word: &Word) -> Option<String> {
    let text = word.text.as_ref()?;
    // What the shell still makes something of stays as it is written.
    if word.pattern || word.home {
        return Some(word.source.clone());
    }
    Some(format!("'{}'", text.replace('\'', "'\\''")))
}
