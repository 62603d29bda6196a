//! What the engine tells, and what becomes of it.

use std::time::Duration;

use toolwright::session::{QueueKind, TurnStatus};
use toolwright::{Event, TurnEnd};

use super::{App, Ask, Clip, Effect, Live, News, Order, Overlay, Waiting};
use crate::blocks::{Block, Call, Done, Level};
use crate::flow::Flow;
use crate::width::harmless;

impl App {
    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::StepStarted => {
                self.activity = "Thinking".to_owned();
                self.thoughts = 0;
            }
            Event::Text { delta } => self.text(&delta),
            Event::TextDone { .. } => self.end_text(),
            Event::Reasoning { delta } => self.thought(&delta),
            Event::ReasoningDone { text } => self.end_thought(&text),
            Event::CallAnnounced { name } => {
                self.end_text();
                self.activity = format!("Preparing {}", prepared(&harmless(&name)));
            }
            Event::CallStarted { position, tool, summary, .. } => {
                self.end_text();
                self.activity = "Working".to_owned();
                let call =
                    Call { tool, summary, progress: String::new(), started: self.now, done: None };
                self.live.push_back(Live::Call { position, call, shell: false });
            }
            Event::CallProgress { position, text } => {
                self.child_moved(&text);
                if let Some(call) = self.running(position) {
                    call.progress = text;
                }
            }
            Event::CallSettled { position, call, outcome, .. } => {
                let mut done = Done::from(&outcome);
                done.pictures = self.pictures.remove(&call).unwrap_or_default();
                if let Some(todos) = &done.todos {
                    self.todos.clone_from(todos);
                }
                match self.running(position) {
                    Some(call) => {
                        call.tool = outcome.tool;
                        call.done = Some(done);
                    }
                    // One that never began: refused, skipped or not understood.
                    None => {
                        let call = Call {
                            tool: outcome.tool,
                            summary: outcome.title,
                            progress: String::new(),
                            started: self.now,
                            done: Some(done),
                        };
                        self.live.push_back(Live::Call { position, call, shell: false });
                    }
                }
            }
            Event::Question { id, question, offer } => {
                self.asked(Ask::permission(id, question, offer));
            }
            Event::Inquiry { id, inquiry } => self.asked(Ask::inquiry(id, inquiry)),
            Event::QuestionClosed { id } => self.asks.retain(|ask| ask.id() != id),
            Event::Retrying { attempt, delay, cause } => {
                let text = format!(
                    "{}; try {} in {:.1} s",
                    harmless(&cause.message),
                    attempt + 1,
                    delay.as_secs_f32()
                );
                self.say(Level::Notice, &text, None);
                self.activity = "Waiting to try again".to_owned();
            }
            Event::Notice { text } => self.say(Level::Notice, &text, None),
            Event::ModeChanged { mode } => self.facts.mode = mode,
            // Told with its text by whoever put it there.
            Event::Queued { .. } => {}
            Event::Withdrawn { id } => self.queue.retain(|waiting| waiting.id != id),
            Event::Delivered { id } => self.delivered(id),
            Event::Pruned { outputs, tokens } => {
                let text = format!("{outputs} old outputs left out (about {tokens} tokens)");
                self.say(Level::Quiet, &text, None);
            }
            Event::Compacting { reason } => {
                self.activity = format!("Making notes: {}", harmless(&reason));
            }
            Event::Compacted { before, after } => {
                self.used = after;
                let text =
                    format!("The conversation was shortened from about {before} to {after} tokens");
                self.say(Level::Quiet, &text, None);
            }
            Event::StepEnded { usage, cost, .. } => {
                self.end_text();
                self.used = usage.input + usage.cache_read + usage.cache_write + usage.output;
                match cost {
                    Some(cost) => self.cost += cost,
                    None => self.cost_known = false,
                }
            }
            Event::TurnEnded(end) => self.ended(&end),
            Event::Idle => {}
        }
    }

    pub(super) fn news(&mut self, news: News) {
        match news {
            News::Ready(facts) => self.begin_with(facts),
            News::Session { id, title, blocks, left_out } => {
                self.enter(id, title, blocks, left_out)
            }
            News::Model { model, window } => {
                self.facts.demo &= model.starts_with("demo/");
                (self.facts.model, self.facts.window) = (model, window);
            }
            News::Agent(name) => self.facts.agent = name,
            News::Branch(branch) => self.facts.branch = branch,
            News::Spent(spent) => {
                (self.used, self.cost, self.cost_known) = (spent.used, spent.cost, spent.known);
            }
            News::Queued { id, kind, text } => self.queue.push(Waiting { id, kind, text }),
            News::Delivered(id) => self.delivered(id),
            News::NotTaken { id, problem } => self.not_taken(id, &problem),
            News::Trust(trust) => self.asked(Ask::trust(trust)),
            News::Mode(mode) => self.facts.mode = mode,
            News::Offered { resources, prompts } => self.offered(resources, prompts),
            News::Rewound(blocks) => self.look_back_on(blocks),
            News::Renamed(title) => self.renamed(&title),
            News::Searched { query, rows } => self.searched(&query, rows),
            News::Child { id, title, blocks } => self.child(&id, title, blocks),
            News::Working => self.working(),
            News::Idle => self.idle(),
            News::Rows { kind, rows } => self.listed(kind, rows),
            News::Preview { value, text } => {
                if let Some(Overlay::Picker(picker)) = &mut self.overlay {
                    picker.preview(&value, &text);
                }
            }
            News::Say { level, text, advice } => self.say(level, &text, advice.as_deref()),
            News::Page { title, text } => {
                let title = crate::width::flat(&title);
                let lines = harmless(&text).lines().map(str::to_owned).collect();
                self.overlay = Some(Overlay::Page { title, lines, top: 0 });
            }
            News::ShellStarted(command) => {
                let call = Call {
                    tool: "bash".to_owned(),
                    summary: command,
                    progress: String::new(),
                    started: self.now,
                    done: None,
                };
                self.live.push_back(Live::Call { position: usize::MAX, call, shell: true });
            }
            News::ShellSaid(text) => {
                if let Some(call) = self.shell_call() {
                    call.progress = text;
                }
            }
            News::ShellDone(done) => {
                if let Some(call) = self.shell_call() {
                    call.done = Some(*done);
                }
            }
            News::Pictures { call, pictures } => {
                self.pictures.insert(call, pictures);
            }
            News::Draft(text) => {
                self.editor.set(&text);
                self.menu = None;
            }
            News::Clipboard(Ok(Clip::Image(path))) => {
                self.editor.insert_text(&format!("{} ", crate::drop::mention(&path)));
                self.history.leave();
                self.menu = None;
            }
            News::Clipboard(Ok(Clip::Text(text))) => self.paste(&text),
            News::Clipboard(Err(problem)) => self.hint(&problem),
        }
    }

    fn begin_with(&mut self, facts: super::Facts) {
        for warning in &facts.warnings.clone() {
            self.say(Level::Notice, warning, None);
        }
        if facts.demo {
            self.say(
                Level::Notice,
                "No key and no local server found: the built-in demo model answers for now.\n\
                 /connect (or just enter) keeps a provider's key; or set ANTHROPIC_API_KEY, …\n\
                 Ollama, LM Studio, llama.cpp and vLLM are found by themselves when they run.",
                None,
            );
        }
        if let Some(server) = &facts.local {
            let text = format!(
                "{server} runs on this machine and answers. /models lists what it has; /connect \
                 keeps a key for a provider."
            );
            self.say(Level::Quiet, &text, None);
        }
        self.facts = facts;
        self.ready = true;
    }

    fn enter(&mut self, id: String, title: String, blocks: Vec<Block>, left_out: usize) {
        let changed = self.session.as_ref().is_none_or(|(own, _)| *own != id);
        let title = crate::width::flat(&title);
        // A session that begins now was named by its first prompt.
        if !title.is_empty() {
            self.effect(Effect::Title(format!("tw · {title}")));
        }
        self.session = Some((id, title));
        if !changed || blocks.is_empty() {
            return;
        }
        self.blocks.clear();
        self.todos.clear();
        // What scrolls by unread need not be written: the transcript has it.
        let screens = 3 * self.rows.max(10);
        let mut lines = Vec::new();
        let mut from = blocks.len();
        while from > 0 && lines.len() < screens {
            from -= 1;
            let mut block = blocks[from].render(self.view());
            block.push(crate::style::Line::empty());
            block.append(&mut lines);
            lines = block;
        }
        if from + left_out > 0 {
            let text = format!("… {} earlier blocks: ctrl+t shows them", from + left_out);
            let note = crate::style::Line::styled(text, self.theme.muted());
            self.write(vec![note], true);
        }
        lines.pop();
        self.write(lines, true);
        self.look_back_on(blocks);
    }

    /// The conversation is this now.
    fn look_back_on(&mut self, blocks: Vec<Block>) {
        self.todos = todos_of(&blocks);
        self.blocks = blocks;
        if let Some(transcript) = &mut self.transcript {
            transcript.replaced();
        }
    }

    pub(super) fn working(&mut self) {
        if !self.busy {
            self.busy = true;
            self.since = self.now;
            self.activity = "Thinking".to_owned();
        }
    }

    fn idle(&mut self) {
        self.busy = false;
        self.pictures.clear();
        self.end_text();
        self.live.retain(|live| matches!(live, Live::Call { shell: true, .. }));
        self.asks.retain(|ask| !ask.is_of_turn());
        self.answered.clear();
        if std::mem::take(&mut self.aborted) {
            self.give_back();
        }
        if !self.focused {
            self.effect(Effect::Attention("The answer is there".to_owned()));
        }
    }

    /// Messages that were not said go back to the person.
    fn give_back(&mut self) {
        let queue = std::mem::take(&mut self.queue);
        let mut texts: Vec<String> = queue.iter().map(|waiting| waiting.text.clone()).collect();
        for waiting in queue {
            self.order(Order::Withdraw(waiting.id));
        }
        if texts.is_empty() {
            return;
        }
        if !self.editor.is_empty() {
            texts.push(self.editor.text().to_owned());
        }
        self.menu = None;
        self.editor.set(&texts.join("\n"));
    }

    fn delivered(&mut self, id: u64) {
        if let Some(at) = self.queue.iter().position(|waiting| waiting.id == id) {
            let waiting = self.queue.remove(at);
            self.end_text();
            self.settle();
            self.finish(Block::user(waiting.text, self.clock()));
            if waiting.kind == QueueKind::FollowUp {
                self.working();
            }
        }
    }

    fn ended(&mut self, end: &TurnEnd) {
        self.end_text();
        self.settle();
        let problem = end.problem.as_deref();
        match end.status {
            TurnStatus::Done => {}
            TurnStatus::Interrupted => {
                self.say(Level::Notice, "Interrupted", None);
            }
            TurnStatus::Failed => {
                self.say(Level::Problem, problem.unwrap_or("It failed"), end.advice);
            }
            TurnStatus::OutOfBudget => {
                let text = problem.unwrap_or("The budget ran out");
                self.say(Level::Notice, text, Some("Say \"continue\" to go on."));
            }
            TurnStatus::Denied => {
                let what: Vec<String> = end.denials.iter().map(|d| d.summary.clone()).collect();
                self.say(Level::Notice, &format!("Denied: {}", what.join("; ")), None);
            }
        }
        let took = self.now.saturating_sub(self.since);
        if end.status == TurnStatus::Done && took > Duration::from_secs(20) {
            let text = format!("{} steps · {}", end.steps, crate::blocks::seconds(took));
            self.say(Level::Quiet, &text, None);
        }
    }

    /// The newest that is not a command of the person's own: those run beside everything else.
    fn newest(&mut self) -> Option<&mut Live> {
        self.live.iter_mut().rev().find(|live| !matches!(live, Live::Call { shell: true, .. }))
    }

    fn text(&mut self, delta: &str) {
        match self.newest() {
            Some(Live::Text { flow, whole, done: false }) => {
                flow.push(delta);
                whole.push_str(delta);
            }
            _ => {
                self.end_thoughts();
                let mut flow = Flow::default();
                flow.push(delta);
                self.live.push_back(Live::Text { flow, whole: delta.to_owned(), done: false });
                self.activity = "Answering".to_owned();
            }
        }
    }

    pub(super) fn end_text(&mut self) {
        for live in &mut self.live {
            if let Live::Text { done, .. } = live {
                *done = true;
            }
        }
        self.end_thoughts();
    }

    fn end_thoughts(&mut self) {
        for live in &mut self.live {
            if let Live::Thought { done, .. } = live {
                *done = true;
            }
        }
    }

    fn thought(&mut self, delta: &str) {
        match self.newest() {
            Some(Live::Thought { text, done: false, .. }) => text.push_str(delta),
            _ => {
                let since = self.now;
                self.thoughts += 1;
                self.live.push_back(Live::Thought { text: delta.to_owned(), since, done: false });
            }
        }
    }

    /// Told when the whole answer is there: one that was seen to come is not shown again behind it.
    fn end_thought(&mut self, whole: &str) {
        let seen = self.thoughts > 0;
        self.thoughts = self.thoughts.saturating_sub(1);
        match self.newest() {
            Some(Live::Thought { text, done, .. }) => {
                whole.clone_into(text);
                *done = true;
            }
            _ if seen => {}
            _ if !whole.trim().is_empty() => {
                let (text, since) = (whole.to_owned(), self.now);
                self.live.push_back(Live::Thought { text, since, done: true });
            }
            _ => {}
        }
    }

    fn running(&mut self, position: usize) -> Option<&mut Call> {
        self.live.iter_mut().rev().find_map(|live| match live {
            Live::Call { position: own, call, shell: false }
                if *own == position && call.done.is_none() =>
            {
                Some(call)
            }
            _ => None,
        })
    }

    fn shell_call(&mut self) -> Option<&mut Call> {
        self.live.iter_mut().find_map(|live| match live {
            Live::Call { call, shell: true, .. } if call.done.is_none() => Some(call),
            _ => None,
        })
    }

    /// Writes what is finished, in order: a block waits for those before it.
    pub(super) fn settle(&mut self) {
        let (columns, now) = (self.width(), self.now);
        loop {
            // A command of the person's own may run for hours: what comes after it does not wait.
            let aside = |live: &Live| matches!(live, Live::Call { call, shell: true, .. } if call.done.is_none());
            let first = self.live.iter().position(|live| !aside(live)).filter(|n| *n > 0);
            if let Some(live) = first.and_then(|n| self.live.remove(n)) {
                self.live.push_front(live);
            }
            let (lines, block, over, begun) = match self.live.front_mut() {
                None => return,
                Some(Live::Text { flow, whole, done }) => {
                    let fresh = !flow.has_begun();
                    let lines = flow.ready(columns, &self.theme, *done);
                    let block = done.then(|| Block::Text(std::mem::take(whole)));
                    (lines, block, *done, fresh)
                }
                Some(Live::Thought { text, since, done }) => {
                    if !*done {
                        return;
                    }
                    let seconds = now.saturating_sub(*since).as_secs();
                    let block = Block::Thought { text: std::mem::take(text), seconds };
                    self.live.pop_front();
                    if !block.text().trim().is_empty() {
                        self.finish(block);
                    }
                    continue;
                }
                Some(Live::Call { call, .. }) => {
                    if call.done.is_none() {
                        return;
                    }
                    let block = Block::Call(call.clone());
                    self.live.pop_front();
                    let lines = block.render(self.view());
                    // One-liners in a row stand close together.
                    let single = lines.len() == 1;
                    let close = single && self.close;
                    self.write(lines, !close);
                    self.close = single;
                    self.keep(block);
                    continue;
                }
            };
            // Between two parts of one text the flow itself says where a blank row belongs.
            self.write(lines, begun);
            if let Some(block) = block.filter(|b| !b.text().trim().is_empty()) {
                self.keep(block);
            }
            if !over {
                return;
            }
            self.live.pop_front();
        }
    }
}

/// The list of things to do as the conversation left it.
fn todos_of(blocks: &[Block]) -> Vec<(String, String)> {
    let written = blocks.iter().rev().find_map(|block| match block {
        Block::Call(call) => call.done.as_ref()?.todos.clone(),
        _ => None,
    });
    written.unwrap_or_default()
}

/// What a call that is being written will be.
fn prepared(tool: &str) -> String {
    match tool {
        "bash" => "a command".to_owned(),
        "task" => "work for an agent".to_owned(),
        "question" => "a question".to_owned(),
        "todowrite" | "todoread" => "a list of what to do".to_owned(),
        tool => crate::blocks::label(tool).to_owned(),
    }
}
