//! Judging a request by all layers.

use serde::Serialize;

use crate::approval::{Approval, Scope};
use crate::mode::{Mode, ModeCell, Stance};
use crate::rule::{Action, Layer, LayerKind, Rule};
use crate::wildcard::{begins_otherwise, matches};

/// One thing that a call would do, in the words that rules are written in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Request {
    /// `read`, `edit`, `bash`, `external_directory`, …
    pub permission: String,
    /// What it would be done to: a path, a command, a URL.
    pub pattern: String,
    /// Another way to write the same thing (a path in full); a rule may be about either.
    pub also: Option<String>,
    /// The pattern that a person who says "always" agrees to.
    pub always: String,
    /// Known to read only and to stay inside the workspace: the shipped *ask* does not apply.
    pub harmless: bool,
    /// Changes nothing outside the session: may be done while planning.
    pub read_only: bool,
    /// Stays inside an active sandbox: a command that runs there without network, or a write inside
    /// the workspace that can be undone while one is active. The shipped *ask* does not apply.
    pub contained: bool,
    /// Read off the text of something that is judged itself (a path in a shell command): what people
    /// wrote about it counts, what ships and what nobody wrote does not.
    pub advisory: bool,
    /// Another spelling of a command that is judged as it is written: only what people wrote against
    /// this very kind of command counts.
    pub respelled: bool,
    /// Nobody asked for it: no mode turns its *ask* into *allow*, only rules and people do.
    #[serde(skip)]
    pub unasked: bool,
    /// Why it is refused whatever the rules say.
    pub floor: Option<String>,
    /// What cannot be known about it: a rule for one kind of command is then not enough.
    pub doubt: Option<String>,
}

/// The answer for one request, with the rule that gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    pub action: Action,
    pub rule: Option<Rule>,
    pub from: String,
    pub why: String,
}

impl Judgement {
    fn plain(action: Action, from: &str, why: String) -> Self {
        Self { action, rule: None, from: from.to_owned(), why }
    }
}

/// All that is written while a plan is made.
pub const PLAN_FILES: &[&str] = &[".opencode/plans/*.md", ".toolwright/plans/*.md"];

/// Where a change makes something run later, or changes what may be done: asked about even where
/// other edits are not.
const DELICATE: &[&str] = &[
    ".git",
    "*/.git",
    ".git/*",
    "*/.git/*",
    ".opencode/*",
    "*/.opencode/*",
    ".toolwright/*",
    "*/.toolwright/*",
    ".claude/*",
    "*/.claude/*",
    "*opencode.json",
    "*opencode.jsonc",
    "*toolwright.json",
    "*toolwright.jsonc",
    "*.envrc",
    ".husky/*",
    ".github/workflows/*",
];

#[derive(Debug, Clone, Default)]
pub struct Policy {
    layers: Vec<Layer>,
    approvals: Vec<Approval>,
    stance: Stance,
    /// What was added to the shipped defaults.
    added: Vec<(String, String)>,
}

impl Policy {
    /// Layers may come in any order; those of one kind count as one, in the order given.
    pub fn new(mut layers: Vec<Layer>) -> Self {
        layers.sort_by_key(|layer| layer.kind);
        Self { layers, ..Self::default() }
    }

    /// How strictly the rules are taken; who else has the same cell changes the mode here too. Its
    /// own rules become the innermost layer.
    pub fn with_stance(mut self, mut stance: Stance) -> Self {
        let rules = std::mem::take(&mut stance.rules);
        if !rules.is_empty() {
            let origin = "this session".to_owned();
            self.layers.push(Layer { kind: LayerKind::Session, origin, rules });
        }
        self.stance = stance;
        self
    }

    pub fn with_mode(self, mode: Mode) -> Self {
        let stance = Stance { mode: ModeCell::new(mode), ..self.stance.clone() };
        self.with_stance(stance)
    }

    pub fn stance(&self) -> &Stance {
        &self.stance
    }

