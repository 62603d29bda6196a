//! Memory and log in step: what is applied has been written first.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use toolwright_session::{Entry, EntryId, Log, LogError, Mark, MoveReason, Session};

/// Where entries are kept.
pub trait Journal: Send + Sync {
    /// Returns once the entry is in the file.
    fn append(&mut self, entry: &Entry) -> Result<Mark, LogError>;
    /// Goes on behind another entry; see [`Log::move_to`].
    fn move_to(&mut self, _target: EntryId, _why: MoveReason) -> Result<Session, LogError> {
        Err(LogError::NotKept)
    }
    /// Returns once everything appended survives a power cut.
    fn sync(&mut self) -> BoxFuture<'static, Result<(), LogError>>;
}

impl Journal for Log {
    fn append(&mut self, entry: &Entry) -> Result<Mark, LogError> {
        Log::append(self, entry)
    }

    fn move_to(&mut self, target: EntryId, why: MoveReason) -> Result<Session, LogError> {
        Log::move_to(self, target, why)
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), LogError>> {
        let path = self.path().to_owned();
        let handle = self.sync_handle();
        async move {
            let handle = handle?;
            let synced = tokio::task::spawn_blocking(move || handle.sync()).await;
            let result = synced.unwrap_or_else(|crash| Err(std::io::Error::other(crash)));
            result.map_err(|source| LogError::Write { path, source })
        }
        .boxed()
    }
}

/// Keeps nothing: for conversations that live in memory only.
pub struct Unrecorded;

impl Journal for Unrecorded {
    fn append(&mut self, _: &Entry) -> Result<Mark, LogError> {
        Ok(Mark::unkept())
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), LogError>> {
        std::future::ready(Ok(())).boxed()
    }
}

/// A session and its journal. The only way to change the one is through the other.
pub struct Record {
    session: Session,
    journal: Box<dyn Journal>,
}

impl Record {
    pub fn new(session: Session, journal: impl Journal + 'static) -> Self {
        Self { session, journal: Box::new(journal) }
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    pub fn add(&mut self, entry: Entry) -> Result<(), LogError> {
        let mark = self.journal.append(&entry)?;
        self.session.apply(entry, mark);
        Ok(())
    }

    /// Goes on behind another entry of the file: the session is what it was there.
    pub fn move_to(&mut self, target: EntryId, why: MoveReason) -> Result<(), LogError> {
        self.session = self.journal.move_to(target, why)?;
        Ok(())
    }

    /// Only in the file: the whole answer will say it again. If it never comes, [`Self::fold_only`]
    /// brings memory to where a load would be.
    pub(crate) fn log_only(&mut self, entry: &Entry) -> Result<(), LogError> {
        let mark = self.journal.append(entry)?;
        self.session.wrote(mark);
        Ok(())
    }

    /// An entry that is in the file already, said in another way.
    pub(crate) fn fold_only(&mut self, entry: Entry) {
        let place = self.session.places().last();
        let mark = place.map(|p| Mark { id: p.last, parent: None, time: p.last_time });
        self.session.apply(entry, mark.unwrap_or_default());
    }

    pub(crate) fn sync(&mut self) -> BoxFuture<'static, Result<(), LogError>> {
        self.journal.sync()
    }
}
