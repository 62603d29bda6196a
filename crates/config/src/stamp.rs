//! Whether the files that people write have changed since they were read: by names, sizes and times, without
//! reading them.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::hooks::claude_files;
use crate::load::{Environment, candidates};
use crate::paths::Paths;
use crate::trust::RUNNING_FOLDERS;

/// Files that are looked at in all; who has more has to begin anew for a change to count.
const MOST_FILES: usize = 4_000;

const DEPTH: usize = 8;

/// Folders of skills, seen from a folder of the project or from home.
const SKILL_FOLDERS: &[&str] = &[".claude/skills", ".agents/skills"];

/// How everything stood that counts in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamp(BTreeMap<PathBuf, Mark>);

/// A file that is replaced is another one even where size and time are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    size: u64,
    changed: (i64, i64),
    inode: u64,
}

impl Stamp {
    /// `skills` are the further folders with skills that the settings name, `included` the files that they
    /// take text from.
    pub fn take(
        paths: &Paths,
        directory: &Path,
        worktree: &Path,
        skills: &[String],
        included: &[PathBuf],
        env: Environment<'_>,
    ) -> Self {
        let mut stamp = Self::default();
        included.iter().for_each(|path| stamp.file(path));
        stamp.file(&paths.data.join("trust.json"));
        for (_, path) in candidates(paths, directory, worktree, env) {
            if path.is_dir() {
                for name in RUNNING_FOLDERS.iter().chain(&["skill", "skills"]) {
                    stamp.folder(&path.join(name), 0);
                }
            } else {
                stamp.file(&path);
            }
        }
        for (_, path, _) in claude_files(paths, directory, worktree) {
            stamp.file(&path);
        }
        let above = directory.ancestors().take_while(|folder| folder.starts_with(worktree));
        for folder in above.chain([paths.home.as_path()]) {
            for name in SKILL_FOLDERS {
                stamp.folder(&folder.join(name), 0);
            }
        }
        for text in skills {
            let folder = match text.strip_prefix("~/") {
                Some(rest) => paths.home.join(rest),
                None => directory.join(text),
            };
            stamp.folder(&folder, 0);
        }
        stamp
    }

    fn file(&mut self, path: &Path) {
        if self.0.len() >= MOST_FILES {
            return;
        }
        if let Ok(facts) = std::fs::metadata(path) {
            let changed = (facts.mtime(), facts.mtime_nsec());
            let mark = Mark { size: facts.len(), changed, inode: facts.ino() };
            self.0.insert(path.to_owned(), mark);
        }
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    // Packages are many, and change with the file that names them.
                    if depth < DEPTH && entry.file_name() != "node_modules" {
                        self.folder(&path, depth + 1);
                    }
                }
                _ => self.file(&path),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_that_counts_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let paths = Paths::from_env(&|name: &str| match name {
            "HOME" => Some(root.join("home").display().to_string()),
            _ => None,
        });
        let work = root.join("work");
        let take = || {
            Stamp::take(
                &paths,
                &work,
                &work,
                &["more".to_owned()],
                &[root.join("work/words.md")],
                &|_| None,
            )
        };
        let mut before = take();
        for file in [
            "home/.config/toolwright/toolwright.json",
            "home/.config/opencode/agent/a.md",
            "home/.claude/skills/x/SKILL.md",
            "home/.claude/settings.json",
            "work/opencode.jsonc",
            "work/.opencode/tool/t.ts",
            "work/.opencode/tool/lib/t.ts",
            "work/.opencode/plugins/p.js",
            "work/.toolwright/commands/deep/c.md",
            "work/.toolwright/skills/s/SKILL.md",
            "work/.agents/skills/s/SKILL.md",
            "work/.mcp.json",
            "work/more/s/SKILL.md",
            "work/words.md",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "1").unwrap();
            let made = take();
            assert_ne!(made, before, "{file} is made");
            std::fs::write(&path, "22").unwrap();
            let changed = take();
            assert_ne!(changed, made, "{file} is changed");
            before = changed;
        }
        std::fs::write(root.join("work/other.txt"), "x").unwrap();
        std::fs::create_dir_all(root.join("work/.opencode/node_modules/p")).unwrap();
        std::fs::write(root.join("work/.opencode/node_modules/p/x.js"), "x").unwrap();
        assert_eq!(take(), before);
        std::fs::remove_file(root.join("work/opencode.jsonc")).unwrap();
        assert_ne!(take(), before);
    }
}
