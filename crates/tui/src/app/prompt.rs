//! Keys, pastes, and what becomes of the text when it is sent.

use super::{App, Effect, Kind, Order, Overlay};
use crate::blocks::Block;
use crate::key::Key;
use crate::keymap::Action;

impl App {
    pub(super) fn key(&mut self, key: Key) {
        if self.transcript.is_some() {
            return self.transcript_key(key);
        }
        if self.overlay.is_some() {
            return self.overlay_key(key);
        }
        if !self.asks.is_empty() && !self.held {
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
        if self.vim_key(key) {
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

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(Overlay::Line { editor, .. }) = &mut self.overlay {
            return editor.insert_text(text.trim());
        }
        if self.transcript.is_some() || self.overlay.is_some() {
            return;
        }
        if !self.asks.is_empty() && !self.held {
            return self.ask_paste(text);
        }
        self.leader = false;
        match crate::drop::attachments(text) {
            Some(mentions) => self.editor.insert_text(&format!("{mentions} ")),
            None => self.editor.paste(text),
        }
        self.history.leave();
        self.menu = None;
    }

    /// Sends what was written: as a prompt, to the turn at work, or for after it.
    pub(super) fn submit(&mut self, later: bool) {
        self.menu = None;
        if self.editor.text().trim().is_empty() {
            // Where nobody answers but the demo, that is what comes next.
            if self.facts.demo && self.session.is_none() && !self.busy {
                self.pick(Kind::Providers);
            }
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
        self.finish(Block::user(text.as_str(), self.clock()));
        self.working();
        self.order(Order::Prompt(text));
    }
}
