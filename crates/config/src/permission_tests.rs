use toolwright_permission::{Action, LayerKind, Rule};

use crate::rule_line;
use crate::tests::Setup;

#[test]
fn a_rule_may_carry_examples_and_a_wrong_one_is_an_error_with_its_place() {
    let right = r#"{"permission":{"bash":{
        "git push *": {"action":"ask","match":["git push origin","cd x && git push"],"not_match":["git pull"]}
    },"external_directory":{"~/notes/*":{"action":"allow","match":["~/notes/a/*","$HOME/notes/b"]}}}}"#;
    let setup = Setup::new(&[("config/toolwright/toolwright.json", right)]);
    let config = setup.load(false, &[]).unwrap();
    assert_eq!(config.layers[0].rules.len(), 2);
    assert_eq!(config.layers[0].rules[0].action, Action::Ask);
    let cases = [
        (
            "{\"permission\":{\n\"bash\":{\n\"git push *\":{\"action\":\"deny\",\n\"match\":[\"git push\",\n\"git pull\"]}}}}",
            ":5:1: the rule bash \"git push *\" does not match its match example \"git pull\"",
        ),
        (
            "{\"permission\":{\"edit\":{\"src/*\":{\"action\":\"allow\",\"not_match\":[\n\"src/a.rs\"]}}}}",
            ":2:1: the rule edit \"src/*\" matches its not_match example \"src/a.rs\"",
        ),
        (
            "{\"agent\":{\"x\":{\"permission\":{\"bash\":{\"a\":{\"action\":\"ask\",\"match\":[\n\"b\"]}}}}}}",
            ":2:1: the rule bash \"a\" does not match its match example \"b\"",
        ),
    ];
    for (text, expected) in cases {
        let setup = Setup::new(&[("config/toolwright/toolwright.json", text)]);
        let error = setup.load(false, &[]).unwrap_err().to_string();
        assert!(error.contains("toolwright.json") && error.ends_with(expected), "{error}");
    }
    let unknown = r#"{"permission":{"bash":{"a":{"action":"ask","matches":["a"]}}}}"#;
    let setup = Setup::new(&[("config/toolwright/toolwright.json", unknown)]);
    let error = setup.load(false, &[]).unwrap_err().to_string();
    assert!(error.contains("permission"), "{error}");
}

#[test]
fn every_key_of_the_reference_takes_an_action_and_patterns() {
    let keys = [
        "read",
        "edit",
        "glob",
        "grep",
        "list",
        "bash",
        "task",
        "external_directory",
        "lsp",
        "skill",
        "todowrite",
        "question",
        "webfetch",
        "websearch",
        "doom_loop",
        "codesearch",
        "mymcp_*",
        "my_tool",
    ];
    for key in keys {
        for form in [r#""ask""#, r#"{"*":"allow","x *":"deny"}"#] {
            let text = format!(r#"{{"permission":{{"{key}":{form}}}}}"#);
            let setup = Setup::new(&[("config/opencode/opencode.json", &text)]);
            let config = setup.load(false, &[]).unwrap();
            assert!(config.warnings.is_empty(), "{key}: {:?}", config.warnings);
            assert_eq!(config.layers[0].rules.last().unwrap().permission, key);
        }
    }
}

#[test]
fn the_environment_is_the_users_and_has_their_last_word() {
    let setup = Setup::new(&[
        ("etc/toolwright/toolwright.json", r#"{"permission":{"bash":{"rm *":"deny"}}}"#),
        ("config/toolwright/toolwright.json", r#"{"permission":{"bash":"deny"}}"#),
        ("work/opencode.json", r#"{"permission":{"edit":"deny"}}"#),
    ]);
    let env = [
        ("OPENCODE_PERMISSION", r#"{"bash":"ask"}"#),
        ("TOOLWRIGHT_PERMISSION", r#"{"bash":"allow","edit":"allow"}"#),
    ];
    let config = setup.load(false, &env).unwrap();
    let policy = toolwright_permission::Policy::new(config.layers.clone());
    let judge = |permission: &str, pattern: &str| {
        let (permission, pattern) = (permission.to_owned(), pattern.to_owned());
        let request = toolwright_permission::Request { permission, pattern, ..Default::default() };
        policy.judge(&request)
    };
    let make = judge("bash", "make");
    assert_eq!((make.action, make.from.as_str()), (Action::Allow, "$TOOLWRIGHT_PERMISSION"));
    assert_eq!(judge("bash", "rm x").action, Action::Deny, "an administrator's word stays");
    assert_eq!(judge("edit", "a").action, Action::Deny, "and so does a project's");
    assert!(
        config
            .layers
            .iter()
            .filter(|l| l.origin.starts_with('$'))
            .all(|l| l.kind == LayerKind::User)
    );
    let wrong = setup.load(false, &[("TOOLWRIGHT_PERMISSION", "{\"bash\":")]).unwrap_err();
    assert!(wrong.to_string().contains("$TOOLWRIGHT_PERMISSION:1:"), "{wrong}");
}

#[test]
fn a_rule_is_found_again_in_its_file() {
    let text = "{\n  \"permission\": {\n    \"edit\": \"ask\",\n    \"read\": {\n      \"*\": \"allow\",\n      \"~/x/*\": \"deny\"\n    }\n  },\n  \"agent\": {\"a\": {\n    \"permission\": \"deny\"}}\n}";
    let setup = Setup::new(&[("work/toolwright.json", text)]);
    let file = setup.root.path().join("work/toolwright.json");
    let line = |agent: Option<&str>, key: &str, pattern: &str| {
        rule_line(&file, agent, &Rule::new(key, pattern, Action::Ask, "/h"), "/h")
    };
    assert_eq!(line(None, "edit", "*"), Some(3));
    assert_eq!(line(None, "read", "/h/x/*"), Some(6));
    assert_eq!(line(Some("a"), "*", "*"), Some(10));
    assert_eq!(line(None, "bash", "*"), None);
}

#[test]
fn what_is_left_out_of_an_untrusted_folder_is_said_in_one_line() {
    let setup = Setup::new(&[
        ("work/opencode.json", r#"{"model":"a/b","permission":{"bash":"allow"}}"#),
        ("work/inner/toolwright.json", r#"{"permission_mode":"auto"}"#),
        ("work/.claude/settings.json", r#"{"hooks":{"Stop":[{"hooks":[{"command":"x"}]}]}}"#),
    ]);
    let config = setup.load(false, &[]).unwrap();
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    let said = &config.warnings[0];
    for part in [
        "model, permission rules that allow (opencode.json)",
        "permission_mode (inner/toolwright.json)",
        "hooks (.claude/settings.json)",
        "tw trust",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(config.settings.permission_mode, None);
    assert_eq!(config.left_out.len(), 3);
}
