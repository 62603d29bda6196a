//! Asks the person at the terminal.

use std::io::{BufRead, Write};
use std::sync::Arc;

use tokio::sync::oneshot;
use toolwright::permission::{Extent, Grant, Offer, Scope};
use toolwright::tool::{Inquiry, InquiryItem, Question};
use toolwright::{Answer, AnswerError};

use super::lines::Lines;
use crate::terminal::{Style, harmless};

/// Lines of a diff that are shown with the question.
const PREVIEW_LINES: usize = 60;

pub struct Asker {
    questions: Arc<toolwright::Questions>,
    lines: Lines,
}

impl Asker {
    pub fn new(questions: Arc<toolwright::Questions>) -> Self {
        Self {
            questions,
            lines: Lines::of(|| {
                let mut line = String::new();
                let count = std::io::stdin().lock().read_line(&mut line).ok()?;
                (count > 0).then_some(line)
            }),
        }
    }

    /// Whether somebody still wants an answer.
    pub fn is_waiting(&self, id: u64) -> bool {
        self.questions.is_waiting(id)
    }

    /// Shows the question and waits for the answer on a thread of its own: reading a terminal
    /// cannot be interrupted, and the run must be. What is returned tells when it was answered.
    pub fn ask(&self, id: u64, question: &Question, offer: &Offer) -> oneshot::Receiver<()> {
        let (answered, waiting) = oneshot::channel();
        let questions = Arc::clone(&self.questions);
        let style = Style::for_stderr();
        show(&render(question, offer, style));
        let (offer, lines) = (offer.clone(), self.lines.clone());
        std::thread::spawn(move || {
            let Some(line) = lines.next() else { return };
            let mut next = line.map_or(reject(), |line| parse(&line, &offer));
            loop {
                let answer = match next {
                    Said::Answer(answer) => answer,
                    Said::Always => {
                        show(&render_choices(&offer, style));
                        let Some(line) = lines.next() else { return };
                        next = line.map_or(reject(), |line| parse_choice(&line, &offer));
                        continue;
                    }
                };
                match questions.answer(id, answer) {
                    // What could not be taken can be said again.
                    Err(error @ (AnswerError::Refused(_) | AnswerError::NotKept(_))) => {
                        show(&format!("{}\n", style.attention(&harmless(&error.to_string()))));
                        next = Said::Always;
                    }
                    Ok(()) | Err(AnswerError::NotWaiting(_)) => break,
                }
            }
            answered.send(()).ok();
        });
        waiting
    }
}

