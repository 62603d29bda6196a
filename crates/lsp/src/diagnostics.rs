//! What servers find wrong with a file.

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

impl Severity {
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warning => "WARN",
            Self::Information => "INFO",
            Self::Hint => "HINT",
        }
    }
}

/// One finding, as the server wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic(pub(crate) Value);

/// Characters of a message that are shown. Type errors of generic code go on for pages.
const MESSAGE_CAP_CHARACTERS: usize = 1_000;

impl Diagnostic {
    pub fn raw(&self) -> &Value {
        &self.0
    }

    /// Nothing where the server did not say.
    pub fn severity(&self) -> Option<Severity> {
        match self.0["severity"].as_u64()? {
            1 => Some(Severity::Error),
            2 => Some(Severity::Warning),
            3 => Some(Severity::Information),
            4 => Some(Severity::Hint),
            _ => None,
        }
    }

    pub fn is_error(&self) -> bool {
        self.severity() == Some(Severity::Error)
    }

    /// `ERROR [line:column] message`, counted from 1, on one line.
    pub fn line(&self) -> String {
        let start = &self.0["range"]["start"];
        let from_one = |name: &str| start[name].as_u64().unwrap_or(0).saturating_add(1);
        let word = self.severity().unwrap_or(Severity::Error).word();
        let message = self.0["message"].as_str().unwrap_or_default();
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = message.chars().take(MESSAGE_CAP_CHARACTERS).collect();
        let cut = if short.len() < message.len() { "…" } else { "" };
        format!("{word} [{}:{}] {short}{cut}", from_one("line"), from_one("character"))
    }

    /// What makes two findings the same, whichever way they came.
    fn identity(&self) -> [&Value; 5] {
        ["code", "severity", "message", "source", "range"].map(|key| &self.0[key])
    }
}

/// Findings of several servers, or of one that both tells and answers, each once.
pub(crate) fn merge(into: &mut Vec<Diagnostic>, more: impl IntoIterator<Item = Diagnostic>) {
    for diagnostic in more {
        if !into.iter().any(|known| known.identity() == diagnostic.identity()) {
            into.push(diagnostic);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_finding_is_one_line_counted_from_one() {
        let at =
            json!({ "start": { "line": 2, "character": 6 }, "end": { "line": 2, "character": 7 } });
        let cases = [
            (
                json!({ "range": at, "severity": 1, "message": "no\n  way" }),
                "ERROR [3:7] no way",
                true,
            ),
            (json!({ "range": at, "severity": 2, "message": "hm" }), "WARN [3:7] hm", false),
            (json!({ "range": at, "message": "what" }), "ERROR [3:7] what", false),
            (json!({ "severity": 4 }), "HINT [1:1] ", false),
            (json!("garbage"), "ERROR [1:1] ", false),
        ];
        for (raw, line, is_error) in cases {
            let diagnostic = Diagnostic(raw);
            assert_eq!((diagnostic.line().as_str(), diagnostic.is_error()), (line, is_error));
        }
        let long = Diagnostic(json!({ "severity": 1, "message": "ä".repeat(5_000) }));
        assert!(long.line().chars().count() < 1_100);
    }

    #[test]
    fn the_same_finding_counts_once() {
        let one = Diagnostic(json!({ "message": "a", "severity": 1, "tags": [1] }));
        let same = Diagnostic(json!({ "message": "a", "severity": 1, "data": {} }));
        let other = Diagnostic(json!({ "message": "a", "severity": 1, "source": "x" }));
        let mut all = vec![one.clone()];
        merge(&mut all, [same, other.clone()]);
        assert_eq!(all, [one, other]);
    }
}
