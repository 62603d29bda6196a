//! Taking back and making again, files and conversation together or apart. What is about to be done is
//! in the log before the first file is touched, so that it can be finished after a crash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use super::beside::clear_beside;
use super::change::{Change, HeadMoved, Lost, Reversal, ReversalKind};
use super::find::{Event, History, Message, Pending, history, of_worker};
use super::keeper::now;
use super::killed::is_older;
use super::known::Known;
use super::plan::{Step, net};
use super::restore::{Move, Moved, carry_out, current, current_like};
use super::state::State;
use super::store::Images;
use crate::entry::{Entry, MoveReason};
use crate::fail::fail_point;
use crate::fold::Session;
use crate::id::EntryId;
use crate::log::{Log, LogError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoOptions {
    /// To before this message; the last one unless given.
    pub to: Option<EntryId>,
    pub files: bool,
    pub conversation: bool,
    /// Only says what would happen.
    pub dry_run: bool,
}

impl Default for UndoOptions {
    fn default() -> Self {
        Self { to: None, files: true, conversation: true, dry_run: false }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("there is nothing to undo: nothing was said in this session")]
    NothingSaid,
    #[error("there is nothing to redo: nothing was undone, or something was said since")]
    NothingUndone,
    #[error("there is no message {0} on the current branch of this session")]
    NoMessage(EntryId),
    #[error(transparent)]
    Log(#[from] LogError),
}

/// What was done, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// The messages that were taken back, or are there again, the oldest first.
    pub messages: Vec<String>,
    /// Whether the conversation moved.
    pub conversation: bool,
    pub dry_run: bool,
    pub restored: Vec<Restored>,
    /// Changed by somebody else since: left alone.
    pub conflicts: Vec<Conflict>,
    /// What cannot be brought back.
    pub lost: Vec<Lost>,
    /// What could not be written.
    pub failed: Vec<Lost>,
    /// Folders that stay because something else is in them.
    pub kept_folders: Vec<PathBuf>,
    /// Commands whose effects outside the workspace nobody knows.
    pub commands: Vec<String>,
    /// Repositories whose checked-out commit changed, which is not taken back.
    pub heads: Vec<HeadMoved>,
    /// Something odd that was found in the session's file and dealt with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    pub path: PathBuf,
    /// Until now.
    pub from: State,
    pub to: State,
}

/// A path that is not as it was left, and the three versions of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    pub path: PathBuf,
    /// What would have been restored.
    pub wanted: State,
    /// What it had been left as.
    pub left: State,
    pub now: State,
    /// Where the first two can be looked at, if they are files.
    pub wanted_in: Option<PathBuf>,
    pub left_in: Option<PathBuf>,
}

impl Report {
    /// Whether everything is as it was meant to be.
    pub fn is_complete(&self) -> bool {
        self.conflicts.is_empty() && self.lost.is_empty() && self.failed.is_empty()
    }
}

/// With the session as it is then, if the conversation moved.
#[derive(Debug)]
pub struct Undone {
    pub report: Report,
    pub session: Option<Session>,
}

/// What is needed besides the log.
pub struct Scene<'a> {
    pub images: &'a Images,
    /// The files of agents that worked for this session.
    pub workers: &'a [PathBuf],
    /// Where versions of files are put that people may want to compare.
    pub outputs: &'a Path,
}

