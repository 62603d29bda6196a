//! Paths, and the only way to files that a running call has.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use toolwright_permission::{Action, Rule, matches};
use toolwright_session::fail_point;
use toolwright_session::held::{Held, is_elsewhere, open_real};
use toolwright_session::images::beside;

use crate::access::{Access, Extent, Plan};
use crate::containment::{Containment, Later};
use crate::tool::ToolError;

/// The folder that a session works in.
#[derive(Debug, Clone)]
pub struct Workspace {
    directory: PathBuf,
    /// The repository around it, or the folder itself.
    worktree: PathBuf,
    containment: Later,
    home: PathBuf,
    guarded: Vec<PathBuf>,
    /// What people wrote rules about that are stricter than that files may be read.
    minded: Vec<String>,
    /// Folders inside it where programs are looked for by their names.
    searched: Vec<PathBuf>,
}

impl Workspace {
    /// `directory` must exist.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let directory = fs::canonicalize(directory)?;
        let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let home = fs::canonicalize(&home).unwrap_or(home);
        let worktree = repository_around(&directory, &home).to_owned();
        let containment = Later::default();
        let (guarded, minded, searched) = (Vec::new(), Vec::new(), Vec::new());
        let new = Self { directory, worktree, containment, home, guarded, minded, searched };
        Ok(new.searching(&std::env::var_os("PATH").unwrap_or_default()))
    }

    /// With another list of folders to look for programs in.
    pub fn searching(mut self, path: &OsStr) -> Self {
        let inside = |folder: &PathBuf| {
            let real = self.resolve(&folder.to_string_lossy());
            folder.is_relative() || self.contains(&real)
        };
        self.searched = std::env::split_paths(path).filter(inside).collect();
        self
    }

    /// Whether a name may stand for a program that the workspace brings, and not for the one it is known
    /// as (`.venv/bin/pip`).
    pub(crate) fn brings(&self, program: &str) -> bool {
        let is_there = |folder: &PathBuf| {
            folder.is_relative() || fs::symlink_metadata(folder.join(program)).is_ok()
        };
        self.searched.iter().any(is_there)
    }

    /// With a sandbox under the tools; what it holds is found out when it is first needed.
    pub fn contained(mut self, find: impl FnOnce() -> Containment + Send + 'static) -> Self {
        self.containment = Later::new(find);
        self
    }

    pub fn containment(&self) -> &Containment {
        self.containment.get()
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn worktree(&self) -> &Path {
        &self.worktree
    }

    /// The real path that `path` names, seen from the directory: links are followed as far as it
    /// exists, so that a link out of the workspace is judged by where it leads.
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.resolve_in(&self.directory, path)
    }

    /// As [`Self::resolve`], seen from another folder.
    pub fn resolve_in(&self, folder: &Path, path: &str) -> PathBuf {
        let wanted = normalise(&folder.join(path));
        let mut missing = Vec::new();
        let mut existing = wanted.as_path();
        loop {
            if let Ok(real) = fs::canonicalize(existing) {
                return missing.iter().rev().fold(real, |path, part| path.join(part));
            }
            match (existing.parent(), existing.file_name()) {
                (Some(parent), Some(name)) => {
                    missing.push(name);
                    existing = parent;
                }
                _ => return wanted,
            }
        }
    }

    /// Refuses changes to these folders for good: what keeps permissions must not be in the hands of
    /// those who need them.
    pub fn guarding(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        for folder in folders {
            let real = self.resolve_in(&self.directory, &folder.to_string_lossy());
            self.guarded.extend([real, folder]);
        }
        self.guarded.dedup();
        self
    }

    /// A search through a folder declares files that one of these patterns covers by themselves, so that
    /// the rules which they come from are asked.
    pub fn minding<'a>(mut self, rules: impl IntoIterator<Item = &'a Rule>) -> Self {
        let reads = |rule: &&Rule| {
            // What is said of everything is said of the folder too.
            rule.action != Action::Allow && matches("read", &rule.permission) && rule.pattern != "*"
        };
        self.minded.extend(rules.into_iter().filter(reads).map(|rule| rule.pattern.clone()));
        self.minded.sort();
        self.minded.dedup();
        self
    }

    pub(crate) fn minded(&self) -> &[String] {
        &self.minded
    }

    /// Takes another folder for the user's home than the environment says.
    pub fn at_home(mut self, home: PathBuf) -> Self {
        self.home = fs::canonicalize(&home).unwrap_or(home);
        self.worktree = repository_around(&self.directory, &self.home).to_owned();
        self
    }

    pub(crate) fn guarded(&self) -> &[PathBuf] {
        &self.guarded
    }

    /// The user's home folder.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.directory) || path.starts_with(&self.worktree)
    }

    /// As shown to people and matched by rules: relative to the worktree, absolute outside it.
    pub fn relative(&self, path: &Path) -> String {
        match path.strip_prefix(&self.worktree) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => inside.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }
}

