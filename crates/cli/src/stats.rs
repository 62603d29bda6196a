//! `tw stats`: tokens and money by day, model, project and tool.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use serde_json::{Value, json};
use toolwright::Workbench;
use toolwright::llm::Usage;
use toolwright::session::{Counted, Index, SpentKind};

use crate::args::{Shared, Stats, StatsBy};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{harmless, note, print};

const MODEL: &str = "model";

#[derive(Debug, Clone, Default)]
struct Sum {
    /// People's own sessions; what an agent did for another counts, but is no session of its own.
    sessions: BTreeSet<String>,
    prompts: usize,
    steps: usize,
    calls: usize,
    failed: usize,
    usage: Usage,
    cost: f64,
    /// Steps that cost something, but nobody knows how much.
    unpriced: usize,
}

#[derive(Default)]
struct Report {
    days: BTreeMap<Date, Sum>,
    models: BTreeMap<String, Sum>,
    projects: BTreeMap<String, Sum>,
    tools: BTreeMap<String, Sum>,
    total: Sum,
}

pub fn stats(shared: &Shared, options: &Stats) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let first = options.days.map(|days| {
        let back = Span::new().days(i64::from(days.saturating_sub(1)).min(1_000_000));
        Zoned::now().date().checked_sub(back).unwrap_or(Date::MIN)
    });
    let here = workbench.workspace.directory().display().to_string();
    let mut report = Report::default();
    for counted in Index::open(&workbench.store())?.spending()? {
        let time = i64::try_from(counted.time).ok();
        let time = time.and_then(|time| Timestamp::from_millisecond(time).ok());
        let day = time.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::system()).date();
        let counts = first.is_none_or(|first| day >= first);
        if counts && (!options.here || counted.directory == here) {
            report.add(&counted, day);
        }
    }
    if options.json {
        print(&format!("{}\n", report.as_json()));
    } else if report.days.is_empty() {
        let when = if options.days.is_some() { " in these days" } else { " yet" };
        note(&format!("Nothing was asked{when}."));
    } else {
        print(&report.as_text(options.by));
    }
    Ok(Exit::Done)
}

impl Sum {
    fn add(&mut self, counted: &Counted) {
        if counted.own {
            self.sessions.insert(counted.session.clone());
        }
        match counted.kind {
            SpentKind::Prompt => self.prompts += 1,
            SpentKind::Call => {
                self.calls += 1;
                self.failed += usize::from(counted.failed);
            }
            SpentKind::Step => {
                self.steps += 1;
                self.usage += counted.usage;
                self.cost += counted.cost.unwrap_or(0.0);
                let unknown = counted.cost.is_none() && counted.usage != Usage::default();
                self.unpriced += usize::from(unknown);
            }
        }
    }

    /// Everything that a model read or wrote.
    fn tokens(&self) -> u64 {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        input.saturating_add(output).saturating_add(cache_read).saturating_add(cache_write)
    }

    fn as_json(&self) -> Value {
        json!({
            "sessions": self.sessions.len(), "prompts": self.prompts, "steps": self.steps,
            "calls": self.calls, "failed_calls": self.failed, "tokens": self.usage,
            "cost": self.cost, "unpriced_steps": self.unpriced,
        })
    }

    fn as_line(&self, name: &str, width: usize, bar: &str) -> String {
        self.line(name, width, &format!("{:>8} ", self.calls), bar)
    }

    fn line(&self, name: &str, width: usize, calls: &str, bar: &str) -> String {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        let line = format!(
            "{name:<width$} {:>8} {:>8} {calls}{:>12} {:>12} {:>12} {:>12} {:>11}  {bar}",
            self.sessions.len(),
            self.steps,
            grouped(input),
            grouped(output),
            grouped(cache_read),
            grouped(cache_write),
            format!("${:.4}", self.cost),
        );
        format!("{}\n", line.trim_end())
    }
}

impl Report {
    fn add(&mut self, counted: &Counted, day: Date) {
        self.days.entry(day).or_default().add(counted);
        self.total.add(counted);
        self.projects.entry(counted.directory.clone()).or_default().add(counted);
        match counted.kind {
            SpentKind::Step if !counted.name.is_empty() => {
                self.models.entry(counted.name.clone()).or_default().add(counted);
            }
            SpentKind::Call => {
                self.tools.entry(counted.name.clone()).or_default().add(counted);
            }
            SpentKind::Step | SpentKind::Prompt => {}
        }
    }

