//! Room in the model's context: first outputs that nobody needs any more are left out, then the
//! beginning of the conversation is replaced by notes on it. The log keeps everything.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolwright_llm::{
    Content, FailureKind, Reply, ReplyKind, Request, ToolChoice, Turn as Said, Usage,
};
use toolwright_session::{CallPlace, Ending, Entry, Item, Session, Step, StepBlock, fail_point};
use toolwright_tool::canonical;

use crate::agent_loop::{Over, Turn};
use crate::event::Event;
use crate::hooks::{Point, Ran};
use crate::transcript::{self, Files};

/// How much room there is and how it is used.
#[derive(Debug, Clone)]
pub struct RoomOptions {
    /// Tokens that the model takes, if known; without it only an overflow tells.
    pub window: Option<u64>,
    /// Tokens kept free for the answer.
    pub reserved: u64,
    /// Make room without being asked.
    pub auto: bool,
    /// Leave out old outputs before summarising.
    pub prune: bool,
    /// Tokens of the newest steps that stay as they are.
    pub keep: Option<u64>,
}

impl Default for RoomOptions {
    fn default() -> Self {
        Self { window: None, reserved: 20_000, auto: true, prune: true, keep: None }
    }
}

/// Tokens of the newest outputs that are never left out.
const PROTECTED_TOKENS: u64 = 40_000;

/// Leaving out less than this is not worth a new prompt prefix.
const WORTH_TOKENS: u64 = 20_000;

/// The newest steps whose outputs are never left out.
const PROTECTED_STEPS: usize = 2;

/// Bounds of what stays verbatim behind a summary.
const KEEP_TOKENS: std::ops::RangeInclusive<u64> = 2_000..=15_000;

/// How often a summary is asked for with less and less material.
const SUMMARY_TRIES: u32 = 3;

/// Material for a summary when the window is unknown.
const UNKNOWN_WINDOW: u64 = 100_000;

impl RoomOptions {
    /// Tokens that the conversation may have before room is made.
    fn usable(&self) -> Option<u64> {
        let window = self.window.filter(|w| *w > 0)?;
        // A small window cannot give away as much as a large one.
        Some(window - self.reserved.min(window / 4))
    }

    fn keep(&self) -> u64 {
        let quarter = self.usable().unwrap_or(UNKNOWN_WINDOW) / 4;
        self.keep.unwrap_or(quarter.clamp(*KEEP_TOKENS.start(), *KEEP_TOKENS.end()))
    }
}

/// What the conversation takes, counted as it grows and not from the start each time.
#[derive(Default)]
pub(crate) struct Tally {
    counted: usize,
    tokens: u64,
    /// The number of steps when room was made last; nothing was answered since.
    made_at: Option<usize>,
    /// Tokens of the first answer after that: what making room could not take away.
    base: Option<u64>,
    told_too_small: bool,
}

impl Tally {
    /// By a rule of thumb, without what every request holds.
    fn estimate(&mut self, session: &Session) -> u64 {
        let items = session.items();
        let start = self.counted.max(session.sent_from()).min(items.len());
        self.tokens += items[start..].iter().map(tokens_of).sum::<u64>();
        self.counted = items.len();
        self.tokens + session.compaction().map_or(0, |c| text_tokens(&c.summary))
    }

    fn begin_anew(&mut self, steps: usize) {
        let told_too_small = self.told_too_small;
        *self = Self { made_at: Some(steps), told_too_small, ..Self::default() };
    }
}

fn total(usage: &Usage) -> u64 {
    usage.input + usage.cache_read + usage.cache_write + usage.output
}

/// Four characters are a token, an image is about 1,500.
pub(crate) fn text_tokens(text: &str) -> u64 {
    text.len() as u64 / 4
}

const IMAGE_TOKENS: u64 = 1_500;

fn content_tokens(content: &[Content]) -> u64 {
    let of = |c: &Content| match c {
        Content::Text { text } => text_tokens(text),
        Content::Media(_) => IMAGE_TOKENS,
    };
    content.iter().map(of).sum()
}

fn results_of(step: &Step) -> u64 {
    let outcomes = step.calls().filter(|c| !c.is_pruned()).filter_map(|c| c.outcome());
    outcomes.map(|o| text_tokens(&o.output) + o.attachments.len() as u64 * IMAGE_TOKENS).sum()
}

