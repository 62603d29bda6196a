//! Entries folded into the state of a session.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use toolwright_llm::{Content, Finish, FinishReason, Origin, Turn, Usage};

use crate::entry::{CallPlace, DeltaKind, Entry, Header, Imported, MoveReason, Queued, TurnStatus};
use crate::id::{EntryId, Mark};
use crate::standing::Standing;
use crate::step::{Ending, Outcome, ReplyPart, Slot, Step, StepBlock};

#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    pub content: Vec<Content>,
    pub agent: String,
    pub model: Origin,
    /// Said in the middle of a turn.
    pub steer: bool,
}

/// What stands for the beginning of the conversation in requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    pub summary: String,
    /// The first item that is sent as it was.
    pub keep_from: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Prompt(Prompt),
    /// Ours, to the model.
    Note(String),
    Step(Step),
}

/// Where an item stands in the file. [`crate::Log::move_to`] `before` goes on in place of it, to
/// `last` goes on behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The entry that began it: the id of the message.
    pub id: EntryId,
    /// The entry before that one.
    pub before: Option<EntryId>,
    /// The last entry that belongs to it: of a step, its last result, or the end of the turn.
    pub last: EntryId,
    /// When it began, in milliseconds since 1970.
    pub time: u64,
    /// When its last entry was written.
    pub last_time: u64,
}

/// A session's state. Built by applying entries in order and in no other way.
#[derive(Debug, Clone)]
pub struct Session {
    pub header: Header,
    /// Set where the file holds what only a newer version understands: it can be looked at only.
    pub newer_format: Option<u32>,
    items: Vec<Item>,
    /// One for each item.
    places: Vec<Place>,
    /// Whether everything stays in memory: for people, who want to see what no model is sent.
    whole: bool,
    /// Items before this one were let go of.
    forgotten: usize,
    standing: Standing,
    title: Option<String>,
    left_behind: Option<String>,
    usage: Usage,
    ended: Option<TurnStatus>,
    brief: Option<(String, String)>,
    mode: Option<String>,
    /// Hashes: of a long session there are many, and one that is taken for used is only renamed.
    call_ids: HashSet<u64>,
    steps: usize,
    queued: Vec<Queued>,
    compaction: Option<Compaction>,
    /// What notes cost in this turn.
    notes: Option<(Usage, f64)>,
    given_title: Option<String>,
    archived: bool,
    imported: Option<Imported>,
    /// Turns of the items that can no longer change, made once each.
    frozen: Vec<Arc<Turn>>,
    frozen_items: usize,
    /// Steps before this item have their words in what is sent.
    packed: usize,
}

impl Session {
    pub fn new(header: Header) -> Self {
        Self {
            header,
            newer_format: None,
            items: Vec::new(),
            places: Vec::new(),
            whole: false,
            forgotten: 0,
            standing: Standing::default(),
            title: None,
            left_behind: None,
            usage: Usage::default(),
            ended: None,
            brief: None,
            mode: None,
            call_ids: HashSet::new(),
            steps: 0,
            queued: Vec::new(),
            compaction: None,
            notes: None,
            given_title: None,
            archived: false,
            imported: None,
            frozen: Vec::new(),
            frozen_items: 0,
            packed: 0,
        }
    }

    /// Keeps in memory what is no longer sent to a model.
    pub fn whole(header: Header) -> Self {
        Self { whole: true, ..Self::new(header) }
    }

    /// All of them are there; those that are no longer sent may be empty, and steps that were sent are
    /// [`Step::whole`] only when they are asked to be, unless the session is [`Self::whole`].
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The first item that is in memory with all that it says.
    pub fn remembered_from(&self) -> usize {
        self.forgotten
    }

    /// What the model should be told with the next prompt, about the branch that was left.
    pub fn left_behind(&self) -> Option<&str> {
        self.left_behind.as_deref()
    }

    /// Where each item stands, in the order of [`Self::items`].
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The prompts of the branch, oldest first, with where they stand.
    pub fn prompts(&self) -> impl DoubleEndedIterator<Item = (&Prompt, &Place)> {
        self.items.iter().zip(&self.places).filter_map(|(item, place)| match item {
            Item::Prompt(prompt) => Some((prompt, place)),
            Item::Note(_) | Item::Step(_) => None,
        })
    }

    /// Messages that wait for their time, oldest first.
    pub fn queued(&self) -> &[Queued] {
        &self.queued
    }

    pub fn compaction(&self) -> Option<&Compaction> {
        self.compaction.as_ref()
    }

