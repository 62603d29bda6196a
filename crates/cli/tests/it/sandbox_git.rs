//! What a command inside the fence leaves in the workspace for programs outside of it: git, hooks, and `tw`
//! itself at its next start. With each layer that this machine has.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Wire};

use crate::{folder, results};

const RUN: [&str; 4] = ["run", "-m", "anthropic/m", "go"];

/// What git runs before it looks at files; leaves a mark outside.
const EVIL: &str = "[core]\n\tfsmonitor = \"touch $MARK; false\"\n";

fn layers() -> Vec<&'static str> {
    toolwright::sandbox_layers().iter().map(|layer| layer.name()).collect()
}

/// With a temporary folder of its own: the usual one holds everything that is outside here.
fn fenced(layer: &str) -> Folder {
    let folder = folder();
    let temp = folder.root().join("temp");
    fs::create_dir(&temp).unwrap();
    let config = format!(r#"{{"sandbox": {{"layer": "{layer}"}}}}"#);
    folder
        .user_config(&config)
        .env("TOOLWRIGHT_SANDBOX", "on")
        .env("TMPDIR", temp.to_str().unwrap())
}

/// As a person would, outside.
fn shell(folder: &Path, mark: &Path, script: &str) {
    let done = Command::new("sh")
        .arg("-ec")
        .arg(script)
        .current_dir(folder)
        .env("MARK", mark)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_ALLOW_PROTOCOL", "file")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "a")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@b")))
        .output()
        .unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The model gives these commands one by one; what it is told of the last.
fn commands(folder: Folder, arguments: &[&str], scripts: &[&str]) -> (Folder, String) {
    let calls = scripts.iter().map(|script| Answer::call("bash", json!({ "command": script })));
    let server = ModelServer::start(calls.chain([Answer::text("ok")]));
    let folder = folder.with_model(&server, Wire::Anthropic);
    let arguments: Vec<&str> = RUN.iter().chain(arguments).copied().collect();
    folder.tw(&arguments);
    let told = results(&server.last_request()).pop().unwrap_or_default();
    (folder, told)
}

const INIT: &str = "git init -q . && echo x > x && git add x && git commit -qm x";

/// What is there, what the command does, and where a person then runs git.
struct Case {
    name: &'static str,
    before: &'static str,
    attack: &'static str,
}

const CASES: &[Case] = &[
    Case {
        name: "the file of a linked work tree",
        before: "git init -q ../main; cd ../main; echo x > x; git add x; git commit -qm x; \
                 rmdir ../work; git worktree add -q ../work",
        attack: "cp -r $(git rev-parse --git-common-dir) evil; cat evil.txt >> evil/config; \
                 echo gitdir: $PWD/evil > .git",
    },
    Case {
        name: "the file of a submodule",
        before: "git init -q ../main; (cd ../main; echo x > x; git add x; git commit -qm x); git init -q .; \
                 git -c protocol.file.allow=always submodule --quiet add ../main sub; git commit -qm x",
        attack: "cp -r .git/modules/sub evil; cat evil.txt >> evil/config; \
                 git config -f evil/config core.worktree $PWD/sub; \
                 echo gitdir: $PWD/evil > sub/.git",
    },
    Case {
        name: "a link",
        before: "INIT; mv .git real; ln -s real .git",
        attack: "cp -r real evil; cat evil.txt >> evil/config; rm .git; mv evil .git",
    },
    Case {
        name: "a repository by another name",
        before: "INIT; mv .git .bare; echo gitdir: ./.bare > .git",
        attack: "cat evil.txt >> .bare/config",
    },
    Case {
        name: "a repository inside that the index knows",
        before: "INIT",
        attack: "git init -q sub; cd sub; git -c user.name=a -c user.email=a commit -q --allow-empty -m x; \
                 cat ../evil.txt >> .git/config; cd ..; git -c core.fsmonitor= add sub",
    },
    Case {
        name: "a file that settings include",
        before: "INIT; echo '[core]' > shared; git config include.path ../shared",
        attack: "cat evil.txt >> shared",
    },
    Case {
        name: "a program that settings name",
        before: "INIT; printf '#!/bin/sh\\n' > watch.sh; chmod +x watch.sh; git config core.fsmonitor ./watch.sh",
        attack: "printf '#!/bin/sh\\ntouch MARK\\n' > watch.sh",
    },
    Case {
        name: "a folder of hooks that settings name",
        before: "INIT; mkdir .husky; git config core.hooksPath .husky",
        attack: "printf '#!/bin/sh\\ntouch MARK\\n' > .husky/post-index-change; chmod +x .husky/*",
    },
    Case {
        name: "the folder itself taken for a repository",
        before: "INIT",
        attack: "cp -r .git/objects .git/refs .git/index .git/HEAD .; cp evil.txt config; \
                 printf 'repositoryformatversion = 0\\nworktree = %s\\n' $PWD >> config; rm .git/HEAD",
    },
];

