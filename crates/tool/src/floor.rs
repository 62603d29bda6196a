//! What nobody can want to be done to some paths, whoever asks and whatever the rules say.

use std::fs;
use std::path::{Path, PathBuf};

use toolwright_permission::is_raw_device;

use crate::workspace::Workspace;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    Writes,
    /// Takes a folder away or changes all that is in it.
    ChangesTree,
    DeletesTree,
}

/// Why this is refused. `path` is real; of a `pattern` it is the part before the first star.
pub(crate) fn refusal(
    harm: Harm,
    from: &Path,
    path: &Path,
    pattern: Option<&str>,
    workspace: &Workspace,
) -> Option<String> {
    if is_raw_device(&path.to_string_lossy()) {
        return Some(format!("it writes to the device {}", path.display()));
    }
    let kept = |own: &&PathBuf| {
        path.starts_with(own) || pattern.is_some_and(|pattern| leads_into(path, pattern, own))
    };
    if let Some(own) = workspace.guarded().iter().find(kept) {
        return Some(format!("{} holds Toolwright's own state or settings", own.display()));
    }
    if harm == Harm::Writes {
        return None;
    }
    let covers = |folder: &Path| covers(path, pattern, folder);
    let shown = || match pattern {
        Some(pattern) => format!("{pattern} in {}", from.display()),
        None => path.display().to_string(),
    };
    let (root, home) = (Path::new("/"), workspace.home());
    let folders = [workspace.worktree(), workspace.directory()];
    let of_workspace = harm == Harm::DeletesTree && folders.iter().any(|folder| covers(folder));
    let verb = if harm == Harm::DeletesTree { "deletes" } else { "moves or changes" };
    let is_root = path == root && (pattern.is_some() || covers(root));
    if is_root || covers(home) || of_workspace {
        return Some(format!("it {verb} {} with everything in it", shown()));
    }
    let own = workspace.guarded().iter().find(|own| covers(own))?;
    Some(format!("{} holds Toolwright's own state or settings", own.display()))
}

/// Whether a pattern, seen from the folder before its first star, stands for something in one of
/// Toolwright's own: by a name that tells (`t*`), or by something that is there.
fn leads_into(path: &Path, pattern: &str, own: &Path) -> bool {
    let Ok(below) = own.strip_prefix(path) else { return false };
    let rest = pattern.strip_prefix(before_pattern(pattern)).unwrap_or(pattern);
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let names: Vec<String> =
        below.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    // At any depth, as `find` looks for a name.
    if let ["**", name] = parts.as_slice() {
        return !name.contains(['*', '?', '[']) && own.join(name).exists()
            || ["toolwright", "opencode"].iter().any(|own| name.contains(own));
    }
    let (folders, inside) = parts.split_at(names.len().min(parts.len()));
    if folders.len() < names.len() || !folders.iter().zip(&names).all(|(p, n)| may_match(p, n)) {
        return false;
    }
    let tells = |part: &&&str| part.bytes().any(|b| b.is_ascii_alphanumeric());
    let named = folders.last().filter(tells).is_some();
    match inside {
        [] => named,
        _ if named => true,
        [name] => {
            let entries = fs::read_dir(own).into_iter().flatten().flatten();
            let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.any(|own| may_match(name, &own))
        }
        _ => own.join(inside[0]).exists(),
    }
}

/// Whether a path, or what a pattern stands for, is a folder, one around it, or all that is in it.
fn covers(path: &Path, pattern: Option<&str>, folder: &Path) -> bool {
    let Some(pattern) = pattern else { return folder.starts_with(path) };
    let Ok(below) = folder.strip_prefix(path) else { return false };
    let literal = before_pattern(pattern);
    let parts: Vec<&str> = pattern
        .strip_prefix(literal)
        .unwrap_or(pattern)
        .split('/')
        .filter(|p| !p.is_empty())
        .collect();
    let mut below = below.components().map(|part| part.as_os_str().to_string_lossy());
    parts.into_iter().all(|part| match below.next() {
        Some(name) => part == "**" || may_match(part, &name),
        // Deeper than the folder: all of it, or only some?
        None => takes_all(part),
    })
}

