//! A shell command in the words of rules: each simple command, the paths that they name, and what
//! cannot be known.

use std::path::{Path, PathBuf};

use toolwright_permission::{Analysis, Request, ShellCommand, Touch, TouchKind, analyse};

use crate::access::{Access, Extent, Plan};
use crate::workspace::Workspace;

pub(crate) fn requests(line: &str, directory: &Path, workspace: &Workspace) -> Vec<Request> {
    let Analysis { commands, unknown, tainted, floor } = analyse(line);
    let doubt = (!unknown.is_empty()).then(|| unknown.join("; "));
    let mut found: Vec<Request> = Vec::new();
    let mut floor = floor;
    // In a sandbox the kernel keeps what is written where it belongs; what is read still counts.
    let contained = workspace.containment().is_closed && workspace.contains(directory);
    for command in &commands {
        let tame = workspace.contains(directory) && workspace.is_tame(&command.text);
        let harmless = command.harmless && tame && !tainted && doubt.is_none();
        for touch in &command.touches {
            let path = place(touch, directory, workspace);
            floor = floor.or_else(|| refusal(touch, &path, workspace));
            found.extend(of_touch(touch, path, harmless, contained, workspace));
        }
        if !command.only_moves {
            found.push(Request { contained, ..of_command(command, harmless, &doubt) });
        }
    }
    if commands.iter().all(|command| command.only_moves) && doubt.is_some() {
        // Nothing that rules could be about, and still nobody knows what it does.
        let whole = Request {
            permission: "bash".to_owned(),
            pattern: line.trim().to_owned(),
            always: line.trim().to_owned(),
            doubt,
            contained,
            ..Request::default()
        };
        found.push(whole);
    }
    if let Some(first) = found.first_mut() {
        first.floor = floor;
    }
    found
}

fn of_command(command: &ShellCommand, harmless: bool, doubt: &Option<String>) -> Request {
    Request {
        permission: "bash".to_owned(),
        pattern: command.text.clone(),
        always: command.text.clone(),
        harmless,
        doubt: doubt.clone(),
        ..Request::default()
    }
}

/// Where the path leads, seen from the folders that the line has changed to.
fn place(touch: &Touch, directory: &Path, workspace: &Workspace) -> PathBuf {
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let step = |from: PathBuf, to: &str| match to {
        "~" => home.clone(),
        to => match to.strip_prefix("~/") {
            Some(inside) => home.join(inside),
            None => workspace.resolve_in(&from, to),
        },
    };
    let from = touch.folders.iter().fold(directory.to_owned(), |from, to| step(from, to));
    // Of a pattern, the part before it says where it is.
    let literal = touch.path.split(['*', '?', '[']).next().unwrap_or_default();
    let path = step(from.clone(), if literal.is_empty() { "." } else { literal });
    workspace.resolve_in(&from, &path.display().to_string())
}

/// Outside the workspace a path always counts; inside it, what people wrote about it does, and for a
/// command that nobody is asked about, everything.
fn of_touch(
    touch: &Touch,
    path: PathBuf,
    harmless: bool,
    contained: bool,
    workspace: &Workspace,
) -> Vec<Request> {
    let reads = touch.kind == TouchKind::Read;
    if reads && !path.exists() {
        return Vec::new();
    }
    let access = if reads {
        Access::Read { path, extent: Extent::Single }
    } else {
        Access::Write { path, diff: String::new() }
    };
    let requests = Plan::new("", vec![access]).requests(workspace);
    let soften = |request: Request| {
        let unasked = (harmless || contained) && reads;
        let advisory = request.permission != "external_directory" && !unasked;
        Request { advisory, contained: contained && !reads, ..request }
    };
    requests.into_iter().map(soften).collect()
}

/// Deleting everything is nothing that anybody can want.
fn refusal(touch: &Touch, path: &Path, workspace: &Workspace) -> Option<String> {
    if touch.kind != TouchKind::DeleteTree {
        return None;
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let whole = touch.path.trim_end_matches(['*', '/']).is_empty() && touch.path.starts_with('/');
    let is_root = whole || path == Path::new("/");
    let is_home = home.as_deref().is_some_and(|home| home.starts_with(path));
    let is_workspace = workspace.worktree().starts_with(path) || workspace.directory() == path;
    // `rm -rf build/*` empties a folder of the workspace; `rm -rf *` in its root empties the workspace.
    (is_root || is_home || is_workspace)
        .then(|| format!("it deletes {} with everything in it", path.display()))
}
