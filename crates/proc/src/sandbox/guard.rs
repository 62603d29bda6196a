//! For what a layer cannot forbid: remembers how protected files were and puts them back when the
//! child has ended. What is there instead is kept beside them, so that nobody's work is lost.
//!
//! The child may have put links in the way, and this process is not fenced: every step goes through
//! folders that are held open since before the child began, and follows no link.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::Fence;

/// What stands behind the name of something that a child made in a protected place.
const ASIDE: &str = "stopped-by-sandbox";

/// Inside protected folders: what we write there ourselves while commands run.
const IGNORED: &[&str] = &["plans"];

/// What is remembered of all protected files together; the rest is not put back.
const CAP_FILES: usize = 1_000;
const CAP_BYTES: u64 = 8 << 20;
const CAP_DEPTH: usize = 8;

#[derive(Debug)]
pub(crate) struct Guard {
    kept: Vec<Kept>,
    since: Instant,
}

/// Files that this program wrote itself, because a person agreed to it while a child was running.
static OURS: Mutex<Vec<(Instant, PathBuf)>> = Mutex::new(Vec::new());
const OURS_CAP: usize = 1_000;

/// Tells that a file was written by this program and not by a child: it is not put back.
pub fn changed_by_us(path: &Path) {
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    if ours.len() >= OURS_CAP {
        ours.remove(0);
    }
    ours.push((Instant::now(), path.to_owned()));
}

fn is_ours(path: &Path, since: Instant) -> bool {
    let ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    ours.iter()
        .any(|(when, own)| *when >= since && (own.starts_with(path) || path.starts_with(own)))
}

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// The nearest folder that was there, and the way on from it.
    anchor: File,
    way: Vec<OsString>,
    was: State,
}

#[derive(Debug)]
enum State {
    Absent,
    File {
        stamp: Stamp,
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    Folder(BTreeMap<OsString, State>),
    /// Too much, or not to be read: left alone.
    Unknown,
}

/// Changes with every change: nobody but root can set the second time back.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    times: [i64; 4],
    mode: u32,
}

impl Guard {
    /// Remembers what is protected inside the writable folders and not covered otherwise.
    pub(super) fn of(fence: &Fence, covered: fn(&Path) -> bool) -> Option<Self> {
        let mut budget = Budget { files: CAP_FILES, bytes: CAP_BYTES };
        let inside = |path: &&PathBuf| fence.writable.iter().any(|root| path.starts_with(root));
        let open = fence.read_only.iter().filter(inside).filter(|path| !covered(path));
        let kept: Vec<_> = open.filter_map(|path| Kept::new(path, &mut budget)).collect();
        (!kept.is_empty()).then(|| Self { kept, since: Instant::now() })
    }

    /// Puts everything back. Gives what had been changed.
    pub(crate) fn restore(&self) -> Vec<PathBuf> {
        let mut changed = Vec::new();
        for kept in self.kept.iter().filter(|kept| !is_ours(&kept.path, self.since)) {
            kept.restore(&mut changed);
        }
        changed
    }
}

struct Budget {
    files: usize,
    bytes: u64,
}

impl Kept {
    fn new(path: &Path, budget: &mut Budget) -> Option<Self> {
        let mut way = vec![path.file_name()?.to_owned()];
        let mut folder = path.parent()?;
        let anchor = loop {
            match open_folder(folder) {
                Ok(anchor) => break anchor,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    way.insert(0, folder.file_name()?.to_owned());
                    folder = folder.parent()?;
                }
                Err(_) => return None,
            }
        };
        let was = match way.as_slice() {
            [name] => remember(&at(&anchor, name), 0, budget),
            _ => State::Absent,
        };
        Some(Self { path: path.to_owned(), anchor, way, was })
    }

    /// The folder that holds the protected name may have been moved, and another put in its place.
    fn return_anchor(&self, changed: &mut Vec<PathBuf>) {
        let place = self.path.ancestors().nth(self.way.len());
        let (Some(place), Ok(own)) = (place, self.anchor.metadata()) else { return };
        let there = fs::symlink_metadata(place).ok();
        let is_own = |data: &fs::Metadata| (data.dev(), data.ino()) == (own.dev(), own.ino());
        // One that is gone from the disk cannot come back; what is there instead is somebody's work.
        let Some(now) = fs::read_link(handle(&self.anchor)).ok().filter(|now| now.is_dir()) else {
            return;
        };
        if there.as_ref().is_some_and(is_own) {
            return;
        }
        changed.push(place.to_owned());
        let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else { return };
        let Ok(parent) = open_folder(parent) else { return };
        if there.is_none() || move_aside(&parent, name).is_ok() {
            fs::rename(now, at(&parent, name)).ok();
        }
    }

    fn restore(&self, changed: &mut Vec<PathBuf>) {
        self.return_anchor(changed);
        let Some((name, folders)) = self.way.split_last() else { return };
        let mut parent = match self.anchor.try_clone() {
            Ok(anchor) => anchor,
            Err(_) => return,
        };
        for folder in folders {
            let next = at(&parent, folder);
            match fs::symlink_metadata(&next) {
                Err(_) => return,
                // It leads to a place where the protected name may be.
                Ok(data) if data.is_symlink() => {
                    if move_aside(&parent, folder).is_ok() {
                        changed.push(self.path.clone());
                    }
                    return;
                }
                Ok(_) => match open_folder(&next) {
                    Ok(next) => parent = next,
                    Err(_) => return,
                },
            }
        }
        put_back(&parent, name, &self.was, &self.path, changed);
    }
}

