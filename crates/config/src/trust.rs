//! Which folders a user trusts: a repository's own files may do more than tighten rules only where
//! somebody has said so, and only as long as they are the files that were looked at.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::commands_name::named_in;
use crate::hooks::claude_files;
use crate::load::candidates;
use crate::named::{add_imported, add_named};
use crate::paths::Paths;
use crate::state_file::StateFile;
use toolwright_permission::LayerKind;

/// Folders below `.opencode` and `.toolwright` whose files are run, or tell an agent what it is.
pub(crate) const RUNNING_FOLDERS: &[&str] = &[
    "agent", "agents", "command", "commands", "hook", "hooks", "mode", "modes", "plugin",
    "plugins", "tool", "tools",
];

/// Where hooks that others know keep their scripts.
const CLAUDE_HOOKS: &str = ".claude/hooks";

/// Files that are looked at; a folder with more is never as it was, and cannot be trusted for good.
const MOST_FILES: usize = 2000;

/// Bytes of one file that are compared.
const SEEN_CAP_BYTES: u64 = 64 << 20;

const TOO_MANY: &str = "more files than can be looked at";

/// What somebody said about a folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrustEntry {
    /// The root of the repository, or the folder itself; its real path.
    pub path: PathBuf,
    pub trusted: bool,
    /// When, as seconds since 1970.
    pub time: u64,
    /// The files that were there, by their path inside the folder, with what they held.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustState {
    /// Nobody has said anything.
    Unknown,
    Trusted,
    /// Somebody has said no to just these files.
    Refused,
    /// Somebody has decided, but these files are not as they were then.
    Changed {
        files: Vec<String>,
        was_trusted: bool,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Store {
    version: u32,
    folders: Vec<TrustEntry>,
}

/// The store. It holds exact folders: trust in one says nothing about those above and below it.
#[derive(Debug, Clone)]
pub struct Trust {
    file: StateFile,
    paths: Paths,
}

impl Trust {
    pub fn new(paths: &Paths) -> Self {
        Self { file: StateFile::new(paths.data.join("trust.json")), paths: paths.clone() }
    }

    pub fn all(&self) -> io::Result<Vec<TrustEntry>> {
        Ok(self.file.read::<Store>()?.folders)
    }

    /// How it stands with the repository `worktree`, seen from its folder `directory`. A store that
    /// cannot be read trusts nobody.
    pub fn state(&self, directory: &Path, worktree: &Path) -> TrustState {
        let all = self.all().unwrap_or_default();
        let Some(entry) = all.into_iter().find(|entry| entry.path == worktree) else {
            return TrustState::Unknown;
        };
        let now = self.fingerprints(directory, worktree);
        // What is gone can do nothing.
        let changed = |(file, print): &(&String, &String)| {
            entry.files.get(*file) != Some(*print) || file.as_str() == TOO_MANY
        };
        let files: Vec<String> = now.iter().filter(changed).map(|(file, _)| file.clone()).collect();
        match (files.is_empty(), entry.trusted) {
            (true, true) => TrustState::Trusted,
            (true, false) => TrustState::Refused,
            (false, was_trusted) => TrustState::Changed { files, was_trusted },
        }
    }

    /// Writes down what somebody said, about the files as they are now.
    pub fn decide(&self, directory: &Path, worktree: &Path, trusted: bool) -> io::Result<()> {
        let now = self.fingerprints(directory, worktree);
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        self.file.change(|store: &mut Store| {
            store.version = 1;
            let old = store.folders.iter().position(|entry| entry.path == worktree);
            // From another folder of the same repository other files are seen: those stay known.
            let mut files = match old.map(|at| store.folders.remove(at)) {
                Some(entry) if entry.trusted == trusted => entry.files,
                _ => BTreeMap::new(),
            };
            files.extend(now);
            let (path, time) = (worktree.to_owned(), since.as_secs());
            store.folders.push(TrustEntry { path, trusted, time, files });
        })
    }

    /// Forgets what was said about a folder; whether there was something.
    pub fn revoke(&self, worktree: &Path) -> io::Result<bool> {
        self.file.change(|store: &mut Store| {
            let before = store.folders.len();
            store.folders.retain(|entry| entry.path != worktree);
            store.folders.len() != before
        })
    }

    /// The folder's own files that count only where it is trusted, with what they hold.
    pub fn fingerprints(&self, directory: &Path, worktree: &Path) -> BTreeMap<String, String> {
        let mut files = self.settings(directory, worktree);
        let run = self.run_outside(directory, worktree);
        for folder in directory.ancestors().take_while(|folder| folder.starts_with(worktree)) {
            for own in [".opencode", ".toolwright"] {
                for running in RUNNING_FOLDERS {
                    collect(&folder.join(own).join(running), &mut files);
                }
            }
            collect(&folder.join(CLAUDE_HOOKS), &mut files);
        }
        add_named(&mut files, worktree);
        add_imported(&mut files);
        // Not what these import: a server that the project itself builds is made of its sources.
        files.extend(run.iter().cloned());
        if files.len() > MOST_FILES {
            return BTreeMap::from([(TOO_MANY.to_owned(), String::new())]);
        }
        let print = |file: PathBuf| {
            let inside = name_of(file.strip_prefix(worktree).unwrap_or(&file));
            match crate::bounded::read_up_to(&file, SEEN_CAP_BYTES) {
                Ok(bytes) => Some((inside, fingerprint(&bytes))),
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    // A program that was built is known by its size; what else cannot be compared is
                    // never taken for what it was.
                    let size = run.contains(&file).then(|| print_of(&file)).flatten();
                    Some(size.map_or((TOO_MANY.to_owned(), String::new()), |size| (inside, size)))
                }
                Err(_) => None,
            }
        };
        files.into_iter().filter_map(print).collect()
    }

    /// The project's files that its hooks and MCP servers run outside the sandbox, as far as their
    /// commands name them; some may not be there yet.
    pub fn run_outside(&self, directory: &Path, worktree: &Path) -> Vec<PathBuf> {
        let settings = self.settings(directory, worktree);
        settings.iter().flat_map(|file| named_in(file, directory, worktree)).collect()
    }

    fn settings(&self, directory: &Path, worktree: &Path) -> Vec<PathBuf> {
        let no_variables = |_: &str| None;
        let settings = candidates(&self.paths, directory, worktree, &no_variables);
        let settings = settings.into_iter().filter(|(kind, _)| *kind == LayerKind::Project);
        let mut files: Vec<PathBuf> = settings.map(|(_, file)| file).collect();
        let claude = claude_files(&self.paths, directory, worktree).into_iter();
        files.extend(claude.filter(|(kind, ..)| *kind == LayerKind::Project).map(|(_, f, _)| f));
        files
    }
}

/// Two files never have the same name here, whatever bytes theirs have.
fn name_of(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("bytes:{}", path.as_os_str().as_encoded_bytes().escape_ascii()),
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if files.len() > MOST_FILES {
            return;
        }
        let path = entry.path();
        // A link to a folder is not followed: it may lead round in a circle.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, files),
            _ => files.push(path),
        }
    }
}

/// What a file holds, in short; nothing where it is none or cannot be read. A very large one is known by its
/// size alone: nobody has read it.
pub fn print_of(file: &Path) -> Option<String> {
    match crate::bounded::read_up_to(file, SEEN_CAP_BYTES) {
        Ok(bytes) => Some(fingerprint(&bytes)),
        Err(_) => {
            let data = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
            (data.len() > SEEN_CAP_BYTES).then(|| format!("{} bytes", data.len()))
        }
    }
}

/// A repository's author must not be able to make two files with the same one.
fn fingerprint(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
