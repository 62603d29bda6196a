//! Asks the person at the terminal.

use std::io::{BufRead, Write};
use std::sync::Arc;

use tokio::sync::oneshot;
use toolwright::Answer;
use toolwright::tool::{Inquiry, InquiryItem, Question};

use crate::terminal::{Style, harmless};

/// Lines of a diff that are shown with the question.
const PREVIEW_LINES: usize = 60;

pub struct Asker {
    questions: Arc<toolwright::Questions>,
}

impl Asker {
    pub fn new(questions: Arc<toolwright::Questions>) -> Self {
        Self { questions }
    }

    /// Shows the question and waits for the answer on a thread of its own: reading a terminal
    /// cannot be interrupted, and the run must be. What is returned tells when it was answered.
    pub fn ask(&self, id: u64, question: &Question) -> oneshot::Receiver<()> {
        let (answered, waiting) = oneshot::channel();
        let questions = Arc::clone(&self.questions);
        let text = render(question, Style::for_stderr());
        let mut out = std::io::stderr().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
        std::thread::spawn(move || {
            let mut line = String::new();
            let answer = match std::io::stdin().lock().read_line(&mut line) {
                Ok(count) if count > 0 => parse(&line),
                // The terminal is gone: nobody agreed.
                _ => Answer::Reject { message: None },
            };
            questions.answer(id, answer);
            answered.send(()).ok();
        });
        waiting
    }
}

impl Asker {
    /// The same for questions that are no permission, one after the other.
    pub fn inquire(&self, id: u64, inquiry: &Inquiry) -> oneshot::Receiver<()> {
        let (answered, waiting) = oneshot::channel();
        let questions = Arc::clone(&self.questions);
        let items = inquiry.items.clone();
        std::thread::spawn(move || {
            let mut replies = Vec::new();
            for item in &items {
                let text = render_item(item, Style::for_stderr());
                let mut out = std::io::stderr().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
                drop(out);
                let mut line = String::new();
                match std::io::stdin().lock().read_line(&mut line) {
                    Ok(count) if count > 0 => replies.push(choose(&line, item)),
                    _ => {
                        questions.reply(id, None);
                        answered.send(()).ok();
                        return;
                    }
                }
            }
            questions.reply(id, Some(replies));
            answered.send(()).ok();
        });
        waiting
    }
}

fn render_item(item: &InquiryItem, style: Style) -> String {
    let question = style.bold(&harmless(&item.question));
    let mut out = format!("\n{} {question}\n", style.attention("?"));
    for (number, choice) in item.options.iter().enumerate() {
        let about = style.dim(&harmless(&choice.description));
        out.push_str(&format!("  {}. {} {about}\n", number + 1, harmless(&choice.label)));
    }
    let several = if item.multiple { "numbers" } else { "a number" };
    let own = if item.custom { " or your own words" } else { "" };
    out.push_str(&format!("{several}{own}: "));
    out
}

/// Numbers stand for options; anything else is the person's own words, where those are wanted.
fn choose(line: &str, item: &InquiryItem) -> Vec<String> {
    let line = line.trim();
    let numbers: Option<Vec<usize>> =
        line.split([',', ' ']).filter(|w| !w.is_empty()).map(|w| w.parse().ok()).collect();
    let label = |number: &usize| Some(item.options.get(number.checked_sub(1)?)?.label.clone());
    let labels: Option<Vec<String>> = numbers.and_then(|n| n.iter().map(label).collect());
    match labels {
        Some(labels) if item.multiple => labels,
        Some(labels) => labels.into_iter().take(1).collect(),
        None if item.custom && !line.is_empty() => vec![line.to_owned()],
        None => Vec::new(),
    }
}

fn render(question: &Question, style: Style) -> String {
    let mut out =
        format!("\n{} {}\n", style.attention("?"), style.bold(&harmless(&question.summary)));
    // A command is its own summary.
    if let Some(preview) = question.preview.as_ref().filter(|p| **p != question.summary) {
        let preview = harmless(preview);
        let lines: Vec<&str> = preview.lines().collect();
        let shown = lines.iter().take(PREVIEW_LINES).copied().collect::<Vec<_>>().join("\n");
        out.push_str(&format!("{}\n", style.diff(&shown)));
        if lines.len() > PREVIEW_LINES {
            let more = lines.len() - PREVIEW_LINES;
            out.push_str(&style.dim(&format!("… {more} more lines\n")));
        }
    }
    let scope: Vec<String> = question
        .requests
        .iter()
        .map(|r| format!("{} {}", r.permission, harmless(&r.always)))
        .collect();
    out.push_str(&format!(
        "[y] once  [a] always in this session ({})  [n] no  or say why not: ",
        scope.join(", ")
    ));
    out
}

fn parse(line: &str) -> Answer {
    match line.trim() {
        "y" | "Y" | "yes" => Answer::Once,
        "a" | "A" | "always" => Answer::Always,
        "n" | "N" | "no" | "" => Answer::Reject { message: None },
        words => Answer::Reject { message: Some(words.to_owned()) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_chosen_by_number_and_words_are_taken_where_wanted() {
        let choice = |label: &str| toolwright::tool::Choice {
            label: label.to_owned(),
            description: String::new(),
        };
        let item = |multiple, custom| InquiryItem {
            question: "Which?".to_owned(),
            header: String::new(),
            options: vec![choice("red"), choice("blue")],
            multiple,
            custom,
        };
        assert_eq!(choose("2\n", &item(false, true)), ["blue"]);
        assert_eq!(choose("1, 2\n", &item(true, true)), ["red", "blue"]);
        assert_eq!(choose("1 2\n", &item(false, true)), ["red"]);
        assert_eq!(choose("green\n", &item(false, true)), ["green"]);
        assert_eq!(choose("green\n", &item(false, false)), Vec::<String>::new());
        assert_eq!(choose("7\n", &item(false, false)), Vec::<String>::new());
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for (line, answer) in [
            ("y\n", Answer::Once),
            ("a\n", Answer::Always),
            ("\n", Answer::Reject { message: None }),
            ("n\n", Answer::Reject { message: None }),
            ("yep, but later\n", Answer::Reject { message: Some("yep, but later".into()) }),
        ] {
            assert_eq!(parse(line), answer, "{line:?}");
        }
    }
}
