//! For people: the answer on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use toolwright::permission::Mode;
use toolwright::session::{Ending, Outcome, QueueKind, TurnStatus};
use toolwright::{Desk, Event, TurnEnd};

use super::Face;
use crate::terminal::{Style, harmless, one_line};

/// Characters of a call's summary in its line.
const SUMMARY_CHARS: usize = 100;

const SPINNER: &[&str] = &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

pub struct TextFace {
    style: Style,
    thinking: bool,
    /// An answer in a form follows at the end; what is said before it is no part of it.
    form: bool,
    /// Standard error is a terminal that can be redrawn.
    live: bool,
    spinner: Option<Spinner>,
    frame: usize,
    /// The answer does not end in a line break yet.
    mid_line: bool,
    running: Vec<(usize, String)>,
}

struct Spinner {
    since: Instant,
    shown: bool,
}

impl TextFace {
    pub fn new(style: Style, thinking: bool, form: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let live = io::stderr().is_terminal() && !dumb;
        Self {
            style,
            thinking,
            form,
            live,
            spinner: None,
            frame: 0,
            mid_line: false,
            running: Vec::new(),
        }
    }

    /// A line of its own on standard error.
    fn line(&mut self, text: &str) -> io::Result<()> {
        self.clear_spinner()?;
        self.end_line()?;
        writeln!(io::stderr(), "{text}")
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.mid_line) {
            let mut out = io::stdout().lock();
            out.write_all(b"\n")?;
            out.flush()?;
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.clear_spinner()?;
        let mut out = io::stdout().lock();
        // A file or a pipe gets the bytes as they are.
        if out.is_terminal() {
            out.write_all(harmless(text).as_bytes())?;
        } else {
            out.write_all(text.as_bytes())?;
        }
        out.flush()?;
        self.mid_line = !text.ends_with('\n');
        Ok(())
    }

    fn clear_spinner(&mut self) -> io::Result<()> {
        if self.spinner.take().is_some_and(|s| s.shown) {
            write!(io::stderr(), "\r\x1b[K")?;
        }
        if self.live {
            self.spinner = Some(Spinner { since: Instant::now(), shown: false });
        }
        Ok(())
    }

    fn settled(&mut self, position: usize, outcome: &Outcome) -> io::Result<()> {
        self.running.retain(|(p, _)| *p != position);
        let style = self.style;
        let exit = outcome.details["exit"].as_i64().filter(|code| *code != 0);
        let mark = match outcome.ending {
            Ending::Completed if exit.is_some() => style.attention("✗"),
            Ending::Completed => style.good("✓"),
            Ending::Failed => style.bad("✗"),
            Ending::Denied => style.attention("⊘"),
            Ending::Skipped | Ending::Interrupted => style.attention("–"),
        };
        let title = one_line(&outcome.title, SUMMARY_CHARS);
        let about = match title.as_str() {
            "" => outcome.tool.clone(),
            // A call that did not run is titled by its plan, which often begins with the tool.
            title if title.starts_with(&format!("{} ", outcome.tool)) => title.to_owned(),
            title => format!("{} {title}", outcome.tool),
        };
        let mut notes = Vec::new();
        if let Some(code) = exit {
            notes.push(format!("exit code {code}"));
        }
        match outcome.ending {
            Ending::Failed | Ending::Denied => notes.push(one_line(&outcome.output, SUMMARY_CHARS)),
            Ending::Skipped => notes.push("not started".to_owned()),
            Ending::Interrupted => notes.push("interrupted".to_owned()),
            Ending::Completed => {}
        }
        let (added, removed) = (&outcome.details["additions"], &outcome.details["deletions"]);
        if let (Some(added), Some(removed)) = (added.as_u64(), removed.as_u64()) {
            notes.push(format!("+{added} −{removed}"));
        }
        if outcome.duration_ms >= 1000 {
            notes.push(format!("{:.1} s", outcome.duration_ms as f64 / 1000.0));
        }
        let notes =
            if notes.is_empty() { String::new() } else { format!(" – {}", notes.join(", ")) };
        self.line(&format!("  {mark} {about}{}", style.dim(&notes)))
    }