/// The root of the repository that a folder belongs to, or the folder itself. A repository that is the home
/// folder or lies around it keeps settings: what happens to be below it is no part of one project.
fn repository_around<'a>(directory: &'a Path, home: &Path) -> &'a Path {
    let is_wide = |folder: &Path| folder.parent().is_none() || home.starts_with(folder);
    let found = directory.ancestors().find(|folder| folder.join(".git").exists());
    found.filter(|folder| !is_wide(folder)).unwrap_or(directory)
}

/// Removes `.` and `..` without looking at the disk.
pub(crate) fn normalise(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

/// The files that a call declared, and no others.
#[derive(Debug, Clone)]
pub struct Files {
    accesses: Vec<Access>,
}

impl Files {
    pub(crate) fn declared(plan: &Plan) -> Self {
        Self { accesses: plan.accesses.clone() }
    }

    /// Opens a declared file for reading.
    pub fn open(&self, path: &Path) -> Result<fs::File, ToolError> {
        self.check_read(path)?;
        open_real(path).map_err(|e| cannot("open", path, &e))
    }

    /// Fails unless the plan declared that `path` would be read (or written).
    pub fn check_read(&self, path: &Path) -> Result<(), ToolError> {
        let covered = self.accesses.iter().any(|access| match access {
            Access::Read { path: own, extent: Extent::Single }
            | Access::Write { path: own, .. } => own == path,
            Access::Read { path: own, extent: Extent::Tree } | Access::Search { root: own, .. } => {
                path.starts_with(own)
            }
            Access::Execute { .. }
            | Access::Type { .. }
            | Access::Fetch { .. }
            | Access::Delegate { .. }
            | Access::Mcp { .. }
            | Access::Custom { .. } => false,
        });
        if covered { Ok(()) } else { Err(undeclared("read", path)) }
    }

    /// Replaces a declared file's content in one step: whoever looks sees the old or the new content,
    /// never a part, and a full disk leaves the old. The mode is kept; parents are made.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<(), ToolError> {
        self.write_parts(path, [content], None)
    }

    /// As [`Self::write`], with the content in parts, so that a small change to a large file needs no
    /// second copy of it. A new file gets `mode` where that is given.
    pub fn write_parts<'a>(
        &self,
        path: &Path,
        parts: impl IntoIterator<Item = &'a [u8]>,
        mode: Option<fs::Permissions>,
    ) -> Result<(), ToolError> {
        let failed = |e: io::Error| cannot("write", path, &e);
        self.write_with(path, mode, |beside| {
            let mut buffered = io::BufWriter::with_capacity(WRITE_BUFFER_BYTES, beside);
            for part in parts {
                buffered.write_all(part).map_err(failed)?;
            }
            buffered.flush().map_err(failed)
        })
    }

    /// As [`Self::write`], with whatever `fill` puts into the new file; where it fails, the old content
    /// stays.
    pub fn write_with(
        &self,
        path: &Path,
        mode: Option<fs::Permissions>,
        fill: impl FnOnce(&mut fs::File) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        self.check_write(path)?;
        let failed = |e: io::Error| cannot("write", path, &e);
        // Something may have put a link there since the plan was made and approved.
        let (folder, place) = held(path, Held::make).map_err(failed)?;
        let existing = fs::symlink_metadata(&place).ok();
        if existing.as_ref().is_some_and(|e| !e.is_file()) {
            // Opening a pipe would wait for a reader.
            return Err(no_longer_approved(path));
        }
        if existing.is_some() {
            // A file that may not be written must not be replaced either.
            let how = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            fs::OpenOptions::new().write(true).custom_flags(how).open(&place).map_err(failed)?;
        }
        let name = beside(path);
        let beside = tempfile::Builder::new().prefix(&name).tempfile_in(folder.path());
        let mut beside = beside.map_err(failed)?;
        fill(beside.as_file_mut())?;
        let mode = match &existing {
            Some(existing) => {
                use std::os::unix::fs::{MetadataExt, fchown};
                let own = beside.as_file().metadata().map_err(failed)?;
                if (own.uid(), own.gid()) != (existing.uid(), existing.gid()) {
                    let (user, group) = (Some(existing.uid()), Some(existing.gid()));
                    fchown(beside.as_file(), user, group).map_err(failed)?;
                }
                existing.permissions()
            }
            None => mode.unwrap_or_else(new_file_mode),
        };
        beside.as_file().set_permissions(mode).map_err(failed)?;
        fail_point("write.half");
        beside.persist(&place).map_err(|e| failed(e.error))?;
        Ok(())
    }

    /// Removes a declared file.
    pub fn remove(&self, path: &Path) -> Result<(), ToolError> {
        self.check_write(path)?;
        let failed = |e: io::Error| cannot("remove", path, &e);
        let (_folder, place) = held(path, Held::open).map_err(failed)?;
        if fs::symlink_metadata(&place).is_ok_and(|found| found.is_symlink()) {
            return Err(no_longer_approved(path));
        }
        fs::remove_file(&place).map_err(failed)
    }

    fn check_write(&self, path: &Path) -> Result<(), ToolError> {
        let declared = |a: &Access| matches!(a, Access::Write { path: own, .. } if own == path);
        if self.accesses.iter().any(declared) { Ok(()) } else { Err(undeclared("write", path)) }
    }
}

