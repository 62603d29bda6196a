//! Whether a program that takes orders from the folder it runs in can be taken at its word there. Git
//! runs programs that a repository's configuration and hooks name; an unpacked folder may have brought
//! its own. Everything here is a list of what is known to be harmless.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use toolwright_permission::Obeys;
use toolwright_session::images::embedded_repositories;

use crate::workspace::{Workspace, normalise};

pub(crate) fn is_tame(obeys: Option<Obeys>, place: &Path, workspace: &Workspace) -> bool {
    match obeys {
        None => true,
        Some(Obeys::Toolchain) => place.ancestors().all(|folder| {
            let files = ["rust-toolchain", "rust-toolchain.toml", "go.mod", "go.work"];
            files.iter().all(|file| !folder.join(file).exists())
        }),
        Some(Obeys::Git) => is_tame_repository(place, workspace),
    }
}

/// Bytes of a configuration that are read: a longer one is nobody's work.
const CONFIG_CAP_BYTES: u64 = 256 << 10;

/// Submodules whose configuration is looked at.
const MODULES_CAP: usize = 64;

/// Repositories in repositories that are looked into.
const EMBEDDED_DEPTH: usize = 4;

/// Of a section, the settings that run nothing; a star stands for all.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
            "abbrev",
            "quotepath",
            "compression",
            "bigfilethreshold",
            "untrackedcache",
            "checkstat",
            "trustctime",
            "preloadindex",
            "longpaths",
            "sharedrepository",
            "whitespace",
            "commentchar",
            "splitindex",
            "sparsecheckout",
            "sparsecheckoutcone",
            "multipackindex",
            "commitgraph",
            "fscache",
            "protectntfs",
            "protecthfs",
            "excludesfile",
            "hidedotfiles",
        ],
    ),
    (
        "extensions",
        &[
            "objectformat",
            "refstorage",
            "worktreeconfig",
            "preciousobjects",
            "compatobjectformat",
            "relativeworktrees",
        ],
    ),
    (
        "remote",
        &[
            "url",
            "fetch",
            "pushurl",
            "push",
            "tagopt",
            "prune",
            "prunetags",
            "skipdefaultupdate",
            "mirror",
            "gh-resolved",
            "followremotehead",
        ],
    ),
    ("branch", &["*"]),
    ("user", &["name", "email", "signingkey", "useconfigonly"]),
    ("author", &["*"]),
    ("committer", &["*"]),
    ("color", &["*"]),
    ("column", &["*"]),
    ("advice", &["*"]),
    ("pull", &["*"]),
    ("push", &["*"]),
    ("fetch", &["*"]),
    ("init", &["*"]),
    ("rebase", &["*"]),
    ("rerere", &["*"]),
    (
        "status",
        &["short", "branch", "showuntrackedfiles", "relativepaths", "aheadbehind", "renames"],
    ),
    ("commit", &["*"]),
    ("gc", &["*"]),
    ("gui", &["*"]),
    ("index", &["*"]),
    ("maintenance", &["*"]),
    ("pack", &["*"]),
    ("stash", &["*"]),
    ("tag", &["*"]),
    ("alias", &["*"]),
    ("http", &["*"]),
    ("url", &["*"]),
    ("lfs", &["*"]),
    (
        "submodule",
        &[
            "url",
            "active",
            "path",
            "branch",
            "ignore",
            "recurse",
            "fetchrecursesubmodules",
            "shallow",
        ],
    ),
    ("merge", &["conflictstyle", "ff", "renamelimit", "renames", "log", "branchdesc", "stat"]),
    (
        "diff",
        &[
            "renames",
            "algorithm",
            "colormoved",
            "mnemonicprefix",
            "noprefix",
            "context",
            "renamelimit",
            "indentheuristic",
        ],
    ),
    ("log", &["date", "decorate", "abbrevcommit", "follow"]),
    ("blame", &["date", "coloring", "showemail"]),
    ("github", &["*"]),
    ("vscode-merge-base", &["*"]),
    ("feature", &["*"]),
    ("credential", &["username", "usehttppath"]),
];

/// The repository that git would use in a folder: its configuration names no programs, it has no hook
/// that looking would start, and it is the workspace's own.
fn is_tame_repository(place: &Path, workspace: &Workspace) -> bool {
    for folder in place.ancestors() {
        if !workspace.contains(folder) {
            break;
        }
        let git = folder.join(".git");
        match fs::symlink_metadata(&git) {
            Ok(_) if !obeys_nobody(&git, EMBEDDED_DEPTH, workspace) => return false,
            Ok(_) if is_complete(&git) => return true,
            // Git passes over it, and looks on.
            Ok(_) => {}
            Err(error) if is_absent(&error) => {}
            Err(_) => return false,
        }
        // Git takes a folder that looks like a repository for one.
        let parts = ["objects", "refs", "commondir"];
        let has = |part: &str| fs::symlink_metadata(folder.join(part)).is_ok();
        if has("HEAD") && parts.into_iter().any(has) {
            return false;
        }
    }
    // None of the workspace's: git says so, or finds one further up that is the user's own.
    true
}