/// `*`, `.*`, `?*`, `[a-z]*`, `[!.]*`: next to nothing stays.
fn takes_all(part: &str) -> bool {
    let mut rest = part;
    let mut plain = String::new();
    while let Some((before, bracket)) = rest.split_once('[') {
        plain.push_str(before);
        let Some((inside, behind)) = bracket.split_once(']') else { return false };
        if !inside.starts_with(['!', '^']) && !inside.contains("a-z") && !inside.contains("[:al") {
            return false;
        }
        rest = behind;
    }
    plain.push_str(rest);
    plain.chars().all(|c| matches!(c, '*' | '?' | '.' | ']')) && plain.contains('*')
}

/// The folders before the first part of a path that holds a pattern.
pub(crate) fn before_pattern(path: &str) -> &str {
    let end = path.find(['*', '?', '[', '{']).unwrap_or(path.len());
    match path[..end].rfind('/') {
        _ if end == path.len() => path,
        Some(slash) => &path[..=slash],
        None => "",
    }
}

/// Whether a shell's pattern may stand for a name. What is in brackets counts as any one letter, so this
/// says yes rather too often.
pub(crate) fn may_match(pattern: &str, name: &str) -> bool {
    let mut simple: Vec<char> = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '[' => {
                let inside: String = rest.clone().take_while(|c| *c != ']').collect();
                match rest.clone().any(|c| c == ']') {
                    // A bracket that does not end where it seems to may hold anything.
                    true if matches!(inside.as_str(), "" | "!" | "^")
                        || inside.contains(['[', '\\']) =>
                    {
                        return true;
                    }
                    true => {
                        rest.by_ref().take(inside.chars().count() + 1).for_each(drop);
                        simple.push('?');
                    }
                    false => simple.push('['),
                }
            }
            '{' | '\\' => return true,
            c => simple.push(c),
        }
    }
    let name: Vec<char> = name.chars().collect();
    wild(&simple, &name)
}

/// Stars and question marks, without going back further than the last star.
fn wild(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_what_shells_find() {
        for (pattern, name, expected) in [
            ("*", "a", true),
            ("*.rs", "a.rs", true),
            ("*.rs", "a.rc", false),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[a-c]x", "by", false),
            ("h*e", "home", true),
            ("[", "[", true),
            ("[]a]b", "ab", true),
        ] {
            assert_eq!(may_match(pattern, name), expected, "{pattern} {name}");
        }
        assert_eq!(before_pattern("/a/b*c/d"), "/a/");
        assert_eq!(before_pattern("x*"), "");
        assert_eq!(before_pattern("a/b"), "a/b");
    }

    #[test]
    fn a_pattern_covers_a_folder_it_may_stand_for_and_one_it_empties() {
        let covers = |path: &str, pattern: &str, folder: &str| {
            covers(Path::new(path), Some(pattern), Path::new(folder))
        };
        assert!(covers("/", "/*", "/home/x"));
        assert!(covers("/", "/h*", "/home/x"));
        assert!(!covers("/", "/t*", "/home/x"));
        assert!(covers("/home/x", "/home/x/*", "/home/x"));
        assert!(covers("/home/x", "/home/x/.*", "/home/x"));
        assert!(!covers("/home/x", "/home/x/*.log", "/home/x"));
        assert!(!covers("/home/x/build", "build/*", "/home/x"));
        assert!(covers("/home/x", "/home/x/[!.]*", "/home/x"));
        assert!(!covers("/home/x", "/home/x/[0-9]*", "/home/x"));
        assert!(covers("/home/x", "/home/x/*/*", "/home/x"));
        assert!(!covers("/home/x", "/home/x/*/target", "/home/x"));
    }
}
