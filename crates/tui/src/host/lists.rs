//! What the lists show.

use std::path::Path;
use std::time::{Duration, SystemTime};

use toolwright::llm::{PROVIDERS, find_local_servers, models_of};
use toolwright::session::{Index, Item, Listed, Session, Store, Summary, Wanted};
use toolwright::{Jobs, Workbench};

use crate::app::{Kind, Row};
use crate::blocks::seconds;

pub(super) fn rows(kind: Kind, jobs: Option<&Jobs>) -> Vec<Row> {
    match kind {
        Kind::Jobs => jobs.map(|jobs| jobs.list()).unwrap_or_default().iter().map(job).collect(),
        Kind::Providers => PROVIDERS
            .iter()
            .filter(|provider| !provider.local)
            .map(|provider| Row {
                label: provider.name.to_owned(),
                about: provider.key_variables.first().copied().unwrap_or_default().to_owned(),
                value: provider.id.to_owned(),
            })
            .collect(),
        // These are known elsewhere.
        _ => Vec::new(),
    }
}

fn job(job: &toolwright::JobInfo) -> Row {
    let state = match job.exit {
        None => format!("runs for {}", seconds(job.age)),
        Some(code) => format!("exit {code}"),
    };
    Row {
        label: job.command.clone(),
        about: format!("{} · {state}", job.id),
        value: job.id.clone(),
    }
}

/// Those of providers that have a key or are configured, and what servers on this machine offer.
pub(super) async fn models(bench: &Workbench) -> Vec<Row> {
    let mut rows = known_models(bench);
    if bench.variable("TOOLWRIGHT_LOCAL_SERVERS").as_deref() != Some("off") {
        for server in find_local_servers().await {
            let row = |name: &String| {
                let value = format!("{}/{name}", server.provider.id);
                let about = format!("on this machine, {}", server.provider.name);
                Row { label: value.clone(), about, value }
            };
            let new: Vec<Row> = server.models.iter().map(row).collect();
            rows.retain(|row| !new.iter().any(|other| other.value == row.value));
            rows.splice(0..0, new);
        }
    }
    rows
}

fn known_models(bench: &Workbench) -> Vec<Row> {
    let refreshed = bench.refreshed_models();
    let settings = &bench.config.settings;
    let env = |name: &str| bench.variable(name);
    let usable = PROVIDERS.iter().filter(|p| p.key_from(&env).is_some()).map(|p| p.id);
    let mut providers: Vec<&str> =
        usable.chain(settings.provider.keys().map(String::as_str)).collect();
    providers.sort_unstable();
    providers.dedup();
    let mut rows = Vec::new();
    for provider in providers {
        let mut known = models_of(provider, refreshed.as_deref());
        for name in settings.provider.get(provider).into_iter().flat_map(|p| p.models.keys()) {
            known.entry(name.clone()).or_default();
        }
        for (name, facts) in known {
            let window = facts.limit.context.map(|n| match n {
                1_000_000.. => format!("{}M", f64::from(n / 100_000) / 10.0),
                n => format!("{}k", n / 1000),
            });
            let price = facts.cost.as_ref().map(|p| format!("${} in, ${} out", p.input, p.output));
            let about: Vec<String> = [window, price].into_iter().flatten().collect();
            let value = format!("{provider}/{name}");
            rows.push(Row { label: value.clone(), about: about.join(" · "), value });
        }
    }
    let demo = "demo/demo".to_owned();
    rows.push(Row { label: demo.clone(), about: "no network".to_owned(), value: demo });
    rows
}

/// Those of a folder, the newest first.
pub(super) fn sessions(store: &Store, folder: &Path) -> Vec<Row> {
    let wanted = Wanted { directory: Some(folder.display().to_string()), ..Wanted::default() };
    let since = |time: SystemTime| time.elapsed().map(ago).unwrap_or_default();
    if let Ok(found) = Index::open(store).and_then(|mut index| index.list(&wanted)) {
        let row = |found: Listed| {
            let updated = SystemTime::UNIX_EPOCH + Duration::from_millis(found.updated);
            let mut about = vec![since(updated), format!("{} messages", found.messages)];
            if found.cost > 0.0 {
                about.push(format!("${:.2}", found.cost));
            }
            Row { label: found.title, about: about.join(" · "), value: found.id }
        };
        return found.into_iter().map(row).collect();
    }
    // Without the index their first prompts name them.
    let row = |summary: Summary| Row {
        about: since(summary.updated),
        label: summary.title,
        value: summary.id,
    };
    store.list(Some(folder)).into_iter().map(row).collect()
}

fn ago(time: Duration) -> String {
    match time.as_secs() {
        0..60 => "just now".to_owned(),
        s @ 60..3_600 => format!("{} min ago", s / 60),
        s @ 3_600..86_400 => format!("{} h ago", s / 3_600),
        s => format!("{} days ago", s / 86_400),
    }
}

/// The last that was said in a session.
pub(super) fn preview(bench: &Workbench, id: &str) -> String {
    if let Some(server) = id.strip_prefix("mcp:") {
        return super::servers::preview(bench, server);
    }
    let Ok(session) = bench.store().peek(id) else { return String::new() };
    let mut lines = Vec::new();
    if let Some(prompt) = session.last_prompt() {
        let text = super::past::text_of(&prompt.content);
        lines.push(format!("› {}", text.lines().next().unwrap_or_default()));
    }
    let answer = session.items().iter().rev().find_map(|item| match item {
        Item::Step(step) => step.blocks.iter().rev().find_map(|block| match block {
            toolwright::session::StepBlock::Text { text, .. } => Some(text.clone()),
            _ => None,
        }),
        _ => None,
    });
    lines.extend(answer.unwrap_or_default().lines().take(5).map(str::to_owned));
    lines.join("\n")
}

pub(super) fn status(bench: &Workbench, session: Option<&Session>) -> String {
    let mut lines = vec![format!("folder     {}", bench.workspace.directory().display())];
    for source in &bench.config.sources {
        lines.push(format!("settings   {}", source.path.display()));
    }
    lines.push(format!("sessions   {}", bench.paths.sessions().display()));
    let Some(session) = session else {
        lines.push("session    none yet".to_owned());
        return lines.join("\n");
    };
    let usage = session.usage();
    let Spent { cost, known, .. } = spent(session);
    lines.push(format!("session    {}", session.header.session));
    lines.push(format!("steps      {}", session.step_count()));
    lines.push(format!(
        "tokens     {} in, {} out, {} reasoning, {} read from cache, {} written to it",
        usage.input, usage.output, usage.reasoning, usage.cache_read, usage.cache_write
    ));
    let sure = if known { "" } else { " (the price of some steps is not known)" };
    lines.push(format!("cost       ${cost:.4}{sure}"));
    lines.join("\n")
}

/// What the last request held, and what all of them cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Spent {
    pub used: u64,
    pub cost: f64,
    /// Whether every price was known.
    pub known: bool,
}

pub(super) fn spent(session: &Session) -> Spent {
    let mut spent = Spent { used: 0, cost: 0.0, known: true };
    for item in session.items() {
        let Item::Step(step) = item else { continue };
        let usage = &step.usage;
        let used = usage.input + usage.cache_read + usage.cache_write + usage.output;
        spent.used = if used > 0 { used } else { spent.used };
        match step.cost {
            Some(own) => spent.cost += own,
            None => spent.known = false,
        }
        spent.cost += step.calls().filter_map(|call| call.outcome()?.cost).sum::<f64>();
    }
    spent
}