/// Whether git would take it for a repository without a doubt.
fn is_complete(git: &Path) -> bool {
    let has = |part: &str| git.join(part).join(".").exists();
    let head = || {
        let text = fs::read_to_string(git.join("HEAD")).unwrap_or_default();
        let id = text.trim_end();
        let is_id = matches!(id.len(), 40 | 64) && id.bytes().all(|b| b.is_ascii_hexdigit());
        text.starts_with("ref: refs/") || is_id
    };
    let shares = || fs::symlink_metadata(git.join("commondir")).is_ok();
    !git.is_dir() || head() && !shares() && has("objects") && has("refs")
}

fn obeys_nobody(git: &Path, depth: usize, workspace: &Workspace) -> bool {
    let Some(folder) = real_folder(git) else { return false };
    // A work tree of a repository has its settings with that.
    let common = match named_in(&folder.join("commondir"), b"") {
        Ok(common) => folder.join(common),
        Err(error) if is_absent(&error) => folder.clone(),
        Err(_) => return false,
    };
    let Some(root) = git.parent() else { return false };
    if !workspace.contains(&folder) && !is_work_tree_of(&folder, git) {
        return false;
    }
    let mut files = vec![common.join("config")];
    files.extend([folder.join("config.worktree"), common.join("config.worktree")]);
    if !add_modules(&common.join("modules"), 3, &mut files) {
        return false;
    }
    !has_hook(&common.join("hooks"))
        && !has_hook(&folder.join("hooks"))
        && files.iter().all(|file| is_tame_file(file, root))
        && embedded_are_tame(git, &folder, depth, workspace)
}

/// The only hook that looking starts.
fn has_hook(hooks: &Path) -> bool {
    fs::symlink_metadata(hooks.join("post-index-change")).is_ok()
}

/// Whether a repository outside knows of this work tree: git writes into each where the other is. Anybody
/// can unpack a file that points to somebody else's.
fn is_work_tree_of(folder: &Path, git: &Path) -> bool {
    let back = named_in(&folder.join("gitdir"), b"").map(|back| folder.join(back));
    let same = |back: PathBuf| fs::canonicalize(back).ok() == fs::canonicalize(git).ok();
    // A submodule's says where its files are.
    let module = || {
        let text = fs::read_to_string(folder.join("config")).unwrap_or_default();
        let value = text.lines().find_map(|line| value_of(line.trim(), "worktree"));
        value.is_some_and(|tree| same(folder.join(tree).join(".git")))
    };
    back.is_ok_and(same) || module()
}

/// The path that a file of git's names, as git reads it: only the end of the line is not part of it.
fn named_in(file: &Path, prefix: &[u8]) -> io::Result<PathBuf> {
    let unfit = || io::Error::from(io::ErrorKind::InvalidData);
    if fs::metadata(file)?.len() > 8_192 {
        return Err(unfit());
    }
    let bytes = fs::read(file)?;
    let mut path = bytes.strip_prefix(prefix).ok_or_else(unfit)?;
    while let Some(shorter) = path.strip_suffix(b"\n").or_else(|| path.strip_suffix(b"\r")) {
        path = shorter;
    }
    match path.is_empty() || path.contains(&b'\n') {
        true => Err(unfit()),
        false => Ok(PathBuf::from(OsStr::from_bytes(path))),
    }
}

/// What of a git folder's own settings names a program, by its name inside. Bare ones and those of
/// submodules and of work trees are alike here.
pub fn programs_named(folder: &Path) -> Vec<&'static str> {
    let mut found = Vec::new();
    for name in ["config", "config.worktree"] {
        let file = folder.join(name);
        let is_own = || {
            !file.is_symlink() && is_tame_text_in(&file, &|text| names_nothing(text, &file, folder))
        };
        if fs::symlink_metadata(&file).is_ok() && !is_own() {
            found.push(name);
        }
    }
    let is_sample = |name: &Path| name.extension().is_some_and(|ending| ending == "sample");
    let hooks = folder.join("hooks");
    let mut entries = fs::read_dir(&hooks).into_iter().flatten().flatten();
    if hooks.is_symlink() || entries.any(|entry| !is_sample(&entry.path())) {
        found.push("hooks");
    }
    found
}

