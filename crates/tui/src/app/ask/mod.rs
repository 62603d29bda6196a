//! Questions to the person: may this be done, which of these is meant, is this folder to be trusted.

mod draw;
mod inquiry;
mod permission;

use std::cell::RefCell;
use std::time::Duration;

use toolwright::Answer;
use toolwright::permission::Offer;
use toolwright::tool::{Inquiry, Question};

use super::{App, Effect, Order};
use crate::editor::Editor;
use crate::key::{Code, Key};
use crate::style::Line;
use crate::width::harmless;
use inquiry::Items;
use permission::Permission;

/// Somebody who writes on without a pause as long as this has not seen the question yet.
const STILL_WRITING: Duration = Duration::from_millis(700);

/// Answers that may turn out not to be taken.
const ANSWERED_CAP: usize = 8;

pub(crate) struct Ask {
    id: u64,
    what: What,
    selected: usize,
    words: Option<Words>,
    /// Why the answer before was not taken.
    problem: Option<String>,
    /// The first row of the preview that is shown.
    top: usize,
    expanded: bool,
    /// The preview as it was drawn last: a long diff is not drawn for each turn of a spinner.
    drawn: RefCell<Option<Drawn>>,
}

struct Drawn {
    columns: usize,
    theme: String,
    rows: Vec<Line>,
}

enum What {
    Permission(Box<Permission>),
    Inquiry(Items),
    Trust(Trust),
}

/// A folder whose own files want to do more than tighten rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Trust {
    pub folder: String,
    /// It was trusted before; these files have changed since.
    pub changed: Vec<String>,
    /// Each file with what it wants.
    pub wants: Vec<(String, String)>,
}

/// Words that are being written, and what for.
struct Words {
    editor: Editor,
    purpose: Purpose,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// What to do instead.
    Refusal,
    /// A pattern of the person's own.
    Pattern,
    /// An answer in one's own words; the only way to answer where there are no options.
    Own { only: bool },
}

/// What became of a key.
enum Did {
    Nothing,
    Answered(Order),
    Open(String),
    Copy(String),
}

impl Ask {
    pub(crate) fn permission(id: u64, question: Question, offer: Offer) -> Self {
        Self::new(id, What::Permission(Box::new(Permission::new(question, offer))))
    }

    pub(crate) fn inquiry(id: u64, inquiry: Inquiry) -> Self {
        let mut ask = Self::new(id, What::Inquiry(Items::new(inquiry)));
        ask.open_words();
        ask
    }

    /// There is one folder, so it needs no number.
    pub(crate) fn trust(trust: Trust) -> Self {
        let mut ask = Self::new(u64::MAX, What::Trust(trust));
        // Enter alone trusts nobody.
        ask.selected = 1;
        ask
    }

