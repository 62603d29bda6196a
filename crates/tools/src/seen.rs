//! What a session has seen of files, so that a change which somebody else made in between is noticed
//! before it is overwritten.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use toolwright_tool::{RunContext, ToolError, ToolOutput};

use crate::feedback::{Before, Edited, Feedback, Occasion};
use crate::rewrite::Found;

/// What happens to a change of a file that is no longer as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StaleEdits {
    /// The model is told to read it again. A file that was never read may be changed.
    #[default]
    Error,
    Allow,
}

/// A handle: clones share what was seen. The tools of one registry have one.
#[derive(Clone, Default)]
pub struct Seen {
    sightings: Arc<Mutex<HashMap<PathBuf, Sighting>>>,
    stale: StaleEdits,
    /// What follows a change of them.
    feedback: Feedback,
}

#[derive(Clone, Copy)]
struct Sighting {
    stamp: Stamp,
    content: Option<u64>,
}

/// Tells two states of a file apart without reading it.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) struct Stamp {
    modified: (i64, i64),
    changed: (i64, i64),
    length: u64,
    file: (u64, u64),
}

/// Bytes of a file up to which its content is remembered too: who only touched it, or wrote the same
/// again, is then in nobody's way.
const HASH_CAP_BYTES: u64 = 256 << 10;

/// Files that are remembered. One that is forgotten counts as never read.
const CAPACITY: usize = 4096;

/// The clock of file stamps may stand still for this long (a tick is 10 ms at most).
const CLOCK_STEP: Duration = Duration::from_millis(20);

impl Stamp {
    pub(crate) fn of(data: &Metadata) -> Self {
        Self {
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
            length: data.len(),
            file: (data.dev(), data.ino()),
        }
    }

    /// Whether a later change must show in the stamp: not if one could fall in the same tick.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let (seconds, nanos) = self.changed;
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let changed = u64::try_from(seconds).ok().zip(u32::try_from(nanos).ok());
        changed.is_some_and(|(s, n)| Duration::new(s, n) + CLOCK_STEP < since_epoch)
    }
}

impl Seen {
    pub fn new(stale: StaleEdits) -> Self {
        Self { stale, ..Self::default() }
    }

    /// Changes are followed by formatters and language servers.
    /// What follows a change of what was seen.
    pub(crate) fn feedback(&self) -> &Feedback {
        &self.feedback
    }

    pub fn followed_by(mut self, feedback: Feedback) -> Self {
        self.feedback = feedback;
        self
    }

    /// The output of a change with all that follows it. What a formatter made of a file is our own doing.
    pub(crate) async fn follow(
        &self,
        output: ToolOutput,
        edited: Vec<Edited>,
        occasion: Occasion,
        context: &RunContext,
    ) -> ToolOutput {
        if self.feedback.is_off() {
            let_go(edited);
            return output;
        }
        let output = self.feedback.complete(output, &edited, occasion, context).await;
        let seen = self.clone();
        let paths: Vec<PathBuf> = edited.iter().map(|file| file.path.clone()).collect();
        let_go(edited);
        let noted = crate::walk::blocking(move || {
            paths.iter().filter(|path| path.exists()).for_each(|path| seen.note(path));
            Ok(())
        });
        // A file that cannot be looked at now is looked at when it is changed next.
        noted.await.ok();
        output
    }

    /// The file is about to be shown, or has just been written. Taken before it is read: what changes
    /// meanwhile then counts as changed.
    pub(crate) fn note(&self, path: &Path) {
        let Ok(data) = fs::metadata(path) else { return };
        if self.stale == StaleEdits::Allow || !data.is_file() {
            return;
        }
        let small = data.len() <= HASH_CAP_BYTES;
        let content = small.then(|| fs::read(path).ok()).flatten().map(|bytes| hash(&bytes));
        let mut sightings = self.lock();
        if sightings.len() >= CAPACITY
            && let Some(any) = sightings.keys().next().cloned()
        {
            sightings.remove(&any);
        }
        sightings.insert(path.to_owned(), Sighting { stamp: Stamp::of(&data), content });
    }

    /// Fails if the session knows another state of the file than the one found.
    pub(crate) fn check(&self, path: &Path, shown: &str, found: &Found) -> Result<(), ToolError> {
        let Some(known) = self.lock().get(path).copied() else { return Ok(()) };
        let Some(stamp) = found.stamp else { return Ok(()) };
        let small = found.content.as_ref().filter(|c| c.len() as u64 <= HASH_CAP_BYTES);
        let same = small.zip(known.content).is_some_and(|(now, old)| old == hash(now));
        if known.stamp == stamp || same {
            return Ok(());
        }
        Err(ToolError::for_model(format!(
            "File {shown} has been modified since it was last read: something else changed it on disk. Nothing was \
             written; read it again and make your change to what it holds now."
        )))
    }

    /// What was seen is no part of the conversation any more.
    pub(crate) fn forget_all(&self) {
        self.lock().clear();
    }

    pub(crate) fn forget(&self, path: &Path) {
        self.lock().remove(path);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Sighting>> {
        self.sightings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last one to hold a large file that was replaced frees all its pages, which takes as long as half a
/// copy of it. Nobody needs to wait for that.
fn let_go(edited: Vec<Edited>) {
    if edited.iter().any(|file| matches!(file.old, Before::Large(_))) {
        tokio::task::spawn_blocking(move || drop(edited));
    }
}

fn hash(bytes: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes)
}
