//! A path that is not there, and what may have been meant.

use std::fs;
use std::path::{Path, PathBuf};

use toolwright_tool::ToolError;

use crate::names::show;

const SUGGESTIONS: usize = 3;

/// Names that are looked at; a folder with more is not searched to its end for a typing error.
const NAMES_CAP: usize = 10_000;

pub(super) fn explain(path: &Path) -> ToolError {
    let mut text = format!("File not found: {}", show(path));
    let similar = similar(path);
    if !similar.is_empty() {
        let similar: Vec<_> = similar.iter().map(|path| show(path)).collect();
        text.push_str(&format!("\n\nDid you mean one of these?\n{}", similar.join("\n")));
    } else if let Some(folder) = path.ancestors().skip(1).find(|folder| folder.is_dir())
        && Some(folder) != path.parent()
    {
        text.push_str(&format!("\n\nThe nearest folder that exists is {}", show(folder)));
    }
    ToolError::for_model(text)
}

/// Names in the same folder that contain the wanted one or are contained in it; if there are none,
/// those that differ by a few letters.
fn similar(path: &Path) -> Vec<PathBuf> {
    let wanted = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let folder = path.parent().unwrap_or(path);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(NAMES_CAP);
    let names: Vec<_> = entries
        .map(|entry| (entry.file_name().to_string_lossy().to_lowercase(), entry.path()))
        .collect();
    let close = |(name, _): &&(String, PathBuf)| name.contains(&wanted) || wanted.contains(name);
    let mut found: Vec<PathBuf> =
        names.iter().filter(close).map(|(_, path)| path.clone()).collect();
    found.sort();
    if found.is_empty() {
        let allowed = (wanted.chars().count() / 3).max(1);
        // What differs more in length alone cannot be close.
        let near = names.iter().filter(|(name, _)| name.len().abs_diff(wanted.len()) <= allowed);
        let mut near: Vec<_> = near
            .map(|(name, path)| (strsim::levenshtein(name, &wanted), path))
            .filter(|(distance, _)| *distance <= allowed)
            .collect();
        near.sort();
        found = near.into_iter().map(|(_, path)| path.clone()).collect();
    }
    found.truncate(SUGGESTIONS);
    found
}
