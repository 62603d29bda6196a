//! Plugins that the settings name: files, or packages that the user has installed.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::workbench::Workbench;

#[derive(Default)]
pub(crate) struct Configured {
    /// The file by which each is entered, with the options that were given for it.
    pub(crate) found: Vec<(PathBuf, Value)>,
    pub(crate) notices: Vec<String>,
}

/// Where packages are kept.
pub(crate) fn folder(bench: &Workbench) -> PathBuf {
    bench.paths.data.join("plugins")
}

/// In the order of the settings; what is named twice counts once, with what was said last.
pub(crate) fn configured(bench: &Workbench) -> Configured {
    let mut configured = Configured::default();
    let home = folder(bench);
    for spec in &bench.config.settings.plugin {
        let (name, options) = (spec.name(), spec.options());
        let entry = if is_path(name) {
            let path = PathBuf::from(name.strip_prefix("file://").unwrap_or(name));
            entered_by(&path).ok_or_else(|| format!("the plugin {} does not exist", path.display()))
        } else {
            let package = without_version(name);
            let path = home.join("node_modules").join(package);
            entered_by(&path).ok_or_else(|| {
                format!("the plugin {name} is not installed: run  tw plugin install {name}")
            })
        };
        match entry {
            Ok(file) => {
                configured.found.retain(|(known, _)| *known != file);
                configured.found.push((file, options));
            }
            Err(problem) => configured.notices.push(problem),
        }
    }
    configured
}

pub(crate) fn is_path(name: &str) -> bool {
    name.starts_with('.') || name.starts_with('/') || name.starts_with("file://")
}

/// `@scope/name@1.2.3` is the package `@scope/name`.
pub(crate) fn without_version(name: &str) -> &str {
    match name.char_indices().skip(1).find(|(_, c)| *c == '@') {
        Some((at, _)) => &name[..at],
        None => name,
    }
}

/// A file itself, or what a folder's package says.
fn entered_by(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    let manifest = std::fs::read_to_string(path.join("package.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
    let exports = &manifest["exports"];
    let named =
        [&exports["./server"], &exports["."], exports, &manifest["module"], &manifest["main"]];
    let named = named.into_iter().filter_map(|value| {
        let of = |v: &Value| v.as_str().map(str::to_owned);
        of(value).or_else(|| of(&value["import"])).or_else(|| of(&value["default"]))
    });
    let usual = ["index.ts", "index.js", "index.mjs", "index.cjs"].map(str::to_owned);
    let files = named.chain(usual).map(|file| path.join(file));
    // An entry outside of its own package is nobody's plugin.
    let root = std::fs::canonicalize(path).ok()?;
    files
        .filter_map(|file| std::fs::canonicalize(file).ok())
        .find(|f| f.is_file() && f.starts_with(&root))
}
