use super::*;
use crate::defaults::shipped_defaults;

fn layer(kind: LayerKind, rules: &[(&str, &str, Action)]) -> Layer {
    let rules = rules.iter().map(|(k, p, a)| Rule::new(k, p, *a, "/home/x")).collect();
    Layer { kind, origin: format!("{kind:?}"), rules }
}

fn approval(permission: &str, pattern: &str, exact: bool) -> Approval {
    let (permission, pattern) = (permission.to_owned(), pattern.to_owned());
    Approval { permission, pattern, exact, scope: Scope::Session, command: String::new() }
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
    let mut policy = Policy::new(layers).with_mode(Mode::Auto);
    policy.approve(approval("bash", "*", false));
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
    approved.approve(approval("edit", "*", false));
    assert_eq!(approved.judge(&request("edit", "a.rs")).action, Action::Allow);
    assert_eq!(approved.judge(&request("bash", "a.rs")).action, Action::Ask);
    assert_eq!(policy.with_mode(Mode::Auto).judge(&request("edit", "a.rs")).action, Action::Allow);
}

#[test]
fn what_nobody_asked_for_is_left_to_rules_and_people_in_every_mode() {
    let policy = Policy::new(vec![shipped_defaults()]);
    let offered = Request { unasked: true, ..request("outside_sandbox", "make") };
    let auto = policy.with_mode(Mode::Auto);
    assert_eq!(auto.judge(&offered).action, Action::Ask);
    assert_eq!(auto.judge(&request("outside_sandbox", "make")).action, Action::Allow);
    let mut approved = auto;
    approved.approve(approval("outside_sandbox", "make", true));
    assert_eq!(approved.judge(&offered).action, Action::Allow);
    let rule = layer(LayerKind::User, &[("outside_sandbox", "make", Action::Allow)]);
    let policy = Policy::new(vec![shipped_defaults(), rule]);
    assert_eq!(policy.judge(&offered).action, Action::Allow);
}

