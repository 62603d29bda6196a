//! A shell command in the words of rules: each simple command, the paths that they name, and what
//! cannot be known.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use toolwright_permission::{
    Analysis, Folder, Obeys, Request, ShellCommand, Touch, TouchKind, When, analyse, mentions,
};

use crate::access::{Access, Extent, Plan};
use crate::below;
use crate::floor::{self, Harm};
use crate::tame;
use crate::workspace::{Workspace, normalise};

/// Folders that a command may run in, at most: a line that may be in more is not followed further.
const PLACES_CAP: usize = 8;

/// Files that a pattern may stand for in a command that nobody is asked about, and entries of folders
/// that are looked at for them.
const MATCHES_CAP: usize = 256;
const ENTRIES_CAP: usize = 4_096;

pub(crate) fn requests(line: &str, directory: &Path, workspace: &Workspace) -> Vec<Request> {
    let Analysis { commands, unknown, tainted, mut floor, rough } = analyse(line);
    let doubt = (!unknown.is_empty()).then(|| unknown.join("; "));
    let mut found: Vec<Request> = Vec::new();
    // In a sandbox the kernel keeps what is written where it belongs; what is read still counts.
    let contained = workspace.containment().is_closed && workspace.contains(directory);
    for command in &commands {
        // A repository still holds what is gone from the disk.
        let lasting = command.obeys_folder == Some(Obeys::Git);
        let found_for = |touch: &Touch, path: PathBuf, harmless: bool| {
            let gone = path.symlink_metadata().is_err() && workspace.contains(&path);
            let counts =
                !gone || lasting && !touch.path.contains(':') && below::is_asked(&path, workspace);
            let reads = touch.kind == TouchKind::Read;
            let all =
                (counts || !reads).then(|| of_touch(touch, path, harmless, contained, workspace));
            all.unwrap_or_default()
        };
        let places = places(&command.folders, directory, workspace);
        let harmless = command.harmless
            && !tainted
            && doubt.is_none()
            && !brought(command, workspace)
            && places.iter().all(|place| {
                workspace.contains(place) && tame::is_tame(command.obeys_folder, place, workspace)
            });
        let mut is_known = true;
        for touch in &command.touches {
            for (from, path) in paths(touch, directory, workspace) {
                floor = floor.or_else(|| refusal(touch, &from, &path, workspace));
                if (harmless || contained) && touch.pattern {
                    match matching(&from, &touch.path, workspace) {
                        Some(matches) => {
                            for path in matches {
                                found.extend(found_for(touch, path, harmless));
                            }
                        }
                        None => is_known = false,
                    }
                }
                if (harmless || contained)
                    && let Some(below) = touch.below.as_ref().filter(|_| workspace.contains(&path))
                {
                    for secret in below::secrets(&path, below, workspace) {
                        found.extend(found_for(touch, secret, harmless));
                    }
                }
                // A link says by its name what it is, whatever the file behind it is called.
                let named = normalise(&from.join(&touch.path));
                if named != path && !touch.pattern && below::is_asked(&named, workspace) {
                    found.extend(found_for(touch, named, harmless));
                }
                found.extend(found_for(touch, shown(touch, path), harmless));
            }
        }
        if !command.only_moves {
            found.push(Request { contained, ..of_command(command, harmless && is_known, &doubt) });
            found.extend(command.spelled.as_deref().map(|plain| respelled(plain, harmless)));
        }
    }
    floor = floor.or_else(|| refusal_of(&rough, directory, workspace));
    if contained {
        found.extend(mentioned(line, &commands, directory, workspace));
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

/// Why a line must not even be typed into a shell.
pub(crate) fn floor(line: &str, directory: &Path, workspace: &Workspace) -> Option<String> {
    let analysis = analyse(line);
    let touches = analysis.commands.iter().flat_map(|command| &command.touches);
    let touches = touches.chain(&analysis.rough);
    analysis.floor.clone().or_else(|| refusal_of(touches, directory, workspace))
}

/// Files that the line names, that somebody wants to be asked about, and of which no command in it is known
/// to do something: what runs inside a fence is not asked about, so nobody else would notice
/// `python -c "open('.env')"`.
fn mentioned(
    line: &str,
    commands: &[ShellCommand],
    directory: &Path,
    workspace: &Workspace,
) -> Vec<Request> {
    let texts: Vec<&str> = commands.iter().map(|command| command.text.as_str()).collect();
    let touches = || commands.iter().flat_map(|command| &command.touches);
    let is_known =
        |name: &str| touches().any(|touch| touch.kind == TouchKind::Read && touch.path == name);
    let mut from: Vec<PathBuf> = vec![directory.to_owned()];
    from.extend(commands.iter().flat_map(|c| places(&c.folders, directory, workspace)));
    from.sort();
    from.dedup();
    let mut found: Vec<PathBuf> = Vec::new();
    for name in mentions(line, &texts).into_iter().filter(|name| !is_known(name)) {
        for from in &from {
            found.extend(named(name, from, workspace));
        }
    }
    found.sort();
    found.dedup();
    let touch = Touch {
        path: String::new(),
        kind: TouchKind::Read,
        pattern: false,
        folders: Vec::new(),
        below: None,
    };
    found.into_iter().flat_map(|path| of_touch(&touch, path, false, true, workspace)).collect()
}

/// Secrets that a name may stand for. In front of it there may be something that is computed
/// (`$PWD/.env`).
fn named(name: &str, from: &Path, workspace: &Workspace) -> Vec<PathBuf> {
    let ends = name.match_indices('/').map(|(at, _)| &name[at + 1..]);
    let ends = std::iter::once(name).chain(ends).filter(|end| !end.is_empty());
    let paths = ends.flat_map(|end| match end.contains(['*', '?']) {
        true if is_telling(end) => matching(from, end, workspace).unwrap_or_default(),
        true => Vec::new(),
        false => vec![step(from, end, workspace)],
    });
    let is_asked = |path: &PathBuf| below::is_asked(path, workspace) && path.is_file();
    let mut found: Vec<PathBuf> = paths.filter(is_asked).collect();
    if name.starts_with('/') || name.starts_with("~/") {
        let path = step(from, name, workspace);
        found.extend((!workspace.contains(&path) && is_foreign(&path)).then_some(path));
    }
    found
}

/// Where programs and what they need lie, for everybody to read.
const COMMON: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/dev", "/proc", "/sys"];

/// Whether it is somebody's file, and not a part of the system or a program.
fn is_foreign(path: &Path) -> bool {
    let common = COMMON.iter().map(Path::new).any(|own| path.starts_with(own));
    let temporary = path.starts_with(std::env::temp_dir());
    let data =
        || fs::metadata(path).is_ok_and(|d| d.is_file() && d.permissions().mode() & 0o111 == 0);
    !common && !temporary && data()
}

/// Whether a pattern says more than that there is something: `.*` stands in every expression.
fn is_telling(pattern: &str) -> bool {
    pattern.bytes().filter(u8::is_ascii_alphanumeric).count() > 0
}

/// Whether its program may be one that the workspace brings.
fn brought(command: &ShellCommand, workspace: &Workspace) -> bool {
    let program = command.text.split_whitespace().next().unwrap_or_default();
    workspace.brings(program.trim_matches(['\'', '"', '\\']))
}

/// The same command in plain words, for those who wrote a rule against it.
fn respelled(spelled: &str, harmless: bool) -> Request {
    Request {
        permission: "bash".to_owned(),
        pattern: spelled.to_owned(),
        always: spelled.to_owned(),
        respelled: true,
        advisory: true,
        harmless,
        ..Request::default()
    }
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

/// Where a path that begins with a tilde leads, or another one seen from a folder.
fn step(from: &Path, to: &str, workspace: &Workspace) -> PathBuf {
    // Links that lead elsewhere for each process: not where they lead for us.
    if ["/proc/", "/dev/fd", "/dev/std"].iter().any(|own| to.starts_with(own)) {
        return PathBuf::from(to);
    }
    match to.strip_prefix('~') {
        Some("") => workspace.home().to_owned(),
        Some(inside) if inside.starts_with('/') => {
            real(workspace.home(), inside.trim_start_matches('/'), workspace)
        }
        _ => real(from, to, workspace),
    }
}

/// As the kernel goes: `..` behind a link is the folder around what it leads to.
fn real(from: &Path, to: &str, workspace: &Workspace) -> PathBuf {
    let path = Path::new(to);
    if !path.components().any(|part| part == Component::ParentDir) {
        return workspace.resolve_in(from, to);
    }
    path.components().fold(from.to_owned(), |mut at, part| match part {
        Component::ParentDir => {
            at.pop();
            at
        }
        Component::CurDir => at,
        other => workspace.resolve_in(&at, &other.as_os_str().to_string_lossy()),
    })
}

/// The folders that a command may run in.
fn places(folders: &[Folder], directory: &Path, workspace: &Workspace) -> Vec<PathBuf> {
    let mut places = vec![Place { named: directory.to_owned(), real: directory.to_owned() }];
    for folder in folders {
        let mut next: Vec<Place> = Vec::new();
        for place in &places {
            let reached = place.step(&folder.path, workspace);
            let stays = match folder.when {
                When::Surely => false,
                // One that may not be entered is not entered.
                When::IfThere => !reached.iter().all(|to| to.real.join(".").is_dir()),
                When::Perhaps => true,
            };
            next.extend(reached);
            if stays {
                next.push(place.clone());
            }
        }
        next.dedup();
        if next.len() > PLACES_CAP {
            // Not followed further: it may be anywhere.
            next.truncate(PLACES_CAP);
            next.push(Place { named: PathBuf::from("/"), real: PathBuf::from("/") });
        }
        places = next;
    }
    let mut real: Vec<PathBuf> = places.into_iter().map(|place| place.real).collect();
    real.dedup();
    real
}

/// A folder that a command may run in.
#[derive(Clone, PartialEq, Eq)]
struct Place {
    /// As the shell calls it, with the links that led there.
    named: PathBuf,
    real: PathBuf,
}

impl Place {
    /// Shells take `..` off the name that they came by, and go as the kernel does when they are told to
    /// (`cd -P`): where the two differ it may be either.
    fn step(&self, to: &str, workspace: &Workspace) -> Vec<Self> {
        let real = step(&self.real, to, workspace);
        if to.starts_with('~') {
            return vec![Self { named: real.clone(), real }];
        }
        let named = normalise(&self.named.join(to));
        let by_name = step(&named, ".", workspace);
        let mut reached = vec![Self { named, real: by_name }];
        if reached[0].real != real {
            reached.push(Self { named: real.clone(), real });
        }
        reached
    }
}

/// Where a path may lead, each with the folder that it is seen from. Of a pattern, the part before it
/// says where it is.
fn paths(touch: &Touch, directory: &Path, workspace: &Workspace) -> Vec<(PathBuf, PathBuf)> {
    let literal = match touch.pattern {
        true => floor::before_pattern(&touch.path),
        false => &touch.path,
    };
    let literal = if literal.is_empty() { "." } else { literal };
    let places = if literal.starts_with(['/', '~']) {
        vec![directory.to_owned()]
    } else {
        places(&touch.folders, directory, workspace)
    };
    places.into_iter().map(|from| (from.clone(), step(&from, literal, workspace))).collect()
}

/// A pattern as people write it, in the folder where it is looked for.
fn shown(touch: &Touch, folder: PathBuf) -> PathBuf {
    let literal = floor::before_pattern(&touch.path);
    match touch.path.strip_prefix(literal).filter(|rest| touch.pattern && !rest.is_empty()) {
        Some(rest) => folder.join(rest.trim_start_matches('/')),
        None => folder,
    }
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

fn refusal_of<'t>(
    touches: impl IntoIterator<Item = &'t Touch>,
    directory: &Path,
    workspace: &Workspace,
) -> Option<String> {
    touches.into_iter().find_map(|touch| {
        let mut paths = paths(touch, directory, workspace).into_iter();
        paths.find_map(|(from, path)| refusal(touch, &from, &path, workspace))
    })
}

/// What nobody can want to be done to a path.
fn refusal(touch: &Touch, from: &Path, path: &Path, workspace: &Workspace) -> Option<String> {
    let harm = match touch.kind {
        TouchKind::Read => return None,
        TouchKind::Write => Harm::Writes,
        TouchKind::DeleteTree => Harm::DeletesTree,
        TouchKind::ChangeTree => Harm::ChangesTree,
    };
    let pattern = touch.pattern.then_some(touch.path.as_str());
    floor::refusal(harm, from, path, pattern, workspace)
}

/// The files that a pattern stands for; nothing if they are too many to be looked at, or if shells differ
/// about it.
fn matching(from: &Path, pattern: &str, workspace: &Workspace) -> Option<Vec<PathBuf>> {
    if pattern.contains("**") {
        return None;
    }
    let literal = floor::before_pattern(pattern);
    let rest = pattern.strip_prefix(literal)?;
    let start = step(from, if literal.is_empty() { "." } else { literal }, workspace);
    let mut found = vec![start];
    let mut entries = 0;
    for part in rest.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for folder in &found {
            if !part.contains(['*', '?', '[']) {
                next.push(real(folder, part, workspace));
                continue;
            }
            // Some shells find the folder above by it.
            if part.starts_with('.') && floor::may_match(part, "..") {
                next.push(real(folder, "..", workspace));
            }
            // Something that cannot be listed matches nothing.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                entries += 1;
                let name = entry.file_name();
                // What is not text cannot be judged by its name.
                let name = name.to_str()?;
                let hidden = name.starts_with('.') && !part.starts_with(['.', '[']);
                // A file may be called like an option.
                if literal.is_empty() && name.starts_with('-') && floor::may_match(part, name) {
                    return None;
                }
                if !hidden && floor::may_match(part, name) {
                    next.push(workspace.resolve_in(folder, name));
                }
            }
            if entries > ENTRIES_CAP || next.len() > MATCHES_CAP {
                return None;
            }
        }
        found = next;
    }
    found.sort();
    Some(found)
}