    fn as_json(&self) -> Value {
        let named = |key: &str, name: &str, sum: &Sum| {
            let mut row = sum.as_json();
            row[key] = json!(name);
            row
        };
        let days: Vec<Value> =
            self.days.iter().map(|(day, sum)| named("date", &day.to_string(), sum)).collect();
        let table = |key: &str, rows: &BTreeMap<String, Sum>| -> Vec<Value> {
            rows.iter().map(|(name, sum)| named(key, name, sum)).collect()
        };
        let mut models = table(MODEL, &self.models);
        for row in models.iter_mut().filter_map(Value::as_object_mut) {
            ["calls", "failed_calls", "prompts"].iter().for_each(|key| drop(row.remove(*key)));
        }
        let tools = self.tools.iter().map(
            |(name, sum)| json!({ "tool": name, "calls": sum.calls, "failed_calls": sum.failed }),
        );
        json!({
            "days": days,
            "models": models,
            "projects": table("project", &self.projects),
            "tools": tools.collect::<Vec<_>>(),
            "total": self.total.as_json(),
        })
    }

    /// All tables, or the one that was asked for.
    fn as_text(&self, by: Option<StatsBy>) -> String {
        let wanted = |table: StatsBy| by.is_none_or(|by| by == table);
        let mut out = Vec::new();
        if wanted(StatsBy::Day) {
            let rows = self.days.iter().map(|(day, sum)| (day.to_string(), sum)).collect();
            let mut table = table("day", rows, Measure::of(&self.total));
            table.push_str(&self.total.as_line("total", width("day", self.days.keys()), ""));
            out.push(table);
        }
        for (kind, name, rows) in
            [(StatsBy::Model, MODEL, &self.models), (StatsBy::Project, "project", &self.projects)]
        {
            if wanted(kind) {
                out.push(table(name, dearest(rows), Measure::of(&self.total)));
            }
        }
        if wanted(StatsBy::Tool) && !self.tools.is_empty() {
            out.push(self.tool_table());
        }
        let mut text = out.join("\n");
        if self.total.unpriced > 0 {
            let (steps, whose) = match self.total.unpriced {
                1 => ("1 step is".to_owned(), "its model is not known, or it"),
                many => (format!("{many} steps are"), "their model is not known, or they"),
            };
            text.push_str(&format!("\n{steps} not in the cost: the price of {whose} broke off.\n"));
        }
        text
    }

    fn tool_table(&self) -> String {
        let width = width("tool", self.tools.keys());
        let mut rows: Vec<_> = self.tools.iter().collect();
        rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.calls));
        let most = rows.first().map_or(0, |(_, sum)| sum.calls) as f64;
        let mut out = format!("{:<width$} {:>8} {:>8}\n", "tool", "calls", "failed");
        for (name, sum) in rows {
            let line = format!(
                "{:<width$} {:>8} {:>8}  {}",
                harmless(name),
                sum.calls,
                sum.failed,
                bar(sum.calls as f64, most)
            );
            out.push_str(&format!("{}\n", line.trim_end()));
        }
        out
    }
}

/// What the bars are as long as: money, or tokens where no price is known.
#[derive(Clone, Copy)]
enum Measure {
    Cost,
    Tokens,
}

impl Measure {
    fn of(total: &Sum) -> Self {
        if total.cost > 0.0 { Self::Cost } else { Self::Tokens }
    }

    fn value(self, sum: &Sum) -> f64 {
        match self {
            Self::Cost => sum.cost,
            Self::Tokens => sum.tokens() as f64,
        }
    }
}

/// What cost most stands first.
fn dearest(rows: &BTreeMap<String, Sum>) -> Vec<(String, &Sum)> {
    let mut rows: Vec<_> = rows.iter().map(|(name, sum)| (harmless(name), sum)).collect();
    rows.sort_by(|(_, a), (_, b)| {
        b.cost.total_cmp(&a.cost).then_with(|| b.tokens().cmp(&a.tokens()))
    });
    rows
}

fn width<T: std::fmt::Display>(head: &str, names: impl Iterator<Item = T>) -> usize {
    let widest = names.map(|name| harmless(&name.to_string()).chars().count()).max();
    widest.unwrap_or(0).max(head.len()).max(10)
}

fn table(head: &str, rows: Vec<(String, &Sum)>, measure: Measure) -> String {
    let width = width(head, rows.iter().map(|(name, _)| name));
    let most = rows.iter().map(|(_, sum)| measure.value(sum)).fold(0.0, f64::max);
    // Calls are counted by their tools, and nobody notes there which model wanted them.
    let has_calls = head != MODEL;
    let calls = if has_calls { format!("{:>8} ", "calls") } else { String::new() };
    let mut out = format!(
        "{head:<width$} {:>8} {:>8} {calls}{:>12} {:>12} {:>12} {:>12} {:>11}\n",
        "sessions", "steps", "input", "output", "cache read", "cache write", "cost"
    );
    for (name, sum) in rows {
        let bar = bar(measure.value(sum), most);
        out.push_str(&match has_calls {
            true => sum.as_line(&name, width, &bar),
            false => sum.line(&name, width, "", &bar),
        });
    }
    out
}

/// As long as its share of the largest, to an eighth of a character.
fn bar(value: f64, most: f64) -> String {
    const CELLS: f64 = 20.0;
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if most <= 0.0 || value <= 0.0 {
        return String::new();
    }
    // Something is never nothing.
    let eighths = (value / most * CELLS * 8.0).round().max(1.0) as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