fn remember(path: &Path, depth: usize, budget: &mut Budget) -> State {
    let data = match fs::symlink_metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return State::Absent,
        Err(_) => return State::Unknown,
    };
    if budget.files == 0 || depth > CAP_DEPTH {
        return State::Unknown;
    }
    budget.files -= 1;
    if data.is_symlink() {
        return fs::read_link(path).map_or(State::Unknown, State::Link);
    }
    if data.is_dir() {
        let Ok(entries) = fs::read_dir(path) else { return State::Unknown };
        let entry =
            |entry: fs::DirEntry| (entry.file_name(), remember(&entry.path(), depth + 1, budget));
        let known = |entry: &fs::DirEntry| !IGNORED.iter().any(|own| entry.file_name() == *own);
        return State::Folder(entries.flatten().filter(known).map(entry).collect());
    }
    if !data.is_file() || data.len() > budget.bytes {
        return State::Unknown;
    }
    budget.bytes -= data.len();
    let Ok(bytes) = fs::read(path) else { return State::Unknown };
    State::File { stamp: Stamp::of(&data), bytes, mode: data.permissions().mode() & 0o7777 }
}

/// `shown` is for people.
fn put_back(parent: &File, name: &OsStr, was: &State, shown: &Path, changed: &mut Vec<PathBuf>) {
    let path = at(parent, name);
    let now = fs::symlink_metadata(&path).ok();
    let same = match (was, &now) {
        (State::Unknown, _) | (State::Absent, None) => true,
        (State::File { stamp, bytes, mode }, Some(data)) if data.is_file() => {
            let equal = || fs::read(&path).is_ok_and(|now| now == *bytes);
            Stamp::of(data) == *stamp || (data.mode() & 0o7777 == *mode && equal())
        }
        (State::Link(to), Some(data)) => {
            data.is_symlink() && fs::read_link(&path).is_ok_and(|now| now == *to)
        }
        (State::Folder(entries), Some(data)) if data.is_dir() => {
            return within(&path, entries, shown, changed);
        }
        // An empty folder does nothing; what is in it may.
        (State::Absent, Some(data))
            if data.is_dir() && IGNORED.iter().any(|n| path.join(n).exists()) =>
        {
            return within(&path, &BTreeMap::new(), shown, changed);
        }
        _ => false,
    };
    if same {
        return;
    }
    changed.push(shown.to_owned());
    if now.is_some() && move_aside(parent, name).is_err() {
        return;
    }
    // What cannot be put back is among what was changed all the same.
    match was {
        State::File { bytes, mode, .. } => drop(write(&path, bytes, *mode)),
        State::Link(to) => drop(symlink(to, &path)),
        State::Folder(entries) => {
            if fs::create_dir(&path).is_ok() {
                within(&path, entries, shown, changed);
            }
        }
        State::Absent | State::Unknown => {}
    }
}

fn within(
    path: &Path,
    entries: &BTreeMap<OsString, State>,
    shown: &Path,
    changed: &mut Vec<PathBuf>,
) {
    let Ok(folder) = open_folder(path) else { return };
    for (name, was) in entries {
        put_back(&folder, name, was, &shown.join(name), changed);
    }
    let Ok(now) = fs::read_dir(path) else { return };
    for name in now.flatten().map(|entry| entry.file_name()) {
        let is_ours = name.to_string_lossy().contains(ASIDE);
        if !entries.contains_key(&name) && !is_ours && !IGNORED.iter().any(|own| name == *own) {
            put_back(&folder, &name, &State::Absent, &shown.join(&name), changed);
        }
    }
}

