//! What a person agreed to beyond one call: how far it reaches, for how long, and what may be offered.

use serde::{Deserialize, Serialize};

use crate::policy::{Judgement, Request};
use crate::rule::Rule;
use crate::shell::analyse;
use crate::wildcard::matches;

/// For how long and where something is agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// While this run goes on.
    #[default]
    Session,
    /// In this repository, from now on.
    Project,
    /// For this user, from now on.
    Everywhere,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::Session, Self::Project, Self::Everywhere];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
            Self::Everywhere => "everywhere",
        }
    }
}

/// How much of what was asked is agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// This, and nothing else.
    Exact,
    /// What begins like it: the same kind of command, the same folder, the same host.
    Prefix,
    /// Everything that the rules ask about under the same key.
    Tool,
}

/// Something that was agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub permission: String,
    pub pattern: String,
    /// Whether stars in the pattern mean something. A command may hold a star of its own.
    pub exact: bool,
    #[serde(default)]
    pub scope: Scope,
    /// What was asked about when it was given, as rules see it.
    #[serde(default)]
    pub command: String,
}

impl Approval {
    /// Never what cannot be known: somebody who agreed has seen something else.
    pub fn covers(&self, request: &Request) -> bool {
        if request.doubt.is_some() || self.permission != request.permission {
            return false;
        }
        if self.exact {
            return request.pattern == self.pattern;
        }
        // Whoever agreed to a kind of command has not agreed to where its output goes.
        let redirects = request.permission == "bash" && request.pattern.contains('>');
        self.pattern == "*" || (!redirects && matches(&request.pattern, &self.pattern))
    }
}

/// One way to say "always".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    pub extent: Extent,
    pub pattern: String,
}

/// A part of a call that somebody has to decide about, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Asked {
    pub permission: String,
    pub pattern: String,
    pub rule: Option<Rule>,
    /// Where the rule stands.
    pub from: String,
    pub why: String,
    /// Empty where "always" cannot be said.
    pub suggestions: Vec<Suggestion>,
}

impl Asked {
    pub fn new(request: &Request, judgement: Judgement) -> Self {
        let Judgement { rule, from, why, .. } = judgement;
        let (permission, pattern) = (request.permission.clone(), request.pattern.clone());
        Self { permission, pattern, rule, from, why, suggestions: suggestions(request) }
    }
}

/// What a person can choose from, beside once and no.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Offer {
    pub why: String,
    pub asked: Vec<Asked>,
    pub scopes: Vec<Scope>,
}

/// What a person chose with "always". Without patterns and extent: what is usual for the tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    pub scope: Scope,
    pub extent: Option<Extent>,
    /// Of the person's own making; together they must cover what was asked.
    pub patterns: Vec<String>,
}

/// Programs whose kind says nothing about what they do: they run what they are given, or reach far
/// with few words. Somebody can still write such a rule; it is not offered.
const NOT_A_KIND: &[&str] = &[
    ".",
    "ash",
    "awk",
    "bash",
    "builtin",
    "bun",
    "bunx",
    "busybox",
    "chmod",
    "chown",
    "command",
    "csh",
    "curl",
    "dash",
    "dd",
    "deno",
    "doas",
    "docker",
    "env",
    "eval",
    "exec",
    "expect",
    "fish",
    "find",
    "gawk",
    "gdb",
    "ksh",
    "ln",
    "lua",
    "make",
    "mv",
    "nc",
    "ncat",
    "nice",
    "node",
    "nohup",
    "npx",
    "nsenter",
    "osascript",
    "parallel",
    "perl",
    "php",
    "pkexec",
    "podman",
    "powershell",
    "pwsh",
    "python",
    "python2",
    "python3",
    "rm",
    "rsync",
    "ruby",
    "scp",
    "screen",
    "sed",
    "setsid",
    "sh",
    "shred",
    "socat",
    "source",
    "ssh",
    "strace",
    "su",
    "sudo",
    "tclsh",
    "time",
    "timeout",
    "tmux",
    "uvx",
    "vim",
    "watch",
    "wget",
    "xargs",
    "zsh",
];

/// What can be offered for this request, the narrowest first.
pub fn suggestions(request: &Request) -> Vec<Suggestion> {
    let of = |extent, pattern: &str| Suggestion { extent, pattern: pattern.to_owned() };
    if request.doubt.is_some() || request.floor.is_some() {
        return Vec::new();
    }
    if request.permission == "external_directory" {
        // All that is outside is no tool.
        return vec![of(Extent::Prefix, &request.always)];
    }
    let mut found = Vec::new();
    if request.pattern != "*" {
        found.push(of(Extent::Exact, &request.pattern));
    }
    if let Some(prefix) = prefix(request).filter(|prefix| *prefix != request.pattern) {
        found.push(of(Extent::Prefix, &prefix));
    }
    found.push(of(Extent::Tool, "*"));
    found
}

