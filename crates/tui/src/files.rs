//! The files of the project, looked through on a thread of its own: neither walking a large tree nor
//! searching a long list may hold up a key.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::fuzzy;

/// Paths that are offered at once.
const OFFERED: usize = 20;
/// Files beyond this are not offered.
const FILES_CAP: usize = 500_000;
/// How long a list is good.
const FRESH: Duration = Duration::from_secs(20);
/// How often results are looked at again while the tree is still being walked.
const AGAIN: Duration = Duration::from_millis(60);

pub type Answer = Box<dyn Fn(u64, Vec<String>) + Send>;

pub struct Files {
    ask: Sender<(u64, String)>,
}

#[derive(Default)]
struct Tree {
    paths: Vec<String>,
    walking: bool,
    walked: Option<Instant>,
}

impl Files {
    /// Nothing is looked at before the first question.
    pub fn new(root: PathBuf, answer: Answer) -> Self {
        let (ask, questions) = channel();
        let work = move || serve(&root, &questions, &answer);
        std::thread::Builder::new().name("tw-files".to_owned()).spawn(work).ok();
        Self { ask }
    }

    pub fn find(&self, token: u64, query: String) {
        // Without the thread there are no files to offer.
        self.ask.send((token, query)).ok();
    }
}

fn serve(root: &Path, questions: &Receiver<(u64, String)>, answer: &Answer) {
    let tree = Arc::new(Mutex::new(Tree::default()));
    let mut asked: Option<(u64, String)> = None;
    loop {
        let walking = lock(&tree).walking;
        let next = match (walking, &asked) {
            // What was asked is answered better and better.
            (true, Some(_)) => match questions.recv_timeout(AGAIN) {
                Ok(next) => Some(next),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            },
            _ => match questions.recv() {
                Ok(next) => Some(next),
                Err(_) => return,
            },
        };
        let mut next = next.or(asked.take());
        // Only the newest question matters to somebody who types.
        while let Ok(newer) = questions.try_recv() {
            next = Some(newer);
        }
        let Some((token, query)) = next else { continue };
        look_again(root, &tree);
        let found = {
            let tree = lock(&tree);
            let all = tree.paths.iter().map(|path| (path.as_str(), path));
            fuzzy::best(&query, all, OFFERED).into_iter().cloned().collect()
        };
        answer(token, found);
        asked = Some((token, query));
    }
}

fn lock(tree: &Mutex<Tree>) -> std::sync::MutexGuard<'_, Tree> {
    tree.lock().unwrap_or_else(PoisonError::into_inner)
}

fn look_again(root: &Path, tree: &Arc<Mutex<Tree>>) {
    let mut state = lock(tree);
    if state.walking || state.walked.is_some_and(|at| at.elapsed() < FRESH) {
        return;
    }
    state.walking = true;
    let first = state.walked.is_none();
    drop(state);
    let (root, tree) = (root.to_owned(), Arc::clone(tree));
    let walk = move || {
        let mut found = Vec::new();
        let mut part = Vec::new();
        for entry in ignore::WalkBuilder::new(&root).hidden(false).build().flatten() {
            if entry.file_type().is_none_or(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path().strip_prefix(&root).unwrap_or(entry.path());
            let path = path.display().to_string();
            if path.starts_with(".git/") {
                continue;
            }
            part.push(path);
            if first && part.len() == 2_000 {
                lock(&tree).paths.append(&mut part);
            } else if part.len() == 2_000 {
                found.append(&mut part);
            }
            if found.len() >= FILES_CAP {
                break;
            }
        }
        let mut tree = lock(&tree);
        if first {
            tree.paths.append(&mut part);
        } else {
            found.append(&mut part);
            tree.paths = found;
        }
        (tree.walking, tree.walked) = (false, Some(Instant::now()));
    };
    std::thread::Builder::new().name("tw-walk".to_owned()).spawn(walk).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_a_few_letters_and_ignored_ones_are_not() {
        let root = tempfile::tempdir().unwrap();
        for path in ["src/main.rs", "src/other.rs", "target/main.o", ".gitignore", ".git/HEAD"] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "/target\n").unwrap();
        }
        let (tell, heard) = channel();
        let answer = move |token, paths| tell.send((token, paths)).unwrap_or_default();
        let files = Files::new(root.path().to_owned(), Box::new(answer));
        files.find(7, "main".to_owned());
        // Told again until the whole tree was seen.
        let (token, paths) = heard.iter().find(|(_, paths)| !paths.is_empty()).unwrap();
        assert_eq!((token, paths), (7, vec!["src/main.rs".to_owned()]));
    }
}
