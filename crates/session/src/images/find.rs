//! What a session's file says about changed files, without reading the rest of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::beside::clear_beside;
use super::change::{Change, Changed, Reversal};
use crate::entry::{Entry, MoveReason};
use crate::fold::title_of;
use crate::id::EntryId;
use crate::log::LogError;
use crate::tree::{Kind, Lines, Tree};

/// A message of the current branch.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) id: EntryId,
    /// The entry before it.
    pub(super) before: Option<EntryId>,
    pub(super) title: String,
    pub(super) steer: bool,
}

/// Something that happened to files.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Changed(Changed),
    Reversal(Reversal),
}

impl Event {
    pub(super) fn at(&self) -> u64 {
        match self {
            Self::Changed(changed) => changed.at,
            Self::Reversal(reversal) => reversal.at,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) messages: Vec<Message>,
    /// Those of the current branch, each with the number of messages before it.
    pub(super) events: Vec<(usize, Event)>,
    /// What can be redone, the newest last.
    pub(super) undone: Vec<Reversal>,
    /// One that was begun and is not known to have come to its end.
    pub(super) pending: Option<Pending>,
}

#[derive(Debug)]
pub(super) struct Pending {
    pub(super) reversal: Reversal,
    pub(super) files_done: bool,
}

pub(super) fn history(path: &Path) -> Result<History, LogError> {
    let tree = Tree::of(path)?;
    let mut lines = Lines::open(path)?;
    let mut history = History::default();
    for number in tree.branch(tree.leaf()) {
        let node = &tree.nodes()[number];
        if node.damaged || !matches!(node.kind, Kind::Prompt | Kind::Changed | Kind::Reversing) {
            continue;
        }
        let count = history.messages.len();
        match crate::line::entry(lines.read(node)?) {
            Some(Entry::Prompt { content, steer, .. }) => history.messages.push(Message {
                id: tree.id(number).unwrap_or_default(),
                before: tree.parent(number).and_then(|parent| tree.id(parent)),
                title: title_of(&content),
                steer,
            }),
            Some(Entry::Changed(changed)) => history.events.push((count, Event::Changed(changed))),
            Some(Entry::Reversing(reversal)) => {
                history.events.push((count, Event::Reversal(reversal)));
            }
            _ => {}
        }
    }
    for node in tree.nodes().iter().filter(|node| !node.damaged) {
        if !matches!(node.kind, Kind::Prompt | Kind::Moved | Kind::Reversing | Kind::Reversed) {
            continue;
        }
        match crate::line::entry(lines.read(node)?) {
            Some(Entry::Reversing(reversal)) => {
                history.pending = Some(Pending { reversal, files_done: false });
            }
            Some(Entry::Reversed) => {
                if let Some(pending) = &mut history.pending {
                    pending.files_done = true;
                    if pending.reversal.conversation.is_none() {
                        history.complete();
                    }
                }
            }
            Some(Entry::Moved { why: MoveReason::Undone | MoveReason::Redone, .. }) => {
                history.complete();
            }
            // Something new was said, or somebody went elsewhere: there is nothing to go forth to.
            Some(_) => history.undone.clear(),
            None => {}
        }
    }
    Ok(history)
}

impl History {
    fn complete(&mut self) {
        use super::change::ReversalKind;
        let Some(Pending { reversal, .. }) = self.pending.take() else { return };
        match reversal.kind {
            ReversalKind::Undo => self.undone.push(reversal),
            ReversalKind::Redo => drop(self.undone.pop()),
        }
    }
}

/// What an agent did that worked for another, in the turns that begin with these messages. It worked
/// in a file of its own.
pub(super) fn of_worker(path: &Path, turns: &[EntryId]) -> Result<Vec<Changed>, LogError> {
    let tree = Tree::of(path)?;
    let mut lines = Lines::open(path)?;
    let mut found = Vec::new();
    for node in tree.nodes().iter().filter(|n| n.kind == Kind::Changed && !n.damaged) {
        if let Some(Entry::Changed(changed)) = crate::line::entry(lines.read(node)?)
            && turns.contains(&changed.turn)
        {
            found.push(changed);
        }
    }
    Ok(found)
}

/// Removes what a process left beside files that it was writing when it was killed: those whose change
/// was announced, here or by an agent that worked for this session, and never came to its end.
pub fn clear_unfinished(path: &Path, workers: &[PathBuf]) -> Result<(), LogError> {
    let mut announced = BTreeSet::new();
    for file in workers.iter().map(PathBuf::as_path).chain([path]) {
        let tree = Tree::of(file)?;
        let mut lines = Lines::open(file)?;
        for node in tree.nodes().iter().filter(|n| n.kind == Kind::Changed && !n.damaged) {
            let Some(Entry::Changed(changed)) = crate::line::entry(lines.read(node)?) else {
                continue;
            };
            for Change { path, after, .. } in changed.changes {
                match after {
                    None => announced.insert(path),
                    Some(_) => announced.remove(&path),
                };
            }
        }
    }
    clear_beside(announced.iter().map(PathBuf::as_path));
    Ok(())
}
