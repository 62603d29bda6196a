//! What a process left that was killed while a command ran.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::change::{Change, Changed, Lost};
use super::copies::Copies;
use super::keeper::{Keeper, unkept};
use super::memory::{Memory, Remembered};
use super::state::State;

impl Keeper {
    /// What [`Self::recover`] gave is in the log.
    pub fn recovered(&self) {
        if let Some(path) = &self.memory {
            Memory::discard(path);
        }
    }

    /// What a command had changed that an earlier process ran when it was killed. It must go into the
    /// log; [`Self::recovered`] then.
    pub async fn recover(&self) -> Option<Changed> {
        let mut seen = Arc::clone(&self.watch.seen).lock_owned().await;
        let path = self.memory.clone()?;
        let Remembered { table, turn, what, died } = Memory::read(&path)?;
        seen.table = Some(table);
        // Without them, what they held is told as lost.
        seen.copies = Copies::open(&Copies::path(&path)).ok().map(Arc::new);
        let mut changed = Changed { turn, ..self.changed(&what, true) };
        self.look(&mut seen, &mut changed, &Arc::default()).await;
        seen.copies = None;
        // What happened later was somebody else.
        let (own, later) = changed.changes.into_iter().partition(|c| is_older(&c.path, died));
        changed.changes = own;
        let unknown = |change: &Change| change.after == Some(State::Absent);
        changed.lost = unkept(&changed.changes);
        let gone = Vec::into_iter(later).filter(unknown);
        let why = "it went while nobody looked: it is not known who removed it";
        changed.lost.extend(gone.map(|c| Lost { path: c.path, why: why.to_owned() }));
        // A new process begins with a look of its own.
        seen.table = None;
        if changed.is_empty() {
            self.recovered();
            return None;
        }
        Some(changed)
    }
}

/// Whether what stands at a path was made before a moment; of what is gone, its folder tells.
pub(super) fn is_older(path: &Path, moment: SystemTime) -> bool {
    use std::os::unix::fs::MetadataExt;
    let there = path.ancestors().find_map(|path| std::fs::symlink_metadata(path).ok());
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    there.is_some_and(|data| data.ctime() <= seconds)
}