fn move_aside(parent: &File, name: &OsStr) -> io::Result<()> {
    for number in 0..100 {
        let mut aside = name.to_owned();
        aside.push(format!(".{ASIDE}"));
        if number > 0 {
            aside.push(format!("-{number}"));
        }
        let to = at(parent, &aside);
        if fs::symlink_metadata(&to).is_err() {
            fs::rename(at(parent, name), &to)?;
            // What was a program must not be taken for one.
            if fs::symlink_metadata(&to).is_ok_and(|data| data.is_file()) {
                fs::set_permissions(&to, fs::Permissions::from_mode(0o600))?;
            }
            return Ok(());
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // Never through a link: nothing may be there.
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(bytes)
}

fn open_folder(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    #[cfg(target_os = "linux")]
    let flags = flags | libc::O_PATH;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A name inside a folder that is held open, wherever that folder is now.
fn at(folder: &File, name: impl AsRef<Path>) -> PathBuf {
    handle(folder).join(name)
}

/// A link that the kernel keeps to wherever the folder is.
fn handle(folder: &File) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string())
}

impl Stamp {
    fn of(data: &fs::Metadata) -> Self {
        Self {
            file: (data.dev(), data.ino()),
            size: data.len(),
            times: [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()],
            mode: data.mode(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        _folder: tempfile::TempDir,
        root: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(folder.path()).unwrap();
            fs::create_dir_all(root.join("work/.git/hooks")).unwrap();
            fs::create_dir_all(root.join("outside")).unwrap();
            fs::write(root.join("work/.git/config"), "old").unwrap();
            fs::write(root.join("work/.git/hooks/pre-commit"), "hook").unwrap();
            Self { _folder: folder, root }
        }

        fn guard(&self) -> Guard {
            let protected = [".git/hooks", ".git/config", "opencode.json", ".claude/settings.json"];
            let fence = Fence {
                writable: vec![self.root.join("work")],
                read_only: protected.map(|name| self.root.join("work").join(name)).into(),
                ..Fence::default()
            };
            Guard::of(&fence, |_| false).unwrap()
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.join("work").join(name)
        }

        fn text(&self, name: &str) -> String {
            fs::read_to_string(self.path(name)).unwrap_or_default()
        }
    }

    #[test]
    fn what_was_not_touched_is_not_touched() {
        let place = Place::new();
        let guard = place.guard();
        let before = Stamp::of(&fs::metadata(place.path(".git/config")).unwrap());
        assert_eq!(guard.restore(), Vec::<PathBuf>::new());
        assert_eq!(Stamp::of(&fs::metadata(place.path(".git/config")).unwrap()), before);
    }

    #[test]
    fn changes_new_names_and_removals_are_put_back_and_kept_beside() {
        let place = Place::new();
        let guard = place.guard();
        fs::write(place.path(".git/config"), "evil").unwrap();
        fs::remove_file(place.path(".git/hooks/pre-commit")).unwrap();
        fs::write(place.path(".git/hooks/post-commit"), "evil").unwrap();
        fs::write(place.path("opencode.json"), "{}").unwrap();
        fs::create_dir(place.path(".claude")).unwrap();
        fs::write(place.path(".claude/settings.json"), "{}").unwrap();
        let mut changed = guard.restore();
        changed.sort();
        let wanted = [
            ".claude/settings.json",
            ".git/config",
            ".git/hooks/post-commit",
            ".git/hooks/pre-commit",
            "opencode.json",
        ];
        assert_eq!(changed, wanted.map(|name| place.path(name)));
        assert_eq!(place.text(".git/config"), "old");
        assert_eq!(place.text(".git/hooks/pre-commit"), "hook");
        assert_eq!(place.text(".git/config.stopped-by-sandbox"), "evil");
        for gone in ["opencode.json", ".git/hooks/post-commit", ".claude/settings.json"] {
            assert!(!place.path(gone).exists(), "{gone}");
            assert!(place.path(&format!("{gone}.stopped-by-sandbox")).exists(), "{gone}");
        }
        assert_eq!(guard.restore(), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_we_wrote_ourselves_meanwhile_stays() {
        let place = Place::new();
        let guard = place.guard();
        fs::write(place.path("opencode.json"), "{}").unwrap();
        changed_by_us(&place.path("opencode.json"));
        fs::write(place.path(".git/config"), "evil").unwrap();
        assert_eq!(guard.restore(), [place.path(".git/config")]);
        assert_eq!(place.text("opencode.json"), "{}");
    }

    #[test]
    fn a_link_that_was_put_in_the_way_leads_the_guard_nowhere() {
        let place = Place::new();
        let guard = place.guard();
        let outside = place.root.join("outside");
        fs::write(outside.join("config"), "somebody's").unwrap();
        fs::rename(place.path(".git"), place.path("moved")).unwrap();
        symlink(&outside, place.path(".git")).unwrap();
        symlink(&outside, place.path(".claude")).unwrap();
        fs::write(place.path("moved/config"), "evil").unwrap();
        let changed = guard.restore();
        assert!(changed.contains(&place.path(".claude/settings.json")), "{changed:?}");
        assert_eq!(fs::read_to_string(outside.join("config")).unwrap(), "somebody's");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        // The folder is where it was, and as it was.
        assert_eq!(place.text(".git/config"), "old");
        assert!(!place.path("moved").exists());
        assert!(place.path(".git.stopped-by-sandbox").is_symlink());
    }
}