#[test]
fn git_is_not_led_to_other_settings() {
    for layer in layers() {
        for case in CASES {
            let folder = fenced(layer);
            let mark = folder.root().join("ran");
            let shown = mark.to_str().unwrap().to_owned();
            let work = folder.work();
            shell(folder.root(), &mark, &format!("cd work; {}", case.before.replace("INIT", INIT)));
            fs::write(work.join("evil.txt"), EVIL.replace("$MARK", &shown)).unwrap();
            fs::write(work.join("attack.sh"), case.attack.replace("MARK", &shown)).unwrap();
            assert!(!mark.exists(), "{}", case.name);
            let (_folder, told) = commands(folder, &[], &["sh attack.sh"]);
            // Whether it works is not the question.
            let look = "touch x; git status > /dev/null 2>&1 || true";
            shell(&work, &mark, look);
            assert!(!mark.exists(), "{layer}, {}: {told}", case.name);
        }
    }
}

#[test]
fn the_attacks_would_work_without_a_fence() {
    for case in CASES {
        let folder = folder();
        let mark = folder.root().join("ran");
        let shown = mark.to_str().unwrap().to_owned();
        let work = folder.work();
        shell(folder.root(), &mark, &format!("cd work; {}", case.before.replace("INIT", INIT)));
        fs::write(work.join("evil.txt"), EVIL.replace("$MARK", &shown)).unwrap();
        shell(&work, &mark, &case.attack.replace("MARK", &shown));
        fs::remove_file(&mark).ok();
        shell(&work, &mark, "touch x; git status > /dev/null 2>&1 || true");
        assert!(mark.exists(), "{} proves nothing", case.name);
    }
}

#[test]
fn a_repository_that_a_command_made_is_told_of_and_a_harmless_one_stays() {
    for layer in layers() {
        let folder = fenced(layer);
        let make = "git init -q good; git init -q bad; git -C bad config core.pager ./x";
        let (folder, told) = commands(folder, &[], &[make]);
        let at = |name: &str| folder.work().join(name);
        assert!(at("good/.git/config").exists(), "{layer}: {told}");
        assert!(!at("bad/.git/config").exists(), "{layer}: {told}");
        assert!(at("bad/.git/config.stopped-by-sandbox").exists(), "{layer}: {told}");
        assert!(told.contains("bad/.git/config") && !told.contains("good"), "{layer}: {told}");
    }
}

#[test]
fn settings_that_are_links_are_not_written_through_them_nor_replaced() {
    for layer in layers() {
        let folder = fenced(layer).file("oc.json", "{}").file("dotclaude/settings.json", "{}");
        let work = folder.work();
        symlink("oc.json", work.join("opencode.json")).unwrap();
        symlink("dotclaude", work.join(".claude")).unwrap();
        // The user keeps their own settings in this very folder.
        let own = folder.root().join("home/.config/toolwright");
        fs::rename(&own, work.join("tw")).unwrap();
        symlink(work.join("tw"), &own).unwrap();
        let before = fs::read_dir(work.join("tw")).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(&before).unwrap();
        let script = format!(
            "echo evil > oc.json; rm .claude; mkdir .claude; echo evil > .claude/settings.json; \
             echo evil > {}; echo evil > tw/more.json",
            before.display()
        );
        fs::write(work.join("attack.sh"), script).unwrap();
        let (folder, told) = commands(folder, &[], &["sh attack.sh"]);
        assert_eq!(folder.read("opencode.json"), "{}", "{layer}: {told}");
        assert_eq!(folder.read(".claude/settings.json"), "{}", "{layer}: {told}");
        assert!(work.join(".claude").is_symlink(), "{layer}: {told}");
        assert_eq!(fs::read_to_string(&before).unwrap(), text, "{layer}: {told}");
        assert!(!work.join("tw/more.json").exists(), "{layer}: {told}");
    }
}

