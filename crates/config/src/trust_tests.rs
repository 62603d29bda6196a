use std::path::PathBuf;

use crate::tests::Setup;
use crate::{Trust, TrustState};

fn trust(setup: &Setup) -> (Trust, PathBuf, PathBuf) {
    let work = setup.root.path().join("work");
    (Trust::new(&setup.paths()), work.join("inner"), work)
}

#[test]
fn a_folder_is_trusted_as_long_as_its_files_are_those_that_were_looked_at() {
    let setup = Setup::new(&[
        ("work/opencode.json", r#"{"model":"a/b"}"#),
        ("work/.opencode/plugin/a.ts", "export default 1"),
        ("work/.claude/settings.json", "{}"),
    ]);
    let (trust, directory, work) = trust(&setup);
    assert_eq!(trust.state(&directory, &work), TrustState::Unknown);
    trust.decide(&directory, &work, true).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
    for changed in ["opencode.json", ".opencode/plugin/b.ts", ".claude/settings.local.json"] {
        let file = work.join(changed);
        let before = std::fs::read(&file).ok();
        std::fs::write(&file, "{\"hooks\":{}}").unwrap();
        let state = trust.state(&directory, &work);
        let files = vec![changed.to_owned()];
        assert_eq!(state, TrustState::Changed { files, was_trusted: true });
        match before {
            Some(bytes) => std::fs::write(&file, bytes).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
    }
    // Code, plans and what is gone are no reason to ask again.
    std::fs::create_dir_all(work.join(".opencode/plans")).unwrap();
    std::fs::write(work.join(".opencode/plans/x.md"), "plan").unwrap();
    std::fs::write(work.join("main.rs"), "fn main() {}").unwrap();
    std::fs::remove_file(work.join("opencode.json")).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
}

#[test]
fn trust_is_for_one_folder_and_neither_for_those_above_nor_below() {
    let setup = Setup::new(&[("work/opencode.json", "{}"), ("work/inner/opencode.json", "{}")]);
    let (trust, directory, work) = trust(&setup);
    trust.decide(&work, &work, true).unwrap();
    assert_eq!(trust.state(&work, &work), TrustState::Trusted);
    // The same repository seen from deeper inside has a file more.
    let files = vec!["inner/opencode.json".to_owned()];
    let more = TrustState::Changed { files, was_trusted: true };
    assert_eq!(trust.state(&directory, &work), more);
    trust.decide(&directory, &work, true).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
    assert_eq!(trust.state(&work, &work), TrustState::Trusted, "what was known stays known");
    // A repository of its own inside, and the folder above.
    assert_eq!(trust.state(&directory, &directory), TrustState::Unknown);
    let above = setup.root.path();
    assert_eq!(trust.state(above, above), TrustState::Unknown);
}

#[test]
fn a_no_is_remembered_and_both_can_be_taken_back() {
    let setup = Setup::new(&[("work/opencode.json", "{}")]);
    let (trust, directory, work) = trust(&setup);
    trust.decide(&directory, &work, false).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Refused);
    trust.decide(&directory, &work, true).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
    assert_eq!(trust.all().unwrap().len(), 1);
    assert!(trust.revoke(&work).unwrap());
    assert!(!trust.revoke(&work).unwrap());
    assert_eq!(trust.state(&directory, &work), TrustState::Unknown);
}

#[test]
fn a_broken_store_trusts_nobody_and_is_not_written_over() {
    let setup = Setup::new(&[("data/trust.json", "{ not json")]);
    let (trust, directory, work) = trust(&setup);
    assert_eq!(trust.state(&directory, &work), TrustState::Unknown);
    let error = trust.decide(&directory, &work, true).unwrap_err().to_string();
    assert!(error.contains("trust.json"), "{error}");
    let text = std::fs::read_to_string(setup.root.path().join("data/trust.json")).unwrap();
    assert_eq!(text, "{ not json");
}

#[test]
fn what_trusted_files_name_is_part_of_what_is_trusted() {
    let settings = r#"{"plugin":["./lib/p.js",["../packed",{}]],"instructions":["x.md"],
        "agent":{"a":{"prompt":"{file:./prompt.txt} and {file:~/own.txt}"}}}"#;
    let setup = Setup::new(&[
        ("work/.opencode/opencode.json", settings),
        ("work/.opencode/prompt.txt", "be kind"),
        ("work/.opencode/lib/p.js", "import '../../src/helper'"),
        ("work/src/helper.ts", "export const x = 1"),
        ("work/packed/package.json", "{}"),
        ("work/packed/index.js", "1"),
        ("work/packed/node_modules/m/index.js", "1"),
        ("home/own.txt", "mine"),
    ]);
    let (trust, directory, work) = trust(&setup);
    trust.decide(&directory, &work, true).unwrap();
    for changed in [
        ".opencode/prompt.txt",
        ".opencode/lib/p.js",
        "src/helper.ts",
        "packed/package.json",
        "packed/index.js",
    ] {
        let before = std::fs::read(work.join(changed)).unwrap();
        std::fs::write(work.join(changed), "{\"changed\":1}").unwrap();
        let state = trust.state(&directory, &work);
        assert!(matches!(state, TrustState::Changed { .. }), "{changed}");
        std::fs::write(work.join(changed), before).unwrap();
    }
    std::fs::write(setup.root.path().join("home/own.txt"), "still mine").unwrap();
    std::fs::write(work.join("packed/node_modules/m/index.js"), "2").unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
}

