//! Paths as they are told to the model: one line each, whatever their bytes are.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use toolwright_tool::Workspace;

/// As it is; quoted with escapes where it would break the line or is not UTF-8.
pub(crate) fn show(path: &Path) -> Cow<'_, str> {
    match path.to_str() {
        Some(text) if !text.contains(char::is_control) => Cow::Borrowed(text),
        _ => {
            let mut shown = String::from("\"");
            for chunk in path.as_os_str().as_bytes().utf8_chunks() {
                shown.push_str(&chunk.valid().escape_debug().to_string());
                chunk.invalid().iter().for_each(|b| shown.push_str(&format!("\\x{b:02x}")));
            }
            shown.push('"');
            Cow::Owned(shown)
        }
    }
}

/// A folder or file that is searched: where it really is, and how the caller spelled it.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    spelled: PathBuf,
}

impl Place {
    pub(crate) fn new(workspace: &Workspace, path: &str) -> Self {
        let root = workspace.resolve(path);
        // Dots are dropped; `..` behind a link would lead elsewhere, which the comparison tells.
        let spelled: PathBuf = workspace.directory().join(path).components().collect();
        let same = std::fs::canonicalize(&spelled).is_ok_and(|real| real == root);
        let plain = same && !path.contains("..");
        Self { spelled: if plain { spelled } else { root.clone() }, root }
    }

    /// What was found below the root, under the name that was asked for.
    pub(crate) fn show(&self, found: &Path) -> String {
        match found.strip_prefix(&self.root) {
            Ok(inside) if inside.as_os_str().is_empty() => show(&self.spelled).into_owned(),
            Ok(inside) => show(&self.spelled.join(inside)).into_owned(),
            Err(_) => show(found).into_owned(),
        }
    }
}
