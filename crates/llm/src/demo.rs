//! The built-in model that needs no key and no network. It is no language model and says so; its
//! script is fixed (look around, read what describes the folder, look for the prompt's words, run a
//! command, report), but the tools it calls run for real.

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::{Value, json};

use crate::{
    Block, Content, Event, Finish, FinishReason, Model, Origin, Request, ToolChoice, Turn,
};

pub struct DemoModel {
    origin: Origin,
}

impl Default for DemoModel {
    fn default() -> Self {
        Self { origin: Origin { provider: "demo".to_owned(), model: "demo".to_owned() } }
    }
}

impl Model for DemoModel {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        stream::iter(answer(&request)).boxed()
    }
}

/// Files that say what a folder is, the telling ones first.
const DESCRIBING: &[&str] = &[
    "README.md",
    "README",
    "README.rst",
    "README.txt",
    "readme.md",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "CMakeLists.txt",
    "Makefile",
    "composer.json",
];

fn answer(request: &Request) -> Vec<Event> {
    let prompt = last_prompt(request);
    let seen = Seen::since_prompt(request);
    let tools = Tools(request);
    let (text, calls) = if request.tool_choice == ToolChoice::None {
        (report(&prompt, &seen), Vec::new())
    } else {
        match seen.steps {
            0 => (
                "I am Toolwright's demo model: a fixed script, not a language model. \
                 Let me look at this folder.\n"
                    .to_owned(),
                tools.offered(&[("read", json!({ "filePath": "." }))]),
            ),
            1 => {
                let mut wanted: Vec<_> = describing_files(&seen)
                    .map(|path| ("read", json!({ "filePath": path, "limit": 40 })))
                    .collect();
                if let Some(word) = search_word(&prompt) {
                    wanted.push(("grep", json!({ "pattern": format!("(?i){word}") })));
                }
                let text = "Now what describes it, and where your words appear.\n".to_owned();
                (text, tools.offered(&wanted))
            }
            2 => {
                let command = json!({ "command": "git log --oneline -5" });
                ("And its latest history.\n".to_owned(), tools.offered(&[("bash", command)]))
            }
            _ => (report(&prompt, &seen), Vec::new()),
        }
    };
    // A folder or an agent that offers nothing to call still gets its report.
    let text = if calls.is_empty() && seen.steps < 3 { report(&prompt, &seen) } else { text };
    events(&text, calls)
}

fn events(text: &str, calls: Vec<(String, Value)>) -> Vec<Event> {
    let mut out: Vec<Event> = text
        .split_inclusive('\n')
        .map(|line| Event::Text { block: 0, delta: line.to_owned() })
        .collect();
    out.push(Event::BlockEnd { block: 0, opaque: None });
    let reason = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    for (n, (name, arguments)) in calls.into_iter().enumerate() {
        let block = u32::try_from(n + 1).unwrap_or(u32::MAX);
        out.push(Event::CallStart { block, id: String::new(), name });
        out.push(Event::CallArguments { block, delta: arguments.to_string() });
        out.push(Event::BlockEnd { block, opaque: None });
    }
    out.push(Event::Finish(Finish { reason, raw: "demo".to_owned() }));
    out
}

struct Tools<'a>(&'a Request);

impl Tools<'_> {
    fn offered(&self, wanted: &[(&str, Value)]) -> Vec<(String, Value)> {
        let there = |name: &str| self.0.tools.iter().any(|t| t.name == name);
        wanted.iter().filter(|(n, _)| there(n)).map(|(n, a)| ((*n).to_owned(), a.clone())).collect()
    }
}

/// What the tools answered since the newest prompt.
#[derive(Default)]
struct Seen {
    steps: usize,
    results: Vec<(String, String, bool)>,
}

impl Seen {
    fn since_prompt(request: &Request) -> Self {
        let mut seen = Self::default();
        for turn in request.turns.iter().rev() {
            let Turn::Assistant { blocks, .. } = turn.as_ref() else { break };
            seen.steps += 1;
            let results = blocks.iter().rev().filter_map(|block| match block {
                Block::Call { name, result, .. } => {
                    Some((name.clone(), text_of(&result.content), result.is_error))
                }
                _ => None,
            });
            seen.results.extend(results);
        }
        seen.results.reverse();
        seen
    }

    fn of<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a str> {
        let wanted = move |(name, _, failed): &&(String, String, bool)| name == tool && !failed;
        self.results.iter().filter(wanted).map(|(_, text, _)| text.as_str())
    }

