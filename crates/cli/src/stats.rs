//! `tw stats`: tokens and money by day and by model.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use serde_json::{Value, json};
use toolwright::Workbench;
use toolwright::llm::Usage;
use toolwright::session::{Spending, SpendingReader, Spent};

use crate::args::{Shared, Stats};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{harmless, note, print};

#[derive(Debug, Clone, Default)]
struct Sum {
    sessions: usize,
    prompts: usize,
    steps: usize,
    calls: usize,
    usage: Usage,
    cost: f64,
    /// Steps that cost something, but nobody knows how much.
    unpriced: usize,
}

#[derive(Default)]
struct Report {
    days: BTreeMap<Date, Sum>,
    models: BTreeMap<String, Sum>,
    total: Sum,
}

pub fn stats(shared: &Shared, options: &Stats) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let first = options.days.map(|days| {
        let back = Span::new().days(i64::from(days.saturating_sub(1)).min(1_000_000));
        Zoned::now().date().checked_sub(back).unwrap_or(Date::MIN)
    });
    let mut report = Report::default();
    let mut reader = SpendingReader::default();
    for path in workbench.store().files() {
        let mut part = Report::default();
        let read = reader.read(&path, &mut |spent| part.add(&spent, first));
        let own = read.unwrap_or_else(|error| {
            note(&format!("! cannot read {}: {error}", path.display()));
            false
        });
        report.add_session(part, usize::from(own));
    }
    if options.json {
        print(&format!("{}\n", report.as_json()));
    } else if report.days.is_empty() {
        let when = if options.days.is_some() { " in these days" } else { " yet" };
        note(&format!("Nothing was asked{when}."));
    } else {
        print(&report.as_text());
    }
    Ok(Exit::Done)
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.prompts += other.prompts;
        self.steps += other.steps;
        self.calls += other.calls;
        self.usage += other.usage;
        self.cost += other.cost;
        self.unpriced += other.unpriced;
    }

    fn as_json(&self) -> Value {
        json!({
            "sessions": self.sessions, "prompts": self.prompts, "steps": self.steps,
            "calls": self.calls, "tokens": self.usage, "cost": self.cost,
            "unpriced_steps": self.unpriced,
        })
    }

    fn as_line(&self, name: &str, width: usize) -> String {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        format!(
            "{name:<width$} {:>8} {:>8} {:>8} {:>12} {:>12} {:>12} {:>12} {:>11}\n",
            self.sessions,
            self.steps,
            self.calls,
            grouped(input),
            grouped(output),
            grouped(cache_read),
            grouped(cache_write),
            format!("${:.4}", self.cost),
        )
    }
}

impl Report {
    /// One thing that a session did; `first` is the first day that counts.
    fn add(&mut self, spent: &Spent, first: Option<Date>) {
        let time = i64::try_from(spent.time).ok().and_then(|t| Timestamp::from_millisecond(t).ok());
        let day = time.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::system()).date();
        if first.is_some_and(|first| day < first) {
            return;
        }
        let mut sum = Sum::default();
        let mut by = None;
        match &spent.what {
            Spending::Prompt => sum.prompts = 1,
            Spending::Call => sum.calls = 1,
            Spending::Step { model, usage, cost } => {
                sum.steps = 1;
                sum.usage = *usage;
                sum.cost = cost.unwrap_or(0.0);
                sum.unpriced = usize::from(cost.is_none() && *usage != Usage::default());
                by = model.as_ref().map(ToString::to_string);
            }
        }
        self.days.entry(day).or_default().add(&sum);
        if let Some(model) = by {
            self.models.entry(model).or_default().add(&sum);
        }
        self.total.add(&sum);
    }

    /// A session counts once for each day and each model that it used. What an agent did for another
    /// counts, but is no session of its own.
    fn add_session(&mut self, mut part: Self, sessions: usize) {
        part.total.sessions = if part.days.is_empty() { 0 } else { sessions };
        for (day, sum) in part.days {
            self.days.entry(day).or_default().add(&Sum { sessions, ..sum });
        }
        for (model, sum) in part.models {
            self.models.entry(model).or_default().add(&Sum { sessions, ..sum });
        }
        self.total.add(&part.total);
    }

    fn as_json(&self) -> Value {
        let named = |key: &str, name: String, sum: &Sum| {
            let mut row = sum.as_json();
            row[key] = Value::String(name);
            row
        };
        let days = self.days.iter().map(|(day, sum)| named("date", day.to_string(), sum));
        let models = self.models.iter().map(|(model, sum)| named("model", model.clone(), sum));
        json!({
            "days": days.collect::<Vec<_>>(),
            "models": models.collect::<Vec<_>>(),
            "total": self.total.as_json(),
        })
    }

    fn as_text(&self) -> String {
        let width = self.models.keys().map(|name| name.chars().count()).max().unwrap_or(0).max(10);
        let head = |name: &str| {
            format!(
                "{name:<width$} {:>8} {:>8} {:>8} {:>12} {:>12} {:>12} {:>12} {:>11}\n",
                "sessions",
                "steps",
                "calls",
                "input",
                "output",
                "cache read",
                "cache write",
                "cost"
            )
        };
        let mut out = head("day");
        for (day, sum) in &self.days {
            out.push_str(&sum.as_line(&day.to_string(), width));
        }
        out.push_str(&self.total.as_line("total", width));
        out.push('\n');
        out.push_str(&head("model"));
        // What cost most stands first.
        let mut models: Vec<_> = self.models.iter().collect();
        models.sort_by(|a, b| b.1.cost.total_cmp(&a.1.cost));
        for (model, sum) in models {
            out.push_str(&sum.as_line(&harmless(model), width));
        }
        if self.total.unpriced > 0 {
            let steps = self.total.unpriced;
            out.push_str(&format!(
                "\n{steps} steps are not in the cost: the price of their model is not known, or they broke off.\n"
            ));
        }
        out
    }
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
