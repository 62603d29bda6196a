use std::time::Duration;

use crate::tests::Setup;
use crate::{Config, HookEvent, Matcher};

/// A file with one command for one event.
fn one(event: &str, command: &str) -> String {
    format!(
        r#"{{"hooks":{{"{event}":[{{"hooks":[{{"type":"command","command":"{command}"}}]}}]}}}}"#
    )
}

fn commands(config: &Config) -> Vec<&str> {
    config.hooks.iter().map(|hook| hook.command.as_str()).collect()
}

#[test]
fn a_matcher_takes_names_whole_and_looks_for_expressions() {
    let cases = [
        ("", "Bash", true),
        ("*", "Bash", true),
        ("Edit", "Edit", true),
        ("Edit", "MultiEdit", false),
        ("Edit", "edit", false),
        ("Edit|Write", "Write", true),
        ("Edit | Write", "Write", true),
        ("Edit|Write", "WriteAll", false),
        ("mcp__.*", "mcp__memory__store", true),
        ("mcp__.*", "Bash", false),
        ("mcp__brave-search__find", "mcp__brave-search__find", true),
        ("^Web", "WebFetch", true),
        ("^(?!Bash$)", "Read", true),
        ("^(?!Bash$)", "Bash", false),
    ];
    for (matcher, name, expected) in cases {
        let parsed = Matcher::try_from(matcher.to_owned()).unwrap();
        assert_eq!(parsed.fits(name), expected, "{matcher} over {name}");
    }
}

#[test]
fn hooks_of_all_files_count_from_the_outermost_in() {
    let setup = Setup::new(&[
        ("etc/toolwright/toolwright.json", &one("Stop", "managed")),
        ("config/toolwright/toolwright.json", &one("Stop", "mine")),
        ("home/.claude/settings.json", &one("Stop", "claude")),
        ("work/toolwright.json", &one("Stop", "project")),
        ("work/.claude/settings.json", &one("Stop", "project-claude")),
        ("work/inner/.claude/settings.local.json", &one("Stop", "inner")),
    ]);
    let config = setup.load(true, &[]).unwrap();
    let expected = ["managed", "mine", "claude", "project", "project-claude", "inner"];
    assert_eq!(commands(&config), expected);
    assert_eq!(config.warnings, Vec::<String>::new());
    let folders: Vec<_> = config.hooks.iter().map(|hook| hook.project.clone()).collect();
    let work = setup.root.path().join("work");
    assert_eq!(folders[3..], [None, Some(work.clone()), Some(work.join("inner"))]);
}

#[test]
fn the_whole_form_is_read() {
    let text = r#"{"model": ["other", "keys"], "hooks": {"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [
        {"type": "command", "command": "check", "timeout": 2.5, "on_failure": "block"},
        {"command": "echo ${CLAUDE_PROJECT_DIR} {env:HOME}"}]}]}}"#;
    let setup = Setup::new(&[("home/.claude/settings.json", text)]);
    let config = setup.load(false, &[("HOME", "/h")]).unwrap();
    let [check, echo] = &config.hooks[..] else { panic!("{:?}", config.hooks) };
    assert_eq!(check.event, HookEvent::PreToolUse);
    assert!(check.matcher.fits("Edit") && !check.matcher.fits("Read"));
    assert_eq!(check.timeout, Some(Duration::from_millis(2500)));
    assert_eq!((check.on_failure, echo.on_failure), (Some(crate::FailingHook::Block), None));
    assert_eq!(echo.command, "echo ${CLAUDE_PROJECT_DIR} {env:HOME}", "the shell's own business");
}

#[test]
fn a_folder_that_is_not_trusted_brings_no_hooks_and_is_named() {
    let setup = Setup::new(&[
        ("work/opencode.json", &one("Stop", "a")),
        ("work/.claude/settings.json", &one("Stop", "b")),
        ("work/inner/.claude/settings.json", "{ broken, and not used anyway"),
        ("work/.claude/settings.local.json", r#"{"disableAllHooks": true}"#),
        ("home/.claude/settings.json", &one("Stop", "mine")),
    ]);
    let config = setup.load(false, &[]).unwrap();
    assert_eq!(commands(&config), ["mine"]);
    let [said] = &config.warnings[..] else { panic!("{:?}", config.warnings) };
    assert!(
        said.contains("not used: hooks (opencode.json); hooks (.claude/settings.json)"),
        "{said}"
    );
    assert!(said.contains("--trust"), "{said}");
}

#[test]
fn a_broken_file_of_another_program_is_a_warning_that_says_where() {
    let cases = [
        ("{\n  \"hooks\": oops\n}", "settings.json:2:12: not valid JSON"),
        (
            "{\"hooks\": {\"Stop\": [\n {\"hooks\": 5}]}}",
            "settings.json:2:12: hooks.Stop[0].hooks: ",
        ),
        (
            "{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"a(\"}]}}",
            "settings.json:1:39: hooks.PreToolUse[0].matcher: \"a(\" is not a regular expression",
        ),
        (
            "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"x\", \"timeout\": -1}]}]}}",
            "expected a number of seconds, not -1",
        ),
    ];
    for (text, expected) in cases {
        let setup = Setup::new(&[
            ("home/.claude/settings.json", text),
            ("work/toolwright.json", &one("Stop", "ours")),
        ]);
        let config = setup.load(true, &[]).unwrap();
        assert!(config.warnings[0].contains(expected), "{:?}", config.warnings);
        assert_eq!(commands(&config), ["ours"]);
        let ours = Setup::new(&[("work/toolwright.json", text)]).load(true, &[]);
        assert!(ours.is_err(), "in a file of ours it is an error");
    }
}

#[test]
fn what_is_not_run_is_named() {
    let text = r#"{"hooks": {"TeammateIdle": [], "Stop": [{"hooks": [
        {"type": "prompt", "prompt": "ok?"}, {"type": "command", "command": "x", "if": "Bash(git *)"}]}]}}"#;
    let setup = Setup::new(&[("home/.claude/settings.json", text)]);
    let config = setup.load(true, &[]).unwrap();
    assert_eq!(commands(&config), ["x"]);
    assert!(config.warnings[0].contains("\"if\" of a Stop hook"), "{:?}", config.warnings);
    assert!(
        config.warnings[1].ends_with("not run: TeammateIdle, Stop of type \"prompt\""),
        "{:?}",
        config.warnings
    );
}

#[test]
fn turning_all_hooks_off_there_leaves_ours() {
    let setup = Setup::new(&[
        ("home/.claude/settings.json", r#"{"disableAllHooks": true}"#),
        ("work/.claude/settings.json", &one("Stop", "theirs")),
        ("work/toolwright.json", &one("Stop", "ours")),
    ]);
    assert_eq!(commands(&setup.load(true, &[]).unwrap()), ["ours"]);
}
