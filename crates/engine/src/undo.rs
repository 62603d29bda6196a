//! Taking a session back, while it is open.

use std::path::PathBuf;

use toolwright_session::images::{Keeper, Report, Scene, UndoError, UndoOptions, Undone};
use toolwright_session::{Entry, Log, LogError, Session, Store};
use toolwright_tool::Pipeline;

use crate::engine::Engine;

/// What happens to files from now on belongs to the newest message. Who works for another leaves that
/// to the other.
pub(crate) fn begin_turn(pipeline: &Pipeline, session: &Session) {
    if session.header.parent.is_none()
        && let Some(keeper) = pipeline.keeper()
        && let Some((_, place)) = session.prompts().last()
    {
        keeper.begin_turn(place.id);
    }
}

impl Engine {
    /// Takes back what happened since a message. Between turns only. `workers` are the files of agents
    /// that worked for this session, see [`Store::workers`].
    pub async fn undo(
        &mut self,
        options: &UndoOptions,
        workers: &[PathBuf],
    ) -> Result<Report, UndoError> {
        self.reverse(workers, |scene, log| scene.undo(log, options)).await
    }

    /// Makes again what was taken back last. Between turns only.
    pub async fn redo(&mut self, dry_run: bool, workers: &[PathBuf]) -> Result<Report, UndoError> {
        self.reverse(workers, |scene, log| scene.redo(log, dry_run)).await
    }

    async fn reverse(
        &mut self,
        workers: &[PathBuf],
        work: impl FnOnce(&Scene<'_>, &mut Log) -> Result<Undone, UndoError>,
    ) -> Result<Report, UndoError> {
        self.note_later_changes().await?;
        let Some(keeper) = self.pipeline.keeper().cloned() else {
            return Err(LogError::NotKept.into());
        };
        let report = self.record.with_log(|log| {
            let outputs = Store::outputs(log);
            let images = keeper.watch().images();
            let scene = Scene { images, workers, outputs: &outputs };
            work(&scene, log).map(|done| (done.report, done.session))
        })?;
        keeper.forget().await;
        if report.dry_run {
            return Ok(report);
        }
        match report.conversation {
            true => self.begin_elsewhere().await?,
            // What the model had read is not what is there.
            false => self.pipeline.forget_answers(),
        }
        Ok(report)
    }

    /// What jobs changed that go on beside the conversation, and hooks.
    pub(crate) async fn note_later_changes(&mut self) -> Result<(), LogError> {
        let is_own = self.record.session().header.parent.is_none();
        let Some(keeper) = self.pipeline.keeper().filter(|_| is_own) else { return Ok(()) };
        let mut changes = keeper.take_aside();
        changes.extend(keeper.seen_later().await);
        for changed in changes {
            let at = changed.at;
            self.record.add(Entry::Changed(changed))?;
            keeper.noted(at);
        }
        Ok(())
    }

    /// Whoever notes what happens to files, if somebody does.
    pub fn keeper(&self) -> Option<&Keeper> {
        self.pipeline.keeper()
    }
}
