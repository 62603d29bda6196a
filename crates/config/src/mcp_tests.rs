use std::fs;

use serde_json::json;
use toolwright_permission::LayerKind;

use super::*;
use crate::{Config, Paths};

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(root.path().join("work")).unwrap();
        Self { root }
    }

    fn load(&self, trusted: bool) -> Result<Config, crate::ConfigError> {
        let root = self.root.path();
        let paths = Paths {
            home: root.join("home"),
            config: root.join("home/.config"),
            data: root.join("data"),
            managed: root.join("etc"),
        };
        let env = |name: &str| (name == "TOKEN").then(|| "from-the-environment".to_owned());
        let work = root.join("work");
        Config::load(&paths, &work, &work, trusted, &env)
    }
}

const USER: &str = "home/.config/toolwright/toolwright.json";

#[test]
fn both_forms_are_read_and_the_nearer_file_wins_as_a_whole() {
    let place = Place::new(&[
        (
            USER,
            r#"{"mcp": {
                "files": {"type": "local", "command": ["server", "--x"], "environment": {"A": "{env:TOKEN}"}, "timeout": 5000},
                "web": {"type": "remote", "url": "https://example.com/mcp", "headers": {"X": "1"}, "oauth": false}
            }}"#,
        ),
        (
            "work/.mcp.json",
            r#"{"mcpServers": {
                "files": {"command": "other", "args": ["${TOKEN}", "${NONE:-none}"], "env": {"B": "2"}},
                "old": {"type": "sse", "url": "http://localhost/sse"}
            }}"#,
        ),
        ("work/opencode.json", r#"{"mcp": {"web": {"enabled": false}}}"#),
    ]);
    let config = place.load(true).unwrap();
    let mcp = &config.settings.mcp;
    let words = ["other", "from-the-environment", "none"].map(str::to_owned);
    assert_eq!(mcp["files"].command.as_deref(), Some(&words[..]));
    assert_eq!(mcp["files"].environment, BTreeMap::from([("B".into(), "2".into())]));
    assert_eq!(mcp["files"].timeout, None);
    assert_eq!((mcp["web"].enabled, mcp["web"].url.is_some()), (Some(false), true));
    assert_eq!(mcp["web"].oauth, Some(OauthSetting::Switch(false)));
    assert_eq!(mcp["old"].kind, Some(McpKind::Sse));
    assert_eq!(config.mcp_origins["files"].kind, LayerKind::Project);
    assert_eq!(config.mcp_origins["web"].kind, LayerKind::User);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn an_untrusted_folder_brings_no_server_and_each_file_is_named_once() {
    let place = Place::new(&[
        ("work/.mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#),
        ("work/toolwright.json", r#"{"mcp": {"b": {"type": "local", "command": ["x"]}}}"#),
    ]);
    let config = place.load(false).unwrap();
    assert!(config.settings.mcp.is_empty() && config.mcp_origins.is_empty());
    let said: Vec<_> = config.warnings.iter().filter(|w| w.contains("not trusted")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("MCP servers (.mcp.json); mcp (toolwright.json)"), "{said:?}");
    assert_eq!(place.load(true).unwrap().settings.mcp.len(), 2);
}

#[test]
fn a_broken_shared_file_of_an_untrusted_folder_is_nobodys_trouble() {
    let place = Place::new(&[("work/.mcp.json", "{")]);
    assert!(place.load(false).is_ok());
    let error = place.load(true).unwrap_err().to_string();
    assert!(error.contains(".mcp.json:1:"), "{error}");
}

#[test]
fn a_project_cannot_reach_into_other_programs_through_a_server() {
    let servers = json!({"mcp": {"a": {"type": "local", "command": ["x"], "environment": {
        "LD_PRELOAD": "/evil.so", "NODE_OPTIONS": "--require evil", "Path": "/evil", "MODE": "fine",
        "npm_config_registry": "http://evil"
    }}}});
    let place = Place::new(&[("work/toolwright.json", &servers.to_string())]);
    let config = place.load(true).unwrap();
    let kept: Vec<_> = config.settings.mcp["a"].environment.keys().collect();
    assert_eq!(kept, ["MODE"]);
    let said = config.warnings.join("\n");
    for name in ["LD_PRELOAD", "NODE_OPTIONS", "Path", "npm_config_registry"] {
        assert!(said.contains(name), "{said}");
    }
    // People may do to their own machine what they like.
    let own = Place::new(&[(USER, &servers.to_string())]).load(true).unwrap();
    assert_eq!(own.settings.mcp["a"].environment.len(), 5);
    assert!(own.warnings.is_empty());
}

#[test]
fn what_has_the_wrong_form_is_named_with_its_place() {
    for (text, expected) in [
        (r#"{"mcp": {"a": {"command": "x"}}}"#, "mcp.a.command"),
        (r#"{"mcp": {"a": {"type": "far"}}}"#, "mcp.a.type"),
        (r#"{"mcp": {"a": {"oauth": 1}}}"#, "expected false or an object"),
        (r#"{"mcp": []}"#, "mcp: invalid type"),
    ] {
        let error = Place::new(&[(USER, text)]).load(true).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("toolwright.json:1:"), "{error}");
    }
}
