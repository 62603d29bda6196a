//! The table of shell commands (`shell_table.txt`): what each would touch and what is decided about it by
//! the shipped rules, without a sandbox.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use toolwright_permission::{
    Action, Layer, LayerKind, Mode, Policy, Request, Rule, Stance, analyse, readings, reprint,
    shipped_defaults,
};
use toolwright_tool::{Access, Containment, Plan, Workspace};

struct Case {
    decision: Action,
    accesses: String,
    command: String,
    line: usize,
}

fn table() -> Vec<Case> {
    let text = include_str!("shell_table.txt");
    let rows =
        text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    rows.map(|(at, row)| {
        let mut parts = row.splitn(3, " |");
        let mut part = || parts.next().unwrap_or_else(|| panic!("line {}: {row}", at + 1));
        let decision = match part().trim() {
            "allow" => Action::Allow,
            "ask" => Action::Ask,
            "deny" => Action::Deny,
            other => panic!("line {}: {other}", at + 1),
        };
        let accesses = part().trim().to_owned();
        let command = decoded(part().strip_prefix(' ').unwrap());
        Case { decision, accesses, command, line: at + 1 }
    })
    .collect()
}

fn decoded(text: &str) -> String {
    let text = text.replace('␤', "\n").replace('␍', "\r").replace('⇥', "\t").replace('␀', "\0");
    let mut parts = text.split('⟨');
    let mut decoded = parts.next().unwrap().to_owned();
    for part in parts {
        let (number, rest) = part.split_once('⟩').unwrap();
        decoded.push(char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap());
        decoded.push_str(rest);
    }
    decoded
}

struct Folder {
    _folder: tempfile::TempDir,
    root: PathBuf,
    home: PathBuf,
    workspace: Workspace,
}