    fn ended(&mut self, end: &TurnEnd) -> io::Result<()> {
        let style = self.style;
        match end.status {
            TurnStatus::Done => {}
            TurnStatus::Interrupted => {
                self.line(&style.attention("interrupted; go on with: tw run -c"))?
            }
            TurnStatus::Failed => {
                let problem = end.problem.as_deref().unwrap_or("it failed");
                self.line(&style.bad(&format!("tw: {}", harmless(problem))))?;
                if let Some(advice) = end.advice {
                    self.line(&format!("    {advice}"))?;
                }
            }
            TurnStatus::OutOfBudget => {
                let problem = end.problem.as_deref().unwrap_or("the budget ran out");
                self.line(
                    &style.attention(&format!("tw: {problem}; go on with: tw run -c \"continue\"")),
                )?;
            }
            TurnStatus::Denied => {}
        }
        if !end.denials.is_empty() && end.status == TurnStatus::Denied {
            let what: Vec<String> = end
                .denials
                .iter()
                .map(|d| {
                    let summary = one_line(&d.summary, SUMMARY_CHARS);
                    let named = summary.starts_with(&format!("{} ", d.tool));
                    if named { summary } else { format!("{} {summary}", d.tool) }
                })
                .collect();
            let text = format!("tw: denied: {}", what.join("; "));
            self.line(&style.attention(&text))?;
            if end.denials.iter().any(|d| d.by == "nobody") {
                self.line("    Nobody could be asked. Run in a terminal, allow it in the configuration, or pass --auto.")?;
            }
        }
        self.clear_spinner()?;
        self.spinner = None;
        self.end_line()
    }
}

impl Face for TextFace {
    fn begin(&mut self, desk: &Desk) -> io::Result<()> {
        let session = desk.engine.session();
        let mode = match desk.gate.mode() {
            Mode::Ask => String::new(),
            mode => format!(" · {mode}"),
        };
        let text = format!(
            "tw · {} · {} · {}{mode} · sandbox: {}",
            desk.engine.model(),
            desk.agent.name,
            session.header.session,
            desk.protection.describe()
        );
        let text = self.style.dim(&text);
        self.line(&text)
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Text { .. } if self.form => Ok(()),
            Event::Text { delta } => self.say(delta),
            Event::TextDone { text } if self.form => self.line(&harmless(text)),
            Event::ReasoningDone { text } if self.thinking => {
                let text = self.style.dim(&harmless(text));
                self.line(&text)
            }
            Event::CallStarted { position, tool, summary, .. } => {
                let about = one_line(summary, SUMMARY_CHARS);
                let about = if about.starts_with(tool.as_str()) {
                    about
                } else {
                    format!("{tool} {about}")
                };
                self.running.push((*position, about));
                self.clear_spinner()
            }
            Event::CallSettled { position, outcome, .. } => self.settled(*position, outcome),
            Event::Retrying { attempt, delay, cause } => {
                let cause = harmless(&cause.message);
                let text =
                    format!("  … {cause}; try {} in {:.1} s", attempt + 1, delay.as_secs_f32());
                let text = self.style.attention(&text);
                self.line(&text)
            }
            Event::Notice { text } => {
                let text = self.style.attention(&format!("! {text}"));
                self.line(&text)
            }
            Event::Question { .. } | Event::Inquiry { .. } => {
                self.clear_spinner()?;
                self.spinner = None;
                self.end_line()
            }
            Event::StepEnded { .. } => self.end_line(),
            Event::TurnEnded(end) => self.ended(end),
            Event::ModeChanged { mode } => {
                let text = self.style.dim(&format!("  … the mode is {mode} now"));
                self.line(&text)
            }
            Event::Queued { kind, .. } => {
                let when = match kind {
                    QueueKind::Steer => "at the next boundary",
                    QueueKind::FollowUp => "after this turn",
                };
                let text = self.style.dim(&format!("  … queued, said {when}"));
                self.line(&text)
            }
            Event::Pruned { outputs, tokens } => {
                let text = format!("  … {outputs} old outputs left out (about {tokens} tokens)");
                let text = self.style.dim(&text);
                self.line(&text)
            }
            Event::Compacting { reason } => {
                let text = self.style.dim(&format!("  … making notes: {reason}"));
                self.line(&text)
            }
            Event::Compacted { before, after } => {
                let text = format!("  … shortened from about {before} to {after} tokens");
                let text = self.style.dim(&text);
                self.line(&text)
            }
            Event::Withdrawn { .. }
            | Event::QuestionClosed { .. }
            | Event::Delivered { .. }
            | Event::Idle
            | Event::StepStarted
            | Event::Reasoning { .. }
            | Event::TextDone { .. }
            | Event::ReasoningDone { .. }
            | Event::CallAnnounced { .. }
            | Event::CallProgress { .. } => Ok(()),
        }
    }

    fn tick(&mut self) -> io::Result<()> {
        let Some(spinner) = &mut self.spinner else { return Ok(()) };
        // Not at once: most things are over before anybody wonders. Never in the middle of a line.
        if spinner.since.elapsed().as_millis() < 300 || self.mid_line {
            return Ok(());
        }
        spinner.shown = true;
        self.frame = (self.frame + 1) % SPINNER.len();
        let about = self.running.last().map_or("thinking", |(_, about)| about.as_str());
        let seconds = spinner.since.elapsed().as_secs();
        let text = format!("\r\x1b[K{} {about} {seconds} s", SPINNER[self.frame]);
        let mut out = io::stderr().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}
