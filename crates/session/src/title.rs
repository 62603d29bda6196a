//! A name for a session from what was asked, until (or instead of) a better one.

/// What fits in one line of a list.
const TITLE_CHARS: usize = 72;

/// Said before the matter itself. Longer ones first: the first that fits is taken off.
const OPENINGS: &[&str] = &[
    "good morning",
    "good afternoon",
    "good evening",
    "hello there",
    "hi there",
    "hey there",
    "can you please",
    "could you please",
    "would you please",
    "can you",
    "could you",
    "would you",
    "i would like you to",
    "i'd like you to",
    "i want you to",
    "hello",
    "hallo",
    "please",
    "kindly",
    "hey",
    "hi",
    "ok",
    "okay",
];

/// The first sentence of a prompt without what stands around it: code, greetings, marks of mentions.
pub(crate) fn from_prompt(text: &str) -> String {
    let prose = without_fences(text);
    // Code only: its first line says more than nothing.
    let prose = if prose.trim().is_empty() { without_marks(text) } else { prose };
    let sentence = first_sentence(&prose);
    let words: Vec<String> = sentence.split_whitespace().map(plain_word).collect();
    let line = words.join(" ");
    let matter = without_openings(&line);
    let title = if matter.is_empty() { line } else { matter };
    shortened(title.trim_end_matches(['.', ':', ',', ';']))
}

/// One line of at most so many characters, cut between words.
pub fn shortened(text: &str) -> String {
    // Words stay apart, whatever stood between them.
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let clean: String = line.chars().filter(|c| !c.is_control()).collect();
    if clean.chars().count() <= TITLE_CHARS {
        return clean.trim().to_owned();
    }
    let head: String = clean.chars().take(TITLE_CHARS - 1).collect();
    // A word of that length is cut where it must be.
    let end = head.rfind(char::is_whitespace).filter(|at| *at > TITLE_CHARS / 2);
    let cut = end.map_or(head.as_str(), |at| &head[..at]);
    format!("{}…", cut.trim_end_matches([' ', ',', ';', ':', '-', '–']))
}

/// Code without what encloses it, and without the name of its language.
fn without_marks(text: &str) -> String {
    let is_mark =
        |line: &&str| ["```", "~~~"].iter().any(|mark| line.trim_start().starts_with(mark));
    let code: Vec<&str> = text.lines().filter(|line| !is_mark(line)).collect();
    // All on one line.
    if code.iter().all(|line| line.trim().is_empty()) {
        return text.replace("```", " ").replace("~~~", " ");
    }
    code.join("\n")
}

fn without_fences(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        let mark = line.trim_start();
        if mark.starts_with("```") || mark.starts_with("~~~") {
            inside = !inside;
        } else if !inside {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Up to the end of the first line or sentence that says something.
fn first_sentence(text: &str) -> &str {
    let lines = text.lines().map(|line| line.trim().trim_start_matches(['#', '>', '*', '-', ' ']));
    let line = lines.filter(|line| line.chars().any(char::is_alphanumeric)).find(|line| {
        // A greeting on a line of its own is not the matter.
        !without_openings(line).is_empty()
    });
    let line = line.unwrap_or_else(|| text.trim().lines().next().unwrap_or_default());
    let mut rest = line;
    let mut from = 0;
    while let Some(at) = rest.find(['.', '?', '!', '。', '？', '！']) {
        let mark = rest[at..].chars().next().map_or(1, char::len_utf8);
        let end = from + at + mark;
        let wide = mark > 1;
        let closes = wide || line[end..].is_empty() || line[end..].starts_with(char::is_whitespace);
        // "Hi!" is a sentence and not the matter.
        if closes && !without_openings(&line[..end]).is_empty() {
            return &line[..end];
        }
        from = end;
        rest = &line[end..];
    }
    line
}

/// `@src/main.rs` names a file; the mark says nothing here.
fn plain_word(word: &str) -> String {
    let named = word.strip_prefix('@').filter(|rest| rest.starts_with(char::is_alphanumeric));
    let word = named.unwrap_or(word);
    // Around words they are emphasis, in a path a pattern.
    if word.contains('/') { word.to_owned() } else { word.replace("**", "") }
}

fn without_openings(line: &str) -> String {
    let mut rest = line.trim();
    let mut taken = false;
    'again: loop {
        for opening in OPENINGS {
            let Some(head) = rest.get(..opening.len()) else { continue };
            let after = &rest[opening.len()..];
            let ends = !after.starts_with(|c: char| c.is_alphanumeric() || c == '\'');
            if head.eq_ignore_ascii_case(opening) && ends {
                rest = after.trim_start_matches([' ', ',', '!', '.', ':', '-', '–', '—']);
                taken = true;
                continue 'again;
            }
        }
        break;
    }
    let mut chars = rest.chars();
    match chars.next() {
        Some(first) if taken => first.to_uppercase().chain(chars).collect(),
        _ => rest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_matter_and_fits_a_line() {
        for (prompt, title) in [
            ("The first prompt\nwith more lines", "The first prompt"),
            ("one", "one"),
            ("", ""),
            ("Hi! Could you please fix the parser? It breaks.", "Fix the parser?"),
            ("Hello,\n\nthe build is red. Why?", "the build is red"),
            (
                "Look at @src/main.rs and say what it does.",
                "Look at src/main.rs and say what it does",
            ),
            (
                "```rust\nfn main() {}\n```\nWhy does this print nothing?",
                "Why does this print nothing?",
            ),
            ("```\ncargo build\n```", "cargo build"),
            ("```rust\nfn main() {}\n```", "fn main() {}"),
            ("```cargo test```", "cargo test"),
            ("# Plan\n\n- a\n- b", "Plan"),
            ("hi", "hi"),
            ("Keep **the blanks**, see src/**/*.rs", "Keep the blanks, see src/**/*.rs"),
            ("Higher is better", "Higher is better"),
            ("Use v1.2.3 of it", "Use v1.2.3 of it"),
            ("直して。それから試して。", "直して。"),
            ("tell \u{1b}[31mred\u{7}", "tell [31mred"),
        ] {
            assert_eq!(from_prompt(prompt), title, "{prompt:?}");
        }
        let long = "Rewrite the whole of the configuration loader so that it reads each file once only and says so";
        let title = from_prompt(long);
        assert!(title.ends_with('…') && title.chars().count() <= TITLE_CHARS, "{title}");
        assert!(long.contains(title.trim_end_matches('…').trim()), "{title}");
        assert_eq!(from_prompt(&"x".repeat(500)).chars().count(), TITLE_CHARS);
    }
}
