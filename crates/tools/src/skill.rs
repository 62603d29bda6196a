//! Gives the model a skill's text, and says where the files lie that come with it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{
    Access, Extent, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::walk::blocking;

/// A skill that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// When to use it; one without is not listed.
    pub description: Option<String>,
    /// Its SKILL.md.
    pub location: PathBuf,
}

pub struct SkillTool {
    skills: Vec<Skill>,
    description: String,
}

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// The skill's name.
    name: String,
}

pub struct Prepared {
    name: String,
    file: PathBuf,
    folder: PathBuf,
}

/// Files of the folder that are named: a sample.
const FILES: usize = 10;

/// Entries that are looked at for it.
const ENTRIES: usize = 1_000;

/// Far more than a model should be told at once; the usual limit for outputs applies as well.
const TEXT_CAP_BYTES: u64 = 1 << 20;

const PERMISSION: &str = "skill";

impl SkillTool {
    pub fn new(skills: Vec<Skill>) -> Self {
        let mut description = include_str!("skill.md").trim().to_owned();
        description.push_str("\n\n<available_skills>");
        for Skill { name, description: about, .. } in &skills {
            let Some(about) = about else { continue };
            let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
            description.push_str(&format!("\n{name}: {about}"));
        }
        description.push_str("\n</available_skills>");
        Self { skills, description }
    }

    /// Whether there is anything to load.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }
}

impl Tool for SkillTool {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        PERMISSION
    }

    fn description(&self) -> &str {
        &self.description
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let Arguments { name } = arguments;
        let summary = format!("load the skill {name}");
        let Some(skill) = self.skills.iter().find(|skill| skill.name == name) else {
            let names: Vec<&str> = self.skills.iter().map(|skill| skill.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let text = format!("Skill \"{name}\" not found. Available skills: {names}");
            return Planned::failed(Plan::new(summary, Vec::new()), ToolError::for_model(text));
        };
        let file = context.workspace.resolve(&skill.location.to_string_lossy());
        let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
        let (permission, pattern) = (PERMISSION.to_owned(), name.clone());
        let accesses = vec![
            Access::Custom { permission, pattern, read_only: true },
            Access::Read { path: folder.clone(), extent: Extent::Tree },
        ];
        Planned::ready(Plan::new(summary, accesses), Prepared { name, file, folder })
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let files = context.files;
        let Prepared { name, file, folder } = call;
        let title = format!("Loaded skill: {name}");
        let details = json!({ "name": name, "dir": folder });
        let text = blocking(move || {
            let mut bytes = Vec::new();
            let opened = files.open(&file)?;
            opened.take(TEXT_CAP_BYTES).read_to_end(&mut bytes).map_err(|e| {
                ToolError::for_model(format!("Cannot read {}: {e}.", file.display()))
            })?;
            let text = String::from_utf8_lossy(&bytes);
            Ok(render(&name, body(&text), &folder, &sample(&folder)))
        })
        .await?;
        Ok(ToolOutput::text(text).titled(title).with_details(details))
    }
}

/// The text below the head.
fn body(text: &str) -> &str {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let head = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"));
    let Some(head) = head else { return text };
    let mut at = 0;
    for line in head.split_inclusive('\n') {
        at += line.len();
        if line.trim_end() == "---" {
            return &head[at..];
        }
    }
    text
}

fn render(name: &str, body: &str, folder: &Path, files: &[PathBuf]) -> String {
    let listed: String =
        files.iter().map(|file| format!("<file>{}</file>\n", file.display())).collect();
    format!(
        "<skill_content name=\"{name}\">\n# Skill: {name}\n\n{}\n\n\
         Base directory for this skill: {}\n\
         Relative paths in this skill refer to that directory.\n\
         The list of files is a sample.\n\n\
         <skill_files>\n{listed}</skill_files>\n</skill_content>",
        body.trim(),
        folder.display()
    )
}

/// Some files of the folder, the nearest first, without following links.
fn sample(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = std::collections::VecDeque::from([folder.to_owned()]);
    let mut looked_at = 0;
    while let Some(folder) = folders.pop_front() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut entries: Vec<_> = entries.flatten().take(ENTRIES).collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            looked_at += 1;
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if kind.is_dir() && name != ".git" && name != "node_modules" {
                folders.push_back(entry.path());
            } else if kind.is_file() && name != "SKILL.md" {
                files.push(entry.path());
            }
            if files.len() >= FILES || looked_at >= ENTRIES {
                return files;
            }
        }
    }
    files
}