#[test]
fn what_hooks_and_servers_run_is_part_of_what_is_trusted() {
    let hooks = r#"{"hooks":{"PreToolUse":[{"hooks":[
        {"type":"command","command":"\"$CLAUDE_PROJECT_DIR\"/scripts/check.sh"}]}]}}"#;
    let servers = r#"{"mcpServers":{"a":{"command":"node","args":["tools/server.js"]}}}"#;
    let own = r#"{"mcp":{"b":{"type":"local","command":["python3","./b.py"]},
        "c":{"type":"local","command":["./fenced.py"],"sandbox":true}}}"#;
    let setup = Setup::new(&[
        ("work/.claude/settings.json", hooks),
        ("work/.claude/hooks/other.sh", "exit 0"),
        ("work/scripts/check.sh", "exit 0"),
        ("work/.mcp.json", servers),
        ("work/tools/server.js", "import './lib.js'"),
        ("work/tools/lib.js", "1"),
        ("work/opencode.json", own),
        ("work/fenced.py", "1"),
        ("work/inner/b.py", "1"),
    ]);
    let (trust, directory, work) = trust(&setup);
    trust.decide(&directory, &work, true).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
    for changed in [
        ".claude/hooks/other.sh",
        ".claude/hooks/new.sh",
        "scripts/check.sh",
        "tools/server.js",
        "inner/b.py",
    ] {
        let before = std::fs::read(work.join(changed)).ok();
        std::fs::write(work.join(changed), "evil").unwrap();
        let files = vec![changed.to_owned()];
        let state = trust.state(&directory, &work);
        assert_eq!(state, TrustState::Changed { files, was_trusted: true }, "{changed}");
        match before {
            Some(bytes) => std::fs::write(work.join(changed), bytes).unwrap(),
            None => std::fs::remove_file(work.join(changed)).unwrap(),
        }
    }
    // What runs inside the fence, and what the project is made of.
    std::fs::write(work.join("fenced.py"), "2").unwrap();
    std::fs::write(work.join("tools/lib.js"), "2").unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
}

#[test]
fn names_that_only_look_alike_are_different_files() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let setup = Setup::new(&[("work/.opencode/tool/a.js", "1")]);
    let (trust, directory, work) = trust(&setup);
    let named = |byte: u8| {
        let name = [b"x", &[byte][..], b".js"].concat();
        work.join(".opencode/tool").join(OsStr::from_bytes(&name))
    };
    std::fs::write(named(0xFE), "known").unwrap();
    trust.decide(&directory, &work, true).unwrap();
    // The store knows what is in the one; the other shows as the same text.
    std::fs::write(named(0xFF), "known").unwrap();
    assert!(matches!(trust.state(&directory, &work), TrustState::Changed { .. }));
}

#[test]
fn a_link_to_a_folder_brings_no_commands_into_a_project() {
    let setup = Setup::new(&[
        ("work/.opencode/command/real/a.md", "do a"),
        ("work/elsewhere/b.md", "do b"),
    ]);
    let work = setup.root.path().join("work");
    std::os::unix::fs::symlink(work.join("elsewhere"), work.join(".opencode/command/linked"))
        .unwrap();
    let folders = crate::config_folders(&setup.paths(), &work, &work);
    let texts: Vec<String> =
        folders.iter().flat_map(|f| f.texts(&["command"])).map(|(name, _)| name).collect();
    assert_eq!(texts, ["real/a"]);
}
