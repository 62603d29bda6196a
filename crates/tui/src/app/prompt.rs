//! Keys, pastes, and what becomes of the text when it is sent.

use super::{App, Effect, Order, Overlay};
use crate::blocks::Block;
use crate::key::{Code, Key};
use crate::keymap::Action;

impl App {
    pub(super) fn key(&mut self, key: Key) {
        if self.transcript.is_some() {
            return self.transcript_key(key);
        }
        if self.overlay.is_some() {
            return self.overlay_key(key);
        }
        if !self.asks.is_empty() {
            return self.ask_key(key);
        }
        if self.history.search.is_some() {
            return self.search_key(key);
        }
        if std::mem::take(&mut self.leader) {
            if let Some(action) = self.keymap.action(true, key) {
                self.act(action);
            }
            return;
        }
        if self.menu_key(key) {
            return;
        }
        if key == self.keymap.leader {
            self.leader = true;
            return;
        }
        let action = self.keymap.action(false, key);
        if !matches!(action, Some(Action::Clear | Action::Exit | Action::Interrupt)) {
            self.armed = None;
        }
        match (action, key.typed()) {
            (Some(action), _) => self.act(action),
            (None, Some(c)) => {
                self.editor.insert(c);
                self.history.leave();
                self.look_for_menu();
            }
            (None, None) => {}
        }
    }

    fn overlay_key(&mut self, key: Key) {
        match &mut self.overlay {
            Some(Overlay::Picker(_)) => self.picker_key(key),
            Some(Overlay::Page { lines, top, .. }) => {
                let page = self.rows.saturating_sub(4).max(1);
                let most = lines.len().saturating_sub(page);
                match (key.code, key.ctrl) {
                    (Code::Up, _) => *top = top.saturating_sub(1),
                    (Code::Down, _) => *top = (*top + 1).min(most),
                    (Code::PageUp, _) => *top = top.saturating_sub(page),
                    (Code::PageDown | Code::Char(' '), _) => *top = (*top + page).min(most),
                    (Code::Escape | Code::Enter | Code::Char('q'), _) | (Code::Char('c'), true) => {
                        self.overlay = None;
                    }
                    _ => {}
                }
            }
            Some(Overlay::Line { provider, editor, .. }) => match (key.code, key.ctrl) {
                (Code::Escape, _) | (Code::Char('c'), true) => self.overlay = None,
                (Code::Enter, _) => {
                    let (provider, key) = (provider.clone(), editor.take().trim().to_owned());
                    self.overlay = None;
                    if !key.is_empty() {
                        self.order(Order::Key { provider, key });
                    }
                }
                _ => super::ask::edit(editor, key),
            },
            None => {}
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(Overlay::Line { editor, .. }) = &mut self.overlay {
            return editor.insert_text(text.trim());
        }
        if self.transcript.is_some() || self.overlay.is_some() {
            return;
        }
        if !self.asks.is_empty() {
            return self.ask_paste(text);
        }
        self.leader = false;
        // A file that is dropped on the terminal arrives as its path.
        let trimmed = text.trim().trim_matches('\'');
        if trimmed.starts_with('/') && !trimmed.contains('\n') && is_attachment(trimmed) {
            let path = trimmed.replace("\\ ", " ");
            self.editor.insert_text(&format!("@{path} "));
        } else {
            self.editor.paste(text);
        }
        self.history.leave();
        self.menu = None;
    }

    /// Sends what was written: as a prompt, to the turn at work, or for after it.
    pub(super) fn submit(&mut self, later: bool) {
        self.menu = None;
        if self.editor.text().trim().is_empty() {
            return;
        }
        let text = self.editor.take().trim().to_owned();
        self.history.add(&text);
        self.effect(Effect::Remember(text.clone()));
        if matches!(text.as_str(), "exit" | "quit" | ":q") {
            return self.effect(Effect::Quit);
        }
        if let Some(command) = text.strip_prefix('!') {
            let command = command.trim();
            if !command.is_empty() {
                self.order(Order::Shell(command.to_owned()));
            }
            return;
        }
        if let Some(line) = text.strip_prefix('/')
            && self.slash(line)
        {
            return;
        }
        match (self.busy, later) {
            (true, false) => self.order(Order::Steer(text)),
            (true, true) => self.order(Order::FollowUp(text)),
            (false, _) => self.prompt(text),
        }
    }

    pub(super) fn prompt(&mut self, text: String) {
        if self.session.is_none() {
            let first = text.lines().next().unwrap_or_default();
            let title = crate::width::cut(&crate::width::harmless(first), 60);
            self.effect(Effect::Title(format!("tw · {title}")));
        }
        self.finish(Block::User(text.clone()));
        self.working();
        self.order(Order::Prompt(text));
    }
}

fn is_attachment(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    matches!(extension.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp" | "pdf")
}