    fn new(id: u64, what: What) -> Self {
        let (drawn, words, problem) = (RefCell::new(None), None, None);
        Self { id, what, selected: 0, words, problem, top: 0, expanded: false, drawn }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether it is about the turn at work.
    pub(crate) fn is_of_turn(&self) -> bool {
        !matches!(self.what, What::Trust(_))
    }

    pub(crate) fn title(&self) -> String {
        match &self.what {
            What::Permission(own) => harmless(&own.question.summary),
            What::Inquiry(items) => {
                items.now().map(|item| harmless(&item.question)).unwrap_or_default()
            }
            What::Trust(trust) => format!("Do you trust {}?", harmless(&trust.folder)),
        }
    }

    fn count(&self) -> usize {
        match &self.what {
            What::Permission(own) => own.rows().len(),
            What::Inquiry(items) => items.count(),
            What::Trust(_) => 2,
        }
    }

    fn key(&mut self, key: Key) -> Did {
        self.problem = None;
        if self.words.is_some() {
            return self.words_key(key);
        }
        let count = self.count().max(1);
        match key.code {
            Code::Up => self.selected = self.selected.checked_sub(1).unwrap_or(count - 1),
            Code::Down => self.selected = (self.selected + 1) % count,
            Code::PageUp => self.top = self.top.saturating_sub(10),
            Code::PageDown => self.top = self.top.saturating_add(10).min(100_000),
            Code::Char('f') if key.ctrl => self.expanded = !self.expanded,
            Code::Char('o') if key.ctrl => {
                return self.address().map_or(Did::Nothing, Did::Open);
            }
            Code::Char('y') if key.ctrl => {
                return self.address().map_or(Did::Nothing, Did::Copy);
            }
            Code::Enter => return self.choose(self.selected),
            Code::Escape => return Did::Answered(self.dismiss()),
            Code::Char('c') if key.ctrl => return Did::Answered(self.dismiss()),
            _ => return self.own_key(key),
        }
        Did::Nothing
    }

    /// Keys that mean something for one kind of question.
    fn own_key(&mut self, key: Key) -> Did {
        let letter = match key.code {
            Code::Char(c) if !key.ctrl && !key.alt => Some(c.to_ascii_lowercase()),
            _ => None,
        };
        let number = letter.and_then(|c| (c.to_digit(10)? as usize).checked_sub(1));
        match &mut self.what {
            What::Permission(own) => {
                let moved = match key.code {
                    Code::Left => own.reach(false),
                    Code::Right => own.reach(true),
                    Code::Tab => own.last(!key.shift),
                    _ => false,
                };
                if moved {
                    self.selected = own.always_row();
                }
                if letter == Some('e')
                    && let Some(patterns) = own.patterns_to_edit()
                {
                    self.selected = own.always_row();
                    self.write(Purpose::Pattern, &patterns);
                    return Did::Nothing;
                }
                let rows = own.rows();
                let at = letter.and_then(|c| rows.iter().position(|row| row.key == c));
                match at.or(number.filter(|n| *n < rows.len())) {
                    Some(at) => self.choose(at),
                    None => Did::Nothing,
                }
            }
            What::Inquiry(items) => {
                if key.code == Code::Left && items.back() {
                    self.selected = 0;
                    self.open_words();
                    return Did::Nothing;
                }
                match (key.code, number) {
                    (Code::Tab, _) => self.selected = (self.selected + 1) % items.count().max(1),
                    (Code::Char(' '), _) => items.toggle(self.selected),
                    (_, Some(at)) if at < items.count() => {
                        self.selected = at;
                        if !items.takes_several() {
                            return self.choose(at);
                        }
                        items.toggle(at);
                    }
                    _ => {}
                }
                Did::Nothing
            }
            What::Trust(_) => match (letter, number) {
                (Some('y'), _) | (_, Some(0)) => self.choose(0),
                (Some('n'), _) | (_, Some(1)) => self.choose(1),
                _ => Did::Nothing,
            },
        }
    }

    fn words_key(&mut self, key: Key) -> Did {
        let Some(Words { editor, purpose }) = &mut self.words else { return Did::Nothing };
        let purpose = *purpose;
        match key.code {
            Code::Char('o') if key.ctrl => {
                return self.address().map_or(Did::Nothing, Did::Open);
            }
            Code::Escape | Code::Char('c')
                if (key.ctrl || key.code == Code::Escape)
                    && purpose == Purpose::Own { only: true } =>
            {
                return Did::Answered(self.dismiss());
            }
            Code::Escape => self.words = None,
            Code::Char('c') if key.ctrl => self.words = None,
            Code::Enter if !key.alt && !key.shift => {
                let text = editor.take().trim().to_owned();
                self.words = None;
                return self.said(purpose, text);
            }
            _ => edit(editor, key),
        }
        Did::Nothing
    }

    fn write(&mut self, purpose: Purpose, text: &str) {
        let mut editor = Editor::default();
        editor.set(text);
        self.words = Some(Words { editor, purpose });
    }

    /// Where words are the only answer they can be written at once.
    fn open_words(&mut self) {
        if let What::Inquiry(items) = &self.what
            && items.only_words()
        {
            self.write(Purpose::Own { only: true }, "");
        }
    }

    fn choose(&mut self, at: usize) -> Did {
        let answer = |answer| Did::Answered(Order::Answer(self.id, answer));
        match &mut self.what {
            What::Permission(own) => match own.rows().get(at).map(|row| row.key) {
                Some('y') => answer(Answer::Once),
                Some('a') => answer(Answer::Always(own.grant())),
                Some('n') => answer(Answer::Reject { message: None }),
                Some(_) => {
                    self.selected = at;
                    self.write(Purpose::Refusal, "");
                    Did::Nothing
                }
                None => Did::Nothing,
            },
            What::Inquiry(items) => match items.chosen(at) {
                Some(chosen) => self.reply(chosen),
                None if items.count() > at => {
                    self.write(Purpose::Own { only: false }, "");
                    Did::Nothing
                }
                None => Did::Nothing,
            },
            What::Trust(_) => Did::Answered(Order::Trust(Some(at == 0))),
        }
    }

    fn said(&mut self, purpose: Purpose, words: String) -> Did {
        match (purpose, &mut self.what) {
            (Purpose::Pattern, What::Permission(own)) => match own.grant_of(&words) {
                Some(grant) => Did::Answered(Order::Answer(self.id, Answer::Always(grant))),
                None => Did::Nothing,
            },
            (_, What::Permission(_)) => {
                let message = Some(words).filter(|words| !words.is_empty());
                Did::Answered(Order::Answer(self.id, Answer::Reject { message }))
            }
            // What need not be answered is left empty.
            (Purpose::Own { only: true }, _) if words.is_empty() => self.reply(Vec::new()),
            (_, What::Inquiry(_)) if words.is_empty() => Did::Nothing,
            (_, What::Inquiry(_)) => self.reply(vec![words]),
            (_, What::Trust(_)) => Did::Nothing,
        }
    }

    /// The next of several questions, or all answers.
    fn reply(&mut self, chosen: Vec<String>) -> Did {
        let What::Inquiry(items) = &mut self.what else { return Did::Nothing };
        self.selected = 0;
        match items.reply(chosen) {
            Some(replies) => Did::Answered(Order::Reply(self.id, Some(replies))),
            None => {
                self.open_words();
                Did::Nothing
            }
        }
    }

    fn dismiss(&self) -> Order {
        match self.what {
            What::Permission(_) => Order::Answer(self.id, Answer::Reject { message: None }),
            What::Inquiry(_) => Order::Reply(self.id, None),
            // Asked again the next time.
            What::Trust(_) => Order::Trust(None),
        }
    }

    /// An address that the question names.
    fn address(&self) -> Option<String> {
        let What::Inquiry(items) = &self.what else { return None };
        items.now().and_then(|item| inquiry::address(&item.question))
    }
}

/// Editing of one line in a dialog.
pub(super) fn edit(editor: &mut Editor, key: Key) {
    match (key.code, key.ctrl, key.alt) {
        (Code::Char(c), false, false) => editor.insert(c),
        (Code::Char('a'), true, _) | (Code::Home, ..) => editor.go_line_start(),
        (Code::Char('e'), true, _) | (Code::End, ..) => editor.go_line_end(),
        (Code::Char('u'), true, _) => editor.kill_to_start(),
        (Code::Char('k'), true, _) => editor.kill_to_end(),
        (Code::Char('w'), true, _) => editor.kill_word_back(),
        (Code::Char('y'), true, _) => editor.yank(),
        (Code::Char('b'), true, _) | (Code::Left, false, false) => editor.left(),
        (Code::Char('f'), true, _) | (Code::Right, false, false) => editor.right(),
        (Code::Left, ..) => editor.go_word_left(),
        (Code::Right, ..) => editor.go_word_right(),
        (Code::Backspace, false, false) => editor.backspace(),
        (Code::Backspace, ..) => editor.kill_word_back(),
        (Code::Delete, ..) => editor.delete_forward(),
        (Code::Enter, ..) => editor.insert('\n'),
        _ => {}
    }
}

impl Line {
    pub(crate) fn joined(mut self, other: Line) -> Self {
        self.extend(other);
        self
    }
}

impl App {
    pub(super) fn asked(&mut self, ask: Ask) {
        self.end_text();
        self.effect(Effect::Attention(ask.title()));
        // The next letter is meant for the text and not for a question that has just come up.
        let writing = !self.editor.is_empty() && self.now < self.keyed + STILL_WRITING;
        if self.asks.is_empty() {
            self.held = writing;
        }
        self.asks.push_back(ask);
    }

