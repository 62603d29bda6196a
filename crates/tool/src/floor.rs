//! What nobody can want to be done to some paths, whoever asks and whatever the rules say.

use std::path::Path;

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
    let kept = workspace.guarded().iter().find(|own| path.starts_with(own));
    if let Some(own) = kept {
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
    for part in parts {
        match below.next() {
            Some(name) if part == "**" || may_match(part, &name) => {}
            Some(_) => return false,
            // Deeper than the folder: all of it, or only some?
            None => return takes_all(part),
        }
    }
    true
}

/// `*`, `.*`, `?*`, `[a-z]*`: next to nothing stays.
fn takes_all(part: &str) -> bool {
    part.chars().all(|c| matches!(c, '*' | '?' | '.')) && part.contains('*')
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
    }
}
