//! The table of what no approval and no mode lifts (`floor_table.txt`), and of ordinary work that looks
//! like it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::PathBuf;

use toolwright_permission::{Action, Mode, Policy, Stance, analyse, shipped_defaults};
use toolwright_tool::{Access, Plan, Workspace};

struct Case {
    denied: bool,
    command: String,
    line: usize,
}

fn table() -> Vec<Case> {
    let text = include_str!("floor_table.txt");
    let rows =
        text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    rows.map(|(at, row)| {
        let (decision, command) = row.split_once(" | ").unwrap();
        let denied = match decision {
            "deny" => true,
            "pass" => false,
            other => panic!("line {}: {other}", at + 1),
        };
        Case { denied, command: command.replace('␤', "\n"), line: at + 1 }
    })
    .collect()
}

struct Folder {
    _folder: tempfile::TempDir,
    root: PathBuf,
    workspace: Workspace,
}

fn folder() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let above = fs::canonicalize(folder.path()).unwrap();
    let (root, home) = (above.join("work"), above.join("home"));
    for path in [".git/HEAD", "src/main.rs", "sub/c.txt", "build/x.o"] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x\n").unwrap();
    }
    let own = [".config/toolwright", ".config/opencode", ".local/share/toolwright"];
    let own = own.map(|own| home.join(own));
    own.iter().for_each(|own| fs::create_dir_all(own).unwrap());
    fs::write(own[2].join("approvals.json"), "{}").unwrap();
    fs::write(own[2].join("trust.json"), "{}").unwrap();
    let workspace = Workspace::new(&root).unwrap().at_home(home).guarding(own);
    Folder { _folder: folder, root, workspace }
}

impl Folder {
    fn decide(&self, policy: &Policy, command: &str) -> Action {
        let directory = self.root.clone();
        let access = Access::Execute { command: command.to_owned(), directory };
        let requests = Plan::new("", vec![access]).requests(&self.workspace);
        requests.iter().map(|r| policy.judge(r).action).max().unwrap_or(Action::Allow)
    }
}

#[test]
fn the_floor_is_where_the_table_says() {
    let folder = folder();
    let auto = Policy::new(vec![shipped_defaults()]).with_mode(Mode::Auto);
    let mut wrong = Vec::new();
    for case in table() {
        let expected = if case.denied { Action::Deny } else { Action::Allow };
        let decided = folder.decide(&auto, &case.command);
        if decided != expected {
            wrong
                .push(format!("line {}: {decided}, not {expected}: {:?}", case.line, case.command));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn only_everything_lifts_it() {
    let folder = folder();
    let everything = Policy::new(vec![shipped_defaults()])
        .with_stance(Stance { everything: true, ..Stance::default() });
    for case in table().iter().filter(|case| case.denied) {
        let decided = folder.decide(&everything, &case.command);
        assert_eq!(decided, Action::Allow, "line {}: {:?}", case.line, case.command);
    }
}

/// What nobody can make sense of is looked at too, in any state of being typed.
#[test]
fn no_beginning_of_a_line_is_too_odd_to_be_looked_at() {
    for case in table() {
        let odd = case.command.replace(' ', " ü");
        for line in [case.command, odd] {
            let ends = line.char_indices().map(|(at, _)| at).skip(case.line % 7).step_by(7);
            for end in ends {
                analyse(&line[..end]);
                analyse(&line[end..]);
            }
        }
    }
}
