//! Plugins from npm: installed by npm where it is there, pinned, without running what packages bring
//! for their installation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt;
use toolwright_proc::{Ended, Spec, find_program};

use crate::plugins::{is_path, without_version};
use crate::workbench::Workbench;

/// How long npm may take.
const LIMIT: Duration = Duration::from_secs(300);

/// The end of what npm said is what matters.
const WORDS_BYTES: usize = 2_000;

#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("\"{0}\" is no package: give a name as npm knows it, with or without @VERSION")]
    Name(String),
    #[error(
        "npm is not on this machine: install Node.js, or put the plugin's file into a plugin folder"
    )]
    NoNpm,
    #[error("npm could not do it: {words}")]
    Failed { words: String },
}

/// The packages that are installed for us.
pub struct Packages {
    folder: PathBuf,
    npm: Option<PathBuf>,
    /// Keys that are none of npm's business.
    withheld: Vec<String>,
}

impl Workbench {
    pub fn packages(&self) -> Packages {
        let path = self.variable("PATH").unwrap_or_default();
        // What an unknown folder calls npm is not npm.
        let outside = |folder: &Path| self.workspace.contains(folder);
        let npm = find_program("npm", path.as_ref(), &outside);
        let withheld = self.withheld_variables();
        Packages { folder: crate::plugins::folder(self), npm, withheld }
    }
}

impl Packages {
    /// Name and version of each.
    pub fn installed(&self) -> Vec<(String, String)> {
        let manifest = read_json(&self.folder.join("package.json"));
        let wanted = manifest["dependencies"].as_object().cloned().unwrap_or_default();
        let version = |name: &str| {
            let own = read_json(&self.folder.join("node_modules").join(name).join("package.json"));
            own["version"].as_str().map(str::to_owned)
        };
        wanted.keys().filter_map(|name| Some((name.clone(), version(name)?))).collect()
    }

    pub async fn install(&self, spec: &str) -> Result<(String, String), PackageError> {
        let name = without_version(spec);
        check(spec)?;
        std::fs::create_dir_all(&self.folder).map_err(|e| failed(&self.folder, &e))?;
        let manifest = self.folder.join("package.json");
        if !manifest.exists() {
            std::fs::write(&manifest, "{ \"private\": true }\n")
                .map_err(|e| failed(&manifest, &e))?;
        }
        self.npm(&[
            "install",
            "--save-exact",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--",
            spec,
        ])
        .await?;
        let found = self.installed().into_iter().find(|(known, _)| known == name);
        found.ok_or_else(|| PackageError::Failed {
            words: format!("{name} is not there afterwards"),
        })
    }

    pub async fn remove(&self, name: &str) -> Result<(), PackageError> {
        check(name)?;
        if !self.installed().iter().any(|(known, _)| known == name) {
            return Err(PackageError::Failed { words: format!("{name} is not installed") });
        }
        self.npm(&["uninstall", "--no-audit", "--no-fund", "--", name]).await
    }

    async fn npm(&self, arguments: &[&str]) -> Result<(), PackageError> {
        let npm = self.npm.as_ref().ok_or(PackageError::NoNpm)?;
        let mut spec = Spec::new(npm, &self.folder);
        spec.arguments = arguments.iter().map(Into::into).collect();
        spec.withheld.clone_from(&self.withheld);
        let problem = |words: String| PackageError::Failed { words };
        let mut child = spec.spawn().map_err(|e| problem(e.to_string()))?;
        let work = async {
            let mut said = Vec::new();
            if let Some(mut output) = child.output() {
                let mut chunk = [0; 4096];
                while let Ok(count @ 1..) = output.read(&mut chunk).await {
                    said.extend_from_slice(&chunk[..count]);
                    let beyond = said.len().saturating_sub(WORDS_BYTES);
                    said.drain(..beyond);
                }
            }
            (child.wait().await, String::from_utf8_lossy(&said).trim().to_owned())
        };
        match tokio::time::timeout(LIMIT, work).await {
            Ok((Ended::Exit(0), _)) => Ok(()),
            Ok((_, said)) => Err(problem(said)),
            Err(_) => Err(problem(format!("it took longer than {} s", LIMIT.as_secs()))),
        }
    }
}

/// Nothing that npm would read as something else than a package of its registry.
fn check(spec: &str) -> Result<(), PackageError> {
    let name = without_version(spec);
    let fits = |c: char| c.is_ascii_alphanumeric() || "@/-_.".contains(c);
    let scoped = name.starts_with('@');
    let parts = name.split('/').count();
    let right = !name.is_empty()
        && !is_path(name)
        && name.chars().all(fits)
        && !name.starts_with('-')
        && parts == if scoped { 2 } else { 1 };
    let version = spec[name.len()..].strip_prefix('@').unwrap_or_default();
    let version_fits = version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+^~".contains(c));
    if right && version_fits { Ok(()) } else { Err(PackageError::Name(spec.to_owned())) }
}

fn failed(path: &Path, error: &std::io::Error) -> PackageError {
    PackageError::Failed { words: format!("{}: {error}", path.display()) }
}

fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_the_registry_are_taken() {
        for good in ["left-pad", "left-pad@1.0.0", "@scope/name", "@scope/name@^2.1"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "./here",
            "/there",
            "git+https://x/y",
            "--global",
            "a b",
            "x/y",
            "@scope",
            "a@file:../x",
            "@a/b/c",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
