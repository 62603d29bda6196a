//! Skills: folders with a SKILL.md that tells the model how to do something. They are text to be
//! read on request; nothing in them is run from here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::front_matter;
use crate::paths::Paths;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// When to use it; one without can be loaded by name and is not listed.
    pub description: Option<String>,
    /// The SKILL.md.
    pub location: PathBuf,
}

/// What all folders together hold, by name.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    pub found: Vec<Skill>,
    pub warnings: Vec<String>,
}

/// Folders below a skills folder are looked into so far.
const DEPTH: usize = 6;

/// Folders that are looked at in all: a link to a whole disk must end somewhere.
const FOLDERS: usize = 2_000;

/// The head of a file; what is further down is read when the skill is loaded.
const HEAD_BYTES: u64 = 64 * 1024;

const NAME_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 1_024;

const FILE: &str = "SKILL.md";

/// The user's own skills and those of the project from the root down. A name that is taken is taken
/// over by what is nearer, except that a project does not replace what is the user's own.
pub fn find_skills(
    paths: &Paths,
    directory: &Path,
    worktree: &Path,
    configured: &[String],
) -> Skills {
    let mut skills = Skills::default();
    let own = [
        paths.home.join(".claude/skills"),
        paths.home.join(".agents/skills"),
        paths.config.join("opencode/skill"),
        paths.config.join("opencode/skills"),
        paths.config.join("toolwright/skill"),
        paths.config.join("toolwright/skills"),
    ];
    for folder in own {
        skills.add(&folder, None);
    }
    for text in configured {
        let folder = match text.strip_prefix("~/") {
            Some(rest) => paths.home.join(rest),
            None => directory.join(text),
        };
        if folder.is_dir() {
            skills.add(&folder, None);
        } else {
            skills.warnings.push(format!("skills.paths: there is no folder {}", folder.display()));
        }
    }
    let users: Vec<String> = skills.found.iter().map(|skill| skill.name.clone()).collect();
    let mut project = Skills::default();
    let mut folders: Vec<&Path> =
        directory.ancestors().take_while(|folder| folder.starts_with(worktree)).collect();
    folders.reverse();
    let root = std::fs::canonicalize(worktree).unwrap_or_else(|_| worktree.to_owned());
    for folder in folders {
        for below in [
            ".claude/skills",
            ".agents/skills",
            ".opencode/skill",
            ".opencode/skills",
            ".toolwright/skill",
            ".toolwright/skills",
        ] {
            let folder = folder.join(below);
            // A project that lies in the home folder has the user's own skills in it.
            if !folder.starts_with(&paths.config) && folder != paths.home.join(below) {
                project.add(&folder, Some(&root));
            }
        }
    }
    skills.warnings.append(&mut project.warnings);
    for skill in project.found {
        if users.contains(&skill.name) {
            skills.warnings.push(format!(
                "{}: your own skill named \"{}\" is used instead",
                skill.location.display(),
                skill.name
            ));
        } else {
            skills.found.push(skill);
        }
    }
    skills.found.sort_by(|a, b| a.name.cmp(&b.name));
    skills
}

impl Skills {
    /// Takes over what lies below `folder`; only what really lies inside `root`, if there is one.
    fn add(&mut self, folder: &Path, root: Option<&Path>) {
        let mut seen = BTreeSet::new();
        let mut open = vec![(folder.to_owned(), 0)];
        while let Some((folder, depth)) = open.pop() {
            let Ok(real) = std::fs::canonicalize(&folder) else { continue };
            // A link out of the repository would show the model a file that nobody decided about.
            let outside = root.is_some_and(|root| !real.starts_with(root));
            if outside || seen.len() >= FOLDERS || !seen.insert(real) {
                continue;
            }
            let file = folder.join(FILE);
            if file.is_file() {
                let real = std::fs::canonicalize(&file).unwrap_or_default();
                if root.is_none_or(|root| real.starts_with(root)) {
                    self.read(file);
                }
            }
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            let mut below: Vec<PathBuf> =
                entries.flatten().map(|e| e.path()).filter(|path| path.is_dir()).collect();
            below.sort();
            if depth < DEPTH {
                open.extend(below.into_iter().rev().map(|folder| (folder, depth + 1)));
            }
        }
    }

    fn read(&mut self, location: PathBuf) {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        let read = std::fs::File::open(&location)
            .and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut bytes));
        if let Err(error) = read {
            self.warnings.push(format!("{}: cannot be read: {error}", location.display()));
            return;
        }
        let text = String::from_utf8_lossy(&bytes);
        // A file without a head is no skill of this kind.
        let Some((values, _)) = front_matter::split(&text) else { return };
        let value = |wanted: &str| {
            let found = values.iter().find(|(key, _)| key == wanted);
            found.map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let warn = |text: String| format!("{}: {text}", location.display());
        let name = match value("name") {
            Some(name) if is_name(&name) => name,
            Some(name) => {
                self.warnings.push(warn(format!(
                    "the name {name:?} is not used: it must be small letters, digits and single hyphens, at most {NAME_CHARS}"
                )));
                return;
            }
            None => {
                self.warnings.push(warn("a skill needs a name in its front matter".to_owned()));
                return;
            }
        };
        let mut description = value("description");
        match &mut description {
            None => self.warnings.push(warn(format!(
                "the skill \"{name}\" has no description, so the model is not told of it"
            ))),
            Some(text) => {
                if let Some((cut, _)) = text.char_indices().nth(DESCRIPTION_CHARS) {
                    text.truncate(cut);
                    self.warnings.push(warn(format!(
                        "the description is cut at {DESCRIPTION_CHARS} characters"
                    )));
                }
            }
        }
        if let Some(at) = self.found.iter().position(|skill| skill.name == name) {
            let old = self.found.remove(at);
            self.warnings.push(warn(format!(
                "the skill \"{name}\" replaces that of {}",
                old.location.display()
            )));
        }
        self.found.push(Skill { name, description, location });
    }
}

