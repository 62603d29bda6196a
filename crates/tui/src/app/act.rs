//! What the actions of the keymap do.

use std::time::Duration;

use super::{App, Armed, Effect, Kind, Order};
use crate::blocks::Block;
use crate::keymap::Action;

impl App {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Exit => self.exit(),
            Action::Commands => self.pick(Kind::Commands),
            Action::Help => self.run_command("help", ""),
            Action::Editor => {
                let text = self.editor.whole();
                self.effect(Effect::OpenEditor(text));
            }
            Action::Themes => self.pick(Kind::Themes),
            Action::Status => self.order(Order::Status),
            Action::Export => self.order(Order::Export(None)),
            Action::New => self.run_command("new", ""),
            Action::Sessions => self.pick(Kind::Sessions),
            Action::Timeline => self.pick(Kind::Messages),
            Action::Interrupt => self.escape(),
            Action::Compact => self.run_command("compact", ""),
            Action::Models => self.pick(Kind::Models),
            Action::NextModel => self.next_model(),
            Action::Agents => self.pick(Kind::Agents),
            Action::NextAgent => self.next_agent(1),
            Action::PreviousAgent => self.next_agent(-1),
            Action::NextMode => self.change_mode(None),
            Action::Servers => self.pick(Kind::Servers),
            Action::Permissions => self.pick(Kind::Permissions),
            Action::Keys => self.pick(Kind::Keys),
            Action::Skills => self.pick(Kind::Skills),
            Action::Connect => self.pick(Kind::Providers),
            Action::Children => self.open_child(),
            Action::Rename => self.rename(""),
            Action::VimKeys => self.switch_vim(),
            Action::Undo => self.run_command("undo", ""),
            Action::Redo => self.run_command("redo", ""),
            Action::Copy => self.copy_answer(),
            Action::Details => {
                self.prefs.details = !self.prefs.details;
                let now = if self.prefs.details { "whole outputs" } else { "short outputs" };
                self.hint(now);
                self.save();
            }
            Action::Thinking => {
                self.prefs.thinking = !self.prefs.thinking;
                self.hint(if self.prefs.thinking { "reasoning shown" } else { "reasoning folded" });
                self.save();
            }
            Action::Stamps => {
                self.prefs.stamps = !self.prefs.stamps;
                self.hint(if self.prefs.stamps {
                    "times are shown"
                } else {
                    "times are not shown"
                });
                self.save();
            }
            Action::Paste => self.order(Order::Clipboard),
            Action::Transcript => self.open_transcript(),
            Action::Jobs => self.pick(Kind::Jobs),
            Action::Suspend => self.effect(Effect::Suspend),
            Action::Redraw => self.effect(Effect::Redraw),
            Action::Clear => self.clear(),
            Action::Up if self.editor.is_empty() && !self.queue.is_empty() => self.take_back(),
            Action::Submit => self.submit(false),
            Action::Queue if self.busy => self.submit(true),
            _ => self.edit_action(action),
        }
    }

    fn edit_action(&mut self, action: Action) {
        let columns = self.editor_columns();
        let editor = &mut self.editor;
        match action {
            Action::Newline | Action::Queue => editor.insert('\n'),
            Action::Left => editor.left(),
            Action::Right => editor.right(),
            Action::Up => {
                if !editor.up(columns)
                    && let Some(text) = self.history.older(self.editor.text())
                {
                    self.editor.set(&text);
                }
            }
            Action::Down => {
                if !editor.down(columns)
                    && let Some(text) = self.history.newer()
                {
                    self.editor.set(&text);
                }
            }
            Action::LineHome => editor.go_line_start(),
            Action::LineEnd => editor.go_line_end(),
            Action::Home => editor.go_start(),
            Action::End => editor.go_end(),
            Action::WordRight => editor.go_word_right(),
            Action::WordLeft => editor.go_word_left(),
            Action::KillEnd => editor.kill_to_end(),
            Action::KillStart => editor.kill_to_start(),
            Action::KillWordBack => editor.kill_word_back(),
            Action::KillWord => editor.kill_word_forward(),
            Action::Backspace => editor.backspace(),
            Action::Delete => editor.delete_forward(),
            Action::Yank => editor.yank(),
            Action::Transpose => editor.transpose(),
            Action::UndoText => editor.undo(),
            Action::RedoText => editor.redo(),
            Action::SearchHistory => return self.start_search(),
            _ => return,
        }
        match action {
            Action::Up | Action::Down => self.menu = None,
            Action::Backspace | Action::Delete | Action::KillWordBack => self.look_for_menu(),
            _ if self.menu.is_some() => self.look_for_menu(),
            _ => {}
        }
    }

    /// Text first, then the turn, then the program.
    fn clear(&mut self) {
        if !self.editor.is_empty() {
            self.editor.set("");
            self.menu = None;
            self.history.leave();
        } else if self.busy {
            self.interrupt();
        } else if self.twice(Armed::Exit, Duration::from_secs(2)) {
            self.effect(Effect::Quit);
        } else {
            self.hint("ctrl+c again to leave");
        }
    }

    fn exit(&mut self) {
        if !self.editor.is_empty() {
            self.editor.delete_forward();
        } else if !self.busy || self.twice(Armed::Exit, Duration::from_secs(2)) {
            self.effect(Effect::Quit);
        } else {
            self.hint("it is at work: again to leave all the same");
        }
    }

    fn escape(&mut self) {
        if self.menu.take().is_some() {
            return;
        }
        if self.busy {
            return self.interrupt();
        }
        if self.twice(Armed::Back, Duration::from_secs(1)) {
            self.pick(Kind::Messages);
        } else {
            self.hint("esc again to go back to an earlier message");
        }
    }

    pub(super) fn interrupt(&mut self) {
        if self.busy && !self.aborted {
            self.aborted = true;
            self.activity = "Interrupting".to_owned();
            self.order(Order::Abort);
        }
    }

    /// The message that was queued last, to be written anew.
    fn take_back(&mut self) {
        if let Some(waiting) = self.queue.pop() {
            self.order(Order::Withdraw(waiting.id));
            self.editor.set(&waiting.text);
        }
    }

    fn next_agent(&mut self, step: isize) {
        let count = self.facts.agents.len() as isize;
        if count < 2 {
            return;
        }
        if self.busy {
            return self.hint("the agent can be changed when this turn is over");
        }
        let at = self.facts.agents.iter().position(|(name, _)| *name == self.facts.agent);
        let next = (at.map_or(0, |n| n as isize) + step).rem_euclid(count);
        if let Some((name, _)) = self.facts.agents.get(next as usize) {
            let name = name.clone();
            self.facts.agent.clone_from(&name);
            self.order(Order::Agent(name));
        }
    }

    fn next_model(&mut self) {
        let favourites = &self.prefs.favourites;
        let all = if favourites.is_empty() { &self.prefs.recent } else { favourites };
        if all.is_empty() {
            return self.hint("no favourite yet: ctrl+f in the list of models");
        }
        let at = all.iter().position(|model| *model == self.facts.model);
        let next = at.map_or(0, |n| (n + 1) % all.len());
        let model = all[next].clone();
        self.order(Order::Model(model));
    }

    fn copy_answer(&mut self) {
        let answer = self.blocks.iter().rev().find_map(|block| match block {
            Block::Text(text) => Some(text.clone()),
            _ => None,
        });
        match answer {
            Some(text) => {
                self.effect(Effect::Copy(text));
                self.hint("copied");
            }
            None => self.hint("there is no answer yet"),
        }
    }
}