/// Not only when somebody looks: hooks are for later. A submodule says where its files are; that runs
/// nothing, wherever they are.
fn names_nothing(text: &str, file: &Path, root: &Path) -> bool {
    let is_key = |line: &str, key: &str| {
        let line = line.trim_start().to_lowercase();
        let rest = line.strip_prefix(key).map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with('='))
    };
    let lines: Vec<&str> = text.lines().collect();
    // Only a line that stands for itself: the one before must not go on in it.
    if lines.iter().any(|line| line.trim_end().ends_with('\\') || is_key(line, "hookspath")) {
        return false;
    }
    let rest = lines.into_iter().filter(|line| !is_key(line, "worktree"));
    let value = |line: &str| is_tame_value(line, file, root);
    is_tame_text(&rest.collect::<Vec<_>>().join("\n"), &value)
}

/// Git looks into every repository that the index takes for one, wherever its settings are.
fn embedded_are_tame(git: &Path, folder: &Path, depth: usize, workspace: &Workspace) -> bool {
    let (Some(root), Ok(Some(inner))) = (git.parent(), Embedded::of(folder)) else { return false };
    inner.iter().all(|path| {
        let git = root.join(path).join(".git");
        match fs::symlink_metadata(&git) {
            Err(error) => is_absent(&error),
            Ok(_) => depth > 0 && obeys_nobody(&git, depth - 1, workspace),
        }
    })
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The last index that was read: there is a question for every command, and an index may be large.
struct Embedded {
    folder: PathBuf,
    stamp: (SystemTime, u64, u64),
    found: Option<Arc<[PathBuf]>>,
}

impl Embedded {
    fn of(folder: &Path) -> io::Result<Option<Arc<[PathBuf]>>> {
        static LAST: Mutex<Option<Embedded>> = Mutex::new(None);
        let data = match fs::metadata(folder.join("index")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(Arc::default()));
            }
            data => data?,
        };
        let stamp = (data.modified()?, data.ino(), data.len());
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && last.folder == folder
            && last.stamp == stamp
        {
            return Ok(last.found.clone());
        }
        let found = embedded_repositories(folder)?.map(Arc::from);
        *last = Some(Self { folder: folder.to_owned(), stamp, found: found.clone() });
        Ok(found)
    }
}

/// `.git` itself, or the folder that a file of this name points to.
fn real_folder(git: &Path) -> Option<PathBuf> {
    let metadata = fs::symlink_metadata(git).ok()?;
    if metadata.is_dir() {
        return Some(git.to_owned());
    }
    Some(git.parent()?.join(named_in(git, b"gitdir: ").ok()?))
}

/// The configurations of submodules, which `git status` enters.
fn add_modules(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return true };
    for entry in entries.flatten() {
        let path = entry.path();
        if has_hook(&path.join("hooks")) || files.len() > MODULES_CAP {
            return false;
        }
        let config = path.join("config");
        if config.exists() {
            files.push(config);
        } else if depth > 0 && path.is_dir() && !add_modules(&path, depth - 1, files) {
            return false;
        }
    }
    true
}

/// A file that is not there orders nothing.
fn is_tame_file(file: &Path, root: &Path) -> bool {
    let value = |line: &str| is_tame_value(line, file, root);
    is_tame_text_in(file, &|text| is_tame_text(text, &value))
}

fn is_tame_text_in(file: &Path, is_tame: &dyn Fn(&str) -> bool) -> bool {
    match fs::metadata(file) {
        Err(error) => is_absent(&error),
        Ok(metadata) if metadata.len() > CONFIG_CAP_BYTES || !metadata.is_file() => false,
        Ok(_) => fs::read_to_string(file).is_ok_and(|text| is_tame(&text)),
    }
}

/// The value of a setting that is written without anything to be read twice.
fn value_of<'t>(line: &'t str, key: &str) -> Option<&'t str> {
    let (name, value) = line.split_once('=')?;
    let value = value.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+ ".contains(c);
    (name.trim().eq_ignore_ascii_case(key) && !value.is_empty() && value.chars().all(plain))
        .then_some(value)
}

/// Settings of the core that are harmless with some values: hooks in a folder without the one that looking
/// starts, git's own watcher, and the files of a submodule where they belong.
fn is_tame_value(line: &str, file: &Path, root: &Path) -> bool {
    if let Some(value) = value_of(line, "fsmonitor") {
        return matches!(value, "true" | "false");
    }
    if let Some(value) = value_of(line, "hookspath") {
        return !has_hook(&root.join(value));
    }
    let tree = value_of(line, "worktree").zip(file.parent());
    tree.is_some_and(|(value, folder)| {
        let tree = normalise(&folder.join(value));
        tree != root && tree.starts_with(root) && file.starts_with(root)
    })
}