    /// Tokens and US dollars that making room has cost in this turn.
    pub fn spent_on_notes(&self) -> (Usage, f64) {
        self.notes.unwrap_or_default()
    }

    /// The first item that is still sent to a model as it was.
    pub fn sent_from(&self) -> usize {
        self.compaction.as_ref().map_or(0, |c| c.keep_from)
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// How the newest turn ended, or `None` while it is open (or was cut off).
    pub fn ended(&self) -> Option<TurnStatus> {
        self.ended
    }

    /// The system prompt that was frozen for this agent.
    pub fn system_prompt(&self, agent: &str) -> Option<&str> {
        self.brief.as_ref().filter(|(name, _)| name == agent).map(|(_, system)| system.as_str())
    }

    /// How much was done without a question when somebody last changed that.
    pub fn mode(&self) -> Option<&str> {
        self.mode.as_deref()
    }

    pub fn last_step(&self) -> Option<&Step> {
        match self.items.last() {
            Some(Item::Step(step)) => Some(step),
            _ => None,
        }
    }

    pub fn last_prompt(&self) -> Option<&Prompt> {
        self.items.iter().rev().find_map(|item| match item {
            Item::Prompt(prompt) => Some(prompt),
            Item::Note(_) | Item::Step(_) => None,
        })
    }

    /// Steps since the prompt that began the newest turn.
    pub fn steps_of_turn(&self) -> impl Iterator<Item = &Step> {
        let begins = |item: &Item| matches!(item, Item::Prompt(prompt) if !prompt.steer);
        let start = self.items.iter().rposition(begins).unwrap_or(0);
        self.items[start..].iter().filter_map(|item| match item {
            Item::Step(step) => Some(step),
            Item::Prompt(_) | Item::Note(_) => None,
        })
    }

    /// Whether an answer of this session uses this call id. Providers want them unique.
    pub fn has_call(&self, id: &str) -> bool {
        self.call_ids.contains(&hash_of(id))
    }

    pub fn step_count(&self) -> usize {
        self.steps
    }

    /// Whether something is left to do without a new prompt.
    pub fn is_open(&self) -> bool {
        self.is_cut_off() || !self.queued.is_empty()
    }

    /// Whether the newest turn never came to its answer.
    pub fn is_cut_off(&self) -> bool {
        if matches!(self.ended, Some(TurnStatus::Done | TurnStatus::Denied)) {
            return false;
        }
        let paused = |finish: &Finish| finish.reason == FinishReason::Pause;
        let answered = |step: &Step| {
            step.finish.as_ref().is_some_and(|f| !paused(f)) && step.calls().next().is_none()
        };
        match self.items.last() {
            None => false,
            Some(Item::Step(step)) => !answered(step),
            Some(Item::Prompt(_) | Item::Note(_)) => true,
        }
    }

    /// A name for lists: the one that it was given, else what the first prompt says.
    pub fn title(&self) -> String {
        match &self.given_title {
            Some(title) => title.clone(),
            None => self.title.clone().unwrap_or_else(|| "(empty session)".to_owned()),
        }
    }

    /// The name that a person, a model or another program gave it.
    pub fn given_title(&self) -> Option<&str> {
        self.given_title.as_deref()
    }

    pub fn is_archived(&self) -> bool {
        self.archived
    }

    /// Which program it was imported from.
    pub fn imported(&self) -> Option<&Imported> {
        self.imported.as_ref()
    }

    /// What an entry means, once it is written.
    pub fn apply(&mut self, entry: Entry, mark: Mark) {
        self.mark(&entry, mark);
        match entry {
            // A file has one header; a fork keeps the entry of the original behind its own.
            Entry::Session(_) => {}
            Entry::Prompt { content, agent, model, steer, queued } => {
                self.ended = None;
                self.left_behind = None;
                self.queued.retain(|waiting| Some(waiting.id) != queued);
                if !steer {
                    self.notes = None;
                }
                self.title.get_or_insert_with(|| title_of(&content));
                self.items.push(Item::Prompt(Prompt { content, agent, model, steer }));
            }
            Entry::Queued(message) => self.queued.push(message),
            Entry::Unqueued { id } => self.queued.retain(|waiting| waiting.id != id),
            Entry::Pruned { calls } => self.prune(&calls),
            Entry::Compacted { summary, keep_from, usage, cost, .. } => {
                self.usage += usage;
                // A damaged file may hold fewer items than it once did.
                let keep_from = keep_from.min(self.items.len());
                let notes = self.notes.get_or_insert_default();
                notes.0 += usage;
                notes.1 += cost.unwrap_or(0.0);
                self.compaction = Some(Compaction { summary, keep_from });
                self.thaw();
                self.forget(keep_from);
            }
            Entry::Brief { agent, system } => self.brief = Some((agent, system)),
            Entry::Mode { mode } => self.mode = Some(mode),
            Entry::Note { text } => self.items.push(Item::Note(text)),
            Entry::StepStarted { model } => {
                self.ended = None;
                self.steps += 1;
                self.items.push(Item::Step(Step::new(model)));
            }
            Entry::Delta { kind, text } => self.apply_delta(kind, &text),
            Entry::Reply { parts, usage, finish, cost } => {
                self.usage += usage;
                let ids = parts.iter().filter_map(|part| match part {
                    ReplyPart::Call { id, .. } => Some(hash_of(id)),
                    _ => None,
                });
                self.call_ids.extend(ids);
                if let Some(step) = self.open_step() {
                    step.set_parts(parts);
                    step.usage = usage;
                    step.cost = cost;
                    step.finish = Some(finish);
                }
            }
            Entry::StepFailed { failure, usage } => {
                self.usage += usage;
                if let Some(step) = self.open_step() {
                    step.usage = usage;
                    step.failure = Some(Box::new(failure));
                }
            }
            Entry::CallStarted { call, summary, effects, touched, .. } => {
                if let Some(call) = self.open_step().and_then(|s| s.call_mut(call)) {
                    call.start(summary, effects, touched);
                }
            }
            Entry::CallNoted { call, text } => {
                if let Some(call) = self.open_step().and_then(|s| s.call_mut(call)) {
                    call.note(&text);
                }
            }
            Entry::JobsEnded { jobs } => self.standing.jobs_ended(&jobs),
            Entry::CallSettled { call, outcome } => {
                self.standing.saw(&outcome);
                if let Some(call) = self.open_step().and_then(|s| s.call_mut(call)) {
                    call.settle(outcome);
                }
            }
            Entry::TurnEnded { status } => self.ended = Some(status),
            Entry::Titled { title, usage, .. } => {
                self.usage += usage;
                self.given_title = Some(title);
            }
            Entry::Archived { archived } => self.archived = archived,
            Entry::Imported(imported) => self.imported = Some(imported),
            Entry::Moved { why, note, .. } => {
                // What waited belongs to the branch that was left; one that is gone back to is as it
                // was.
                if matches!(why, MoveReason::Branched | MoveReason::Undone) {
                    self.queued.clear();
                }
                self.left_behind = note;
            }
            // The tree knows the names.
            Entry::Labelled { .. } => {}
            // Of use to nobody but who takes it back, who reads it from the file.
            Entry::Changed(_) | Entry::Reversing(_) | Entry::Reversed => {}
        }
    }

    /// Remembers where the items stand. Called before the entry is applied.
    fn mark(&mut self, entry: &Entry, mark: Mark) {
        let Mark { id, parent, time } = mark;
        match entry {
            Entry::Prompt { .. } | Entry::Note { .. } | Entry::StepStarted { .. } => {
                self.places.push(Place { id, before: parent, last: id, time, last_time: time });
            }
            Entry::Delta { .. }
            | Entry::Reply { .. }
            | Entry::StepFailed { .. }
            | Entry::CallStarted { .. }
            | Entry::CallNoted { .. }
            | Entry::CallSettled { .. }
            | Entry::TurnEnded { .. } => self.wrote(mark),
            _ => {}
        }
    }

    /// The newest item has come further in the file.
    pub fn wrote(&mut self, mark: Mark) {
        if let Some(place) = self.places.last_mut() {
            (place.last, place.last_time) = (mark.id, mark.time);
        }
    }

    fn prune(&mut self, calls: &[CallPlace]) {
        for place in calls {
            let Some(Item::Step(step)) = self.items.get_mut(place.item) else { continue };
            step.unpack();
            self.packed = self.packed.min(place.item);
            if let Some(call) = step.call_mut(place.call) {
                call.prune();
                if !self.whole {
                    call.forget_output();
                }
            }
        }
        self.thaw();
    }

    /// Lets go of what is no longer sent, so that memory follows the conversation and not the session.
    /// The newest prompt may have to be repeated, and the newest item is the answer.
    fn forget(&mut self, until: usize) {
        if self.whole {
            return;
        }
        let until = until.min(self.items.len().saturating_sub(1));
        let is_prompt = |item: &Item| matches!(item, Item::Prompt(_));
        let newest = self.items[..until].iter().rposition(is_prompt);
        for (number, item) in self.items[..until].iter_mut().enumerate() {
            match item {
                Item::Prompt(prompt) if Some(number) != newest => prompt.content = Vec::new(),
                Item::Prompt(_) => {}
                Item::Note(text) => *text = String::new(),
                Item::Step(_) if number < self.forgotten => {}
                Item::Step(step) => {
                    for call in step.calls() {
                        if call.outcome().is_some_and(|o| o.ending == Ending::Completed) {
                            self.standing.forget_files(call.touched());
                        }
                    }
                    step.forget();
                }
            }
        }
        self.forgotten = self.forgotten.max(until);
        self.items.shrink_to_fit();
        self.places.shrink_to_fit();
    }

    /// What was frozen is no longer what is sent.
    fn thaw(&mut self) {
        self.frozen.clear();
        self.frozen_items = 0;
    }

    /// The conversation for a model. Costs what is new since the last time it was asked for.
    pub fn turns(&mut self) -> Vec<Arc<Turn>> {
        if self.frozen.is_empty()
            && let Some(Compaction { summary, keep_from }) = &self.compaction
        {
            self.frozen.push(Arc::new(Turn::User(vec![Content::text(summary.clone())])));
            self.frozen_items = *keep_from;
        }
        let count = self.items.len();
        while let Some(item) = self.items.get_mut(self.frozen_items) {
            let last = self.frozen_items + 1 == count;
            let turn = match item {
                Item::Step(step) if last && step.calls().any(|c| c.outcome().is_none()) => break,
                Item::Step(step) => step.settled_turn(),
                Item::Prompt(_) | Item::Note(_) => turn_of(item).map(Arc::new),
            };
            self.frozen.extend(turn);
            self.frozen_items += 1;
        }
        self.pack();
        let open = self.items[self.frozen_items..].iter().filter_map(turn_of).map(Arc::new);
        self.frozen.iter().cloned().chain(open).collect()
    }

    /// What was sent is held once. The newest item is what everybody asks for.
    fn pack(&mut self) {
        let until = self.frozen_items.min(self.items.len().saturating_sub(1));
        if self.whole || until <= self.packed {
            return;
        }
        for item in &mut self.items[self.packed..until] {
            if let Item::Step(step) = item {
                step.pack();
            }
        }
        self.packed = until;
    }

    /// The answers that calls left open by a crash or an abort must get in the log, so that they
    /// stay the same for ever.
    pub fn interrupted_calls(&self) -> Vec<(usize, Outcome)> {
        let Some(step) = self.last_step() else { return Vec::new() };
        let open = step.calls().enumerate().filter_map(|(position, call)| {
            let (ending, title) = match call.slot() {
                Slot::Settled(_) => return None,
                Slot::Pending => (Ending::Skipped, "not started".to_owned()),
                Slot::Running { summary, .. } => (Ending::Interrupted, summary.clone()),
            };
            let output = call.unsettled_text();
            let tool = call.name.clone();
            let details = serde_json::Value::Null;
            let attachments = Vec::new();
            let (duration_ms, cost) = (0, None);
            let outcome =
                Outcome { ending, tool, output, title, details, attachments, duration_ms, cost };
            Some((position, outcome))
        });
        open.collect()
    }

    fn open_step(&mut self) -> Option<&mut Step> {
        match self.items.last_mut() {
            Some(Item::Step(step)) => Some(step),
            _ => None,
        }
    }

    fn apply_delta(&mut self, kind: DeltaKind, delta: &str) {
        let Some(step) = self.open_step() else { return };
        match (kind, step.blocks.last_mut()) {
            (DeltaKind::Text, Some(StepBlock::Text { text, .. }))
            | (DeltaKind::Reasoning, Some(StepBlock::Reasoning { text, .. })) => {
                text.push_str(delta);
            }
            (DeltaKind::Text, _) => {
                step.blocks.push(StepBlock::Text { text: delta.to_owned(), opaque: None });
            }
            (DeltaKind::Reasoning, _) => {
                let block = StepBlock::Reasoning { text: delta.to_owned(), opaque: None };
                step.blocks.push(block);
            }
        }
    }
}

fn hash_of(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

pub fn title_of(content: &[Content]) -> String {
    let text = content.iter().find_map(|c| match c {
        Content::Text { text } => Some(text.trim()),
        Content::Media(_) => None,
    });
    crate::title::from_prompt(text.unwrap_or_default())
}

fn turn_of(item: &Item) -> Option<Turn> {
    match item {
        Item::Prompt(prompt) => Some(Turn::User(prompt.content.clone())),
        Item::Note(text) => Some(Turn::User(vec![Content::text(text.clone())])),
        Item::Step(step) => step.to_turn(),
    }
}