    /// From the outermost to the innermost.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    pub fn approvals(&self) -> &[Approval] {
        &self.approvals
    }

    /// What a person agreed to under other rules still holds, as far as these ask at all.
    pub fn keeping_approvals_of(mut self, other: &Self) -> Self {
        self.approvals.clone_from(&other.approvals);
        for (permission, pattern) in &other.added {
            self.allow_by_default(permission, pattern);
        }
        self
    }

    /// Adds to the shipped defaults; every configured layer still has its say.
    pub fn allow_by_default(&mut self, permission: &str, pattern: &str) {
        let (permission, pattern) = (permission.to_owned(), pattern.to_owned());
        self.added.push((permission.clone(), pattern.clone()));
        let rule = Rule { permission, pattern, action: Action::Allow };
        if let Some(layer) = self.layers.iter_mut().find(|l| l.kind == LayerKind::Defaults) {
            layer.rules.push(rule);
        }
    }

    /// Where we keep what was too large for an answer: the model is told to look there.
    pub fn allow_outputs(&mut self, folder: &std::path::Path) {
        self.allow_by_default("external_directory", &format!("{}/*", folder.display()));
    }

    pub fn approve(&mut self, approval: Approval) {
        self.approvals.push(approval);
    }

    /// Takes back what was agreed to.
    pub fn forget(&mut self, approval: &Approval) {
        self.approvals.retain(|own| own != approval);
    }

    /// The last matching rule wins, but a kind of layer whose own verdict is *deny* is not overruled
    /// by those inside it. With no rule at all the answer is *deny*.
    pub fn judge(&self, request: &Request) -> Judgement {
        let everything = self.stance.everything;
        if let Some(floor) = request.floor.as_ref().filter(|_| !everything) {
            return Judgement::plain(Action::Deny, "the floor", format!("never allowed: {floor}"));
        }
        let verdict = self.verdict(request);
        if let Some((layer, rule)) = verdict.filter(|(_, rule)| rule.action == Action::Deny) {
            return Judgement {
                action: Action::Deny,
                rule: Some(rule.clone()),
                from: layer.origin.clone(),
                why: said_by(layer, rule),
            };
        }
        let mode = self.stance.mode.get();
        if mode == Mode::Plan && !may_be_done_while_planning(request) {
            let why =
                "the mode is plan: nothing is changed, and nothing is run but what only reads";
            return Judgement::plain(Action::Deny, "the mode", why.to_owned());
        }
        if everything {
            let why = "--dangerously-allow-everything".to_owned();
            return Judgement::plain(Action::Allow, "the command line", why);
        }
        let Some((layer, rule)) = verdict else {
            if request.advisory || request.respelled {
                let why = "nobody has said anything about it".to_owned();
                return Judgement::plain(Action::Allow, "no rule", why);
            }
            let why = format!("no rule covers {} {}", request.permission, request.pattern);
            return Judgement::plain(Action::Deny, "no rule", why);
        };
        let (action, why) = self.settle(request, layer, rule, mode);
        Judgement { action, rule: Some(rule.clone()), from: layer.origin.clone(), why }
    }

    /// Whether a tool with this permission could ever be allowed: if not, it need not be offered.
    pub fn always_denies(&self, permission: &str) -> bool {
        self.kinds().any(|layers| {
            let rules = layers.iter().rev().flat_map(|layer| layer.rules.iter().rev());
            let last = rules.into_iter().find(|rule| matches(permission, &rule.permission));
            last.is_some_and(|rule| rule.action == Action::Deny && rule.pattern == "*")
        })
    }

    /// Whether the rules themselves allow it: neither a mode nor an approval is asked.
    pub fn allows_by_rule(&self, request: &Request) -> bool {
        self.judge(request).rule.is_some_and(|rule| rule.action == Action::Allow)
    }

    /// The layers of each kind together, from the outermost to the innermost.
    fn kinds(&self) -> impl Iterator<Item = &[Layer]> {
        self.layers.chunk_by(|a, b| a.kind == b.kind)
    }

    /// The rule that counts, with its layer.
    fn verdict(&self, request: &Request) -> Option<(&Layer, &Rule)> {
        let about = |rule: &Rule| {
            matches(&request.pattern, &rule.pattern)
                || request.also.as_ref().is_some_and(|also| matches(also, &rule.pattern))
        };
        let meant = |own: &str| own == request.permission || matches(&request.permission, own);
        // Most rules are about something else, and their first letter says so before anything is compared.
        let other = |rule: &Rule| {
            request.also.is_none() && begins_otherwise(&request.pattern, &rule.pattern)
        };
        let fits = |rule: &&Rule| !other(rule) && meant(&rule.permission) && about(rule);
        let mut verdict = None;
        for layers in self.kinds() {
            let last = layers
                .iter()
                .rev()
                .find_map(|layer| layer.rules.iter().rfind(fits).map(|rule| (layer, rule)));
            let Some((layer, rule)) = last else { continue };
            // Whoever says on the command line that everything is allowed takes back what they
            // wrote for themselves: not what an administrator set, nor what an agent is.
            let taken_back = self.stance.everything
                && rule.action == Action::Deny
                && matches!(layer.kind, LayerKind::Defaults | LayerKind::User | LayerKind::Project);
            if taken_back {
                continue;
            }
            verdict = Some((layer, rule));
            if rule.action == Action::Deny {
                break;
            }
        }
        verdict
    }

    fn settle(
        &self,
        request: &Request,
        layer: &Layer,
        rule: &Rule,
        mode: Mode,
    ) -> (Action, String) {
        let by = said_by(layer, rule);
        if request.respelled && (rule.action == Action::Allow || rule.pattern == "*") {
            return (Action::Allow, "it is judged as it is written".to_owned());
        }
        // Whoever allows everything means everything; whoever allows a kind of command means one that
        // can be recognised.
        if let Some(doubt) = request
            .doubt
            .as_ref()
            .filter(|_| rule.action == Action::Allow && rule.pattern != "*" && mode != Mode::Auto)
        {
            return (Action::Ask, format!("{by}, but {doubt}"));
        }
        if rule.action != Action::Ask {
            return (rule.action, by);
        }
        if request.harmless && layer.kind == LayerKind::Defaults {
            return (Action::Allow, "it only reads, inside the workspace".to_owned());
        }
        if request.contained && layer.kind == LayerKind::Defaults {
            return (Action::Allow, "it stays inside the sandbox".to_owned());
        }
        if request.advisory && layer.kind == LayerKind::Defaults {
            return (Action::Allow, "the command is judged itself".to_owned());
        }
        if let Some(approval) = self.approvals.iter().find(|approval| approval.covers(request)) {
            let when = match approval.scope {
                Scope::Session => "approved earlier in this session",
                Scope::Project => "approved for this project",
                Scope::Everywhere => "approved for all projects",
            };
            return (Action::Allow, when.to_owned());
        }
        match mode {
            Mode::Auto if request.unasked => (Action::Ask, format!("{by}; {UNASKED}")),
            Mode::Auto => (Action::Allow, "--auto".to_owned()),
            Mode::AcceptEdits if is_accepted_edit(request, rule) => {
                (Action::Allow, "the mode is accept-edits".to_owned())
            }
            Mode::Ask | Mode::AcceptEdits | Mode::Plan => (Action::Ask, by),
        }
    }
}

/// What a program says can be what led here, and programs say what they like.
const UNASKED: &str = "--auto covers only what the model asks for itself";

/// Put together by hand: it is said of every command of every line.
fn said_by(layer: &Layer, rule: &Rule) -> String {
    let action = match rule.action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    };
    let parts =
        [action, " by the rule ", &rule.permission, " \"", &rule.pattern, "\" of ", &layer.origin];
    parts.concat()
}

fn may_be_done_while_planning(request: &Request) -> bool {
    let is_plan = || {
        request.permission == "edit"
            && PLAN_FILES.iter().any(|pattern| matches(&request.pattern, pattern))
    };
    request.read_only || request.harmless || is_plan()
}

/// A change inside the workspace that nobody wrote a rule of its own for. Paths outside it are
/// written in full.
fn is_accepted_edit(request: &Request, rule: &Rule) -> bool {
    request.permission == "edit"
        && rule.pattern == "*"
        && !request.pattern.starts_with('/')
        && !DELICATE.iter().any(|pattern| matches(&request.pattern, pattern))
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "policy_properties.rs"]
mod properties;
