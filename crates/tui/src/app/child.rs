//! Agents that work for this one: which there are, and what each has done so far.

use super::{App, Kind, Live, Order, Row};
use crate::blocks::{Block, Call};

impl App {
    /// Those of this conversation, the newest first.
    pub(super) fn child_rows(&self) -> Vec<Row> {
        let live = self.live.iter().filter_map(|live| match live {
            Live::Call { call, .. } => Some(call),
            _ => None,
        });
        let past = self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            _ => None,
        });
        let mut rows: Vec<Row> = Vec::new();
        for call in live.rev().chain(past.rev()) {
            let Some(id) = call.child() else { continue };
            if rows.iter().any(|row| row.value == id) {
                continue;
            }
            let about = match &call.done {
                None => call.doing(),
                Some(done) => done.facts.join(" · "),
            };
            rows.push(Row { label: call.about(), about, value: id });
        }
        rows
    }

    /// The only one, or the list of them.
    pub(super) fn open_child(&mut self) {
        match self.child_rows().as_slice() {
            [] => self.hint("no agent works for this one, and none has"),
            [only] => {
                let id = only.value.clone();
                self.order(Order::Child(id));
            }
            _ => self.pick(Kind::Children),
        }
    }

    /// What it has done: a screen of its own, made anew while it works.
    pub(super) fn child(&mut self, id: &str, title: String, blocks: Vec<Block>) {
        match &mut self.transcript {
            Some(open) if open.child_id() == Some(id) => open.renew(blocks),
            // The person has closed it, or looks at something else.
            Some(_) => {}
            None => self.open_transcript_of(id.to_owned(), crate::width::flat(&title), blocks),
        }
    }

    /// Something was told of a call's progress; it may be about the agent that is looked at.
    pub(super) fn child_moved(&mut self, progress: &str) {
        let Some(open) = &self.transcript else { return };
        let Some(id) = open.child_id() else { return };
        if Call::child_in(progress).is_some_and(|own| own == id) {
            let id = id.to_owned();
            self.order(Order::Child(id));
        }
    }
}