impl Scene<'_> {
    /// Takes back what happened since a message, that message included.
    pub fn undo(&self, log: &mut Log, options: &UndoOptions) -> Result<Undone, UndoError> {
        // Asked again after a crash, it does not go further than it was to go.
        if let Some((ReversalKind::Undo, done)) = self.finish(log)? {
            return Ok(done);
        }
        let history = history(log.path())?;
        let first = match options.to {
            Some(id) => history.messages.iter().position(|m| m.id == id),
            None => history.messages.iter().rposition(|m| !m.steer),
        };
        let first = match (first, options.to) {
            (Some(first), _) => first,
            (None, Some(id)) => return Err(UndoError::NoMessage(id)),
            (None, None) => return Err(UndoError::NothingSaid),
        };
        let taken = &history.messages[first..];
        let mut report = Report { dry_run: options.dry_run, ..Report::default() };
        report.messages = taken.iter().map(|message| message.title.clone()).collect();
        let mut moves = Vec::new();
        if options.files {
            let events = self.events(&history, first)?;
            moves = self.plan_undo(&events, &mut report);
        }
        let Message { id: turn, before, .. } = taken[0].clone();
        let conversation = before.filter(|_| options.conversation);
        let reversal = Reversal { kind: ReversalKind::Undo, conversation, ..empty(log, turn) };
        self.carry_out(log, reversal, moves, report)
    }

    /// Makes again what was taken back last.
    pub fn redo(&self, log: &mut Log, dry_run: bool) -> Result<Undone, UndoError> {
        if let Some((ReversalKind::Redo, done)) = self.finish(log)? {
            return Ok(done);
        }
        let mut history = history(log.path())?;
        let undone = history.undone.pop().ok_or(UndoError::NothingUndone)?;
        let mut report = Report { dry_run, ..Report::default() };
        let mut moves = Vec::new();
        for Change { path, before, after } in &undone.changes {
            let now = current(path, self.images);
            let left = after.clone().unwrap_or(State::Absent);
            match now {
                now if now == *before => {}
                now if now == left => {
                    self.plan_move(path, now, before.clone(), &mut moves, &mut report)
                }
                now => self.plan_conflict(path, now, before.clone(), left, &mut report),
            }
        }
        let conversation = undone.conversation.map(|_| undone.leaf);
        let reversal =
            Reversal { kind: ReversalKind::Redo, conversation, ..empty(log, undone.turn) };
        let mut done = self.carry_out(log, reversal, moves, report)?;
        if let Some(session) = &done.session {
            let again = session.prompts().skip_while(|(_, place)| place.id != undone.turn);
            done.report.messages = again.map(|(p, _)| crate::fold::title_of(&p.content)).collect();
        }
        Ok(done)
    }

    /// Whether a process was killed in the middle of it. Costs a look at the last line.
    pub fn is_pending(log: &Log) -> Result<bool, LogError> {
        let failed = |source| LogError::Read { path: log.path().to_owned(), source };
        last_kind(log.path()).map_err(failed)
    }

    /// Brings to its end what a process began that was killed.
    pub fn finish(&self, log: &mut Log) -> Result<Option<(ReversalKind, Undone)>, UndoError> {
        if !Self::is_pending(log)? {
            return Ok(None);
        }
        let history = history(log.path())?;
        let Some(Pending { reversal, files_done }) = &history.pending else { return Ok(None) };
        let (reversal, files_done) = (reversal.clone(), *files_done);
        clear_beside(reversal.changes.iter().map(|change| change.path.as_path()));
        let mut report = Report::default();
        let taken = history.messages.iter().skip_while(|message| message.id != reversal.turn);
        report.messages = taken.map(|message| message.title.clone()).collect();
        self.tell_left_alone(&history, &reversal, &mut report)?;
        if !files_done {
            let mut moves = Vec::new();
            for Change { path, before, after } in &reversal.changes {
                let now = current_like(path, Some(before), self.images);
                let wanted = after.clone().unwrap_or(State::Absent);
                match now {
                    now if now == wanted => {}
                    now if now == *before => {
                        self.plan_move(path, now, wanted, &mut moves, &mut report)
                    }
                    now => self.plan_conflict(path, now, wanted, before.clone(), &mut report),
                }
            }
            self.restore(moves, &mut report);
            log.append(&Entry::Reversed)?;
        }
        let session = self.move_conversation(log, &reversal, &mut report)?;
        Ok(Some((reversal.kind, Undone { report, session })))
    }

    /// What an undo that was killed had not set out to bring back: nobody has been told.
    fn tell_left_alone(
        &self,
        history: &History,
        reversal: &Reversal,
        report: &mut Report,
    ) -> Result<(), UndoError> {
        let first = history.messages.iter().position(|message| message.id == reversal.turn);
        // One without files was about the conversation alone.
        let is_undo = reversal.kind == ReversalKind::Undo && !reversal.changes.is_empty();
        let Some(first) = first.filter(|_| is_undo) else { return Ok(()) };
        let mut events = self.events(history, first)?;
        events.retain(|event| !matches!(event, Event::Reversal(own) if own == reversal));
        let mut told = Report::default();
        self.plan_undo(&events, &mut told);
        let planned = |path: &Path| reversal.changes.iter().any(|change| change.path == path);
        told.conflicts.retain(|conflict| !planned(&conflict.path));
        told.lost.retain(|lost| !planned(&lost.path));
        report.conflicts = told.conflicts;
        (report.lost, report.heads, report.commands) = (told.lost, told.heads, told.commands);
        Ok(())
    }

    /// Everything that happened to files from this message on, in order.
    fn events(&self, history: &History, first: usize) -> Result<Vec<Event>, UndoError> {
        let own = history.events.iter().filter(|(messages, _)| *messages > first);
        let mut events: Vec<Event> = own.map(|(_, event)| event.clone()).collect();
        let turns: Vec<EntryId> = history.messages[first..].iter().map(|m| m.id).collect();
        for worker in self.workers {
            events.extend(of_worker(worker, &turns)?.into_iter().map(Event::Changed));
        }
        events.sort_by_key(Event::at);
        Ok(events)
    }

    fn plan_undo(&self, events: &[Event], report: &mut Report) -> Vec<Move> {
        let mut changes = Vec::new();
        let mut why_lost: BTreeMap<&Path, &str> = BTreeMap::new();
        // When something began that nobody saw the end of.
        let mut begun: BTreeMap<&Path, u64> = BTreeMap::new();
        for event in events {
            match event {
                Event::Reversal(reversal) => changes.extend(&reversal.changes),
                Event::Changed(changed) => {
                    changes.extend(&changed.changes);
                    let open = changed.changes.iter().filter(|change| change.after.is_none());
                    begun.extend(open.map(|change| (change.path.as_path(), changed.at)));
                    why_lost
                        .extend(changed.lost.iter().map(|l| (l.path.as_path(), l.why.as_str())));
                    report.heads.extend(changed.heads.iter().cloned());
                    let what = &changed.by.what;
                    if changed.by.undeclared && !report.commands.contains(what) {
                        report.commands.push(what.clone());
                    }
                }
            }
        }
        let mut moves = Vec::new();
        let nets = net(changes);
        // What was lost as a whole: a folder that could not be followed.
        let whole = why_lost.iter().filter(|(path, _)| !nets.contains_key(**path));
        report.lost.extend(whole.map(|(path, why)| lost(path, why)));
        let unseen = nets.iter().filter(|(_, net)| net.last.is_none());
        clear_beside(unseen.map(|(path, _)| path.as_path()));
        for (path, net) in nets {
            let now = current_like(&path, net.last.as_ref(), self.images);
            match net.step(&now) {
                Step::Nothing => {}
                Step::Restore
                    if net.last.is_none()
                        && begun.get(path.as_path()).is_none_or(|at| !was_left(&path, *at)) =>
                {
                    let why = "the process that wrote it was killed, and it has changed since";
                    let left = State::Unkept { mark: String::new(), why: why.to_owned() };
                    self.plan_conflict(&path, now, net.first, left, report);
                }
                Step::Restore => self.plan_move(&path, now, net.first, &mut moves, report),
                Step::Conflict(left) => self.plan_conflict(&path, now, net.first, left, report),
            }
        }
        moves
    }

    fn plan_move(
        &self,
        path: &Path,
        from: State,
        to: State,
        moves: &mut Vec<Move>,
        report: &mut Report,
    ) {
        match &to {
            State::Unkept { why, .. } => report.lost.push(lost(path, why)),
            State::File { hash, .. } if !self.images.contains(hash) => {
                let why = "its content is no longer kept: it was older than the quota allows";
                report.lost.push(lost(path, why));
            }
            _ => moves.push(Move { path: path.to_owned(), from, to }),
        }
    }

    fn plan_conflict(
        &self,
        path: &Path,
        now: State,
        wanted: State,
        left: State,
        report: &mut Report,
    ) {
        let (mut wanted_in, mut left_in) = (None, None);
        if !report.dry_run {
            wanted_in = self.show(path, "before", &wanted);
            left_in = self.show(path, "after", &left);
        }
        let path = path.to_owned();
        report.conflicts.push(Conflict { path, wanted, left, now, wanted_in, left_in });
    }

    /// A copy for people to look at.
    fn show(&self, path: &Path, version: &str, state: &State) -> Option<PathBuf> {
        let State::File { hash, .. } = state else { return None };
        let name = path.file_name()?.to_string_lossy().into_owned();
        let short = hash.to_string()[..8].to_owned();
        let to = self.outputs.join(format!("tool_undo_{short}_{version}_{name}"));
        std::fs::create_dir_all(self.outputs).ok()?;
        let mut file = std::fs::File::create(&to).ok()?;
        self.images.copy_to(hash, &mut file).ok()?;
        Some(to)
    }

    fn carry_out(
        &self,
        log: &mut Log,
        mut reversal: Reversal,
        moves: Vec<Move>,
        mut report: Report,
    ) -> Result<Undone, UndoError> {
        let restored =
            |m: &Move| Restored { path: m.path.clone(), from: m.from.clone(), to: m.to.clone() };
        if report.dry_run {
            report.restored = moves.iter().map(restored).collect();
            report.conversation = reversal.conversation.is_some();
            return Ok(Undone { report, session: None });
        }
        // What is about to be replaced can be had again.
        for Move { path, from, .. } in &moves {
            if let State::File { hash, .. } = from
                && !self.images.contains(hash)
            {
                // Without it, only a redo will say that it is gone.
                Known::capture(path, self.images, true).ok();
            }
        }
        let change = |m: &Move| Change {
            path: m.path.clone(),
            before: m.from.clone(),
            after: Some(m.to.clone()),
        };
        reversal.changes = moves.iter().map(change).collect();
        log.append(&Entry::Reversing(reversal.clone()))?;
        let synced = log.sync_handle()?.sync();
        synced.map_err(|source| LogError::Write { path: log.path().to_owned(), source })?;
        fail_point("undo.planned");
        self.restore(moves, &mut report);
        fail_point("undo.restored");
        log.append(&Entry::Reversed)?;
        let session = self.move_conversation(log, &reversal, &mut report)?;
        fail_point("undo.done");
        Ok(Undone { report, session })
    }

    fn restore(&self, moves: Vec<Move>, report: &mut Report) {
        let done = carry_out(&moves, self.images);
        for (Move { path, from, to }, done) in moves.into_iter().zip(done) {
            match done {
                Moved::Done => report.restored.push(Restored { path, from, to }),
                Moved::NotEmpty => report.kept_folders.push(path),
                Moved::Failed(why) => report.failed.push(Lost { path, why }),
            }
        }
    }

    fn move_conversation(
        &self,
        log: &mut Log,
        reversal: &Reversal,
        report: &mut Report,
    ) -> Result<Option<Session>, UndoError> {
        let Some(target) = reversal.conversation else { return Ok(None) };
        let why = match reversal.kind {
            ReversalKind::Undo => MoveReason::Undone,
            ReversalKind::Redo => MoveReason::Redone,
        };
        report.conversation = true;
        Ok(Some(log.move_to(target, why)?))
    }
}

