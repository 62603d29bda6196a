//! Notes what calls do to files. Declared writes are noted exactly. For a call that may do anything, the
//! workspace is looked at before and after it: what is different was done by it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{Mutex, oneshot};

use super::change::{Cause, Change, Changed, HeadMoved, Lost};
use super::copies::{Copies, keep_copies};
use super::known::{Difference, Known, Table};
use super::memory::Memory;
use super::objects::{Hidden, add_tracked, clean_files, take_objects};
use super::scan::{ScanError, scan};
use super::state::State;
use super::store::Images;
use crate::id::EntryId;

/// The part of the quota that copies of unchanged files may take, for the case that a command changes
/// them.
const COPIES_SHARE: u64 = 8;

/// What a call may change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// The call, in one line.
    pub what: String,
    /// The files that it declared to write.
    pub writes: Vec<PathBuf>,
    /// It may write whatever it wants.
    pub anything: bool,
}

impl Reach {
    pub fn is_nothing(&self) -> bool {
        self.writes.is_empty() && !self.anything
    }
}

/// What is known about one folder's files. Shared by all who work in it.
#[derive(Clone)]
pub struct Watch {
    place: Arc<Place>,
    pub(super) seen: Arc<Mutex<Seen>>,
    /// Calls under way that may change anything.
    running: Arc<AtomicUsize>,
    /// Files that declared writes are about to change, and how many writes: what becomes of the files
    /// is noted there.
    writing: Arc<StdMutex<HashMap<PathBuf, usize>>>,
    /// What is on record by now, and the file of what is known does not know it yet.
    noted: Arc<StdMutex<Vec<u64>>>,
}

struct Place {
    root: PathBuf,
    images: Images,
    leave_out: Vec<PathBuf>,
    /// Why commands cannot be followed here.
    unfit: Option<String>,
}

#[derive(Default)]
pub(super) struct Seen {
    pub(super) table: Option<Table>,
    /// Looking did not work; said once and not tried again.
    given_up: Option<String>,
    /// Something that was started goes on in the background.
    lingering: bool,
    heads: BTreeMap<PathBuf, String>,
    hidden: Hidden,
    file: Option<Memory>,
    /// Of what the table knows.
    pub(super) copies: Option<Arc<Copies>>,
}

impl Seen {
    /// What the log says under this moment holds, should this process be killed.
    fn told(&mut self, at: u64) {
        if let Some(file) = &mut self.file {
            file.noted(at);
        }
    }
}

/// A watch with the turn that changes belong to: that of one person's session and of all agents that
/// work for it.
#[derive(Clone)]
pub struct Keeper {
    pub(super) watch: Watch,
    turn: Arc<StdMutex<EntryId>>,
    /// Where what is known is kept, for the case that this process is killed.
    pub(super) memory: Option<PathBuf>,
    /// Whether jobs run.
    jobs: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    pub(super) aside: Arc<StdMutex<Vec<Changed>>>,
}

/// A call under way.
pub struct Ticket {
    reach: Reach,
    before: Vec<(PathBuf, State)>,
    running: Option<Running>,
    writing: Vec<Writing>,
}

struct Writing {
    path: PathBuf,
    all: Arc<StdMutex<HashMap<PathBuf, usize>>>,
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(&self.path) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(all.remove(&self.path)),
        }
    }
}

struct Running {
    count: Arc<AtomicUsize>,
    /// Keeps the file of what is known young: its age tells when this process was killed.
    alive: Option<tokio::task::JoinHandle<()>>,
}

