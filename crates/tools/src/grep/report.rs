//! What was found, in the words for the model.

use std::fmt::Write as _;

use serde_json::json;
use toolwright_tool::ToolOutput;

use super::search::{Counts, Found, Hits, Line};
use super::{Output, Prepared};

impl Found {
    pub(super) fn report(self, call: &Prepared, interrupted: bool) -> ToolOutput {
        let Self { newest, counts, unreadable } = self;
        let Counts { matches: total, files, withheld, binary } = counts;
        let truncated = newest.is_full();
        let shown = newest.weight().min(call.limit);
        let more = if truncated { " (more matches available)" } else { "" };
        let mut text = match call.output {
            _ if shown == 0 => "No files found".to_owned(),
            Output::Lines => format!("Found {shown} matches{more}"),
            Output::Files => format!("Found {shown} files{more}\n"),
            Output::Count => format!("Found {total} matches in {files} files\n"),
        };
        let mut left = call.limit;
        for (path, hits) in newest.into_sorted() {
            let path = call.place.show(&path);
            match call.output {
                Output::Files => text.push_str(&format!("\n{path}")),
                Output::Count => text.push_str(&format!("\n{path}: {}", hits.matches)),
                Output::Lines => {
                    text.push_str(&format!("\n\n{path}:"));
                    write_lines(&mut text, &hits, left);
                    left = left.saturating_sub(hits.matches);
                }
            }
        }
        let mut add = |sentence: &str| text.push_str(&format!("\n\n{sentence}"));
        if truncated {
            add("(Results truncated. Consider using a more specific path or pattern.)");
        }
        if withheld > 0 {
            add(&format!(
                "({withheld} more files match, but reading them needs approval; name one as path to ask for it.)"
            ));
        }
        if binary && call.place.root.is_file() {
            add("(The file is binary: it was not searched to its end.)");
        }
        if let Some(sentence) = unreadable.sentence() {
            add(&sentence);
        }
        if interrupted {
            add("(The search was stopped before its end.)");
        }
        let matches = if call.output == Output::Lines { shown } else { total };
        let details = json!({ "matches": matches, "truncated": truncated });
        let output = ToolOutput::text(text).titled(call.pattern.clone()).with_details(details);
        ToolOutput { interrupted, ..output }
    }
}

fn write_lines(text: &mut String, hits: &Hits, left: usize) {
    // Only the last file has more than there is room for.
    let mut matches = 0;
    for line in &hits.lines {
        let written = match line {
            Line::Match(number, line) => {
                matches += 1;
                if matches > left {
                    return;
                }
                write!(text, "\n  Line {number}: {line}")
            }
            Line::More(number, line) => write!(text, "\n  Line {number}: {line}"),
            Line::Context(number, line) => write!(text, "\n  Line {number}- {line}"),
            Line::Gap => write!(text, "\n  --"),
        };
        debug_assert!(written.is_ok(), "a String takes everything");
    }
}
