//! What ignore files say: those of a folder, of the folders above it, of its repository and of the user.
//! The globs are read by the `ignore` crate; which of them counts is decided here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Bytes of an ignore file that are read, and of what says where a repository is.
const FILE_CAP_BYTES: u64 = 4 << 20;

/// The rules for what is in one folder. Each list has the innermost folder first, and only folders that
/// say anything.
#[derive(Clone, Default)]
pub(super) struct Rules {
    ignore: Vec<Arc<Gitignore>>,
    git: Vec<Arc<Gitignore>>,
    exclude: Vec<Arc<Gitignore>>,
    global: Option<Arc<Gitignore>>,
}

/// Which files with rules a folder has.
#[derive(Clone, Copy, Default)]
pub(super) struct Present {
    pub(super) ignore: bool,
    pub(super) gitignore: bool,
    pub(super) git: bool,
}

impl Present {
    const MAYBE: Self = Self { ignore: true, gitignore: true, git: true };

    pub(super) fn note(&mut self, name: &[u8]) {
        match name {
            b".ignore" => self.ignore = true,
            b".gitignore" => self.gitignore = true,
            b".git" => self.git = true,
            _ => {}
        }
    }

    fn any(self) -> bool {
        self.ignore || self.gitignore || self.git
    }
}

impl Rules {
    /// Those that come from above a folder and from the user.
    pub(super) fn above(root: &Path) -> Arc<Self> {
        let (global, _) = GitignoreBuilder::new(root).build_global();
        let global = (!global.is_empty()).then(|| Arc::new(global));
        let none = Arc::new(Self { global, ..Self::default() });
        let mut above: Vec<&Path> = root.ancestors().skip(1).collect();
        above.reverse();
        above.into_iter().fold(none, |rules, folder| rules.below(folder, Present::MAYBE))
    }

    /// Those for what is in a folder further down.
    pub(super) fn below(self: &Arc<Self>, folder: &Path, present: Present) -> Arc<Self> {
        if !present.any() {
            return Arc::clone(self);
        }
        let read =
            |wanted: bool, file: &Path| wanted.then(|| read(folder, file)).flatten().map(Arc::new);
        let ignore = read(present.ignore, &folder.join(".ignore"));
        let git = read(present.gitignore, &folder.join(".gitignore"));
        let is_repository = present.git && fs::metadata(folder.join(".git")).is_ok();
        let repository = is_repository.then(|| repository(folder)).flatten();
        let exclude = repository.and_then(|git| read(true, &git.join("info/exclude")));
        if !is_repository && ignore.is_none() && git.is_none() {
            return Arc::clone(self);
        }
        // What git leaves out is decided within a repository: nothing above it counts.
        let known = |list: &[Arc<Gitignore>]| match is_repository {
            true => Vec::new(),
            false => list.to_vec(),
        };
        let with = |own: Option<Arc<Gitignore>>, known: Vec<Arc<Gitignore>>| {
            own.into_iter().chain(known).collect()
        };
        Arc::new(Self {
            ignore: with(ignore, self.ignore.clone()),
            git: with(git, known(&self.git)),
            exclude: with(exclude, known(&self.exclude)),
            global: self.global.clone(),
        })
    }

    /// Whether there is nothing to be judged by.
    pub(super) fn is_empty(&self) -> bool {
        let Self { ignore, git, exclude, global } = self;
        ignore.is_empty() && git.is_empty() && exclude.is_empty() && global.is_none()
    }

    /// Whether a path is left out (`Ignore`), or let in although it is hidden (`Whitelist`).
    pub(super) fn judge(&self, path: &Path, is_folder: bool) -> Match<()> {
        let lists = [&self.ignore[..], &self.git, &self.exclude, self.global.as_slice()];
        for list in lists {
            for rules in list {
                let found = rules.matched(path, is_folder);
                if !found.is_none() {
                    return found.map(|_| ());
                }
            }
        }
        Match::None
    }
}

/// The rules in a file; nothing where it has none. Only a regular file is opened: a pipe would not end.
fn read(folder: &Path, file: &Path) -> Option<Gitignore> {
    let data = fs::metadata(file).ok()?;
    if !data.is_file() || data.len() > FILE_CAP_BYTES {
        return None;
    }
    let mut builder = GitignoreBuilder::new(folder);
    // A line that is no glob leaves the others as they are.
    builder.add(file);
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// Where the repository of a folder keeps what all its worktrees share.
fn repository(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let data = fs::metadata(&git).ok()?;
    if data.is_dir() {
        return Some(git);
    }
    let own = PathBuf::from(first_line(&git)?.strip_prefix("gitdir: ")?);
    let own = folder.join(own);
    let common = first_line(&own.join("commondir"))?;
    Some(own.join(common))
}

fn first_line(file: &Path) -> Option<String> {
    let data = fs::metadata(file).ok()?;
    if !data.is_file() || data.len() > FILE_CAP_BYTES {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    text.lines().next().map(str::to_owned)
}