fn tokens_of(item: &Item) -> u64 {
    match item {
        Item::Prompt(prompt) => content_tokens(&prompt.content),
        Item::Note(text) => text_tokens(text),
        Item::Step(step) if step.finish.is_none() => 0,
        Item::Step(step) => {
            let step = step.whole();
            let said = step.blocks.iter().map(|block| match block {
                StepBlock::Text { text, .. } | StepBlock::Reasoning { text, .. } => {
                    text_tokens(text)
                }
                StepBlock::ServerTool { opaque, .. } => opaque.to_string().len() as u64 / 4,
                StepBlock::Call(call) => text_tokens(&call.arguments),
            });
            said.sum::<u64>() + results_of(&step)
        }
    }
}

impl Turn<'_> {
    fn fixed_tokens(&self) -> u64 {
        let template = &self.world.template;
        let tools = template.tools.iter();
        let tools = tools.map(|t| t.description.len() + t.parameters.to_string().len());
        (template.system.len() + tools.sum::<usize>()) as u64 / 4
    }

    /// By the provider's own count where there is one, else by a rule of thumb.
    fn conversation_tokens(&mut self) -> u64 {
        let session = self.world.record.session();
        let estimate = self.world.tally.estimate(session);
        let made_at = self.world.tally.made_at;
        // What was asked since then is not in the count of the answer before it.
        let newest = session.items().iter().rev().take_while(|item| !is_answered(item));
        let since: u64 = newest.clone().map(tokens_of).sum();
        let at = session.items().len() - newest.count();
        let measured = match at.checked_sub(1).map(|at| &session.items()[at]) {
            Some(Item::Step(step)) if made_at.is_none() => {
                total(&step.usage) + results_of(&step.whole())
            }
            _ => 0,
        };
        if measured > 0 { measured + since } else { estimate + self.fixed_tokens() }
    }

    /// Makes room if the conversation has come near the window's end.
    pub(crate) async fn make_room(&mut self) -> Result<(), Over> {
        let Some(usable) = self.world.room.usable().filter(|_| self.world.room.auto) else {
            return Ok(());
        };
        let steps = self.world.record.session().step_count();
        match self.world.tally.made_at {
            // Once for each fullness: the next answer tells how much room there is now.
            Some(made_at) if steps <= made_at => return Ok(()),
            Some(_) => {
                self.world.tally.made_at = None;
                self.world.tally.base = Some(self.conversation_tokens());
            }
            None => {}
        }
        let tokens = self.conversation_tokens();
        if tokens < usable {
            return Ok(());
        }
        // What making room did not take away the last time, it will not take away now.
        let base = self.world.tally.base.unwrap_or(0);
        if base >= usable / 5 * 4 && tokens < base + usable / 5 {
            if !std::mem::replace(&mut self.world.tally.told_too_small, true) {
                let text = format!(
                    "the model's window is nearly filled by what every request holds (about {base} \
                     tokens); a larger window or fewer tools would help"
                );
                self.emit(Event::Notice { text }).await;
            }
            return Ok(());
        }
        let saved = if self.world.room.prune { self.prune().await? } else { 0 };
        // A little more than needed, or the next step would be here again.
        if tokens.saturating_sub(saved) < usable / 5 * 4 {
            return Ok(());
        }
        match self.compact("the context is nearly full").await {
            Ok(_) => Ok(()),
            // It still fits: whoever cannot take notes now may be able to answer.
            Err(Over::Failed(failure)) => {
                self.world.tally.made_at = Some(steps);
                let text = format!("the conversation could not be shortened: {failure}");
                self.emit(Event::Notice { text }).await;
                Ok(())
            }
            Err(over) => Err(over),
        }
    }

    /// Leaves out outputs that nobody needs any more. Tells how many tokens that saves.
    async fn prune(&mut self) -> Result<u64, Over> {
        let (calls, saved) = prunable(self.world.record.session());
        if saved < WORTH_TOKENS.min(self.world.room.usable().unwrap_or(u64::MAX) / 10) {
            return Ok(0);
        }
        let count = calls.len();
        self.world.record.add(Entry::Pruned { calls })?;
        self.after_making_room();
        self.emit(Event::Pruned { outputs: count, tokens: saved }).await;
        Ok(saved)
    }

    fn after_making_room(&mut self) {
        self.world.pipeline.forget_answers();
        self.world.tally.begin_anew(self.world.record.session().step_count());
    }

    /// Replaces the beginning of the conversation by notes on it. Not, if there is nothing to replace.
    pub(crate) async fn compact(&mut self, reason: &str) -> Result<bool, Over> {
        let session = self.world.record.session();
        let from = session.sent_from();
        let Some(keep_from) = keep_from(session, self.world.room.keep()) else { return Ok(false) };
        self.emit(Event::Compacting { reason: reason.to_owned() }).await;
        let before = self.conversation_tokens();
        let Some((notes, usage)) = self.take_notes(from..keep_from, reason).await? else {
            return Ok(false);
        };
        let cost = self.world.price.map(|price| price.of(&usage));
        self.world.budget.purse.spend(cost.unwrap_or(0.0));
        let session = self.world.record.session();
        let files = Files::of(session, keep_from);
        // Where a newer message stands behind the notes, the older one is part of them.
        let is_prompt = |item: &Item| matches!(item, Item::Prompt(_));
        let repeats = !session.items()[keep_from..].iter().any(is_prompt);
        let prompt = transcript::last_prompt(&session.items()[..keep_from]);
        let summary = transcript::summary(&notes, &files, prompt.filter(|_| repeats));
        let reason = reason.to_owned();
        fail_point("room.noted");
        self.world.record.add(Entry::Compacted { summary, keep_from, reason, usage, cost })?;
        self.after_making_room();
        self.tell_again().await?;
        let after = self.conversation_tokens();
        self.emit(Event::Compacted { before, after }).await;
        Ok(true)
    }

    /// Asks the model for notes. Where even that does not fit, they are made without it.
    async fn take_notes(
        &mut self,
        items: std::ops::Range<usize>,
        reason: &str,
    ) -> Result<Option<(String, Usage)>, Over> {
        let (prompt, added) = self.ask_for_instructions(reason).await?;
        let window = self.world.room.usable().unwrap_or(UNKNOWN_WINDOW);
        // Notes and instructions need room too, and a token may be less than four characters.
        let mut cap_chars = usize::try_from(window).unwrap_or(usize::MAX).saturating_mul(2);
        let mut spent = Usage::default();
        for _ in 0..SUMMARY_TRIES {
            let session = self.world.record.session();
            let mut text = String::new();
            if let Some(earlier) = session.compaction() {
                text.push_str(&format!(
                    "<earlier-notes>\n{}\n</earlier-notes>\n\n",
                    earlier.summary
                ));
            }
            text.push_str(&transcript::render(&session.items()[items.clone()], cap_chars));
            for more in &added {
                text.push_str(&format!("\n\n{more}"));
            }
            let request = Request {
                system: prompt.clone().into(),
                turns: vec![Said::User(vec![Content::text(text)]).into()],
                tools: Vec::new().into(),
                tool_choice: ToolChoice::None,
                ..self.world.template.clone()
            };
            match self.listen_quietly(request).await {
                Ok(Some(reply)) => {
                    spent += reply.usage;
                    let notes = words_of(reply);
                    if !notes.trim().is_empty() {
                        return Ok(Some((notes, spent)));
                    }
                }
                // The time is up: the closing step says what there is to say.
                Ok(None) => return Ok(None),
                Err(Over::Failed(failure)) if failure.kind == FailureKind::ContextOverflow => {}
                Err(over) => return Err(over),
            }
            cap_chars /= 4;
        }
        let session = self.world.record.session();
        let earlier = session.compaction().map(|c| c.summary.as_str());
        Ok(Some((transcript::digest(earlier, &session.items()[items]), spent)))
    }

    async fn ask_for_instructions(&mut self, reason: &str) -> Result<(String, Vec<String>), Over> {
        let standard = include_str!("prompts/compaction.md").trim().to_owned();
        if !self.world.hooks.any(Point::Compacting) {
            return Ok((standard, Vec::new()));
        }
        let (input, output) = (json!({ "reason": reason }), json!({ "context": [] }));
        let ran = self.ask_hooks(Point::Compacting, &input, output).await?;
        let listed = ran.output["context"].as_array().cloned().unwrap_or_default();
        let mut added: Vec<String> =
            listed.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
        added.extend(ran.context);
        let prompt = ran.output["prompt"].as_str().map_or(standard, str::to_owned);
        Ok((prompt, added))
    }

    /// What the hooks say, unless nobody wants to wait for it any more.
    async fn ask_hooks(&self, point: Point, input: &Value, output: Value) -> Result<Ran, Over> {
        tokio::select! {
            ran = self.world.hooks.run(point, input, output) => Ok(ran),
            () = self.world.cancel.cancelled() => Err(Over::Interrupted),
        }
    }

    /// What the model was told when the session began may not be in the notes.
    async fn tell_again(&mut self) -> Result<(), Over> {
        if !self.world.hooks.any(Point::SessionStart) {
            return Ok(());
        }
        let input = json!({ "source": "compact" });
        let ran = self.ask_hooks(Point::SessionStart, &input, json!({})).await?;
        for text in ran.context {
            self.world.record.add(Entry::Note { text })?;
        }
        Ok(())
    }
}

