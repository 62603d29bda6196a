//! Taking back what a session did: the folder's side of it.

use std::path::PathBuf;

use toolwright_config::{Paths, Settings};
use toolwright_session::images::{
    Images, Keeper, Lost, Quota, Report, Scene, UndoError, UndoOptions, Undone, Watch,
    clear_unfinished,
};
use toolwright_session::{Call, Entry, Log, OpenError, Session, Slot, Store};
use toolwright_tool::Workspace;

use crate::workbench::{SessionChoice, SetupError, Workbench};

/// Begins like an output, so that it goes with old ones should it ever be left behind.
const MEMORY: &str = "tool_workspace";

pub(crate) fn watch(paths: &Paths, workspace: &Workspace, settings: &Settings) -> Watch {
    let undo = &settings.undo;
    let quota = Quota::of(undo.retention_days, undo.quota_bytes);
    let images = Images::new(paths.data.join("images"), paths.sessions(), quota);
    // As paths are seen when they are looked at: without links.
    let real = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    Watch::new(workspace.worktree(), images, &real(&paths.data), &real(&paths.home))
}

/// Why nothing was taken back.
#[derive(Debug, thiserror::Error)]
pub enum ReverseError {
    #[error("that session is work for {employer}: undo it there")]
    Worker { employer: String },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Undo(#[from] UndoError),
}

/// What a reversal is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reverse {
    Undo(UndoOptions),
    Redo { dry_run: bool },
}

impl Workbench {
    /// Notes what a session's calls do to files, unless that is turned off.
    pub(crate) fn keeper(&self, log: &Log) -> Option<Keeper> {
        let on = self.config.settings.snapshot.unwrap_or(true);
        let memory = Store::outputs(log).join(MEMORY);
        on.then(|| Keeper::new(self.watch().clone(), Some(memory)))
    }

    /// Takes back, or makes again, what a session did that nobody works on now.
    pub async fn reverse(
        &self,
        session: &SessionChoice,
        what: &Reverse,
    ) -> Result<(String, Report), ReverseError> {
        let store = self.store();
        let (mut log, mut session, odd) = match session {
            SessionChoice::Id(id) => store.open(id)?,
            SessionChoice::New | SessionChoice::Latest => {
                store.open_latest(self.workspace.directory())?
            }
        };
        if let Some(employer) = session.header.parent.clone() {
            return Err(ReverseError::Worker { employer });
        }
        let keeper = self.keeper(&log);
        self.note_killed(&mut log, &mut session, keeper.as_ref()).await?;
        let (workers, outputs) = self.scenery(&log, &session);
        let scene = Scene { images: self.watch().images(), workers: &workers, outputs: &outputs };
        let Undone { mut report, .. } = match what {
            Reverse::Undo(options) => scene.undo(&mut log, options),
            Reverse::Redo { dry_run } => scene.redo(&mut log, *dry_run),
        }?;
        let asked = matches!(what, Reverse::Undo(UndoOptions { files: true, .. }));
        if keeper.is_none() && asked && report.restored.is_empty() && report.is_complete() {
            let why = "nothing is kept: the setting snapshot is false".to_owned();
            report.lost.push(Lost { path: self.workspace.worktree().to_owned(), why });
        }
        report.notices = odd.iter().map(ToString::to_string).collect();
        Ok((session.header.session, report))
    }

    /// Brings to its end what a killed process left: an undo half done, a command whose changes nobody
    /// has noted. Gives what a person should know.
    pub(crate) async fn settle_files(
        &self,
        log: &mut Log,
        session: &mut Session,
        keeper: Option<&Keeper>,
    ) -> Result<Vec<String>, SetupError> {
        let mut notices = Vec::new();
        if Scene::is_pending(log)? {
            let (workers, outputs) = self.scenery(log, session);
            let scene =
                Scene { images: self.watch().images(), workers: &workers, outputs: &outputs };
            let finished = scene.finish(log);
            let finished = match finished {
                Ok(finished) => finished,
                Err(UndoError::Log(error)) => return Err(error.into()),
                Err(_) => None,
            };
            if let Some((_, Undone { report, session: moved })) = finished {
                notices.push("an undo that was interrupted was brought to its end".to_owned());
                if !report.is_complete() {
                    notices.push("not all files could be restored by it".to_owned());
                }
                if let Some(moved) = moved {
                    *session = moved;
                }
            }
        }
        self.note_killed(log, session, keeper).await?;
        Ok(notices)
    }

    /// What a command had done that ran when an earlier process was killed.
    async fn note_killed(
        &self,
        log: &mut Log,
        session: &mut Session,
        keeper: Option<&Keeper>,
    ) -> Result<(), SetupError> {
        let changes = |call: &Call| matches!(call.slot(), Slot::Running { effects: true, .. });
        if session.last_step().is_some_and(|step| step.calls().any(changes)) {
            clear_unfinished(log.path(), &self.store().workers(&session.header))?;
        }
        if let Some(keeper) = keeper
            // Behind an undo that is half done nothing may stand but its end.
            && !Scene::is_pending(log)?
            && let Some(changed) = keeper.recover().await
        {
            let entry = Entry::Changed(changed);
            let mark = log.append(&entry)?;
            session.apply(entry, mark);
            keeper.recovered();
        }
        Ok(())
    }

    fn scenery(&self, log: &Log, session: &Session) -> (Vec<PathBuf>, PathBuf) {
        (self.store().workers(&session.header), Store::outputs(log))
    }
}
