//! The lines of a file as a tree: each continues the one that it names as its parent. The chain from
//! the first line to the last one is the *current branch*; whatever else is in the file was left
//! behind and can be gone back to.
//!
//! All lines are looked at, and only those of one branch are read: time and memory follow the branch.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::entry::{Entry, Header};
use crate::fold::Session;
use crate::id::{EntryId, Mark};
use crate::line::{self, Head};
use crate::log::{LogError, Notice};

/// What stands for a damaged line, so that what counts items still counts the same.
const DAMAGED: &str = "(An entry of this session was damaged on disk and is left out.)";

/// A file's lines, without what they say.
#[derive(Debug)]
pub struct Tree {
    path: PathBuf,
    nodes: Vec<Node>,
    /// By id, once a line did not simply continue the one before it.
    by_id: Option<HashMap<EntryId, usize>>,
    pub(crate) notices: Vec<Notice>,
    /// Bytes up to the end of the last whole line.
    pub(crate) whole: u64,
    /// The newest format that a line needs.
    pub(crate) format: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    offset: u64,
    /// Without its line break.
    bytes: usize,
    id: Option<EntryId>,
    /// The line that it continues, by its number; the first line continues itself.
    parent: usize,
    pub(crate) kind: Kind,
    pub(crate) damaged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Session,
    Prompt,
    Note,
    StepStarted,
    Delta,
    Reply,
    CallStarted,
    Changed,
    Reversing,
    Reversed,
    Moved,
    Labelled,
    /// Speaks of the session as a whole: it counts on every branch.
    AsAWhole,
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "session" => Self::Session,
            "prompt" => Self::Prompt,
            "note" => Self::Note,
            "step_started" => Self::StepStarted,
            "delta" => Self::Delta,
            "reply" => Self::Reply,
            "call_started" => Self::CallStarted,
            "changed" => Self::Changed,
            "reversing" => Self::Reversing,
            "reversed" => Self::Reversed,
            "moved" => Self::Moved,
            "labelled" => Self::Labelled,
            "titled" | "archived" | "imported" => Self::AsAWhole,
            _ => Self::Other,
        }
    }

    /// Whether it makes an item of the session.
    pub(crate) fn is_item(self) -> bool {
        matches!(self, Self::Prompt | Self::Note | Self::StepStarted)
    }
}

impl Tree {
    /// Looks at every line of a file once.
    pub(crate) fn scan(path: &Path) -> Result<Self, LogError> {
        Self::scan_lines(path, open(path)?)
    }

