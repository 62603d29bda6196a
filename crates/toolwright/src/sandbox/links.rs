//! Protected names that are links: whoever replaces a link on the way, or writes to where it leads, has
//! changed what is protected.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// As many as the kernel follows.
const LINKS_CAP: usize = 40;

/// Names inside one protected folder that are looked at, and how deep.
const INSIDE_CAP: usize = 500;
const INSIDE_DEPTH: usize = 4;

/// The real path of something that need not exist, behind every link that leads there: each by a path
/// that has no link before its end.
pub(super) fn with_links(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left: VecDeque<OsString> = parts(path).into();
    let mut real = PathBuf::from("/");
    while let Some(part) = left.pop_front() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        match fs::read_link(&next) {
            Ok(to) if found.len() < LINKS_CAP => {
                found.push(next);
                if to.is_absolute() {
                    real = PathBuf::from("/");
                }
                parts(&to).into_iter().rev().for_each(|part| left.push_front(part));
            }
            _ => real = next,
        }
    }
    found.push(real);
    found
}

/// Links anywhere in a folder: what is behind them is part of it.
pub(super) fn links_inside(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    add_inside(folder, INSIDE_DEPTH, &mut 0, &mut found);
    found
}

fn add_inside(folder: &Path, depth: usize, seen: &mut usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        *seen += 1;
        if *seen > INSIDE_CAP {
            return;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => found.push(entry.path()),
            // Packages are full of links among themselves.
            Ok(kind) if kind.is_dir() && depth > 0 && entry.file_name() != "node_modules" => {
                add_inside(&entry.path(), depth - 1, seen, found);
            }
            _ => {}
        }
    }
}

fn parts(path: &Path) -> Vec<OsString> {
    let part = |part: Component| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_and_the_real_path_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink("real", root.join("a")).unwrap();
        symlink(root.join("a/deep"), root.join("b")).unwrap();
        symlink("../x/../real", root.join("real/deep/up")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let all = |name: &str| with_links(&root.join(name));
        let at = |names: &[&str]| names.iter().map(|name| root.join(name)).collect::<Vec<_>>();
        assert_eq!(all("real/new"), at(&["real/new"]));
        assert_eq!(all("a/new"), at(&["a", "real/new"]));
        assert_eq!(all("b/file"), at(&["b", "a", "real/deep/file"]));
        assert_eq!(all("real/deep/up"), at(&["real/deep/up", "real/real"]));
        assert_eq!(all("round").len(), LINKS_CAP + 1);
        let mut inside = links_inside(&root);
        inside.sort();
        assert_eq!(inside, at(&["a", "b", "real/deep/up", "round"]));
    }
}