impl Running {
    fn begin(count: &Arc<AtomicUsize>, file: Option<&Memory>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        let beat = file.and_then(Memory::heartbeat);
        Self { count: Arc::clone(count), alive: beat.map(tokio::spawn) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        if let Some(alive) = &self.alive {
            alive.abort();
        }
    }
}

impl Watch {
    /// `root` is the folder whose files commands may change; `data` is where we keep things, and is
    /// left out if it is inside; `home` is too large to be followed.
    pub fn new(root: &Path, images: Images, data: &Path, home: &Path) -> Self {
        let around = home.starts_with(root) && !root.join(".git").exists();
        let unfit = around.then(|| format!("{} is too large to be followed", root.display()));
        let place =
            Place { root: root.to_owned(), images, leave_out: vec![data.to_owned()], unfit };
        let (seen, running) = (Arc::default(), Arc::default());
        let (writing, noted) = (Arc::default(), Arc::default());
        Self { place: Arc::new(place), seen, running, writing, noted }
    }

    fn is_written(&self, path: &Path) -> bool {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner).contains_key(path)
    }

    fn begin_writing(&self, path: PathBuf) -> Writing {
        let mut all = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry(path.clone()).or_default() += 1;
        Writing { path, all: Arc::clone(&self.writing) }
    }

    pub fn images(&self) -> &Images {
        &self.place.images
    }

    pub fn root(&self) -> &Path {
        &self.place.root
    }
}

impl Keeper {
    /// `memory` is a file of the session's own.
    pub fn new(watch: Watch, memory: Option<PathBuf>) -> Self {
        Self { watch, turn: Arc::default(), memory, jobs: None, aside: Arc::default() }
    }