/// Bytes gathered before they are written: a change in many places is many small parts.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// The folder of a file, held open, and the file's name in it: good for as long as that is held.
fn held(path: &Path, open: fn(&Path) -> io::Result<Held>) -> io::Result<(Held, PathBuf)> {
    let folder = open(path.parent().unwrap_or(Path::new("/")))?;
    let place = folder.join(path.file_name().unwrap_or_default());
    Ok((folder, place))
}

/// Why a declared file cannot be opened, written or removed.
pub fn cannot(what: &str, path: &Path, error: &io::Error) -> ToolError {
    if is_elsewhere(error) {
        return no_longer_approved(path);
    }
    ToolError::for_model(format!("Cannot {what} {}: {error}", path.display()))
}

fn no_longer_approved(path: &Path) -> ToolError {
    ToolError::for_model(format!("{} is no longer the file that was approved.", path.display()))
}

fn undeclared(what: &str, path: &Path) -> ToolError {
    ToolError::Fatal(format!(
        "a tool tried to {what} {}, which its plan did not declare",
        path.display()
    ))
}

/// What a plain `open` would have given: temporary files are private to their owner.
fn new_file_mode() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    static UMASK: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
        // Linux tells it without changing it, unlike the system call.
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("Umask:"));
        line.and_then(|l| u32::from_str_radix(l.trim(), 8).ok()).unwrap_or(0o022)
    });
    fs::Permissions::from_mode(0o666 & !*UMASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_that_is_home_or_around_it_is_not_a_projects() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let home = root.join("home");
        fs::create_dir_all(home.join("project/sub")).unwrap();
        let worktree = |from: &str| {
            let workspace = Workspace::new(&root.join(from)).unwrap().at_home(home.clone());
            workspace.worktree().to_owned()
        };
        for around in [&root, &home] {
            fs::create_dir(around.join(".git")).unwrap();
            assert_eq!(worktree("home/project/sub"), home.join("project/sub"));
            assert_eq!(worktree("home"), home);
        }
        fs::create_dir(home.join("project/.git")).unwrap();
        assert_eq!(worktree("home/project/sub"), home.join("project"));
    }
}