fn is_name(name: &str) -> bool {
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    name.len() <= NAME_CHARS && name.split('-').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(place.0.path().join("home")).unwrap();
            fs::create_dir_all(place.0.path().join("work/inner")).unwrap();
            place
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn skill(&self, folder: &str, name: &str) {
            let text = format!("---\nname: {name}\ndescription: About {folder}.\n---\nBody");
            self.write(&format!("{folder}/SKILL.md"), &text);
        }

        fn find(&self, configured: &[String]) -> Skills {
            let root = fs::canonicalize(self.0.path()).unwrap();
            let home = root.join("home");
            let paths = Paths {
                config: home.join(".config"),
                data: home.join("data"),
                managed: home.join("etc"),
                home,
            };
            let work = root.join("work");
            find_skills(&paths, &work.join("inner"), &work, configured)
        }
    }

    #[test]
    fn skills_are_found_in_all_usual_places() {
        let place = Place::new();
        for (n, folder) in [
            "home/.claude/skills",
            "home/.agents/skills/deep/er",
            "home/.config/opencode/skill",
            "home/.config/opencode/skills",
            "home/.config/toolwright/skills",
            "work/.claude/skills",
            "work/.agents/skills",
            "work/.opencode/skill",
            "work/inner/.opencode/skills",
            "work/inner/.toolwright/skills",
            "elsewhere",
        ]
        .iter()
        .enumerate()
        {
            place.skill(&format!("{folder}/s{n}"), &format!("s{n}"));
        }
        let skills = place.find(&["../../elsewhere".into(), "~/nowhere".into()]);
        let names: Vec<_> = skills.found.iter().map(|skill| skill.name.as_str()).collect();
        let expected = ["s0", "s1", "s10", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];
        assert_eq!(names, expected);
        assert_eq!(skills.warnings.len(), 1, "{:?}", skills.warnings);
        assert!(skills.warnings[0].contains("there is no folder"));
    }

    #[test]
    fn heads_that_are_wrong_are_told() {
        for (text, name, warning) in [
            ("no head", None, None),
            ("---\ndescription: x\n---\n", None, Some("needs a name")),
            ("---\nname: Not Good\n---\n", None, Some("small letters")),
            ("---\nname: a--b\n---\n", None, Some("small letters")),
            ("---\nname: fine\n---\n", Some("fine"), Some("has no description")),
            ("---\nname: fine\ndescription: d\nlicense: MIT\n---\n", Some("fine"), None),
        ] {
            let place = Place::new();
            place.write("work/.claude/skills/x/SKILL.md", text);
            let skills = place.find(&[]);
            assert_eq!(skills.found.first().map(|s| s.name.as_str()), name, "{text}");
            match warning {
                None => assert!(skills.warnings.is_empty(), "{:?}", skills.warnings),
                Some(part) => assert!(skills.warnings[0].contains(part), "{:?}", skills.warnings),
            }
        }
    }

    #[test]
    fn the_nearer_one_wins_but_a_project_never_replaces_the_users_own() {
        let place = Place::new();
        place.skill("home/.claude/skills/mine", "mine");
        place.skill("work/.claude/skills/mine", "mine");
        place.skill("work/.claude/skills/near", "near");
        place.skill("work/inner/.claude/skills/near", "near");
        let skills = place.find(&[]);
        assert!(skills.found[0].location.to_string_lossy().contains("home"));
        assert!(skills.found[1].location.to_string_lossy().contains("inner"));
        assert_eq!(skills.warnings.len(), 2, "{:?}", skills.warnings);
    }

    #[test]
    fn links_out_of_a_project_and_in_circles_are_not_followed() {
        let place = Place::new();
        place.skill("elsewhere/out", "out");
        place.write("elsewhere/file.md", "---\nname: file\ndescription: x\n---\n");
        place.skill("work/.claude/skills/in", "in");
        let skills = place.0.path().join("work/.claude/skills");
        symlink(place.0.path().join("elsewhere"), skills.join("link")).unwrap();
        symlink(&skills, skills.join("in/circle")).unwrap();
        fs::create_dir_all(skills.join("linked")).unwrap();
        symlink(place.0.path().join("elsewhere/file.md"), skills.join("linked/SKILL.md")).unwrap();
        let found = place.find(&[]).found;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].name, "in");
    }
}
