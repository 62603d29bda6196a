//! Which servers a file belongs to, in which folder they work and what is started for them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwright_proc::{find_program, is_executable};

use crate::table::{Climb, Root, Server};

/// What is looked after, and how far it is trusted.
#[derive(Debug, Clone)]
pub struct Options {
    pub place: Place,
    pub servers: Vec<Server>,
    /// Variables that servers must not see: our own keys.
    pub withheld: Vec<String>,
    /// Variables that servers see although their names say that they are secret.
    pub passed: Vec<String>,
    /// What they are started in.
    pub sandbox: Option<toolwright_proc::sandbox::Find>,
}

/// A project's folder.
#[derive(Debug, Clone)]
pub struct Place {
    pub directory: PathBuf,
    /// The repository around it, or the folder itself.
    pub worktree: PathBuf,
    /// Programs that the project brings may be run.
    pub trusted: bool,
    /// Where programs are looked for, as `$PATH` is written.
    pub path: OsString,
    /// The Python environment that is active.
    pub virtual_env: Option<PathBuf>,
}

/// Why nothing can be started for a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoProgram {
    #[error("{names} was not found on PATH")]
    NotFound { names: String },
    /// A link of rustup's, without a toolchain that has it.
    #[error("{} only stands for it: `rustup component add {component}` installs it", program.display())]
    StandIn { program: PathBuf, component: String },
    #[error("{id} runs code of the project, and this folder is not trusted (--trust)")]
    Untrusted { id: String },
}

/// What to start, and where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) initialization: Option<Value>,
}

impl Server {
    /// By the file's last ending, or by its whole name.
    pub(crate) fn takes(&self, file: &Path) -> bool {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let ending = file.extension().map(|e| e.to_string_lossy());
        self.extensions.iter().any(|wanted| {
            *wanted == name || ending.as_ref().is_some_and(|e| wanted.trim_start_matches('.') == *e)
        })
    }
}

impl Place {
    pub fn contains(&self, file: &Path) -> bool {
        file.starts_with(&self.directory) || file.starts_with(&self.worktree)
    }

    /// The folder that `server` works in for `file`; nothing where it is not for this project.
    pub(crate) fn root_of(&self, server: &Server, file: &Path) -> Option<PathBuf> {
        let Root { markers, unless, strict, climb } = &server.root;
        if self.upwards(file, unless).is_some() {
            return None;
        }
        let found = markers.iter().find_map(|list| self.upwards(file, list));
        match (found, strict) {
            (Some(folder), _) => Some(self.climb(folder, *climb)),
            (None, true) => None,
            (None, false) => Some(self.directory.clone()),
        }
    }

    /// The nearest folder above `file` that has one of `names`. The search ends at the project's
    /// own folder, or at the repository's for a file beside it.
    pub fn upwards(&self, file: &Path, names: &[&str]) -> Option<PathBuf> {
        let end = if file.starts_with(&self.directory) { &self.directory } else { &self.worktree };
        let mut folders = file.parent()?.ancestors().take_while(|folder| folder.starts_with(end));
        folders.find(|folder| names.iter().any(|name| has(folder, name))).map(Path::to_owned)
    }

    fn climb(&self, folder: PathBuf, climb: Climb) -> PathBuf {
        let text = |folder: &Path, name: &str| std::fs::read_to_string(folder.join(name));
        match climb {
            Climb::Stay => folder,
            Climb::CargoWorkspace => {
                let mut above = folder.ancestors().take_while(|f| f.starts_with(&self.worktree));
                let whole =
                    above.find(|f| text(f, "Cargo.toml").is_ok_and(|t| t.contains("[workspace]")));
                whole.map(Path::to_owned).unwrap_or(folder)
            }
            Climb::MavenModules => {
                let mut root = folder;
                loop {
                    let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    let Some(above) = root.parent().filter(|f| f.starts_with(&self.worktree))
                    else {
                        return root;
                    };
                    let named = format!("<module>{name}</module>");
                    if !text(above, "pom.xml").is_ok_and(|t| t.contains(&named)) {
                        return root;
                    }
                    root = above.to_owned();
                }
            }
        }
    }

    /// What is run for `name`: what the project itself has installed comes before the machine's own,
    /// but only where the project is trusted. Nothing is ever fetched.
    pub fn program(&self, name: &str, near: &Path) -> Option<PathBuf> {
        if name.contains('/') {
            let file = self.directory.join(name);
            return is_executable(&file).then_some(file);
        }
        if self.trusted {
            let mut folders = near.ancestors().take_while(|f| f.starts_with(&self.worktree));
            let own = folders.find_map(|f| {
                Some(f.join("node_modules/.bin").join(name)).filter(|f| is_executable(f))
            });
            if own.is_some() {
                return own;
            }
        }
        find_program(name, &self.path, &|folder| !self.trusted && self.contains(folder))
    }

