//! What was left behind in a session's file: its branches, each with a name and a few words about it.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::Deserialize;

use crate::entry::{Entry, Touched};
use crate::fold::title_of;
use crate::id::EntryId;
use crate::log::LogError;
use crate::tree::{Kind, Lines, Tree};

/// A way through the tree, seen from the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its last entry: [`crate::Log::move_to`] goes back to it.
    pub leaf: EntryId,
    pub is_current: bool,
    /// The last entry that it has in common with the current branch; nothing for that one itself.
    pub leaves_at: Option<EntryId>,
    /// Items of the current branch before that.
    pub after: usize,
    /// The name that somebody gave to its newest named entry.
    pub label: Option<String>,
    /// The first line of the first prompt that is its own.
    pub title: String,
    /// Prompts and steps of its own.
    pub prompts: usize,
    pub steps: usize,
    /// The files that its own calls declared to change.
    pub changed: Vec<String>,
    /// Whether a call of its own may have changed something else: it ran a command, say.
    pub other_effects: bool,
    /// When its last entry was written, in milliseconds since 1970.
    pub updated: u64,
    /// Its own entries that somebody named.
    pub named: Vec<EntryId>,
    /// Its own entries. What was its end once still finds it.
    pub(crate) own: Vec<EntryId>,
}

#[derive(Default)]
struct Own {
    title: Option<String>,
    prompts: usize,
    steps: usize,
    changed: BTreeSet<String>,
    other_effects: bool,
    updated: u64,
}

impl Tree {
    /// Reads a file's tree. The file may be in use.
    pub fn of(path: &Path) -> Result<Self, LogError> {
        Self::scan(path)
    }

    /// The current branch first, then what was left behind, newest first. Those on which nothing was
    /// said are left out.
    pub fn branches(&self) -> Result<Vec<Branch>, LogError> {
        let mut has_child = vec![false; self.nodes().len()];
        (1..has_child.len()).for_each(|number| {
            if let Some(parent) = self.parent(number) {
                has_child[parent] = true;
            }
        });
        let mut on_current = vec![false; has_child.len()];
        self.branch(self.leaf()).into_iter().for_each(|number| on_current[number] = true);
        let labels = self.labels()?;
        let mut found = Vec::new();
        for leaf in (0..has_child.len()).rev().filter(|number| !has_child[*number]) {
            let is_current = leaf == self.leaf();
            let line = self.branch(leaf);
            let shared = if is_current { 0 } else { line.partition_point(|n| on_current[*n]) };
            let own = self.own(&line[shared..])?;
            let Some(id) = self.id(leaf) else { continue };
            if !is_current && own.prompts + own.steps == 0 {
                continue;
            }
            let entries: Vec<EntryId> = line[shared..].iter().filter_map(|n| self.id(*n)).collect();
            let named = entries.iter().copied().filter(|id| labels.contains_key(id));
            let named: Vec<EntryId> = named.collect();
            let label = named.last().and_then(|id| labels.get(id)).cloned();
            found.push(Branch {
                leaf: id,
                is_current,
                leaves_at: shared.checked_sub(1).and_then(|at| self.id(line[at])),
                after: line[..shared].iter().filter(|n| self.nodes()[**n].kind.is_item()).count(),
                label,
                title: own.title.unwrap_or_else(|| "(goes on without a prompt)".to_owned()),
                prompts: own.prompts,
                steps: own.steps,
                changed: own.changed.into_iter().collect(),
                other_effects: own.other_effects,
                updated: own.updated,
                named,
                own: entries,
            });
        }
        Ok(found)
    }

    /// What to tell a model that goes on at this line, about what was done to files behind it.
    pub(crate) fn left_behind(&self, place: usize) -> Result<Option<String>, LogError> {
        const SHOWN: usize = 20;
        let kept = self.branch(place);
        let line = self.branch(self.leaf());
        let shared = line.iter().zip(&kept).take_while(|(left, kept)| left == kept).count();
        let Own { title, changed, other_effects, .. } = self.own(&line[shared..])?;
        if changed.is_empty() && !other_effects {
            return Ok(None);
        }
        let about = title.map(|title| format!(" (\"{title}\")")).unwrap_or_default();
        let mut text = format!(
            "Files may not be as this conversation shows them: work that is no part of it{about}"
        );
        if !changed.is_empty() {
            let shown: Vec<&str> = changed.iter().take(SHOWN).map(String::as_str).collect();
            text.push_str(&format!(" changed {}", shown.join(", ")));
            if changed.len() > SHOWN {
                text.push_str(&format!(" and {} more", changed.len() - SHOWN));
            }
        }
        if other_effects {
            text.push_str(if changed.is_empty() { " ran commands" } else { " and ran commands" });
        }
        text.push_str(". Look before you rely on them.");
        Ok(Some(text))
    }

    /// What the part of a branch from `lines` on says of itself.
    fn own(&self, lines: &[usize]) -> Result<Own, LogError> {
        #[derive(Deserialize)]
        struct Line {
            data: Started,
        }
        #[derive(Deserialize)]
        struct Started {
            tool: String,
            effects: bool,
            #[serde(default)]
            touched: Touched,
        }
        let mut own = Own::default();
        let mut file = Lines::open(self.path())?;
        for number in lines {
            let node = &self.nodes()[*number];
            match node.kind {
                Kind::Prompt => own.prompts += 1,
                Kind::StepStarted => own.steps += 1,
                _ => {}
            }
            let wanted = match node.kind {
                Kind::Prompt => own.title.is_none(),
                Kind::CallStarted => true,
                _ => Some(number) == lines.last(),
            };
            if !wanted || node.damaged {
                continue;
            }
            let line = file.read(node)?;
            own.updated = crate::line::Head::of(line).map_or(own.updated, |head| head.time);
            match node.kind {
                Kind::Prompt => {
                    if let Some(Entry::Prompt { content, .. }) = crate::line::entry(line) {
                        own.title = Some(title_of(&content));
                    }
                }
                Kind::CallStarted => {
                    let Ok(Line { data }) = serde_json::from_slice(line) else { continue };
                    // A list is written down and changes nothing else.
                    let undeclared = data.effects && data.touched.writes.is_empty();
                    own.other_effects |= undeclared && !data.tool.starts_with("todo");
                    own.changed.extend(data.touched.writes);
                }
                _ => {}
            }
        }
        Ok(own)
    }

    /// The newest name of each named entry, wherever in the file it was given.
    pub fn labels(&self) -> Result<HashMap<EntryId, String>, LogError> {
        let mut labels = HashMap::new();
        let given = self.nodes().iter().filter(|n| n.kind == Kind::Labelled && !n.damaged);
        let mut file = None;
        for node in given {
            let lines = match &mut file {
                Some(lines) => lines,
                None => file.insert(Lines::open(self.path())?),
            };
            match crate::line::entry(lines.read(node)?) {
                Some(Entry::Labelled { target, label }) if label.is_empty() => {
                    labels.remove(&target);
                }
                Some(Entry::Labelled { target, label }) => {
                    labels.insert(target, label);
                }
                _ => {}
            }
        }
        Ok(labels)
    }
}
