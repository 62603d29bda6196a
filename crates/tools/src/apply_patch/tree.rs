//! The files that a patch names, as the sections of the patch change them one after the other, before
//! anything is written.

use std::fs::{self, Permissions};
use std::path::PathBuf;

use serde_json::{Value, json};
use toolwright_tool::{Access, ToolError, Workspace};

use super::PreparedPatch;
use super::grammar::{Hunk, Patch, Section};
use super::place::place;
use crate::diff::{Change, change};
use crate::rewrite::{BOM, Found, Rewrite, Splice, Target, pieces, splice_between};
use crate::seen::Seen;

/// The files that a patch names, as they are and as the sections so far have left them.
pub(super) struct Tree {
    files: Vec<Node>,
    reports: Vec<Report>,
    seen: Seen,
}

struct Node {
    named: String,
    target: Target,
    /// The name itself, not what it leads to.
    is_link: bool,
    /// Nothing before the first section that concerns it.
    state: Option<State>,
}

struct State {
    found: Found,
    now: Option<Vec<u8>>,
    mode: Option<Permissions>,
}

impl Tree {
    pub(super) fn new(workspace: &Workspace, patch: &Patch, seen: Seen) -> Self {
        let mut files: Vec<Node> = Vec::new();
        for section in &patch.sections {
            let (path, moved) = match section {
                Section::Add { path, .. } | Section::Delete { path } => (path, None),
                Section::Update { path, move_to, .. } => (path, move_to.as_ref()),
            };
            for name in [Some(path), moved].into_iter().flatten() {
                if files.iter().any(|file| file.named == *name) {
                    continue;
                }
                let path = workspace.resolve(name);
                let shown = workspace.relative(&path);
                let link: PathBuf = workspace.directory().join(name);
                let is_link = fs::symlink_metadata(link).is_ok_and(|data| data.is_symlink());
                let target = Target { path, shown };
                files.push(Node { named: name.clone(), target, is_link, state: None });
            }
        }
        Self { files, reports: Vec::new(), seen }
    }

    pub(super) fn declared(&self) -> Vec<Access> {
        let mut accesses: Vec<Access> = Vec::new();
        for Node { target, .. } in &self.files {
            let access = Access::Write { path: target.path.clone(), diff: String::new() };
            if !accesses.contains(&access) {
                accesses.push(access);
            }
        }
        accesses
    }

    pub(super) fn names(&self) -> String {
        let names = self.files.iter().take(3).map(|file| file.target.shown.as_str());
        let more = if self.files.len() > 3 { ", …" } else { "" };
        names.collect::<Vec<_>>().join(", ") + more
    }

    /// The file of that name, looked at when it is first needed. Two names may lead to one file.
    fn file(&mut self, name: &str) -> Result<(Target, bool, &mut State), ToolError> {
        let unknown = || ToolError::Fatal(format!("the patch does not name {name}"));
        let node = self.files.iter().find(|file| file.named == name).ok_or_else(unknown)?;
        let (target, is_link) = (node.target.clone(), node.is_link);
        let first = self.files.iter_mut().find(|file| file.target.path == target.path);
        let first = first.ok_or_else(unknown)?;
        let state = match first.state.take() {
            Some(state) => state,
            None => {
                let found = Found::at(&target.path)?;
                self.seen.check(&target.path, &target.shown, &found)?;
                State { now: found.content.clone(), mode: None, found }
            }
        };
        Ok((target, is_link, first.state.insert(state)))
    }

    pub(super) fn apply(&mut self, section: Section) -> Result<(), ToolError> {
        match section {
            Section::Add { path, lines } => self.add(&path, &lines),
            Section::Delete { path } => self.delete(&path),
            Section::Update { path, move_to, hunks } => {
                self.update(&path, &hunks)?;
                match move_to {
                    Some(to) if to != path => self.move_to(&path, &to),
                    _ => Ok(()),
                }
            }
        }
    }

    fn report(&mut self, kind: Kind, target: Target, change: Change) {
        self.reports.push(Report { kind, source: target.clone(), target, change, replaced: None });
    }

    fn add(&mut self, path: &str, lines: &[String]) -> Result<(), ToolError> {
        let (target, _, state) = self.file(path)?;
        let mut content: Vec<u8> = Vec::new();
        if state.now.as_ref().is_some_and(|old| old.starts_with(BOM)) {
            content.extend_from_slice(BOM);
        }
        content.extend(lines.iter().flat_map(|line| [line.as_bytes(), b"\n"]).flatten());
        let old = state.now.replace(content.clone()).unwrap_or_default();
        let change = change(&target.shown, &old, &splice_between(&old, &content));
        self.report(Kind::Add, target, change);
        Ok(())
    }