    /// What would be started for a server in this folder; fails with the reason why nothing can be.
    pub fn installed(&self, server: &Server) -> Result<PathBuf, NoProgram> {
        Ok(self.launch(server, &self.directory)?.program)
    }

    /// Fails with the reason why the server cannot be started.
    pub(crate) fn launch(&self, server: &Server, root: &Path) -> Result<Launch, NoProgram> {
        let found = server.commands.iter().find_map(|command| {
            let (name, arguments) = command.split_first()?;
            Some((self.program(name, root)?, arguments.to_vec()))
        });
        let Some((program, arguments)) = found else {
            let names = server.commands.iter().filter_map(|command| command.first());
            let names = names.map(String::as_str).collect::<Vec<_>>().join(" or ");
            return Err(NoProgram::NotFound { names });
        };
        if let Some(component) = missing_component(&program) {
            return Err(NoProgram::StandIn { program, component });
        }
        if server.runs_project_code && !self.trusted {
            return Err(NoProgram::Untrusted { id: server.id.clone() });
        }
        let initialization = server.initialization.clone().or_else(|| self.python(server, root));
        Ok(Launch { program, arguments, initialization })
    }

    /// Python servers are told which interpreter the project uses. One inside the project is a
    /// program of the project.
    fn python(&self, server: &Server, root: &Path) -> Option<Value> {
        if server.id != "pyright" {
            return None;
        }
        let own = [".venv", "venv"].map(|name| root.join(name));
        let mut folders = self.virtual_env.iter().cloned().chain(own);
        let python = folders.find_map(|folder| {
            let file = folder.join("bin/python");
            ((self.trusted || !self.contains(&folder)) && is_executable(&file)).then_some(file)
        })?;
        Some(json!({ "pythonPath": python, "python": { "pythonPath": python } }))
    }
}

/// The name of a component that rustup stands in for and that none of its toolchains has. Where the
/// toolchains are not beside the programs, nothing is known and the program is taken at its word.
fn missing_component(program: &Path) -> Option<String> {
    let real = program.canonicalize().ok()?;
    if real.file_name()? != "rustup" {
        return None;
    }
    let name = program.file_name()?;
    let around = real.parent()?.parent()?.parent()?;
    let toolchains = [".rustup", "rustup"].map(|folder| around.join(folder).join("toolchains"));
    let mut toolchains = toolchains.iter().find_map(|folder| std::fs::read_dir(folder).ok())?;
    let has_it =
        toolchains.any(|one| one.is_ok_and(|one| one.path().join("bin").join(name).exists()));
    (!has_it).then(|| name.to_string_lossy().into_owned())
}

