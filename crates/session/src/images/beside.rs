//! Names of the files that are written beside others before they take their place. A process that is
//! killed in between leaves one; its name says whose place it was to take, so that it can be removed.

use std::fs;
use std::path::{Path, PathBuf};

/// How such a name begins, for a file with this path.
pub fn beside(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let hash = blake3::hash(path.as_os_str().as_bytes()).to_hex();
    format!(".tw-{}-", &hash[..12])
}

/// Removes what was left beside these files by a process that was killed. Nobody may be writing them.
pub(super) fn clear_beside<'a>(paths: impl IntoIterator<Item = &'a Path>) {
    let mut folders: Vec<(PathBuf, Vec<String>)> = Vec::new();
    for path in paths {
        let Some(folder) = path.parent() else { continue };
        match folders.iter_mut().find(|(known, _)| known == folder) {
            Some((_, names)) => names.push(beside(path)),
            None => folders.push((folder.to_owned(), vec![beside(path)])),
        }
    }
    for (folder, names) in folders {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let ours = |name: &str| names.iter().any(|own| name.starts_with(own.as_str()));
            if name.to_str().is_some_and(ours) {
                // One that cannot be removed is only in the way.
                fs::remove_file(entry.path()).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_left_beside_the_named_file_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        let left = format!("{}x1", beside(&own));
        for name in [left.as_str(), &format!("{}x1", beside(&other)), "own", ".tw-notes"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        clear_beside([own.as_path()]);
        assert!(!folder.path().join(left).exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
