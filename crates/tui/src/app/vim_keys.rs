//! Vim's keys in the prompt, for those who want them.

use super::App;
use crate::key::Key;
use crate::vim::Did;

impl App {
    /// Whether the key was taken as one of Vim's.
    pub(super) fn vim_key(&mut self, key: Key) -> bool {
        if !self.vim.is_on() {
            return false;
        }
        // A question, a search or the end of the program is not Vim's business.
        let columns = self.editor_columns();
        match self.vim.key(key, &mut self.editor, columns) {
            Did::Nothing => false,
            Did::Taken => {
                (self.menu, self.armed) = (None, None);
                true
            }
            Did::Older | Did::Newer if !self.queue.is_empty() && self.editor.is_empty() => false,
            Did::Older => {
                if let Some(text) = self.history.older(self.editor.text()) {
                    self.editor.set(&text);
                }
                true
            }
            Did::Newer => {
                if let Some(text) = self.history.newer() {
                    self.editor.set(&text);
                }
                true
            }
        }
    }

    pub(super) fn switch_vim(&mut self) {
        let on = !self.vim.is_on();
        self.vim = crate::vim::Vim::new(on);
        self.prefs.vim = Some(on);
        self.save();
        self.hint(if on { "vim keys: esc for normal mode" } else { "no vim keys any more" });
    }

    /// For the status line.
    pub(super) fn vim_word(&self) -> Option<&'static str> {
        self.vim.word()
    }
}
