//! Several questions in a row, each with options, words, or both.

use toolwright::tool::{Inquiry, InquiryItem, Replies};

pub(super) struct Items {
    items: Vec<InquiryItem>,
    at: usize,
    replies: Replies,
    marked: Vec<bool>,
}

impl Items {
    pub(super) fn new(inquiry: Inquiry) -> Self {
        let mut own = Self { items: inquiry.items, at: 0, replies: Vec::new(), marked: Vec::new() };
        own.unmark();
        own
    }

    fn unmark(&mut self) {
        self.marked = vec![false; self.now().map_or(0, |item| item.options.len())];
    }

    pub(super) fn now(&self) -> Option<&InquiryItem> {
        self.items.get(self.at)
    }

    /// Which of how many.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.at + 1, self.items.len())
    }

    pub(super) fn count(&self) -> usize {
        self.now().map_or(0, |item| item.options.len() + usize::from(item.custom))
    }

    pub(super) fn only_words(&self) -> bool {
        self.now().is_some_and(|item| item.options.is_empty() && item.custom)
    }

    pub(super) fn takes_several(&self) -> bool {
        self.now().is_some_and(|item| item.multiple)
    }

    pub(super) fn is_marked(&self, at: usize) -> bool {
        self.marked.get(at).copied().unwrap_or_default()
    }

    pub(super) fn toggle(&mut self, at: usize) {
        if let Some(mark) = self.marked.get_mut(at) {
            *mark = !*mark;
        }
    }

    /// The labels that a row stands for; none where it wants words.
    pub(super) fn chosen(&self, at: usize) -> Option<Vec<String>> {
        let item = self.now()?;
        let own = item.options.get(at)?;
        if !item.multiple || !self.marked.iter().any(|mark| *mark) {
            return Some(vec![own.label.clone()]);
        }
        let both = item.options.iter().zip(&self.marked);
        Some(both.filter(|(_, mark)| **mark).map(|(option, _)| option.label.clone()).collect())
    }

    /// All replies, once there is one for each.
    pub(super) fn reply(&mut self, chosen: Vec<String>) -> Option<Replies> {
        self.replies.push(chosen);
        self.at += 1;
        self.unmark();
        (self.at >= self.items.len()).then(|| std::mem::take(&mut self.replies))
    }

    /// To the question before; not from the first.
    pub(super) fn back(&mut self) -> bool {
        if self.at == 0 {
            return false;
        }
        self.at -= 1;
        self.replies.truncate(self.at);
        self.unmark();
        true
    }
}

/// The first address in a text.
pub(super) fn address(text: &str) -> Option<String> {
    let is_one = |word: &&str| word.starts_with("https://") || word.starts_with("http://");
    text.split_whitespace().find(is_one).map(str::to_owned)
}