#[test]
fn shipped_defaults_ask_before_secrets_are_read() {
    let policy = Policy::new(vec![shipped_defaults()]);
    for (path, action) in [
        ("src/main.rs", Action::Allow),
        (".env", Action::Ask),
        ("app/.env.local", Action::Ask),
        (".env.example", Action::Allow),
        (".envrc", Action::Ask),
        (".env-local", Action::Ask),
        ("app/.env_prod", Action::Ask),
        (".env~", Action::Ask),
        ("keys/AuthKey_1.p8", Action::Ask),
        (".environment", Action::Allow),
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
fn an_approved_command_is_no_pattern() {
    let mut policy = Policy::new(vec![shipped_defaults()]);
    policy.approve(approval("bash", "rm *.log", true));
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

#[test]
fn files_of_one_kind_are_one_layer() {
    use Action::*;
    let file = |rules| layer(LayerKind::User, rules);
    let policy = Policy::new(vec![
        layer(LayerKind::Managed, &[("bash", "rm *", Deny)]),
        file(&[("bash", "*", Deny)]),
        file(&[("bash", "*", Allow)]),
    ]);
    assert_eq!(policy.judge(&request("bash", "make")).action, Allow, "one takes back one's own");
    assert_eq!(policy.judge(&request("bash", "rm x")).action, Deny, "and nobody else's");
    assert!(!policy.always_denies("bash"));
}

#[test]
fn accept_edits_changes_files_of_the_workspace_and_nothing_else() {
    let policy = Policy::new(vec![shipped_defaults()]).with_mode(Mode::AcceptEdits);
    for (permission, pattern, action) in [
        ("edit", "src/main.rs", Action::Allow),
        ("edit", ".git/hooks/pre-commit", Action::Ask),
        ("edit", "sub/.git/config", Action::Ask),
        ("edit", "opencode.json", Action::Ask),
        ("edit", ".toolwright/toolwright.json", Action::Ask),
        ("edit", ".claude/settings.json", Action::Ask),
        ("edit", "/etc/hosts", Action::Ask),
        ("external_directory", "/etc/*", Action::Ask),
        ("bash", "make", Action::Ask),
        ("read", ".env", Action::Ask),
    ] {
        assert_eq!(policy.judge(&request(permission, pattern)).action, action, "{pattern}");
    }
    let mine = layer(LayerKind::User, &[("edit", "*", Action::Ask), ("edit", "db/*", Action::Ask)]);
    let policy = Policy::new(vec![shipped_defaults(), mine]).with_mode(Mode::AcceptEdits);
    assert_eq!(policy.judge(&request("edit", "src/a.rs")).action, Action::Allow);
    assert_eq!(
        policy.judge(&request("edit", "db/1.sql")).action,
        Action::Ask,
        "it has its own rule"
    );
}

#[test]
fn plan_reads_and_does_nothing_else_whatever_is_allowed() {
    let all = layer(LayerKind::User, &[("*", "*", Action::Allow)]);
    let mut policy = Policy::new(vec![shipped_defaults(), all]).with_mode(Mode::Plan);
    policy.approve(approval("bash", "*", false));
    let reading = Request { read_only: true, ..request("read", "a.rs") };
    let harmless = Request { harmless: true, ..request("bash", "git status") };
    let redirect = Request { advisory: true, ..request("edit", "out.txt") };
    for (asked, action) in [
        (reading, Action::Allow),
        (harmless, Action::Allow),
        (request("edit", ".toolwright/plans/x.md"), Action::Allow),
        (request("edit", "src/a.rs"), Action::Deny),
        (request("bash", "make"), Action::Deny),
        (request("some_tool", "*"), Action::Deny),
        (redirect, Action::Deny),
    ] {
        assert_eq!(policy.judge(&asked).action, action, "{asked:?}");
    }
}

#[test]
fn everything_lifts_the_floor_and_ones_own_rules_but_no_administrators() {
    let stance = Stance { everything: true, ..Stance::default() };
    let policy = Policy::new(vec![
        shipped_defaults(),
        layer(LayerKind::Managed, &[("bash", "shutdown*", Action::Deny)]),
        layer(LayerKind::User, &[("bash", "*", Action::Deny)]),
        layer(LayerKind::Agent, &[("edit", "*", Action::Deny)]),
    ]);
    let floor = Request { floor: Some("it deletes /".into()), ..request("bash", "rm -rf /") };
    assert_eq!(policy.clone().with_mode(Mode::Auto).judge(&floor).action, Action::Deny);
    let policy = policy.with_stance(stance);
    assert_eq!(policy.judge(&floor).action, Action::Allow);
    assert_eq!(policy.judge(&request("bash", "make")).action, Action::Allow);
    assert_eq!(policy.judge(&request("unheard_of", "x")).action, Action::Allow);
    assert_eq!(policy.judge(&request("bash", "shutdown now")).action, Action::Deny);
    assert_eq!(policy.judge(&request("edit", "a")).action, Action::Deny, "that agent never edits");
}

#[test]
fn an_approval_does_not_lift_a_doubt() {
    let mut policy = Policy::new(vec![shipped_defaults()]);
    policy.approve(approval("bash", "*", false));
    let doubtful = Request { doubt: Some("it is computed".into()), ..request("bash", "$X") };
    assert_eq!(policy.judge(&doubtful).action, Action::Ask);
    assert_eq!(policy.with_mode(Mode::Auto).judge(&doubtful).action, Action::Allow);
}

#[test]
fn rules_for_one_run_are_the_innermost_layer() {
    let user = layer(LayerKind::User, &[("bash", "rm *", Action::Deny)]);
    let rules = vec![
        Rule::new("bash", "*", Action::Allow, "/h"),
        Rule::new("edit", "*", Action::Deny, "/h"),
    ];
    let stance = Stance { rules, ..Stance::default() };
    let policy = Policy::new(vec![shipped_defaults(), user]).with_stance(stance);
    assert_eq!(policy.judge(&request("bash", "make")).from, "this session");
    assert_eq!(policy.judge(&request("bash", "rm x")).action, Action::Deny);
    assert_eq!(policy.judge(&request("edit", "a")).action, Action::Deny);
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