fn prefix(request: &Request) -> Option<String> {
    match request.permission.as_str() {
        "bash" => kind_of_command(&request.pattern),
        "edit" | "read" => {
            let (folder, _) = request.pattern.rsplit_once('/')?;
            (!folder.is_empty()).then(|| format!("{folder}/*"))
        }
        "webfetch" => {
            let (scheme, rest) = request.pattern.split_once("://")?;
            let host = rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty())?;
            Some(format!("{scheme}://{host}/*"))
        }
        _ => None,
    }
}

/// `git push *` for a `git push origin`; nothing where the beginning does not say what is done.
fn kind_of_command(command: &str) -> Option<String> {
    let analysis = analyse(command);
    let [only] = analysis.commands.as_slice() else { return None };
    // A variable or a redirection is part of the text and not of the kind.
    let words: Vec<&str> = only.always.strip_suffix(" *")?.split(' ').collect();
    let first = words.first()?;
    let plain = |word: &&str| {
        !word.starts_with('-') && word.chars().all(|c| c.is_alphanumeric() || "-_.:/@+".contains(c))
    };
    let means_anything = match words.len() {
        1 => NOT_A_KIND.contains(first),
        2 => ["docker", "podman"].contains(first),
        _ => false,
    };
    let is_plain = words.iter().all(plain) && !first.contains('/') && !command.contains('>');
    let begins_with_it = command.starts_with(&words.join(" "));
    (is_plain && begins_with_it && !means_anything).then(|| only.always.clone())
}

/// Folders that nobody means when one folder was asked about.
fn is_too_wide(permission: &str, pattern: &str, home: &str) -> bool {
    let bare = pattern.trim_end_matches(['*', '/', '?']);
    permission == "external_directory"
        && (bare.is_empty() || bare == home || !bare.starts_with('/'))
}

/// What a grant comes to for these requests, or why it cannot be given.
pub fn agree(requests: &[Request], grant: &Grant, home: &str) -> Result<Vec<Approval>, String> {
    let approval = |request: &Request, pattern: &str, exact: bool| Approval {
        permission: request.permission.clone(),
        pattern: pattern.to_owned(),
        exact,
        scope: grant.scope,
        command: request.pattern.clone(),
    };
    let mut found: Vec<Approval> = Vec::new();
    // No rule asks: whoever does will ask again.
    if requests.is_empty() {
        return Ok(found);
    }
    if grant.patterns.is_empty() {
        for request in requests {
            let offered = suggestions(request);
            let wanted = match grant.extent {
                Some(extent) => choose(&offered, extent),
                // What is kept for long is kept narrow.
                None if grant.scope != Scope::Session => offered.first(),
                None if offered.is_empty() => None,
                None => {
                    let exact = request.always == request.pattern && request.permission == "bash";
                    found.push(approval(request, &request.always, exact));
                    continue;
                }
            };
            if let Some(Suggestion { extent, pattern }) = wanted {
                found.push(approval(request, pattern, *extent == Extent::Exact));
            }
        }
        return Ok(found);
    }
    for pattern in grant.patterns.iter().map(|pattern| pattern.trim()) {
        let rule = Rule::new("", pattern, crate::rule::Action::Allow, home);
        let mut used = false;
        for request in requests {
            let exact = request.pattern == pattern;
            let candidate = approval(request, &rule.pattern, exact);
            if !candidate.covers(request) {
                continue;
            }
            if is_too_wide(&request.permission, &rule.pattern, home) {
                return Err(format!(
                    "\"{pattern}\" is wider than what was asked ({} {}); name a folder, or write it into the configuration",
                    request.permission, request.pattern
                ));
            }
            used = true;
            found.push(candidate);
        }
        if !used {
            let asked: Vec<&str> = requests.iter().map(|r| r.pattern.as_str()).collect();
            return Err(format!("the pattern \"{pattern}\" does not cover {}", asked.join(", ")));
        }
    }
    let left = requests.iter().find(|r| !found.iter().any(|approval| approval.covers(r)));
    match left {
        Some(Request { doubt: Some(doubt), .. }) => {
            Err(format!("this can only be allowed once, because {doubt}"))
        }
        Some(request) => Err(format!(
            "the pattern does not cover {} {}; name one for it too",
            request.permission, request.pattern
        )),
        None => Ok(found),
    }
}

/// The one that reaches as far; where there is none, the next narrower one, or the narrowest.
fn choose(offered: &[Suggestion], extent: Extent) -> Option<&Suggestion> {
    offered.iter().rev().find(|s| s.extent <= extent).or(offered.first())
}

impl Offer {
    /// What could be said for the call as a whole: for each extent a pattern for each part.
    pub fn choices(&self) -> Vec<(Extent, Vec<String>)> {
        let all = self.asked.iter().flat_map(|asked| &asked.suggestions);
        let mut extents: Vec<Extent> = all.map(|suggestion| suggestion.extent).collect();
        extents.sort();
        extents.dedup();
        let patterns = |extent: &Extent| {
            let one = |asked: &Asked| {
                let chosen = choose(&asked.suggestions, *extent)?;
                Some(format!("{} {}", asked.permission, chosen.pattern))
            };
            self.asked.iter().filter_map(one).collect()
        };
        extents.iter().map(|extent| (*extent, patterns(extent))).collect()
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
