//! Commands as hooks, in the form that Claude Code's hooks have: the event as JSON on standard
//! input, the answer as an exit status and JSON on standard output.
//!
//! `event` says what a command is told, `answer` what its answer means, `names` how tools and
//! arguments are called there, `run` runs it.

mod answer;
mod event;
mod names;
mod run;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolwright_config::{self as config, FailingHook, HookEvent, Matcher};
use toolwright_engine::{Hook, OnFailure, Point, Verdict};
use toolwright_tool::Workspace;

/// How long a command may take when nobody says otherwise, as people know it.
const USUAL_TIMEOUT: Duration = Duration::from_secs(60);

/// How much of a command stands for it in reports.
const NAME_CHARS: usize = 80;

/// Where hooks are run: one session.
pub(crate) struct Place {
    pub(crate) session: String,
    /// The session's log.
    pub(crate) transcript: PathBuf,
    pub(crate) workspace: Arc<Workspace>,
    /// The agent whose session this is, where it works for another one.
    pub(crate) worker: Option<String>,
    /// Configured MCP servers, by which their tools can be told.
    pub(crate) servers: Vec<String>,
    /// Variables that hooks see although their names say that they are secret.
    pub(crate) passed: Vec<String>,
    /// Those that hold keys of ours, whatever their names say.
    pub(crate) withheld: Vec<String>,
}

struct CommandHook {
    place: Arc<Place>,
    event: HookEvent,
    /// It runs if one of them fits.
    matchers: Vec<Matcher>,
    command: String,
    name: String,
    timeout: Duration,
    on_failure: OnFailure,
    project: PathBuf,
    configured: config::CommandHook,
}

/// In the order of the configuration. The same command for the same event is one hook, whatever
/// number of matchers and files name it.
pub(crate) fn command_hooks(
    configured: &[config::CommandHook],
    place: Place,
) -> Vec<Arc<dyn Hook>> {
    let place = Arc::new(place);
    let mut hooks: Vec<CommandHook> = Vec::new();
    for hook in configured {
        let project = hook.project.as_deref().unwrap_or(place.workspace.worktree());
        let same = |known: &&mut CommandHook| {
            known.event == hook.event && known.command == hook.command && known.project == project
        };
        let on_failure = match hook.on_failure {
            Some(FailingHook::Continue) => OnFailure::Continue,
            Some(FailingHook::Ask) | None => OnFailure::Ask,
            Some(FailingHook::Block) => OnFailure::Block,
        };
        if let Some(known) = hooks.iter_mut().find(same) {
            known.matchers.push(hook.matcher.clone());
            known.on_failure = known.on_failure.max(on_failure);
            continue;
        }
        hooks.push(CommandHook {
            place: Arc::clone(&place),
            event: hook.event,
            matchers: vec![hook.matcher.clone()],
            command: hook.command.clone(),
            name: hook.command.chars().take(NAME_CHARS).collect(),
            timeout: hook.timeout.unwrap_or(USUAL_TIMEOUT),
            on_failure,
            project: project.to_owned(),
            configured: hook.clone(),
        });
    }
    // People are called only after those who can answer for them.
    hooks.sort_by_key(|hook| hook.event == HookEvent::Notification);
    hooks.into_iter().map(|hook| Arc::new(hook) as Arc<dyn Hook>).collect()
}

impl CommandHook {
    /// Where its event happens. A session in which an agent works for another one does not begin,
    /// end or hear a person; its agent does.
    fn point(&self) -> Option<Point> {
        let works_for_another = self.place.worker.is_some();
        let (of_people, point) = match self.event {
            HookEvent::PreToolUse => return Some(Point::ToolBefore),
            HookEvent::PostToolUse | HookEvent::PostToolUseFailure => {
                return Some(Point::ToolAfter);
            }
            HookEvent::PermissionRequest | HookEvent::Notification => {
                return Some(Point::PermissionAsk);
            }
            HookEvent::PreCompact => return Some(Point::Compacting),
            HookEvent::UserPromptSubmit => (true, Point::ChatMessage),
            HookEvent::SessionStart => (true, Point::SessionStart),
            HookEvent::SessionEnd => (true, Point::SessionEnd),
            HookEvent::Stop => (true, Point::Stop),
            HookEvent::SubagentStart => (false, Point::SessionStart),
            HookEvent::SubagentStop => (false, Point::Stop),
        };
        (of_people != works_for_another).then_some(point)
    }

    fn is_wanted(&self, told: &event::Told) -> bool {
        told.subjects.is_empty()
            || told.subjects.iter().any(|name| self.matchers.iter().any(|m| m.fits(name)))
    }
}

impl Hook for CommandHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, point: Point) -> bool {
        self.point() == Some(point)
    }

    fn deadline(&self) -> Duration {
        self.timeout
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    fn call<'a>(
        &'a self,
        _: Point,
        input: &'a Value,
        output: &'a Value,
    ) -> BoxFuture<'a, Result<Verdict, String>> {
        async move {
            let told = event::tell(self.event, &self.place, input, output);
            let Some(told) = told.filter(|told| self.is_wanted(told)) else {
                return Ok(Verdict::default());
            };
            // It runs outside the fence: only as it was when somebody trusted it.
            if let Some(file) = self.configured.changed_file() {
                return Err(format!(
                    "{} has changed since this folder was trusted; look at it, then `tw trust`",
                    file.display()
                ));
            }
            let ended = run::run(
                &self.command,
                self.place.workspace.directory(),
                &self.project,
                told.text.to_string(),
                (&self.place.passed, &self.place.withheld),
            )
            .await?;
            answer::verdict(self.event, &ended, &told)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