    /// Keys belong to the text until there is a pause.
    pub(super) fn still_writing(&mut self) {
        self.held &= self.now < self.keyed + STILL_WRITING && !self.editor.is_empty();
    }

    pub(super) fn ask_key(&mut self, key: Key) {
        let Some(ask) = self.asks.front_mut() else { return };
        match ask.key(key) {
            Did::Nothing => {}
            Did::Open(address) => self.order(Order::OpenAddress(address)),
            Did::Copy(address) => {
                self.effect(Effect::Copy(address));
                self.hint("copied");
            }
            Did::Answered(order) => {
                // Ctrl+C on a question is a wish to stop, not only to refuse.
                if key == Key::ctrl('c') {
                    self.interrupt();
                }
                let Some(ask) = self.asks.pop_front() else { return };
                if self.answered.len() >= ANSWERED_CAP {
                    self.answered.pop_front();
                }
                self.answered.push_back(ask);
                self.order(order);
            }
        }
    }

    /// An answer that could not be taken: the question still waits.
    pub(super) fn not_taken(&mut self, id: u64, problem: &str) {
        let Some(at) = self.answered.iter().position(|ask| ask.id() == id) else {
            return self.say(crate::blocks::Level::Notice, problem, None);
        };
        if let Some(mut ask) = self.answered.remove(at) {
            ask.problem = Some(crate::width::flat(problem));
            self.asks.push_front(ask);
        }
    }

    pub(super) fn ask_paste(&mut self, text: &str) {
        if let Some(words) = self.asks.front_mut().and_then(|ask| ask.words.as_mut()) {
            words.editor.insert_text(text);
        }
    }
}