/// The workspace that the table is about.
fn folder() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap().join("work");
    let hostile = "[core]\n\tfsmonitor = touch x\n";
    for (path, text) in [
        ("a.txt", "a\n"),
        ("b.txt", "b\n"),
        ("README.md", "# x\n"),
        ("Cargo.toml", "[package]\n"),
        (".env", "KEY=1\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("src/lib.rs", ""),
        ("sub/c.txt", "c\n"),
        ("target/server.pem", "x\n"),
        (".git/config", "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        ("evil/.git/config", hostile),
        ("bare/HEAD", "ref: refs/heads/main\n"),
        ("bare/config", hostile),
        ("bare/objects/x", ""),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let elsewhere = root.with_file_name("elsewhere");
    fs::create_dir_all(elsewhere.join("deep")).unwrap();
    fs::write(elsewhere.join("deep/x.txt"), "x").unwrap();
    std::os::unix::fs::symlink(elsewhere, root.join("out")).unwrap();
    let home = root.with_file_name("home");
    let own = [".config/toolwright", ".config/opencode", ".local/share/toolwright"];
    let own = own.map(|own| home.join(own));
    own.iter().for_each(|own| fs::create_dir_all(own).unwrap());
    fs::write(home.join(".bashrc"), "").unwrap();
    let workspace = Workspace::new(&root).unwrap().at_home(home.clone()).guarding(own);
    Folder { _folder: folder, root, home, workspace }
}

impl Folder {
    fn requests(&self, command: &str) -> Vec<Request> {
        let directory = self.root.clone();
        let access = Access::Execute { command: command.to_owned(), directory };
        Plan::new("", vec![access]).requests(&self.workspace)
    }

    fn decide(&self, policy: &Policy, command: &str) -> Action {
        let requests = self.requests(command);
        requests.iter().map(|r| policy.judge(r).action).max().unwrap_or(Action::Allow)
    }

    /// The accesses as the table writes them.
    fn accesses(&self, command: &str) -> String {
        let above = self.root.parent().unwrap().display().to_string();
        let home = self.home.display().to_string();
        let short = |pattern: &str| pattern.replace(&home, "~").replace(&above, "..");
        let mut found: Vec<String> = Vec::new();
        for request in self.requests(command).into_iter().filter(|r| !r.respelled) {
            let mark = match request.permission.as_str() {
                "read" => 'r',
                "edit" => 'w',
                "external_directory" => 'o',
                _ if request.pattern == command.trim() => continue,
                _ => 'x',
            };
            let shown = format!("{mark} {}", short(&request.pattern));
            let shown =
                shown.replace('\n', "␤").replace('\r', "␍").replace('\t', "⇥").replace('\0', "␀");
            found.push(shown.replace(" |", "¦"));
        }
        found.dedup();
        found.join(", ")
    }
}

fn defaults() -> Policy {
    Policy::new(vec![shipped_defaults()])
}

#[test]
fn every_command_of_the_table_is_decided_as_it_says() {
    let (folder, cases) = (folder(), table());
    assert!(cases.len() >= 300);
    let mut wrong = Vec::new();
    for case in &cases {
        let decided = folder.decide(&defaults(), &case.command);
        if decided != case.decision {
            let analysis = analyse(&case.command);
            wrong.push(format!(
                "line {}: {:?} decided {decided}, not {}\n    {analysis:?}",
                case.line, case.command, case.decision
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// `TOOLWRIGHT_UPDATE=1` writes them anew: read the difference before you keep it.
#[test]
fn every_command_of_the_table_declares_what_it_says() {
    let folder = folder();
    if std::env::var_os("TOOLWRIGHT_UPDATE").is_some() {
        return update(&folder);
    }
    let mut wrong = Vec::new();
    for case in table() {
        let accesses = folder.accesses(&case.command);
        if accesses != case.accesses {
            wrong.push(format!(
                "line {}: {:?}\n  has {accesses}\n  not {}",
                case.line, case.command, case.accesses
            ));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

fn update(folder: &Folder) {
    let text = include_str!("shell_table.txt");
    let rows = text.lines().map(|row| {
        if row.is_empty() || row.starts_with('#') {
            return row.to_owned();
        }
        let parts: Vec<&str> = row.splitn(3, " |").collect();
        let accesses = folder.accesses(&decoded(parts[2].strip_prefix(' ').unwrap()));
        let space = if accesses.is_empty() { "" } else { " " };
        format!("{} |{space}{accesses} |{}", parts[0], parts[2])
    });
    let text = rows.collect::<Vec<_>>().join("\n") + "\n";
    fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shell_table.txt"), text).unwrap();
}

#[test]
fn what_is_allowed_is_still_allowed_when_it_is_written_without_a_second_reading() {
    let folder = folder();
    for case in table().iter().filter(|case| case.decision == Action::Allow) {
        let printed = reprint(&case.command).unwrap_or_else(|| panic!("{:?}", case.command));
        assert_eq!(
            folder.decide(&defaults(), &printed),
            Action::Allow,
            "{:?}: {printed}",
            case.command
        );
        assert_eq!(reprint(&printed).as_ref(), Some(&printed), "{:?}", case.command);
    }
}

/// Two readers that share nothing but the question: where both can read a line, they find the same in it.
#[test]
fn both_readers_find_the_same_in_every_command_of_the_table() {
    let mut compared = 0;
    for case in table() {
        if let Some((direct, grammar)) = readings(&case.command) {
            assert_eq!(direct, grammar, "line {}: {:?}", case.line, case.command);
            compared += 1;
        }
    }
    assert!(compared > 700, "only {compared} were read by both");
}

#[test]
fn the_floor_holds_in_every_mode_and_only_everything_lifts_it() {
    let folder = folder();
    let allow = Rule { permission: "*".into(), pattern: "*".into(), action: Action::Allow };
    let all = Layer { kind: LayerKind::Session, origin: "test".into(), rules: vec![allow] };
    let policies = [
        ("defaults", defaults()),
        ("--auto", defaults().with_mode(Mode::Auto)),
        ("rules that allow all", Policy::new(vec![shipped_defaults(), all.clone()])),
        ("both", Policy::new(vec![shipped_defaults(), all.clone()]).with_mode(Mode::Auto)),
    ];
    let everything = Policy::new(vec![shipped_defaults(), all])
        .with_stance(Stance { everything: true, ..Stance::default() });
    for case in table().iter().filter(|case| case.decision == Action::Deny) {
        for (name, policy) in &policies {
            assert_eq!(
                folder.decide(policy, &case.command),
                Action::Deny,
                "{name}: {:?}",
                case.command
            );
        }
        assert_eq!(folder.decide(&everything, &case.command), Action::Allow, "{:?}", case.command);
    }
    // What is asked about is not the floor: `--auto` allows it.
    for case in table().iter().filter(|case| case.decision == Action::Ask) {
        let action = folder.decide(&policies[1].1, &case.command);
        assert_eq!(action, Action::Allow, "{:?}", case.command);
    }
}

#[test]
fn the_floor_holds_for_tools_that_write_and_for_words_that_are_typed() {
    let folder = folder();
    let policy = defaults().with_mode(Mode::Auto);
    let decide = |access: Access| {
        let requests = Plan::new("", vec![access]).requests(&folder.workspace);
        requests.iter().map(|r| policy.judge(r).action).max().unwrap()
    };
    let write = |path: PathBuf| decide(Access::Write { path, diff: String::new() });
    assert_eq!(write(folder.home.join(".config/toolwright/toolwright.json")), Action::Deny);
    assert_eq!(write(folder.home.join(".config/opencode/agent/x.md")), Action::Deny);
    assert_eq!(write(folder.home.join(".local/share/toolwright/x")), Action::Deny);
    assert_eq!(write(PathBuf::from("/dev/sda")), Action::Deny);
    assert_eq!(write(folder.root.join("a.txt")), Action::Allow);
    assert_eq!(write(folder.home.join("x.txt")), Action::Allow);
    let words = |text: &str| decide(Access::Type { job: "1".into(), text: text.into() });
    assert_eq!(words("rm -rf /\n"), Action::Deny);
    assert_eq!(words("echo x > ~/.config/toolwright/x\n"), Action::Deny);
    assert_eq!(words("yes\n"), Action::Allow);
}

/// A search names no files: what people wrote about some of them counts all the same.
#[test]
fn rules_that_people_wrote_for_reading_count_for_searches_through_folders() {
    let folder = folder();
    for (path, text) in [("secrets/plan.txt", "x"), ("vendor/theirs/key.txt", "x")] {
        let path = folder.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::remove_file(folder.root.join(".env")).unwrap();
    let rule = |pattern: &str, action| Rule::new("read", pattern, action, "/home/x");
    let rules = vec![
        rule("secrets/**", Action::Ask),
        rule("vendor/theirs/*", Action::Deny),
        rule("sub/*", Action::Allow),
    ];
    let workspace = folder.workspace.clone().minding(&rules);
    let folder = Folder { workspace, ..folder };
    let user = Layer { kind: LayerKind::User, origin: "user".into(), rules };
    let policy = Policy::new(vec![shipped_defaults(), user]);
    for (command, expected) in [
        ("grep -r x secrets", Action::Ask),
        ("grep -r x .", Action::Deny),
        ("rg x", Action::Deny),
        ("rg x secrets", Action::Ask),
        ("rg x src", Action::Allow),
        ("grep -rn x src sub", Action::Allow),
        ("rg -g '*.rs' x", Action::Allow),
        ("grep -r --include='*.rs' x .", Action::Allow),
        ("cat secrets/*", Action::Ask),
        ("cat secrets/plan.txt", Action::Ask),
        ("diff secrets sub", Action::Ask),
        ("ls secrets", Action::Allow),
        ("cd secrets && grep -r x .", Action::Ask),
    ] {
        assert_eq!(folder.decide(&policy, command), expected, "{command}");
    }
    assert_eq!(folder.decide(&defaults(), "grep -r x ."), Action::Allow, "without such rules");
}

/// Inside a fence nobody is asked about commands. Secrets are asked about all the same, wherever the line
/// names one.
#[test]
fn a_secret_that_a_script_or_a_loop_names_is_asked_about_inside_a_fence() {
    let folder = folder();
    fs::write(folder.root.join("sub/.env"), "KEY=2\n").unwrap();
    let fence = || Containment { is_closed: true, ..Containment::default() };
    let workspace = folder.workspace.clone().contained(fence);
    let folder = Folder { workspace, ..folder };
    for command in [
        "for f in .env; do cat $f; done",
        "for f in .e*; do cat \"$f\"; done",
        "python3 -c \"print(open('.env').read())\"",
        "python3 - <<'E'\nprint(open('.env').read())\nE",
        "node -e 'console.log(fs.readFileSync(\"./.env\", \"utf8\"))'",
        "F=.env ./show.sh",
        "echo .env | xargs cat",
        "cd sub && python3 -c \"open('.env')\"",
        "ruby -e 'puts File.read(ENV[\"PWD\"] + \"/.env\")'",
        "cat $PWD/.env",
    ] {
        assert_eq!(folder.decide(&defaults(), command), Action::Ask, "{command}");
    }
    for command in [
        "echo .env >> .gitignore",
        "git commit -m 'Leave .env out'",
        "[ -f .env ] && make",
        "cat > notes.md <<'E'\nPut it into .env\nE",
        "python3 -c \"import re; re.match('.*', 'x')\"",
        "python3 -c \"open('.env.example')\"",
        "make",
        "rm .env",
    ] {
        assert_eq!(folder.decide(&defaults(), command), Action::Allow, "{command}");
    }
}

/// What is too long or too deep to be taken apart is asked about, and nobody may be there who asks back.
#[test]
fn the_floor_holds_for_what_is_too_much_to_be_taken_apart() {
    let folder = folder();
    let policy = defaults().with_mode(Mode::Auto);
    let many: Vec<String> = (1..80).map(|at| format!("a{at}")).collect();
    let nest = |open: &str, close: &str, count: usize, inner: &str| {
        format!("{} {inner} {}", open.repeat(count), close.repeat(count))
    };
    let quoted = |line: &str| format!("bash -c '{}'", line.replace('\'', "'\\''"));
    let shells = |count: usize, line: &str| (0..count).fold(line.to_owned(), |l, _| quoted(&l));
    let hidden = |inner: &str| {
        vec![
            format!("{} {inner}", "true;".repeat(1_200)),
            format!("{} bash -c '{inner}'", "true;".repeat(1_200)),
            format!("echo {}; {inner}", "x".repeat(70_000)),
            nest("{ ", ";}", 410, inner),
            nest("( ", ")", 210, inner),
            shells(7, inner),
            format!("{}\n{inner}", "cat <<E\nE\n".repeat(60)),
        ]
    };
    for inner in
        ["rm -rf /", "rm -rf ~", "mkfs.ext4 /dev/sda1", "echo x > /dev/sda", "cd / && rm -rf *"]
    {
        for line in hidden(inner) {
            let shown: String = line.chars().take(60).collect();
            assert_eq!(folder.decide(&policy, &line), Action::Deny, "{inner} in {shown}");
        }
    }
    for line in hidden("rm -rf build").into_iter().chain(hidden("ls -la")) {
        let shown: String = line.chars().take(60).collect();
        assert_eq!(folder.decide(&policy, &line), Action::Allow, "{shown}");
        assert_eq!(folder.decide(&defaults(), &line), Action::Ask, "{shown}");
    }
    for line in [
        format!("rm -rf {{{},/}}", many.join(",")),
        format!("rm -rf {}/../..", "{a,b,c,d,e}".repeat(6)),
        "rm -rf {'}',/}".to_owned(),
        "rm -rf {\"{\",/}".to_owned(),
        "rm -rf {a\\,b,/}".to_owned(),
    ] {
        assert_eq!(folder.decide(&policy, &line), Action::Deny, "{line}");
    }
    for line in ["rm -rf {\"a b\",c}", "rm -rf build/{a,b}/{c,d}", "mkdir -p {a,b}{1,2,3,4,5}{x,y}"]
    {
        assert_eq!(folder.decide(&policy, line), Action::Allow, "{line}");
    }
}

/// Who forbids a command forbids it in every spelling.
#[test]
fn a_rule_against_a_command_holds_however_it_is_spelled() {
    let folder = folder();
    let rule = |pattern: &str, action| Rule::new("bash", pattern, action, "/home/x");
    let with = |rules: Vec<Rule>| {
        let user = Layer { kind: LayerKind::User, origin: "user".into(), rules };
        Policy::new(vec![shipped_defaults(), user])
    };
    let denies = with(vec![rule("*", Action::Allow), rule("git push*", Action::Deny)]);
    let asks = with(vec![rule("*", Action::Allow), rule("git push*", Action::Ask)]);
    for command in [
        "git push",
        "git  push origin main",
        "\"git\" push",
        "g\\it push",
        "git pu\"\"sh",
        "/usr/bin/git push",
        "git -C . push",
        "git --no-pager push",
        "x=push; git $x",
        "A=1 git push",
        "env git  push",
    ] {
        assert_eq!(folder.decide(&denies, command), Action::Deny, "{command}");
        assert_eq!(folder.decide(&asks, command), Action::Ask, "{command}");
    }
    for command in ["git pull", "/usr/bin/git pull", "git  status"] {
        assert_eq!(folder.decide(&denies, command), Action::Allow, "{command}");
    }
    // What was allowed in one spelling is not asked about in another.
    let own = with(vec![rule("*", Action::Ask), rule("/usr/bin/make *", Action::Allow)]);
    assert_eq!(folder.decide(&own, "/usr/bin/make all"), Action::Allow);
    let planning = denies.clone().with_mode(Mode::Plan);
    assert_eq!(folder.decide(&planning, "git  log"), Action::Allow);
}