/// `*ending` means any entry with that ending.
fn has(folder: &Path, name: &str) -> bool {
    let Some(ending) = name.strip_prefix('*') else { return folder.join(name).exists() };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(10_000).any(|entry| entry.file_name().to_string_lossy().ends_with(ending))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::table::{Setting, configured};

    struct Project(tempfile::TempDir);

    impl Project {
        fn new(files: &[&str]) -> Self {
            let project = Self(tempfile::tempdir().unwrap());
            for file in files {
                project.file(file, "");
            }
            project
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let file = self.0.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            file
        }

        fn place(&self, trusted: bool) -> Place {
            Place {
                directory: self.0.path().join("w"),
                worktree: self.0.path().join("w"),
                trusted,
                path: self.0.path().join("bin").into_os_string(),
                virtual_env: None,
            }
        }
    }

    fn server(id: &str) -> Server {
        configured(Setting::BuiltIn, false).unwrap().into_iter().find(|s| s.id == id).unwrap()
    }

    #[test]
    fn roots_are_found_by_their_markers() {
        let cases: &[(&str, &[&str], &str, Option<&str>)] = &[
            ("pyright", &["w/a/pyproject.toml"], "w/a/b/x.py", Some("w/a")),
            ("pyright", &[], "w/a/b/x.py", Some("w")),
            // Markers above the project are not its own.
            ("pyright", &["pyproject.toml"], "w/x.py", Some("w")),
            ("gopls", &["w/go.work", "w/m/go.mod"], "w/m/x.go", Some("w")),
            ("gopls", &["w/m/go.mod"], "w/m/x.go", Some("w/m")),
            ("deno", &[], "w/x.ts", None),
            ("deno", &["w/deno.json"], "w/x.ts", Some("w")),
            ("typescript", &["w/deno.json", "w/yarn.lock"], "w/x.ts", None),
            ("typescript", &["w/p/yarn.lock"], "w/p/x.ts", Some("w/p")),
            ("jdtls", &[], "w/X.java", None),
            ("csharp", &["w/p/app.csproj"], "w/p/s/X.cs", Some("w/p")),
            ("dockerfile", &[], "w/a/Dockerfile", Some("w")),
        ];
        for (id, files, file, expected) in cases {
            let project = Project::new(files);
            let file = project.0.path().join(file);
            assert!(server(id).takes(&file), "{id}");
            let root = project.place(true).root_of(&server(id), &file);
            assert_eq!(root, expected.map(|e| project.0.path().join(e)), "{id} {files:?}");
        }
    }

    #[test]
    fn a_part_of_something_larger_belongs_to_the_whole() {
        let project = Project::new(&["w/c/inner/Cargo.toml"]);
        project.file("w/Cargo.toml", "[workspace]\nmembers = []");
        let place = project.place(true);
        let file = project.0.path().join("w/c/inner/src/lib.rs");
        assert_eq!(place.root_of(&server("rust"), &file), Some(place.directory.clone()));
        let project = Project::new(&["w/a/b/pom.xml"]);
        project.file("w/a/pom.xml", "<module>b</module>");
        project.file("w/pom.xml", "<module>other</module>");
        let file = project.0.path().join("w/a/b/X.java");
        let root = project.place(true).root_of(&server("jdtls"), &file);
        assert_eq!(root, Some(project.0.path().join("w/a")));
    }

    #[test]
    fn files_are_told_by_ending_or_name() {
        let docker = server("dockerfile");
        let cases =
            [("Dockerfile", true), ("x.dockerfile", true), ("Dockerfile.txt", false), ("a", false)];
        for (file, expected) in cases {
            assert_eq!(docker.takes(Path::new(file)), expected, "{file}");
        }
    }

    #[test]
    fn a_project_that_is_not_trusted_chooses_no_program() {
        let name = "pyright-langserver";
        let project =
            Project::new(&["w/node_modules/.bin/pyright-langserver", "w/.venv/bin/python"]);
        let root = project.place(true).directory;
        let own = project.place(true).launch(&server("pyright"), &root).unwrap();
        assert!(own.program.ends_with("w/node_modules/.bin/pyright-langserver"));
        assert!(own.initialization.is_some());
        let error = project.place(false).launch(&server("pyright"), &root).unwrap_err();
        assert!(matches!(error, NoProgram::NotFound { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            "pyright-langserver or basedpyright-langserver was not found on PATH"
        );
        // A PATH that leads into the project is the project's choice too.
        let mut place = project.place(false);
        place.path = root.join("node_modules/.bin").into_os_string();
        assert_eq!(place.program(name, &root), None);
        let installed = project.file(&format!("bin/{name}"), "");
        let launch = project.place(false).launch(&server("pyright"), &root).unwrap();
        assert_eq!((launch.program, launch.initialization), (installed, None));
    }

    #[test]
    fn a_server_that_runs_the_project_waits_for_trust() {
        let project = Project::new(&["bin/rust-analyzer"]);
        let root = project.place(true).directory;
        assert!(project.place(true).launch(&server("rust"), &root).is_ok());
        let error = project.place(false).launch(&server("rust"), &root).unwrap_err();
        assert!(matches!(error, NoProgram::Untrusted { .. }), "{error}");
    }

    #[test]
    fn a_stand_in_of_rustup_is_no_server_until_a_toolchain_has_it() {
        let project = Project::new(&["cargo/bin/rustup", "rustup/toolchains/stable/bin/cargo"]);
        let bin = project.0.path().join("cargo/bin");
        std::os::unix::fs::symlink("rustup", bin.join("rust-analyzer")).unwrap();
        let place = Place { path: bin.into_os_string(), ..project.place(true) };
        let error = place.installed(&server("rust")).unwrap_err();
        assert!(matches!(error, NoProgram::StandIn { .. }), "{error}");
        assert!(error.to_string().contains("rustup component add rust-analyzer"), "{error}");
        project.file("rustup/toolchains/nightly/bin/rust-analyzer", "");
        assert!(place.installed(&server("rust")).is_ok());
    }
}