fn show(text: &str) {
    let mut out = std::io::stderr().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

impl Asker {
    /// The same for questions that are no permission, one after the other.
    pub fn inquire(&self, id: u64, inquiry: &Inquiry) -> oneshot::Receiver<()> {
        let (answered, waiting) = oneshot::channel();
        let questions = Arc::clone(&self.questions);
        let (items, lines) = (inquiry.items.clone(), self.lines.clone());
        std::thread::spawn(move || {
            let mut replies = Vec::new();
            for item in &items {
                let text = render_item(item, Style::for_stderr());
                let mut out = std::io::stderr().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
                drop(out);
                let Some(line) = lines.next() else { return };
                match line {
                    Some(line) => replies.push(choose(&line, item)),
                    None => {
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

fn render(question: &Question, offer: &Offer, style: Style) -> String {
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
    for asked in &offer.asked {
        let line = format!("  {} {}: {}", asked.permission, asked.pattern, asked.why);
        out.push_str(&format!("{}\n", style.dim(&harmless(&line))));
    }
    if offer.asked.is_empty() {
        out.push_str(&format!("{}\n", style.dim(&format!("  {}", harmless(&offer.why)))));
    }
    let always = if offer.choices().is_empty() { "" } else { "[a]lways…  " };
    out.push_str(&format!("[o]nce  {always}[r]eject, or say why not: "));
    out
}

fn render_choices(offer: &Offer, style: Style) -> String {
    let mut out = String::new();
    for (number, (extent, patterns)) in offer.choices().iter().enumerate() {
        let what = match extent {
            Extent::Exact => "just this",
            Extent::Prefix => "what begins like it",
            Extent::Tool => "all that is asked about here",
        };
        let patterns = harmless(&patterns.join(", "));
        out.push_str(&format!("  {}. {patterns}  {}\n", number + 1, style.dim(what)));
    }
    let scopes: Vec<&str> = offer.scopes.iter().map(|scope| scope_word(*scope)).collect();
    out.push_str(&format!(
        "a number or a pattern of your own, and for how long: {} (for example: 1 s): ",
        scopes.join(", ")
    ));
    out
}

fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Session => "[s]ession",
        Scope::Project => "[p]roject",
        Scope::Everywhere => "[e]verywhere",
    }
}

/// What somebody typed.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Answer(Answer),
    /// They want to see the choices.
    Always,
}

fn reject() -> Said {
    Said::Answer(Answer::Reject { message: None })
}

fn parse(line: &str, offer: &Offer) -> Said {
    let line = line.trim();
    match line {
        "o" | "O" | "once" | "y" | "Y" | "yes" => return Said::Answer(Answer::Once),
        "r" | "R" | "reject" | "n" | "N" | "no" | "" => return reject(),
        // Where there is nothing to choose from, always is once.
        "a" | "A" | "always" if offer.choices().is_empty() => return Said::Answer(Answer::Once),
        "a" | "A" | "always" => return Said::Always,
        _ => {}
    }
    // "a 2 p" is both answers in one line.
    if let Some(choice) = line.strip_prefix("a ").filter(|choice| is_choice(choice)) {
        return parse_choice(choice, offer);
    }
    let words = line.strip_prefix("r ").unwrap_or(line);
    Said::Answer(Answer::Reject { message: Some(words.trim().to_owned()) })
}

/// Whether it is a number with or without a scope: other words are words.
fn is_choice(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let number = words.next().is_some_and(|word| word.parse::<usize>().is_ok());
    number && words.next().is_none_or(|word| scope(word).is_some()) && words.next().is_none()
}

fn scope(word: &str) -> Option<Scope> {
    match word {
        "s" | "session" => Some(Scope::Session),
        "p" | "project" => Some(Scope::Project),
        "e" | "everywhere" => Some(Scope::Everywhere),
        _ => None,
    }
}

/// A number or a pattern, with a scope behind it if one is named. An empty line is the narrowest
/// choice for this session.
fn parse_choice(line: &str, offer: &Offer) -> Said {
    let line = line.trim();
    let (what, scope) = match line.rsplit_once(char::is_whitespace) {
        Some((what, last)) if scope(last).is_some() => (what.trim(), scope(last)),
        _ if scope(line).is_some() => ("", scope(line)),
        _ => (line, None),
    };
    let scope = scope.unwrap_or_default();
    let choices = offer.choices();
    let number = if what.is_empty() { Some(1) } else { what.parse::<usize>().ok() };
    let chosen = number.and_then(|number| choices.get(number.checked_sub(1)?));
    let grant = match (chosen, number) {
        (Some((extent, _)), _) => Grant { scope, extent: Some(*extent), patterns: Vec::new() },
        // There is no such number.
        (None, Some(_)) => return Said::Always,
        (None, None) => Grant { scope, extent: None, patterns: vec![what.to_owned()] },
    };
    Said::Answer(Answer::Always(grant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright::permission::{Asked, Suggestion};

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

    fn offer() -> Offer {
        let suggestion = |extent, pattern: &str| Suggestion { extent, pattern: pattern.to_owned() };
        let asked = Asked {
            permission: "bash".into(),
            pattern: "git push origin".into(),
            rule: None,
            from: "shipped defaults".into(),
            why: "ask by the rule bash \"*\" of shipped defaults".into(),
            suggestions: vec![
                suggestion(Extent::Exact, "git push origin"),
                suggestion(Extent::Prefix, "git push *"),
                suggestion(Extent::Tool, "*"),
            ],
        };
        Offer { why: String::new(), asked: vec![asked], scopes: Scope::ALL.to_vec() }
    }

    fn always(scope: Scope, extent: Option<Extent>, pattern: Option<&str>) -> Said {
        let patterns = pattern.map(str::to_owned).into_iter().collect();
        Said::Answer(Answer::Always(Grant { scope, extent, patterns }))
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let rejected = |words: Option<&str>| {
            Said::Answer(Answer::Reject { message: words.map(str::to_owned) })
        };
        for (line, said) in [
            ("y\n", Said::Answer(Answer::Once)),
            ("o\n", Said::Answer(Answer::Once)),
            ("a\n", Said::Always),
            ("\n", rejected(None)),
            ("n\n", rejected(None)),
            ("r\n", rejected(None)),
            ("r not today\n", rejected(Some("not today"))),
            ("yep, but later\n", rejected(Some("yep, but later"))),
            ("a better way would be make\n", rejected(Some("a better way would be make"))),
            ("a 2 p\n", always(Scope::Project, Some(Extent::Prefix), None)),
        ] {
            assert_eq!(parse(line, &offer()), said, "{line:?}");
        }
        assert_eq!(parse("a", &Offer::default()), Said::Answer(Answer::Once));
    }

    #[test]
    fn a_choice_is_a_number_or_a_pattern_and_a_scope() {
        use Scope::{Everywhere, Project, Session};
        for (line, said) in [
            ("\n", always(Session, Some(Extent::Exact), None)),
            ("2\n", always(Session, Some(Extent::Prefix), None)),
            ("3 e\n", always(Everywhere, Some(Extent::Tool), None)),
            ("p\n", always(Project, Some(Extent::Exact), None)),
            ("git * project\n", always(Project, None, Some("git *"))),
            ("git push origin\n", always(Session, None, Some("git push origin"))),
            ("7\n", Said::Always),
            ("0 s\n", Said::Always),
        ] {
            assert_eq!(parse_choice(line, &offer()), said, "{line:?}");
        }
    }

    #[test]
    fn a_question_shows_what_asks_and_the_choices_what_they_mean() {
        let question = Question {
            position: 0,
            tool: "bash".into(),
            arguments: serde_json::Value::Null,
            summary: "git push origin".into(),
            requests: Vec::new(),
            preview: None,
            hint: toolwright::tool::Hint::Nothing,
        };
        let style = Style::for_stderr();
        let text = render(&question, &offer(), style);
        assert!(text.contains("by the rule bash \"*\" of shipped defaults"), "{text}");
        assert!(text.contains("[o]nce  [a]lways…  [r]eject"), "{text}");
        let choices = render_choices(&offer(), style);
        assert!(choices.contains("2. bash git push *"), "{choices}");
        assert!(choices.contains("[p]roject"), "{choices}");
    }
}
