//! Commands that people want run when something happens, in the form of Claude Code's settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolwright_permission::LayerKind;

use crate::commands_name::files_named;
use crate::file;
use crate::load::LeftOut;
use crate::matcher::Matcher;
use crate::paths::Paths;
use crate::settings::Ordered;
use crate::trust::print_of;

/// What happens, in the words of those settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    PermissionRequest,
    Notification,
    UserPromptSubmit,
    Stop,
    SubagentStart,
    SubagentStop,
    SessionStart,
    SessionEnd,
    PreCompact,
}

impl HookEvent {
    pub const ALL: [Self; 12] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PermissionRequest,
        Self::Notification,
        Self::UserPromptSubmit,
        Self::Stop,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::SessionStart,
        Self::SessionEnd,
        Self::PreCompact,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::Notification => "Notification",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::PreCompact => "PreCompact",
        }
    }
}

/// One command.
#[derive(Debug, Clone)]
pub struct CommandHook {
    pub event: HookEvent,
    pub matcher: Matcher,
    pub command: String,
    /// How long it may take, where somebody says so.
    pub timeout: Option<Duration>,
    /// What its failing counts as, where somebody says so.
    pub on_failure: Option<FailingHook>,
    /// The file that it stands in.
    pub source: PathBuf,
    /// The folder that it belongs to, where a folder's own `.claude` brought it.
    pub project: Option<PathBuf>,
    /// The project's files that the command names, and what they held when it was read.
    pub files: BTreeMap<PathBuf, Option<String>>,
}

impl CommandHook {
    /// Looks at the files that it names.
    pub(crate) fn look(&mut self, directory: &Path, worktree: &Path) {
        let own = self.project.as_deref().unwrap_or(worktree);
        let named = files_named(&self.command, own, &[directory, worktree]);
        self.files = named.into_iter().map(|file| (file.clone(), print_of(&file))).collect();
    }

    /// The first of its files that is not as it was.
    pub fn changed_file(&self) -> Option<&Path> {
        let changed = |(file, was): &(&PathBuf, &Option<String>)| print_of(file) != **was;
        self.files.iter().find(changed).map(|(file, _)| file.as_path())
    }
}

/// The `hooks` key: events with groups of commands.
pub(crate) type HookSettings = Ordered<Vec<Group>>;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Group {
    /// Which tools or events it is for: a name, names with `|`, or a pattern.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    matcher: Option<Matcher>,
    #[serde(default)]
    hooks: Vec<Handler>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Handler {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    command: Option<String>,
    /// Seconds.
    #[serde(default)]
    #[schemars(with = "Option<f64>")]
    timeout: Option<Seconds>,
    #[serde(default)]
    on_failure: Option<FailingHook>,
    #[serde(rename = "if", default)]
    condition: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
struct Seconds(Duration);

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) if !time.is_zero() => Ok(Self(time)),
            _ => Err(format!("expected a number of seconds, not {seconds}")),
        }
    }
}

/// What it means that a hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailingHook {
    Continue,
    Ask,
    Block,
}

/// What the files bring, in the order in which they are read.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) hooks: Vec<(LayerKind, CommandHook)>,
    pub(crate) warnings: Vec<String>,
    pub(crate) left_out: Vec<LeftOut>,
}

impl Found {
    pub(crate) fn add(
        &mut self,
        kind: LayerKind,
        source: &Path,
        project: Option<&Path>,
        settings: HookSettings,
    ) {
        let mut not_run = Vec::new();
        for (name, groups) in settings.0 {
            let Some(event) = HookEvent::ALL.into_iter().find(|event| event.name() == name) else {
                not_run.push(name);
                continue;
            };
            for Group { matcher, hooks } in groups {
                for handler in hooks {
                    let Some(command) = runnable(&handler) else {
                        let kind = handler.kind.as_deref().unwrap_or("command");
                        not_run.push(format!("{name} of type \"{kind}\""));
                        continue;
                    };
                    if handler.condition.is_some() {
                        self.warnings.push(format!(
                            "{}: \"if\" of a {name} hook is not understood; it runs each time its matcher fits",
                            source.display()
                        ));
                    }
                    let hook = CommandHook {
                        event,
                        matcher: matcher.clone().unwrap_or_default(),
                        command,
                        timeout: handler.timeout.map(|Seconds(time)| time),
                        on_failure: handler.on_failure,
                        source: source.to_owned(),
                        project: project.map(Path::to_owned),
                        files: BTreeMap::new(),
                    };
                    self.hooks.push((kind, hook));
                }
            }
        }
        if !not_run.is_empty() {
            let what = not_run.join(", ");
            self.warnings.push(format!("{}: hooks that are not run: {what}", source.display()));
        }
    }