#[test]
fn a_hooks_script_is_not_rewritten_by_what_it_watches() {
    for layer in layers() {
        let command = r#""$CLAUDE_PROJECT_DIR"/scripts/check.sh"#;
        let settings = json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}});
        let folder = fenced(layer)
            .file(".claude/settings.json", &settings.to_string())
            .file("scripts/check.sh", "#!/bin/sh\ntouch ../checked\n");
        let mark = folder.root().join("escaped");
        shell(&folder.work(), &mark, "chmod +x scripts/check.sh");
        let script = format!("printf '#!/bin/sh\\ntouch {}\\n' > scripts/check.sh", mark.display());
        fs::write(folder.work().join("attack.sh"), script).unwrap();
        let (folder, told) = commands(folder, &["--trust"], &["sh attack.sh", "true", "true"]);
        assert!(folder.root().join("checked").exists(), "{layer}: the hook did not run: {told}");
        assert!(!mark.exists(), "{layer}: {told}");
        assert!(folder.read("scripts/check.sh").contains("checked"), "{layer}: {told}");
    }
}

#[test]
fn a_tool_asks_before_it_writes_what_a_server_runs() {
    for layer in layers() {
        let servers = r#"{"mcpServers": {"s": {"command": "node", "args": ["tools/server.js"]}}}"#;
        let file = |name: &str| json!({"filePath": name, "content": "evil"});
        let server = ModelServer::start([
            Answer::call("write", file("tools/server.js")),
            Answer::call("write", file("tools/other.js")),
            Answer::text("ok"),
        ]);
        let folder = fenced(layer).file(".mcp.json", servers).file("tools/server.js", "good");
        let folder = folder.with_model(&server, Wire::Anthropic);
        // Nobody trusts it yet; it may be trusted tomorrow, as it is then.
        folder.tw(&RUN).expect(3);
        assert_eq!(folder.read("tools/server.js"), "good", "{layer}");
        assert_eq!(folder.read("tools/other.js"), "evil", "{layer}");
    }
}

#[test]
fn a_hooks_script_that_has_changed_is_not_run() {
    let command = "./check.sh";
    let hook =
        json!({"hooks": [{"type": "command", "command": command, "on_failure": "continue"}]});
    let settings = json!({"hooks": {"PreToolUse": [hook]}});
    let folder = folder()
        .env("TOOLWRIGHT_SANDBOX", "off")
        .file(".claude/settings.json", &settings.to_string())
        .file("check.sh", "#!/bin/sh\necho once >> ../runs\n");
    shell(&folder.work(), Path::new("/"), "chmod +x check.sh");
    // Without a fence anybody may write it.
    let (folder, told) =
        commands(folder, &["--trust", "--auto"], &["echo touch ../escaped >> check.sh", "true"]);
    assert_eq!(fs::read_to_string(folder.root().join("runs")).unwrap(), "once\n", "{told}");
    assert!(!folder.root().join("escaped").exists(), "{told}");
}

#[test]
fn a_repository_around_home_does_not_open_home() {
    for layer in layers() {
        let folder = fenced(layer);
        let home = folder.root().join("home");
        fs::create_dir_all(home.join("proj")).unwrap();
        fs::create_dir(home.join(".git")).unwrap();
        let project = home.join("proj").to_str().unwrap().to_owned();
        let script = "echo x > in; echo x > ../out; echo x > ../.bash_aliases";
        fs::write(home.join("proj/a.sh"), script).unwrap();
        let (_folder, told) = commands(folder, &["--dir", &project], &["sh a.sh"]);
        assert!(home.join("proj/in").exists(), "{layer}: {told}");
        assert!(!home.join("out").exists(), "{layer}: {told}");
        assert!(!home.join(".bash_aliases").exists(), "{layer}: {told}");
    }
}

#[test]
fn in_the_home_folder_commands_are_asked_about() {
    for layer in layers() {
        let folder = fenced(layer);
        let home = folder.root().join("home");
        let shown = home.to_str().unwrap().to_owned();
        let (_folder, told) = commands(folder, &["--dir", &shown], &["touch made-here"]);
        assert!(!home.join("made-here").exists(), "{layer}: {told}");
    }
}