    /// Asks this whether something goes on in the background.
    pub fn with_jobs(self, are_running: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { jobs: Some(Arc::new(are_running)), ..self }
    }

    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// What happens from now on belongs to this message.
    pub fn begin_turn(&self, message: EntryId) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = message;
    }

    /// What was told under this moment ([`Changed::at`]) is in the log.
    pub fn noted(&self, at: u64) {
        self.watch.noted.lock().unwrap_or_else(PoisonError::into_inner).push(at);
        // Whoever looks at files now sees to it afterwards; until then it only is told twice.
        if let Ok(mut seen) = self.watch.seen.try_lock() {
            self.catch_up(&mut seen);
        }
    }

    fn catch_up(&self, seen: &mut Seen) {
        let mut noted = self.watch.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.drain(..).for_each(|at| seen.told(at));
    }

    /// What is known about files no longer holds: they were changed by ourselves.
    pub async fn forget(&self) {
        let mut seen = self.watch.seen.lock().await;
        if let Some(table) = seen.table.take() {
            table
                .entries
                .values()
                .filter_map(Known::image)
                .for_each(|hash| self.watch.images().unpin(&hash));
        }
    }

    /// Before a call runs: its before-images are on disk when this returns. Gives what the log must
    /// say before the call may begin.
    pub async fn before(&self, reach: Reach) -> (Ticket, Vec<Changed>) {
        let keeper = self.clone();
        let (sender, receiver) = oneshot::channel();
        let waiting = StopOnDrop(Arc::default());
        let stop = Arc::clone(&waiting.0);
        // In a task of its own: whoever waits for it may be gone before it is done.
        tokio::spawn(async move {
            if let Err((ticket, log)) = sender.send(keeper.clone().prepare(reach, &stop).await) {
                let settled = keeper.clone().settle(ticket, false).await;
                // Nobody is left who would tell.
                log.iter().chain(&settled).for_each(|changed| keeper.noted(changed.at));
            }
        });
        receiver.await.unwrap_or_else(|_| (Ticket::empty(), Vec::new()))
    }

    /// After it has run. `lingers`: it left something running.
    pub async fn after(&self, ticket: Ticket, lingers: bool) -> Option<Changed> {
        let keeper = self.clone();
        let work = tokio::spawn(async move { keeper.settle(ticket, lingers).await });
        work.await.unwrap_or_default().filter(|changed| !changed.is_empty())
    }

    /// What jobs have changed since the last look. Nothing is looked at where none run.
    pub async fn seen_later(&self) -> Option<Changed> {
        let mut seen = Arc::clone(&self.watch.seen).lock_owned().await;
        self.catch_up(&mut seen);
        if !seen.lingering {
            return None;
        }
        let mut changed = self.changed("a job in the background", true);
        changed.by.background = true;
        self.look(&mut seen, &mut changed, &Arc::default()).await;
        // What is left of a command without being a job is not followed beyond its turn.
        seen.lingering = self.jobs.as_ref().is_some_and(|are_running| are_running());
        if changed.is_empty() {
            seen.told(changed.at);
            return None;
        }
        Some(changed)
    }

    async fn prepare(self, reach: Reach, stop: &Arc<AtomicBool>) -> (Ticket, Vec<Changed>) {
        let mut seen = Arc::clone(&self.watch.seen).lock_owned().await;
        self.catch_up(&mut seen);
        let mut log = Vec::new();
        let mut running = None;
        let others = seen.lingering || self.watch.running.load(Ordering::Acquire) > 0;
        let mut earlier = self.changed("a command beside this one", true);
        earlier.by.background = true;
        if reach.anything {
            let known = seen.table.is_some();
            self.look(&mut seen, &mut earlier, stop).await;
            // The call will not be made. The next one looks again.
            if !known && stop.load(Ordering::Relaxed) {
                return (Ticket::empty(), Vec::new());
            }
            if !known || !others {
                earlier = Changed { changes: Vec::new(), lost: Vec::new(), ..earlier };
            }
            seen.heads = heads(&seen);
            running = Some(Running::begin(&self.watch.running, seen.file.as_ref()));
            if let Some(file) = &mut seen.file {
                file.begin(self.turn(), &reach.what);
            }
        }
        let (mut before, mut writing) = (Vec::new(), Vec::new());
        if !reach.writes.is_empty() {
            let found = self.states(&reach.writes).await;
            for (path, known) in found {
                let state =
                    known.as_ref().map_or(State::Absent, |known| known.state(&HashMap::new()));
                let difference = self.adopt(&mut seen, &path, known, earlier.at);
                // What people changed between two calls is theirs.
                let difference = difference.filter(|_| others && !self.watch.is_written(&path));
                let copies = seen.copies.clone();
                self.tell(difference.into_iter().collect(), copies, &mut earlier).await;
                writing.push(self.watch.begin_writing(path.clone()));
                before.push((path, state));
            }
        }
        match earlier.is_empty() {
            true => seen.told(earlier.at),
            false => log.push(earlier),
        }
        if !before.is_empty() {
            let mut intent = self.changed(&reach.what, false);
            let change = |(path, state): &(PathBuf, State)| Change {
                path: path.clone(),
                before: state.clone(),
                after: None,
            };
            intent.changes = before.iter().map(change).collect();
            intent.lost = unkept(&intent.changes);
            log.push(intent);
        }
        (Ticket { reach, before, running, writing }, log)
    }

    async fn settle(self, ticket: Ticket, lingers: bool) -> Option<Changed> {
        let mut seen = Arc::clone(&self.watch.seen).lock_owned().await;
        self.catch_up(&mut seen);
        let Ticket { reach, before, running, writing } = ticket;
        let mut changed = self.changed(&reach.what, reach.anything);
        if !before.is_empty() {
            let paths: Vec<PathBuf> = before.iter().map(|(path, _)| path.clone()).collect();
            let mut now: HashMap<PathBuf, Option<Known>> =
                self.states_of(paths).await.into_iter().collect();
            for (path, before) in before {
                let known = now.remove(&path).flatten();
                let after =
                    known.as_ref().map_or(State::Absent, |known| known.state(&HashMap::new()));
                self.adopt(&mut seen, &path, known, changed.at);
                changed.changes.push(Change { path, before, after: Some(after) });
            }
        }
        drop(writing);
        if reach.anything {
            seen.lingering |= lingers;
            let was = std::mem::take(&mut seen.heads);
            let repositories = own_folders(&seen);
            self.look(&mut seen, &mut changed, &Arc::default()).await;
            let is = heads(&seen);
            for path in repositories.into_iter().filter(|path| !path.exists()) {
                let why = "the state of a repository is not kept".to_owned();
                changed.lost.push(Lost { path, why });
            }
            for (repository, before) in was {
                if let Some(after) = is.get(&repository).filter(|after| **after != before) {
                    let after = after.clone();
                    changed.heads.push(HeadMoved { repository, before, after });
                }
            }
            seen.heads = is;
            drop(running);
            let idle = self.watch.running.load(Ordering::Acquire) == 0;
            if let Some(file) = seen.file.as_mut().filter(|_| idle) {
                file.end();
            }
            if let Some(why) = &seen.given_up {
                changed.lost.push(Lost { path: self.watch.place.root.clone(), why: why.clone() });
            }
        }
        if changed.is_empty() {
            seen.told(changed.at);
        }
        Some(changed)
    }

    pub(super) fn changed(&self, what: &str, undeclared: bool) -> Changed {
        let by = Cause { what: what.to_owned(), undeclared, background: false };
        Changed { turn: self.turn(), at: now(), by, ..Changed::default() }
    }

    pub(super) fn turn(&self) -> EntryId {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands at these paths, kept, with the folders above them that are not there yet.
    async fn states(&self, writes: &[PathBuf]) -> Vec<(PathBuf, Option<Known>)> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in writes {
            let missing = path.ancestors().skip(1).take_while(|folder| !folder.exists());
            let mut above: Vec<PathBuf> = missing.map(Path::to_owned).collect();
            above.reverse();
            above.push(path.clone());
            paths.extend(above);
        }
        let mut once = HashSet::new();
        paths.retain(|path| once.insert(path.clone()));
        self.states_of(paths).await
    }

    async fn states_of(&self, paths: Vec<PathBuf>) -> Vec<(PathBuf, Option<Known>)> {
        let place = Arc::clone(&self.watch.place);
        let work = move || {
            let read = |path: PathBuf| {
                let known = Known::capture(&path, &place.images, true)
                    .unwrap_or_else(|e| Some(Known::unreadable(&e)));
                (path, known)
            };
            paths.into_iter().map(read).collect()
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_default()
    }

    /// What is at a path now is known from here on. Gives what that changed in what was known.
    fn adopt(
        &self,
        seen: &mut Seen,
        path: &Path,
        after: Option<Known>,
        at: u64,
    ) -> Option<Difference> {
        let table = seen.table.as_mut()?;
        if !path.starts_with(&self.watch.place.root) {
            return None;
        }
        let before = table.set(path, after.clone(), &self.watch.place.images);
        if let Some(file) = &mut seen.file {
            file.set(path, after.as_ref(), at);
        }
        let facts = |known: &Option<Known>| known.as_ref().map(|known| known.facts);
        let same = facts(&before) == facts(&after);
        (!same).then(|| Difference { path: path.to_owned(), before, after })
    }

    /// Looks at the workspace and adds to `changed` what has become different. The first look finds
    /// nothing different, and `stop` ends it: it may take long, and nothing was noted yet.
    pub(super) async fn look(
        &self,
        seen: &mut Seen,
        changed: &mut Changed,
        stop: &Arc<AtomicBool>,
    ) {
        if let Some(why) = &self.watch.place.unfit {
            seen.given_up = Some(why.clone());
        }
        if seen.given_up.is_some() {
            return;
        }
        match self.try_look(seen, stop).await {
            Ok(differences) => {
                if let Some(file) = &mut seen.file {
                    let told = |d: &Difference| file.set(&d.path, d.after.as_ref(), changed.at);
                    differences.iter().for_each(told);
                }
                let noted = differences.into_iter().filter(|d| !self.watch.is_written(&d.path));
                self.tell(noted.collect(), seen.copies.clone(), changed).await;
            }
            Err(ScanError::Stopped) => seen.table = None,
            Err(error) => {
                seen.table = None;
                let root = self.watch.place.root.display();
                seen.given_up = Some(format!("{root} cannot be followed: {error}"));
            }
        }
    }

    async fn try_look(
        &self,
        seen: &mut Seen,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<Difference>, ScanError> {
        let place = Arc::clone(&self.watch.place);
        let first = seen.table.is_none();
        // A later look is short, and stopping it would lose what is known.
        let stop = if first { Arc::clone(stop) } else { Arc::default() };
        let mut hidden = std::mem::take(&mut seen.hidden);
        let stopped = Arc::clone(&stop);
        let work = move || {
            let stop = stopped;
            let mut found = scan(&place.root, &place.leave_out, &stop)?;
            let clean = add_tracked(&mut found, &mut hidden, first);
            Ok::<_, ScanError>((found, clean, hidden))
        };
        let (found, candidates, hidden) = blocking(work).await?;
        seen.hidden = hidden;
        let place = Arc::clone(&self.watch.place);
        match seen.table.take() {
            Some(mut table) => {
                let work = move || {
                    let differences = table.renew(found, &place.images);
                    Ok((table, differences))
                };
                let (table, differences) = blocking(work).await?;
                seen.table = Some(table);
                Ok(differences)
            }
            None => {
                let clean = clean_files(candidates).await;
                let budget = place.images.quota().bytes / COPIES_SHARE;
                // It takes its copies with it.
                seen.file = None;
                let path = self.memory.as_deref().map(Copies::path);
                let work = move || {
                    let copies = Arc::new(Copies::create(path.as_deref())?);
                    let kept = (&place.images, &*copies);
                    let table = Table::begin(found, clean, kept, budget, &stop)?;
                    Ok((table, copies))
                };
                let (table, copies) = blocking(work).await?;
                seen.copies = Some(copies);
                seen.file = self.memory.clone().map(Memory::new);
                if let Some(file) = &mut seen.file {
                    file.write_all(&table);
                }
                seen.table = Some(table);
                Ok(Vec::new())
            }
        }
    }

    /// Differences in the words of the log, with what repositories have taken from them.
    async fn tell(
        &self,
        differences: Vec<Difference>,
        copies: Option<Arc<Copies>>,
        changed: &mut Changed,
    ) {
        let images = &self.watch.place.images;
        let differences = keep_copies(differences, copies, images).await;
        let taken = take_objects(&differences, images).await;
        for Difference { path, before, after } in differences {
            let state = |known: Option<Known>| known.map_or(State::Absent, |k| k.state(&taken));
            let (before, after) = (state(before), state(after));
            if before != after {
                changed.changes.push(Change { path, before, after: Some(after) });
            }
        }
        changed.changes.sort_by(|a, b| a.path.cmp(&b.path));
        changed.lost = unkept(&changed.changes);
    }
}

/// Whoever waited for a look is gone.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Ticket {
    fn empty() -> Self {
        Self { reach: Reach::default(), before: Vec::new(), running: None, writing: Vec::new() }
    }
}