    /// Reads Claude Code's own files. What is wrong with one of them is its owner's business with
    /// another program: said, and no reason to stop. Tells which files had hooks for us.
    pub(crate) fn add_claude_files(
        &mut self,
        paths: &Paths,
        directory: &Path,
        worktree: &Path,
        trusted: bool,
    ) -> Vec<(LayerKind, PathBuf)> {
        let mut found = Self::default();
        let mut sources = Vec::new();
        let mut wanted = true;
        for (kind, file, folder) in claude_files(paths, directory, worktree) {
            let untrusted = kind == LayerKind::Project && !trusted;
            let settings = match read_claude_file(&file) {
                Ok(settings) => settings,
                // It is not used anyway.
                Err(_) if untrusted => continue,
                Err(problem) => {
                    self.warnings.push(format!("{problem} (its hooks are not run)"));
                    continue;
                }
            };
            let hooks = settings.hooks.filter(|hooks| !hooks.0.is_empty());
            if untrusted && hooks.is_some() {
                self.left_out.push(LeftOut { path: file, what: vec!["hooks".to_owned()] });
            } else if !untrusted {
                wanted &= !settings.disable_all_hooks;
                if let Some(hooks) = hooks {
                    found.add(kind, &file, folder.as_deref(), hooks);
                    sources.push((kind, file));
                }
            }
        }
        if !wanted {
            return Vec::new();
        }
        self.hooks.append(&mut found.hooks);
        self.warnings.append(&mut found.warnings);
        sources
    }

    /// From the outermost to the innermost; in the order written where they stand together.
    pub(crate) fn in_order(mut self) -> Vec<CommandHook> {
        self.hooks.sort_by_key(|(kind, _)| match kind {
            LayerKind::Managed => 0,
            LayerKind::Project => 2,
            _ => 1,
        });
        self.hooks.into_iter().map(|(_, hook)| hook).collect()
    }
}

fn runnable(handler: &Handler) -> Option<String> {
    let is_command = handler.kind.as_deref().is_none_or(|kind| kind == "command");
    let command = handler.command.clone().filter(|c| is_command && !c.trim().is_empty())?;
    // No program takes it.
    (!command.contains('\0')).then_some(command)
}

/// What is read of a file of Claude Code's.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
struct ClaudeSettings {
    hooks: Option<HookSettings>,
    disable_all_hooks: bool,
}

fn read_claude_file(file: &Path) -> Result<ClaudeSettings, String> {
    match crate::bounded::read_to_string(file) {
        Ok(text) => file::read(file, &text, None).map(|d| d.settings).map_err(|e| e.to_string()),
        Err(error) if crate::load::is_absent(&error) => Ok(ClaudeSettings::default()),
        Err(error) => Err(format!("cannot read {}: {error}", file.display())),
    }
}

/// With the folder that a project's own file belongs to.
pub(crate) fn claude_files(
    paths: &Paths,
    directory: &Path,
    worktree: &Path,
) -> Vec<(LayerKind, PathBuf, Option<PathBuf>)> {
    let own = paths.home.join(".claude/settings.json");
    let mut folders: Vec<&Path> =
        directory.ancestors().take_while(|folder| folder.starts_with(worktree)).collect();
    folders.reverse();
    let mut files = vec![(LayerKind::User, own.clone(), None)];
    for folder in folders {
        for name in ["settings.json", "settings.local.json"] {
            let file = folder.join(".claude").join(name);
            // Somebody may work in their home.
            if file != own {
                files.push((LayerKind::Project, file, Some(folder.to_owned())));
            }
        }
    }
    files
}
