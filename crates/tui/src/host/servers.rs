//! MCP servers: what they are at, and what a person can do about it.

use std::process::{Command, Stdio};

use toolwright::Workbench;
use toolwright::llm::PROVIDERS;
use toolwright::mcp_servers::{ServerState, ServerStatus};

use super::Host;
use crate::app::{Input, Kind, News, Row};
use crate::blocks::Level;

/// Names of tools in a preview.
const TOOLS: usize = 12;

pub(super) fn rows(bench: &Workbench) -> Vec<Row> {
    bench.mcp.status().iter().map(row).collect()
}

fn row(status: &ServerStatus) -> Row {
    let mark = match status.state {
        ServerState::Connected => "✓",
        ServerState::Starting | ServerState::Disabled => "·",
        ServerState::Failed | ServerState::NeedsAuth => "✗",
    };
    let about = match status.state {
        ServerState::Connected => match status.tools.len() {
            1 => "connected, 1 tool".to_owned(),
            count => format!("connected, {count} tools"),
        },
        state => state.as_str().to_owned(),
    };
    let label = format!("{mark} {}", status.name);
    Row { label, about, value: format!("mcp:{}", status.name) }
}

/// What is known about one.
pub(super) fn preview(bench: &Workbench, name: &str) -> String {
    let Some(status) = bench.mcp.status().into_iter().find(|status| status.name == name) else {
        return String::new();
    };
    let mut lines = Vec::new();
    lines.extend(status.reason.map(|reason| format!("! {reason}")));
    let is_down = matches!(status.state, ServerState::Failed);
    if is_down {
        lines.extend(status.last_words.iter().rev().take(3).rev().map(|line| format!("| {line}")));
    }
    lines.push(format!("runs   {}", status.runs));
    lines.push(format!("from   {}", status.origin));
    lines.extend(status.server.map(|server| format!("is     {server}")));
    if !status.tools.is_empty() {
        let shown: Vec<&str> = status.tools.iter().take(TOOLS).map(String::as_str).collect();
        let more = status.tools.len().saturating_sub(TOOLS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("tools  {}{more}", shown.join(", ")));
    }
    lines.join("\n")
}

impl Host {
    /// The list, started where nothing runs yet, and told again once all have said how it stands.
    pub(super) async fn list_servers(&self) {
        self.bench.mcp.start();
        let (kind, rows) = (Kind::Servers, rows(&self.bench));
        self.tell(News::Rows { kind, rows }).await;
        let bench = self.bench.clone();
        self.beside(async move {
            bench.mcp.settle_all().await;
            vec![News::Rows { kind: Kind::Servers, rows: self::rows(&bench) }]
        });
    }

    /// Connects what is not connected and the other way round.
    pub(super) fn connect(&self, name: String) {
        let bench = self.bench.clone();
        self.beside(async move {
            let status = bench.mcp.status().into_iter().find(|status| status.name == name);
            let on = status
                .is_some_and(|s| matches!(s.state, ServerState::Connected | ServerState::Starting));
            let done = match on {
                true => bench.mcp.disconnect(&name).await,
                false => bench.mcp.connect(&name).await,
            };
            let mut news = vec![News::Rows { kind: Kind::Servers, rows: rows(&bench) }];
            news.push(News::Preview { value: format!("mcp:{name}"), text: preview(&bench, &name) });
            news.extend(done.err().map(problem));
            news
        });
    }

    /// Signs in: the address is shown and opened, and the rest happens in the browser.
    pub(super) fn sign_in(&mut self, name: String) {
        if let Some(before) = self.signing_in.take() {
            before.abort();
        }
        let (bench, ui) = (self.bench.clone(), self.ui.clone());
        let work = async move {
            bench.mcp.start();
            // The server itself knows best what it wants.
            bench.mcp.settle_one(&name).await;
            let begun = match bench.sign_in(&name).await {
                Ok(begun) => begun,
                Err(text) => return vec![problem(text)],
            };
            let text = format!("Open this address to sign in at {name}:\n{}", begun.url());
            let said = News::Say { level: Level::Notice, text, advice: None };
            ui.send(Input::News(Box::new(said))).await.ok();
            open_address(begun.url());
            if let Err(text) = begun.finish().await {
                return vec![problem(text)];
            }
            // Whether it helped is known once the server takes it.
            bench.mcp.try_again(&name).await;
            let status = bench.mcp.status().into_iter().find(|status| status.name == name);
            let said = match status {
                Some(status) if status.state == ServerState::Connected => News::Say {
                    level: Level::Quiet,
                    text: format!("Signed in at {name}: {} tools", status.tools.len()),
                    advice: None,
                },
                status => {
                    let reason = status.and_then(|status| status.reason).unwrap_or_default();
                    problem(format!("signed in, but {name} cannot be used: {reason}"))
                }
            };
            vec![said, News::Rows { kind: Kind::Servers, rows: rows(&bench) }]
        };
        self.signing_in = Some(self.beside(work));
    }

    pub(super) fn sign_out(&self, name: String) {
        let bench = self.bench.clone();
        self.beside(async move {
            match bench.sign_out(&name).await {
                Ok(()) => vec![News::Say {
                    level: Level::Quiet,
                    text: format!("What was kept for {name} is removed"),
                    advice: None,
                }],
                Err(text) => vec![problem(text)],
            }
        });
    }

    /// Resources for `@` and prompts for `/`.
    pub(super) fn offered(&self) {
        let bench = self.bench.clone();
        self.beside(async move {
            bench.mcp.start();
            bench.mcp.settle_all().await;
            let either = |one: String, other: String| if one.is_empty() { other } else { one };
            let resources = bench.mcp.resources().await.into_iter();
            let resources = resources
                .map(|r| (format!("{}:{}", r.server, r.uri), either(r.description, r.name)))
                .collect();
            let prompts = bench.mcp.prompts().await.into_iter();
            let prompts = prompts.map(|p| (format!("{}:{}", p.server, p.name), p.description));
            vec![News::Offered { resources, prompts: prompts.collect() }]
        });
    }
}

fn problem(text: String) -> News {
    News::Say { level: Level::Problem, text, advice: None }
}

/// A browser belongs to the person, not to us: it goes on when we end, and gets no keys. A server says what
/// the address is, so only one of the web is opened. Without a browser, it can be read and copied.
pub(super) fn open_address(address: &str) {
    let Some(mut browser) = browser(address) else { return };
    if let Ok(mut child) = browser.spawn() {
        // It ends once the browser has it.
        std::thread::spawn(move || child.wait());
    }
}

fn browser(address: &str) -> Option<Command> {
    if !address.starts_with("https://") && !address.starts_with("http://") {
        return None;
    }
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let set = std::env::var("BROWSER").ok().filter(|program| !program.trim().is_empty());
    let mut browser = Command::new(set.as_deref().unwrap_or(usual));
    browser.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    for variable in PROVIDERS.iter().flat_map(|provider| provider.key_variables) {
        browser.env_remove(variable);
    }
    Some(browser)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_web_are_opened_and_without_keys() {
        for address in ["file:///etc/passwd", "javascript:1", "--help", "httpx://a"] {
            assert!(browser(address).is_none(), "{address}");
        }
        let command = browser("https://a.example/sign-in").unwrap();
        let removed: Vec<_> =
            command.get_envs().map(|(name, value)| (name, value.is_none())).collect();
        assert!(removed.contains(&(std::ffi::OsStr::new("ANTHROPIC_API_KEY"), true)));
    }
}