    fn delete(&mut self, path: &str) -> Result<(), ToolError> {
        let (target, is_link, state) = self.file(path)?;
        let Some(old) = state.now.take() else {
            let text = format!("Failed to read file to delete: {}", target.shown);
            return Err(ToolError::for_model(text));
        };
        if is_link {
            return Err(leads_elsewhere(path, &target));
        }
        let all = Splice { range: 0..old.len(), new: Vec::new() };
        let change = change(&target.shown, &old, &[all]);
        self.report(Kind::Delete, target, change);
        Ok(())
    }

    fn update(&mut self, path: &str, hunks: &[Hunk]) -> Result<(), ToolError> {
        let missing = |shown: &str| {
            let text = format!("Failed to read file to update: {shown}");
            Err(ToolError::for_model(text))
        };
        if self.files.iter().any(|file| file.named == path && file.target.path.is_dir()) {
            return missing(path);
        }
        let (target, _, state) = self.file(path)?;
        let Some(old) = state.now.take() else { return missing(&target.shown) };
        let Ok(text) = str::from_utf8(&old) else {
            return Err(ToolError::for_model(format!(
                "{} is not encoded as UTF-8; convert it with a command first (iconv), or change it with one.",
                target.shown
            )));
        };
        let splices = place(&target.shown, text, hunks).map_err(ToolError::for_model)?;
        state.now = Some(pieces(&old, &splices).collect::<Vec<_>>().concat());
        let change = change(&target.shown, &old, &splices);
        self.report(Kind::Update, target, change);
        Ok(())
    }

    /// What the update has just left goes elsewhere, over what may be there.
    fn move_to(&mut self, path: &str, to: &str) -> Result<(), ToolError> {
        let (source, is_link, state) = self.file(path)?;
        let (content, mode) = (state.now.clone(), state.found.mode.clone());
        let (target, _, state) = self.file(to)?;
        if target.path == source.path {
            return Ok(());
        }
        if is_link {
            return Err(leads_elsewhere(path, &source));
        }
        let old = std::mem::replace(&mut state.now, content);
        let new = state.now.as_deref().unwrap_or_default();
        let replaced = old.map(|old| change(&target.shown, &old, &splice_between(&old, new)));
        state.mode = mode;
        self.file(path)?.2.now = None;
        if let Some(report) = self.reports.last_mut() {
            report.kind = Kind::Move;
            report.target = target;
            report.replaced = replaced;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> PreparedPatch {
        let mut rewrites = Vec::new();
        for Node { target, state, .. } in self.files {
            let Some(State { found, now, mode }) = state else { continue };
            match now {
                now if now == found.content => {}
                Some(content) => {
                    rewrites.push(Rewrite::replace(&target, found, &content).with_mode(mode));
                }
                None => rewrites.push(Rewrite::remove(&target, found)),
            }
        }
        // A file may become a folder of the same name: what goes must be gone before.
        rewrites.sort_by_key(|rewrite| !rewrite.removes());
        PreparedPatch { rewrites, reports: self.reports }
    }
}

fn leads_elsewhere(path: &str, target: &Target) -> ToolError {
    ToolError::for_model(format!(
        "{path} is a symbolic link to {}. Remove or rename links with a command.",
        target.shown
    ))
}

/// What became of one section.
pub(super) struct Report {
    pub(super) kind: Kind,
    pub(super) source: Target,
    /// Where the content is afterwards.
    pub(super) target: Target,
    pub(super) change: Change,
    /// What that does to a file that was there before.
    pub(super) replaced: Option<Change>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Add,
    Update,
    Delete,
    Move,
}

impl Report {
    pub(super) fn details(&self) -> Value {
        let Self { kind, source, target, change, .. } = self;
        let kind_name = match kind {
            Kind::Add => "add",
            Kind::Update => "update",
            Kind::Delete => "delete",
            Kind::Move => "move",
        };
        let mut details = json!({
            "filePath": source.path.display().to_string(), "relativePath": target.shown,
            "type": kind_name, "patch": change.patch,
            "additions": change.additions, "deletions": change.deletions,
        });
        if *kind == Kind::Move {
            details["movePath"] = json!(target.path.display().to_string());
        }
        details
    }
}
