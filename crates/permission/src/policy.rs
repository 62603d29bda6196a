//! Judging a request by all layers.

use serde::Serialize;

use crate::rule::{Action, Layer, LayerKind, Rule};
use crate::wildcard::matches;

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
    /// Stays inside an active sandbox: a command that runs there without network, or a write inside
    /// the workspace that can be undone while one is active. The shipped *ask* does not apply.
    pub contained: bool,
    /// Read off the text of something that is judged itself (a path in a shell command): what people
    /// wrote about it counts, what ships and what nobody wrote does not.
    pub advisory: bool,
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

/// What a person agreed to for as long as this session runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub permission: String,
    pub pattern: String,
}

impl Approval {
    /// A command that holds a star is not a pattern: only a lone star and the content of a folder
    /// stand for more than they say.
    fn covers(&self, pattern: &str) -> bool {
        let is_pattern = self.pattern == "*" || self.pattern.ends_with("/*");
        if is_pattern { matches(pattern, &self.pattern) } else { pattern == self.pattern }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Policy {
    layers: Vec<Layer>,
    approvals: Vec<Approval>,
    auto: bool,
    everything: bool,
}

impl Policy {
    /// Layers may come in any order.
    pub fn new(mut layers: Vec<Layer>) -> Self {
        layers.sort_by_key(|layer| layer.kind);
        Self { layers, approvals: Vec::new(), auto: false, everything: false }
    }

    /// Every *ask* becomes *allow*; *deny* stays.
    pub fn with_auto(mut self, auto: bool) -> Self {
        self.auto = auto;
        self
    }

    /// Not even the floor holds. For machines that can be thrown away.
    pub fn with_everything(mut self, everything: bool) -> Self {
        self.everything = everything;
        self
    }

    /// What a person agreed to under other rules still holds, as far as these ask at all.
    pub fn keeping_approvals_of(mut self, other: &Self) -> Self {
        self.approvals.clone_from(&other.approvals);
        self
    }

    /// Adds to the shipped defaults; every configured layer still has its say.
    pub fn allow_by_default(&mut self, permission: &str, pattern: &str) {
        let (permission, pattern) = (permission.to_owned(), pattern.to_owned());
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

    /// The last matching rule wins, but a layer whose own verdict is *deny* is not overruled by
    /// those inside it. With no rule at all the answer is *deny*.
    pub fn judge(&self, request: &Request) -> Judgement {
        let about = |rule: &Rule| {
            matches(&request.pattern, &rule.pattern)
                || request.also.as_ref().is_some_and(|also| matches(also, &rule.pattern))
        };
        if let Some(floor) = request.floor.as_ref().filter(|_| !self.everything) {
            return Judgement {
                action: Action::Deny,
                rule: None,
                from: "the floor".to_owned(),
                why: format!("never allowed: {floor}"),
            };
        }
        let fits = |rule: &&Rule| matches(&request.permission, &rule.permission) && about(rule);
        let mut verdict: Option<(&Layer, &Rule)> = None;
        for layer in &self.layers {
            if let Some(rule) = layer.rules.iter().rfind(fits) {
                verdict = Some((layer, rule));
                if rule.action == Action::Deny {
                    break;
                }
            }
        }
        let Some((layer, rule)) = verdict else {
            if request.advisory {
                return Judgement {
                    action: Action::Allow,
                    rule: None,
                    from: "no rule".to_owned(),
                    why: "nobody has said anything about it".to_owned(),
                };
            }
            return Judgement {
                action: Action::Deny,
                rule: None,
                from: "no rule".to_owned(),
                why: format!("no rule covers {} {}", request.permission, request.pattern),
            };
        };
        let (action, why) = self.settle(request, layer, rule);
        Judgement { action, rule: Some(rule.clone()), from: layer.origin.clone(), why }
    }

    /// Whether a tool with this permission could ever be allowed: if not, it need not be offered.
    pub fn always_denies(&self, permission: &str) -> bool {
        self.layers.iter().any(|layer| {
            let last = layer.rules.iter().rfind(|rule| matches(permission, &rule.permission));
            last.is_some_and(|rule| rule.action == Action::Deny && rule.pattern == "*")
        })
    }

    /// Whether the rules themselves allow it: neither `--auto` nor an approval is asked.
    pub fn allows_by_rule(&self, request: &Request) -> bool {
        self.judge(request).rule.is_some_and(|rule| rule.action == Action::Allow)
    }

    fn settle(&self, request: &Request, layer: &Layer, rule: &Rule) -> (Action, String) {
        let by = format!(
            "{} by the rule {} \"{}\" of {}",
            rule.action, rule.permission, rule.pattern, layer.origin
        );
        // Whoever allows everything means everything; whoever allows a kind of command means one that
        // can be recognised.
        if let Some(doubt) = request.doubt.as_ref().filter(|_| {
            rule.action == Action::Allow && rule.pattern != "*" && !self.auto && !self.everything
        }) {
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
        let agreed = self.approvals.iter().any(|approval| {
            approval.permission == request.permission && approval.covers(&request.pattern)
        });
        if agreed {
            return (Action::Allow, "approved earlier in this session".to_owned());
        }
        if self.auto {
            return (Action::Allow, "--auto".to_owned());
        }
        (Action::Ask, by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults::shipped_defaults;

    fn layer(kind: LayerKind, rules: &[(&str, &str, Action)]) -> Layer {
        let rules = rules.iter().map(|(k, p, a)| Rule::new(k, p, *a, "/home/x")).collect();
        Layer { kind, origin: format!("{kind:?}"), rules }
    }

    fn request(permission: &str, pattern: &str) -> Request {
        Request {
            permission: permission.to_owned(),
            pattern: pattern.to_owned(),
            always: pattern.to_owned(),
            ..Request::default()
        }
    }

    #[test]
    fn the_last_matching_rule_wins_within_a_layer() {
        use Action::*;
        let allow_last = layer(LayerKind::User, &[("*", "*", Deny), ("bash", "*", Allow)]);
        let deny_last = layer(LayerKind::User, &[("bash", "*", Allow), ("*", "*", Deny)]);
        assert_eq!(Policy::new(vec![allow_last]).judge(&request("bash", "ls")).action, Allow);
        assert_eq!(Policy::new(vec![deny_last]).judge(&request("bash", "ls")).action, Deny);
    }

    #[test]
    fn no_inner_layer_and_no_approval_lifts_a_deny() {
        use Action::*;
        let user = layer(LayerKind::User, &[("bash", "rm *", Deny)]);
        let inner = [LayerKind::Project, LayerKind::Agent, LayerKind::Session]
            .map(|kind| layer(kind, &[("*", "*", Allow)]));
        let mut layers = vec![shipped_defaults(), user];
        layers.extend(inner);
        let mut policy = Policy::new(layers).with_auto(true);
        policy.approve(Approval { permission: "bash".into(), pattern: "*".into() });
        assert_eq!(policy.judge(&request("bash", "rm -rf x")).action, Deny);
        assert_eq!(policy.judge(&request("bash", "make")).action, Allow);
    }

    #[test]
    fn an_empty_rule_set_denies() {
        assert_eq!(Policy::new(Vec::new()).judge(&request("read", "a")).action, Action::Deny);
    }

    #[test]
    fn auto_and_approvals_turn_ask_into_allow() {
        let policy = Policy::new(vec![shipped_defaults()]);
        assert_eq!(policy.judge(&request("edit", "a.rs")).action, Action::Ask);
        let mut approved = policy.clone();
        approved.approve(Approval { permission: "edit".into(), pattern: "*".into() });
        assert_eq!(approved.judge(&request("edit", "a.rs")).action, Action::Allow);
        assert_eq!(approved.judge(&request("bash", "a.rs")).action, Action::Ask);
        assert_eq!(policy.with_auto(true).judge(&request("edit", "a.rs")).action, Action::Allow);
    }

    #[test]
    fn shipped_defaults_ask_before_secrets_are_read() {
        let policy = Policy::new(vec![shipped_defaults()]);
        for (path, action) in [
            ("src/main.rs", Action::Allow),
            (".env", Action::Ask),
            ("app/.env.local", Action::Ask),
            (".env.example", Action::Allow),
            (".envrc", Action::Allow),
            ("environment.ts", Action::Allow),
            ("certs/server.pem", Action::Ask),
            (".ssh/id_rsa", Action::Ask),
            (".ssh/id_rsa.pub", Action::Allow),
            (".ssh/config", Action::Ask),
            ("/home/x/.aws/credentials", Action::Ask),
            ("aws/main.tf", Action::Allow),
        ] {
            assert_eq!(policy.judge(&request("read", path)).action, action, "{path}");
        }
    }

    #[test]
    fn a_user_rule_that_asks_holds_for_harmless_commands_too() {
        let user = layer(LayerKind::User, &[("bash", "git *", Action::Ask)]);
        let policy = Policy::new(vec![shipped_defaults(), user]);
        let harmless = Request { harmless: true, ..request("bash", "git status") };
        assert_eq!(policy.judge(&harmless).action, Action::Ask);
        let other = Request { harmless: true, ..request("bash", "ls") };
        assert_eq!(policy.judge(&other).action, Action::Allow);
    }

    #[test]
    fn what_stays_in_the_sandbox_is_not_asked_about_unless_somebody_said_so() {
        let contained = |pattern: &str| Request { contained: true, ..request("bash", pattern) };
        let shipped = Policy::new(vec![shipped_defaults()]);
        assert_eq!(shipped.judge(&contained("make")).action, Action::Allow);
        assert_eq!(shipped.judge(&request("bash", "make")).action, Action::Ask);
        let user = layer(LayerKind::User, &[("bash", "git *", Action::Ask)]);
        let policy = Policy::new(vec![shipped_defaults(), user]);
        assert_eq!(policy.judge(&contained("git push")).action, Action::Ask);
        let floored = Request { floor: Some("it is the root".into()), ..contained("rm -rf /") };
        assert_eq!(shipped.judge(&floored).action, Action::Deny);
    }

    #[test]
    fn an_approved_command_is_no_pattern() {
        let mut policy = Policy::new(vec![shipped_defaults()]);
        policy.approve(Approval { permission: "bash".into(), pattern: "rm *.log".into() });
        assert_eq!(policy.judge(&request("bash", "rm *.log")).action, Action::Allow);
        assert_eq!(policy.judge(&request("bash", "rm -rf / a.log")).action, Action::Ask);
    }

    #[test]
    fn a_rule_may_be_about_the_short_or_the_full_path() {
        let user = layer(LayerKind::User, &[("read", "~/.ssh/*", Action::Deny)]);
        let policy = Policy::new(vec![shipped_defaults(), user]);
        let read = Request { also: Some("/home/x/.ssh/id".into()), ..request("read", ".ssh/id") };
        assert_eq!(policy.judge(&read).action, Action::Deny);
    }

    #[test]
    fn home_is_expanded_at_the_start_only() {
        let rule = |p| Rule::new("read", p, Action::Allow, "/home/x").pattern;
        assert_eq!(rule("~/a"), "/home/x/a");
        assert_eq!(rule("$HOME/a"), "/home/x/a");
        assert_eq!(rule("~"), "/home/x");
        assert_eq!(rule("~user/a"), "~user/a");
        assert_eq!(rule("a/~/b"), "a/~/b");
        assert_eq!(rule("$HOMEX"), "$HOMEX");
    }
}