/// Whether the file's last line is about a reversal. Nothing is written behind one before its end.
fn last_kind(path: &Path) -> std::io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut wanted = 4 << 10;
    loop {
        let begin = length.saturating_sub(wanted);
        file.seek(SeekFrom::Start(begin))?;
        let mut tail = Vec::new();
        file.by_ref().take(length - begin).read_to_end(&mut tail)?;
        let lines = tail.strip_suffix(b"\n").unwrap_or(&tail);
        let last = memchr::memrchr(b'\n', lines).map(|at| &lines[at + 1..]);
        if let Some(line) = last.or((begin == 0).then_some(lines)) {
            let head = crate::line::Head::of(line);
            return Ok(head.is_some_and(|head| matches!(head.kind, "reversing" | "reversed")));
        }
        wanted *= 8;
    }
}

fn empty(log: &Log, turn: EntryId) -> Reversal {
    let leaf = log.leaf().unwrap_or_default();
    let kind = ReversalKind::Undo;
    Reversal { kind, at: now(), changes: Vec::new(), conversation: None, leaf, turn }
}

/// How long after the beginning of a write its end may have been, where nobody saw it.
const WRITING: Duration = Duration::from_secs(30);

/// Whether what stands at a path can be what a write left there that began at this moment.
fn was_left(path: &Path, began: u64) -> bool {
    is_older(path, UNIX_EPOCH + Duration::from_micros(began) + WRITING)
}

fn lost(path: &Path, why: &str) -> Lost {
    Lost { path: path.to_owned(), why: why.to_owned() }
}