    /// The entries of the folder, as the first reading listed them.
    fn files(&self) -> impl Iterator<Item = &str> {
        let listing = self.of("read").find(|text| text.contains("<type>directory</type>"));
        let entries = listing.and_then(|text| text.split_once("<entries>\n")).map(|(_, rest)| rest);
        entries.into_iter().flat_map(str::lines).take_while(|line| !line.is_empty())
    }
}

fn describing_files(seen: &Seen) -> impl Iterator<Item = String> + '_ {
    let here: Vec<&str> = seen.files().collect();
    DESCRIBING.iter().filter(move |name| here.contains(name)).take(2).map(|name| (*name).to_owned())
}

/// The prompt's longest word that is likely to name something.
fn search_word(prompt: &str) -> Option<String> {
    const COMMON: &[&str] = &[
        "about",
        "please",
        "project",
        "folder",
        "directory",
        "repository",
        "explain",
        "describe",
        "there",
        "their",
        "would",
        "could",
        "should",
        "where",
        "which",
        "these",
        "those",
        "files",
        "tell",
        "show",
        "what",
        "does",
        "this",
        "that",
        "with",
        "from",
        "have",
    ];
    prompt
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| w.len() >= 4 && !COMMON.contains(&w.to_lowercase().as_str()))
        .max_by_key(|w| w.len())
        .map(str::to_owned)
}

fn report(prompt: &str, seen: &Seen) -> String {
    let mut out = String::new();
    let names: Vec<&str> = seen.files().filter(|name| !name.starts_with('.')).collect();
    let described = seen.of("read").find_map(summary);
    match &described {
        Some(summary) => out.push_str(&format!("What I found: {summary}\n\n")),
        None if !names.is_empty() => out.push_str("No file here says what the project is.\n\n"),
        None => {}
    }
    if !names.is_empty() {
        let shown = names.iter().take(12).copied().collect::<Vec<_>>().join(", ");
        let more = names.len().saturating_sub(12);
        let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
        out.push_str(&format!("Files at the top: {shown}{tail}.\n"));
    }
    if let Some(word) = search_word(prompt) {
        for hits in seen.of("grep") {
            let first = hits.lines().next().unwrap_or_default();
            out.push_str(&format!("Searching for \"{word}\": {first}.\n"));
        }
    }
    for log in seen.of("bash") {
        let commits: Vec<_> = log
            .lines()
            .take(3)
            .filter(|l| !l.is_empty() && !l.starts_with(['<', '(', '[']))
            .collect();
        if !commits.is_empty() && !log.contains("fatal:") {
            out.push_str(&format!("Latest commits: {}.\n", commits.join("; ")));
        }
    }
    for (name, why, _) in seen.results.iter().filter(|(_, _, failed)| *failed) {
        let why = why.lines().next().unwrap_or_default();
        out.push_str(&format!("The {name} call did not work out: {why}\n"));
    }
    out.push_str(
        "\nThis was the demo model: it follows a script and cannot reason about your question. \
         To connect a real one, set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, or start \
         Ollama, LM Studio, llama.cpp or vLLM on this machine; `tw doctor` shows what was found.\n",
    );
    out
}

/// The heading and the first paragraph of what a read showed.
fn summary(read_output: &str) -> Option<String> {
    const SUMMARY_CHARS: usize = 400;
    const MARKUP: &[&str] = &["[", "!", "<", "{", "```", "---", "==="];
    let lines = read_output.lines().filter_map(|line| line.split_once(": "));
    let numbered = lines.filter(|(n, _)| n.parse::<u32>().is_ok()).map(|(_, text)| text.trim());
    let mut heading = None;
    let mut paragraph = Vec::new();
    for line in numbered {
        let is_markup = MARKUP.iter().any(|mark| line.starts_with(mark));
        match line.strip_prefix('#') {
            Some(title) if heading.is_none() => {
                heading = Some(title.trim_start_matches('#').trim().to_owned());
            }
            None if !line.is_empty() && !is_markup => paragraph.push(line),
            // The paragraph ends with a blank line, markup or the next heading.
            _ if !paragraph.is_empty() => break,
            _ => {}
        }
    }
    let text = paragraph.join(" ");
    let text: String = text.chars().take(SUMMARY_CHARS).collect();
    match (heading, text.is_empty()) {
        (Some(heading), false) => Some(format!("{heading}. {text}")),
        (Some(heading), true) => Some(heading),
        (None, false) => Some(text),
        (None, true) => None,
    }
}

fn last_prompt(request: &Request) -> String {
    let user = request.turns.iter().rev().find_map(|t| match t.as_ref() {
        Turn::User(content) => Some(text_of(content)),
        Turn::Assistant { .. } => None,
    });
    user.unwrap_or_default()
}

fn text_of(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|c| match c {
        Content::Text { text } => Some(text.as_str()),
        Content::Media(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
