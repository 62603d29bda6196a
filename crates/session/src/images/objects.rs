//! What repositories know about the files in the workspace: which are tracked, which are clean, and the
//! contents of those that no longer are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use super::git;
use super::index::Index;
use super::known::{Content, Difference, Object};
use super::place::Repository;
use super::scan::{Facts, Scan};
use super::state::Hash;
use super::store::Images;

/// For each index: what it looked like, and the files in it that a look does not find by itself.
pub(super) type Hidden = HashMap<PathBuf, (Facts, Vec<PathBuf>)>;

/// Files that look clean, by repository: path below its root, object, size.
pub(super) type Candidates = Vec<(Repository, Vec<(PathBuf, String, u64)>)>;

/// Adds what repositories track although it is ignored. With `clean`, tells which files look clean.
pub(super) fn add_tracked(found: &mut Scan, known: &mut Hidden, clean: bool) -> Candidates {
    let mut candidates = Vec::new();
    for repository in found.repositories.clone() {
        let file = repository.folder.join("index");
        let Ok(Some(facts)) = Facts::at(&file) else { continue };
        let same = known.get(&file).filter(|(before, _)| *before == facts && !clean);
        let hidden = match same {
            Some((_, hidden)) => hidden.clone(),
            None => {
                let Ok(Some(index)) = Index::read(&repository.folder) else { continue };
                let (mut hidden, mut own) = (Vec::new(), Vec::new());
                for tracked in &index.files {
                    let path = repository.root.join(&tracked.path);
                    match found.entries.get(&path) {
                        None => hidden.push(path),
                        Some(facts) if clean && index.is_clean(tracked, facts) => {
                            let (path, object) = (tracked.path.clone(), tracked.object.clone());
                            own.push((path, object, facts.len));
                        }
                        Some(_) => {}
                    }
                }
                candidates.push((repository.clone(), own));
                known.insert(file, (facts, hidden.clone()));
                hidden
            }
        };
        for path in hidden {
            if let Ok(Some(facts)) = Facts::in_place(&path) {
                found.entries.insert(path, facts);
            }
        }
    }
    candidates
}

/// Those whose repository has exactly the bytes that are on disk: no line endings converted, no filter
/// in between. Where git cannot be asked, none.
pub(super) async fn clean_files(candidates: Candidates) -> HashMap<PathBuf, Object> {
    let mut clean = HashMap::new();
    for (Repository { root, folder, .. }, files) in candidates {
        let objects: Vec<String> = files.iter().map(|(_, object, _)| object.clone()).collect();
        let paths: Vec<PathBuf> = files.iter().map(|(path, ..)| path.clone()).collect();
        let (sizes, filtered) =
            tokio::join!(git::sizes(&folder, &objects), git::filtered(&root, &paths));
        let (Ok(sizes), Ok(filtered)) = (sizes, filtered) else { continue };
        for (path, name, len) in files {
            if sizes.get(&name) == Some(&len) && !filtered.contains(&path) {
                let object = Object { repository: folder.clone(), name };
                clean.insert(root.join(path), object);
            }
        }
    }
    clean
}

pub(super) async fn take_objects(
    differences: &[Difference],
    images: &Images,
) -> HashMap<Object, (Hash, u64)> {
    let mut wanted: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for known in differences.iter().flat_map(|d| [&d.before, &d.after]).flatten() {
        if let Content::Object(Object { repository, name }) = &known.content {
            wanted.entry(repository.clone()).or_default().insert(name.clone());
        }
    }
    let mut taken = HashMap::new();
    for (repository, names) in wanted {
        let names: Vec<String> = names.into_iter().collect();
        let found = git::take(&repository, &names, images).await.unwrap_or_default();
        for (name, kept) in found {
            taken.insert(Object { repository: repository.clone(), name }, kept);
        }
    }
    taken
}