/// What cannot be brought back of these.
pub(super) fn unkept(changes: &[Change]) -> Vec<Lost> {
    let lost = changes.iter().filter_map(|change| match &change.before {
        State::Unkept { why, .. } => Some(Lost { path: change.path.clone(), why: why.clone() }),
        _ => None,
    });
    lost.collect()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ScanError> + Send + 'static,
) -> Result<T, ScanError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(crash) => Err(ScanError::Io(std::io::Error::other(crash))),
    }
}

fn heads(seen: &Seen) -> BTreeMap<PathBuf, String> {
    let repositories = seen.table.iter().flat_map(|table| &table.repositories);
    repositories.filter_map(|r| Some((r.root.clone(), r.head()?))).collect()
}

/// The `.git` folders among the files that are looked at.
fn own_folders(seen: &Seen) -> Vec<PathBuf> {
    let repositories = seen.table.iter().flat_map(|table| &table.repositories);
    repositories.filter(|r| r.folder == r.root.join(".git")).map(|r| r.folder.clone()).collect()
}

/// Microseconds since 1970, later than any that was given before.
pub(super) fn now() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
    let later = |last: u64| Some(now.max(last + 1));
    match LAST.fetch_update(Ordering::AcqRel, Ordering::Acquire, later) {
        Ok(last) | Err(last) => now.max(last + 1),
    }
}