/// Each setting must be known. What is not plainly `[section "name"]` or `key = value` is not.
/// Of the core's others, `is_tame` says which are harmless with the value that they have.
fn is_tame_text(text: &str, is_tame: &dyn Fn(&str) -> bool) -> bool {
    let mut known: &[&str] = &[];
    let mut in_core = false;
    text.lines().all(|line| {
        let line = line.trim();
        // It goes on in the next line, or seems to.
        if line.ends_with('\\') {
            return false;
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(head) = line.strip_prefix('[') {
            // A setting may stand behind the bracket: then there is more than one reads at a glance.
            let Some(head) = head.strip_suffix(']') else { return false };
            let name = head.split([' ', '\t', '.']).next().unwrap_or_default().to_lowercase();
            if head.matches(']').count() > 0 {
                return false;
            }
            in_core = head.eq_ignore_ascii_case("core");
            let section = KNOWN.iter().find(|(section, _)| *section == name);
            known = section.map_or(&[], |(_, keys)| keys);
            return section.is_some();
        }
        let key = line.split(['=', ' ', '\t']).next().unwrap_or_default().to_lowercase();
        known.contains(&"*") || known.contains(&key.as_str()) || in_core && is_tame(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_tame_text(text: &str) -> bool {
        let root = Path::new("/nowhere");
        let file = root.join(".git/modules/a/config");
        super::is_tame_text(text, &|line| is_tame_value(line, &file, root))
    }

    #[test]
    fn ordinary_configurations_are_tame() {
        assert!(is_tame_text(
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
             [remote \"origin\"]\n\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
             [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A\n# x\n"
        ));
        assert!(is_tame_text(""));
        assert!(is_tame_text(
            "[core]\n\tworktree = ../../../a\n\thooksPath = .husky/_\n\tfsmonitor = true"
        ));
    }

    #[test]
    fn what_a_git_folder_names_is_told_by_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path();
        fs::create_dir(git.join("hooks")).unwrap();
        fs::write(git.join("hooks/pre-commit.sample"), "").unwrap();
        let module = "[core]\n\tbare = false\n\tworktree = ../../../sub\n";
        fs::write(git.join("config"), module).unwrap();
        assert!(programs_named(git).is_empty());
        fs::write(git.join("config.worktree"), "[core]\n\tfsmonitor = x").unwrap();
        fs::write(git.join("hooks/pre-commit"), "").unwrap();
        assert_eq!(programs_named(git), ["config.worktree", "hooks"]);
        fs::write(git.join("config"), "[core]\n\tabbrev = 4 \\\n\tworktree = x").unwrap();
        assert_eq!(programs_named(git), ["config", "config.worktree", "hooks"]);
        fs::write(git.join("config"), "[core]\n\thooksPath = empty\n").unwrap();
        assert_eq!(programs_named(git), ["config", "config.worktree", "hooks"]);
    }

    #[test]
    fn what_may_run_something_is_not() {
        for text in [
            "[core]\n\tfsmonitor = touch x",
            "[CORE]\n\tFSMONITOR = x",
            "[core] fsmonitor = x",
            "[core]\n\tpager = x",
            "[core]\n\thooksPath = \"x\"",
            "[core]\n\tworktree = ../../..",
            "[core]\n\tworktree = ../../../../b",
            "[core \"a\"]\n\tfsmonitor = true",
            "[core]\n\tworktree = /",
            "[core]\n\tsshCommand = x",
            "[include]\n\tpath = x",
            "[includeIf \"gitdir:x\"]\n\tpath = x",
            "[diff]\n\texternal = x",
            "[diff \"a\"]\n\ttextconv = x",
            "[filter \"a\"]\n\tclean = x",
            "[gpg]\n\tprogram = x",
            "[pager]\n\tlog = x",
            "[remote \"a\"]\n\tpromisor = true",
            "[remote \"a\"]\n\tuploadpack = x",
            "[merge \"a\"]\n\tdriver = x",
            "[submodule \"a\"]\n\tupdate = !x",
            "[nobody]\n\tknows = x",
            "[core]\n# a \\\n\tfsmonitor = x",
            "[user]\n\tname = a \\\n[core]\n\tfsmonitor = x",
        ] {
            assert!(!is_tame_text(text), "{text}");
        }
    }
}