    fn scan_lines(path: &Path, mut reader: impl BufRead) -> Result<Self, LogError> {
        let failed = |source| LogError::Read { path: path.to_owned(), source };
        let mut tree = Self {
            path: path.to_owned(),
            nodes: Vec::new(),
            by_id: None,
            notices: Vec::new(),
            whole: 0,
            format: 0,
        };
        let mut bytes = Vec::new();
        // A line that is not sound is torn if nothing follows it, and damaged otherwise.
        let mut unsound: Option<Node> = None;
        loop {
            bytes.clear();
            if reader.read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
                break;
            }
            if let Some(node) = unsound.take() {
                tree.notices.push(Notice::Damaged { line: tree.nodes.len() + 1 });
                tree.push(node);
            }
            let line = bytes.strip_suffix(b"\n");
            let sound = line.is_some_and(line::is_sound);
            let line = line.unwrap_or(&bytes);
            let head = Head::of(line);
            let damaged = !sound || head.is_none();
            if let Some(head) = head.as_ref().filter(|_| sound) {
                tree.format = tree.format.max(head.v);
            }
            let node = tree.place(line.len(), head.as_ref(), damaged);
            match damaged {
                true => unsound = Some(node),
                false => tree.push(node),
            }
        }
        match tree.nodes.first() {
            Some(Node { kind: Kind::Session, damaged: false, .. }) => Ok(tree),
            _ => Err(LogError::NoHeader { path: path.to_owned() }),
        }
    }

    fn place(&mut self, bytes: usize, head: Option<&Head<'_>>, damaged: bool) -> Node {
        let before = self.nodes.len().saturating_sub(1);
        let id = head.and_then(|head| head.id.parse().ok());
        let parent = head.and_then(|head| head.parent?.parse().ok());
        // What continues nothing that we can find continues the line before it: a parent may be
        // damaged, and the first version knew of no other order.
        let parent = parent.and_then(|parent| match self.nodes.last() {
            Some(last) if last.id == Some(parent) => Some(before),
            _ => self.index().get(&parent).copied(),
        });
        Node {
            offset: self.whole,
            bytes,
            id,
            parent: parent.unwrap_or(before),
            kind: head.map_or(Kind::Other, |head| Kind::of(head.kind)),
            damaged,
        }
    }

    fn push(&mut self, node: Node) {
        self.whole += node.bytes as u64 + 1;
        if let (Some(index), Some(id)) = (&mut self.by_id, node.id) {
            index.entry(id).or_insert(self.nodes.len());
        }
        self.nodes.push(node);
    }

    fn index(&mut self) -> &HashMap<EntryId, usize> {
        let nodes = &self.nodes;
        self.by_id.get_or_insert_with(|| {
            let ids = nodes.iter().enumerate();
            ids.filter_map(|(number, node)| Some((node.id?, number))).collect()
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn find(&mut self, id: EntryId) -> Option<usize> {
        self.index().get(&id).copied()
    }

    /// The last line, by its number.
    pub(crate) fn leaf(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    pub(crate) fn id(&self, number: usize) -> Option<EntryId> {
        self.nodes.get(number)?.id
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn parent(&self, number: usize) -> Option<usize> {
        (number > 0).then(|| self.nodes[number].parent)
    }

    /// The lines from the first to this one.
    pub(crate) fn branch(&self, leaf: usize) -> Vec<usize> {
        let mut branch = vec![leaf];
        let mut at = leaf;
        while let Some(parent) = self.parent(at) {
            branch.push(parent);
            at = parent;
        }
        branch.reverse();
        branch
    }

    /// The lines that count at the end of this branch: its own, and what speaks of all branches.
    pub(crate) fn counting(&self, leaf: usize) -> Vec<usize> {
        let mut lines = self.branch(leaf);
        let on_all = |node: &Node| node.kind == Kind::AsAWhole;
        if self.nodes.iter().any(on_all) {
            let all = self.nodes.iter().enumerate().filter(|(_, node)| on_all(node));
            lines.extend(all.map(|(number, _)| number));
            lines.sort_unstable();
            lines.dedup();
        }
        lines
    }

    /// The session as it is at the end of this branch, begun by `new`.
    pub(crate) fn fold(
        &self,
        leaf: usize,
        new: fn(Header) -> Session,
    ) -> Result<Session, LogError> {
        self.fold_lines(leaf, new, open(&self.path)?)
    }

    fn fold_lines(
        &self,
        leaf: usize,
        new: fn(Header) -> Session,
        lines: BufReader<impl Read + Seek>,
    ) -> Result<Session, LogError> {
        let mut session = None;
        let lines = Lines::new(&self.path, lines);
        self.read_lines(lines, &self.counting(leaf), |entry, mark| match (&mut session, entry) {
            (Some(session), entry) => Session::apply(session, entry, mark),
            (None, Entry::Session(header)) => session = Some(new(header)),
            (None, _) => {}
        })?;
        session.ok_or_else(|| LogError::NoHeader { path: self.path.clone() })
    }

    /// Hands the entries of a branch to `take`, in order, without pieces of answers that the whole
    /// answer repeats.
    pub(crate) fn read(
        &self,
        branch: &[usize],
        take: impl FnMut(Entry, Mark),
    ) -> Result<(), LogError> {
        self.read_lines(Lines::open(&self.path)?, branch, take)
    }

    fn read_lines(
        &self,
        mut lines: Lines<'_, impl Read + Seek>,
        branch: &[usize],
        mut take: impl FnMut(Entry, Mark),
    ) -> Result<(), LogError> {
        let superseded = self.superseded(branch);
        for (place, number) in branch.iter().enumerate() {
            let node = &self.nodes[*number];
            if superseded[place] {
                continue;
            }
            let parent = self.parent(*number).and_then(|parent| self.id(parent));
            let id = node.id.unwrap_or_default();
            let line = if node.damaged { &[] } else { lines.read(node)? };
            let time = Head::of(line).map_or(0, |head| head.time);
            // A kind from a later version is kept in the file and means nothing to us.
            let stand_in = || node.kind.is_item().then(|| Entry::Note { text: DAMAGED.to_owned() });
            if let Some(entry) = line::entry(line).or_else(stand_in) {
                take(entry, Mark { id, parent, time });
            }
        }
        Ok(())
    }

    fn superseded(&self, branch: &[usize]) -> Vec<bool> {
        let mut answered = false;
        let mut superseded = vec![false; branch.len()];
        for (place, number) in branch.iter().enumerate().rev() {
            let node = &self.nodes[*number];
            match node.kind {
                Kind::Reply if !node.damaged => answered = true,
                Kind::StepStarted => answered = false,
                Kind::Delta => superseded[place] = answered,
                _ => {}
            }
        }
        superseded
    }
}

pub(crate) trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

/// A session's file, be it compressed or not.
fn open(path: &Path) -> Result<BufReader<Box<dyn ReadSeek>>, LogError> {
    let failed = |source| LogError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let is_small = path.extension().is_some_and(|extension| extension == "zst");
    let lines: Box<dyn ReadSeek> = match is_small {
        true => Box::new(std::io::Cursor::new(zstd::decode_all(file).map_err(failed)?)),
        false => Box::new(file),
    };
    Ok(BufReader::with_capacity(64 << 10, lines))
}

/// Lines of a file, read where they stand.
pub(crate) struct Lines<'a, R> {
    path: &'a Path,
    reader: BufReader<R>,
    at: u64,
    line: Vec<u8>,
}

impl<'a> Lines<'a, Box<dyn ReadSeek>> {
    pub(crate) fn open(path: &'a Path) -> Result<Self, LogError> {
        Ok(Self::new(path, open(path)?))
    }
}

impl<'a, R: Read + Seek> Lines<'a, R> {
    fn new(path: &'a Path, reader: BufReader<R>) -> Self {
        Self { path, reader, at: 0, line: Vec::new() }
    }

    pub(crate) fn read(&mut self, node: &Node) -> Result<&[u8], LogError> {
        let read = (|| {
            if node.offset != self.at {
                match i64::try_from(node.offset.wrapping_sub(self.at)) {
                    // Within what was read ahead, nothing is read again.
                    Ok(distance) => self.reader.seek_relative(distance)?,
                    Err(_) => drop(self.reader.seek(SeekFrom::Start(node.offset))?),
                }
            }
            self.line.resize(node.bytes, 0);
            self.reader.read_exact(&mut self.line)
        })();
        read.map_err(|source| LogError::Read { path: self.path.to_owned(), source })?;
        self.at = node.offset + node.bytes as u64;
        Ok(&self.line)
    }
}

#[cfg(test)]
impl Tree {
    pub(crate) fn scan_for_test(bytes: &[u8]) -> Result<Self, LogError> {
        Self::scan_lines(Path::new("in memory"), bytes)
    }

    pub(crate) fn fold_for_test(&self, bytes: &[u8]) -> Result<Session, LogError> {
        let lines = BufReader::new(std::io::Cursor::new(bytes));
        self.fold_lines(self.leaf(), Session::new, lines)
    }
}