fn words_of(reply: Reply) -> String {
    let texts = reply.blocks.into_iter().filter_map(|block| match block.kind {
        ReplyKind::Text(text) => Some(text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Whether a model has answered up to here.
fn is_answered(item: &Item) -> bool {
    matches!(item, Item::Step(step) if step.finish.is_some())
}

/// Where the verbatim part begins: as many of the newest items as fit into `keep` tokens, cut only
/// between steps. Nothing if there is nothing before it.
fn keep_from(session: &Session, keep: u64) -> Option<usize> {
    let items = session.items();
    let from = session.sent_from();
    let worth = items[from..].iter().filter(|i| matches!(i, Item::Step(s) if s.finish.is_some()));
    if worth.count() == 0 {
        return None;
    }
    // What nobody has answered yet is never turned into notes.
    let open = items.iter().rev().take_while(|item| !is_answered(item)).count();
    let limit = items.len() - open;
    if limit <= from {
        return None;
    }
    let mut tokens: u64 = items[limit..].iter().map(tokens_of).sum();
    let fits = |item: &&Item| {
        tokens += tokens_of(item);
        tokens <= keep
    };
    let at = limit - items[from..limit].iter().rev().take_while(fits).count();
    // Everything fits, and still somebody wants room: everything becomes notes.
    Some(if at <= from { limit } else { at })
}

/// Outputs that can be left out, and the tokens that saves: superseded ones, and old ones beyond the
/// newest that are protected.
fn prunable(session: &Session) -> (Vec<CallPlace>, u64) {
    let items = session.items();
    let mut calls = Vec::new();
    let (mut saved, mut newest, mut steps) = (0, 0, 0);
    let mut repeated = HashSet::new();
    let mut written: HashSet<&str> = HashSet::new();
    for (item, step) in items.iter().enumerate().skip(session.sent_from()).rev() {
        let Item::Step(step) = step else { continue };
        let mut written_here = Vec::new();
        let whole = step.whole();
        for (number, (own, call)) in step.calls().zip(whole.calls()).enumerate() {
            let Some(outcome) = call.outcome() else { continue };
            let touched = own.touched();
            let done = outcome.ending == Ending::Completed;
            if done {
                written_here.extend(touched.writes.iter().map(String::as_str));
            }
            let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
            let key = (outcome.tool.clone(), canonical(&arguments));
            // An answer that points to an older one does not stand in for it.
            let stands = done && outcome.details.get("cached").is_none() && !call.is_pruned();
            let again = if stands { !repeated.insert(key) } else { repeated.contains(&key) };
            let only_reads = touched.writes.is_empty() && !touched.reads.is_empty();
            let stale = touched.reads.iter().any(|path| written.contains(path.as_str()));
            let superseded = only_reads && (again || stale);
            let tokens = if call.is_pruned() { 0 } else { text_tokens(&outcome.output) };
            newest += tokens;
            let old = newest > PROTECTED_TOKENS;
            if steps >= PROTECTED_STEPS
                && (superseded || old)
                && !call.is_pruned()
                && outcome.tool != "skill"
            {
                calls.push(CallPlace { item, call: number });
                saved += tokens;
            }
        }
        written.extend(written_here);
        steps += 1;
    }
    (calls, saved)
}
