//! Which groups are ours and still alive, and how all of them end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::sandbox::{Guard, PutBack};
use crate::{sys, watchdog};

/// An environment variable that every child inherits. A process that has left its group and its
/// parent (a daemon) still carries it, and is found by it.
pub(crate) const COOKIE_VARIABLE: &str = "TOOLWRIGHT_CHILD_OF";

/// A second one, different for each child: what it has started is found by it wherever it went.
pub(crate) const MARK_VARIABLE: &str = "TOOLWRIGHT_CHILD";

/// How long a group may take to end after SIGTERM when this process exits.
const EXIT_GRACE: Duration = Duration::from_millis(300);

type Groups = BTreeMap<i32, Option<Arc<Guard>>>;

static GROUPS: LazyLock<Mutex<Groups>> = LazyLock::new(|| {
    sys::adopt_orphans();
    Mutex::new(Groups::new())
});

/// Those of groups that are gone, while something lives that may have come from them: it has left its
/// session, and its environment proves nothing.
static LINGERING: Mutex<Vec<(i32, Arc<Guard>)>> = Mutex::new(Vec::new());

/// What was put back when nobody waited for it any more.
static LATE: Mutex<Option<PutBack>> = Mutex::new(None);

/// Processes that had left their session and were ended. Orphans come to us, so they are ours to wait for.
static STRAYS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Rounds in which those are looked for that were forked meanwhile.
const STRAY_ROUNDS: usize = 20;

/// Whom a signal to a child is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The leader and all of its session.
    Whole,
    /// The leader only holds a sandbox open: ending it would end the command without a word, so the
    /// signal is for those inside.
    Inside,
}

/// The name of the program that stands around a command in a sandbox.
const WRAPPER: &str = "bwrap";

/// Unique among processes: the pid alone would come round again.
pub(crate) static COOKIE: LazyLock<String> = LazyLock::new(|| {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos());
    format!("{}.{nanos}", std::process::id())
});

/// The mark of the next child.
pub(crate) fn next_mark() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    format!("{}.{}", *COOKIE, LAST.fetch_add(1, Ordering::Relaxed))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn groups() -> MutexGuard<'static, Groups> {
    lock(&GROUPS)
}

pub(crate) fn prepare() {
    LazyLock::force(&GROUPS);
    watchdog::start();
}

/// `guard` puts right what the group has changed, once no process of it is left.
pub(crate) fn add(group: i32, guard: Option<Arc<Guard>>) {
    groups().insert(group, guard);
    watchdog::tell(watchdog::Message::Added(group));
}

/// Signals a group and the groups that its processes made for themselves, as an interactive shell
/// does for each of its jobs: they stay in the session.
pub(crate) fn signal_session(leader: i32, signal: i32, reach: Reach) {
    if reach == Reach::Whole {
        sys::signal_group(leader, signal);
    }
    // Nothing has a session of that number: it was not started.
    if leader <= 1 {
        return;
    }
    for pid in every_pid().filter(|pid| *pid != leader) {
        let is_meant = |status: Status| {
            status.session == leader && (status.group != leader || reach == Reach::Inside)
        };
        if status(pid).is_some_and(is_meant) {
            sys::signal_process(pid, signal);
        }
    }
}

/// Signals what a child has started that left its session: a daemon. Says how many there were.
pub(crate) fn signal_strays(leader: i32, mark: &str, signal: i32) -> usize {
    let wanted = format!("{MARK_VARIABLE}={mark}");
    let mut count = 0;
    for pid in carriers_of(wanted.into_bytes()).filter(|pid| *pid != leader) {
        let strayed = status(pid).is_some_and(|s| s.session != leader && s.state != 'Z');
        if strayed {
            strays().insert(pid);
            sys::signal_process(pid, signal);
            count += 1;
        }
    }
    count
}

/// Ends them for good. One may fork while we look: it goes on until none is found.
pub(crate) fn kill_strays(leader: i32, mark: &str) {
    for _ in 0..STRAY_ROUNDS {
        if signal_strays(leader, mark, libc::SIGKILL) == 0 {
            return;
        }
    }
}

fn strays() -> MutexGuard<'static, BTreeSet<i32>> {
    lock(&STRAYS)
}

/// Whether something of the session is left beside the program that stood around it, which may take
/// a moment longer to go than the command.
pub(crate) fn has_more_than_a_wrapper(leader: i32, reach: Reach) -> bool {
    let is_wrapper = |pid: i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == WRAPPER)
    };
    reach == Reach::Whole
        || every_pid().any(|pid| {
            status(pid).is_some_and(|s| s.session == leader && s.state != 'Z') && !is_wrapper(pid)
        })
}

/// Takes ended orphans out of the table, where they keep their group alive. Says which children there
/// were.
pub(crate) fn reap_orphans() -> Vec<(i32, Status)> {
    // Orphans of ours have one of our sessions. A group's leader is waited for by its owner, and
    // whatever else this program has started is none of our business.
    let groups_now: BTreeSet<i32> = groups().keys().copied().collect();
    let children = own_children();
    for (pid, status) in children.iter().filter(|(_, status)| status.state == 'Z') {
        let is_stray = strays().remove(pid);
        if is_stray || (groups_now.contains(&status.session) && !groups_now.contains(pid)) {
            sys::reap(*pid);
        }
    }
    children
}

/// Forgets groups that have no process left, and reaps adopted orphans that have ended. What their guards
/// remember is put back.
pub(crate) fn sweep() {
    let children = reap_orphans();
    let mut guards = Vec::new();
    groups().retain(|group, guard| {
        let alive = sys::group_exists(*group);
        if !alive {
            watchdog::tell(watchdog::Message::Gone(*group));
            guards.extend(guard.take().map(|guard| (*group, guard)));
        }
        alive
    });
    let mut lingering = std::mem::take(&mut *lock(&LINGERING));
    lingering.extend(guards);
    // The newest first: what was there before the oldest has the last word.
    lingering.sort_by_key(|(_, guard)| std::cmp::Reverse(guard.started()));
    for (group, guard) in lingering {
        if is_survived(group, &guard, &children) {
            lock(&LINGERING).push((group, guard));
            continue;
        }
        let done = guard.restore();
        if !(done.restored.is_empty() && done.failed.is_empty()) {
            lock(&LATE).get_or_insert_default().add(done);
        }
    }
}

/// Takes a guard out of hand where nothing of its group is left. Where something is, it stays, to put
/// things right once more.
pub(crate) fn release(group: i32, guard: &Arc<Guard>) -> bool {
    let is_it = |own: &Arc<Guard>| Arc::ptr_eq(own, guard);
    if let Some(slot) = groups().get_mut(&group) {
        slot.take_if(|own| is_it(own));
    }
    lock(&LINGERING).retain(|(_, own)| !is_it(own));
    sweep();
    let is_over = !is_survived(group, guard, &own_children());
    if !is_over {
        lock(&LINGERING).push((group, Arc::clone(guard)));
    }
    is_over
}

/// What was put back after commands whose ends had been told already, since this was last asked.
pub fn put_back_late() -> PutBack {
    lock(&LATE).take().unwrap_or_default()
}

/// Whether a process lives that a group may have left behind. Orphans are ours; those in the session of
/// another group are that one's, and who was there before the group did not come from it.
fn is_survived(group: i32, guard: &Guard, children: &[(i32, Status)]) -> bool {
    if sys::group_exists(group) {
        return true;
    }
    let own_session = status(std::process::id().cast_signed()).map(|status| status.session);
    let known: BTreeSet<i32> = groups().keys().copied().collect();
    children.iter().any(|(pid, status)| {
        let session = status.session;
        let may_be = session == group
            || (!known.contains(&session)
                && Some(session) != own_session
                && status.start >= guard.started());
        may_be && lives(*pid, status)
    })
}

/// One whose first thread has ended may go on in others.
fn lives(pid: i32, status: &Status) -> bool {
    let is_over = |state: char| matches!(state, 'Z' | 'X');
    if !is_over(status.state) {
        return true;
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.into_iter().any(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok();
        stat.and_then(|stat| parse(&stat)).is_some_and(|status| !is_over(status.state))
    })
}

/// Whether a group has processes of ours.
pub(crate) fn is_known(group: i32) -> bool {
    sweep();
    groups().contains_key(&group)
}

/// Ends every process that this one started, directly or not, and waits for it. Called on the way
/// out; blocks for at most a second.
pub fn end_everything() {
    if LazyLock::get(&GROUPS).is_none() {
        return;
    }
    sweep();
    let mut left = descendants();
    if groups().is_empty() && left.is_empty() {
        return;
    }
    signal_all(&left, libc::SIGTERM);
    let step = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    while waited < EXIT_GRACE {
        left = descendants();
        if left.is_empty() && !any_group_alive() {
            return sweep();
        }
        std::thread::sleep(step);
        waited += step;
    }
    // Processes may be forked while we look: go round until none is found.
    for _ in 0..20 {
        left = descendants();
        if left.is_empty() && !any_group_alive() {
            break;
        }
        signal_all(&left, libc::SIGKILL);
        std::thread::sleep(step);
    }
    sweep();
}

fn any_group_alive() -> bool {
    // An ended leader that was not waited for yet keeps its group in the table.
    sweep();
    groups().keys().any(|group| state(*group) != Some('Z') && sys::group_exists(*group))
}

fn signal_all(pids: &[i32], signal: i32) {
    for group in groups().keys() {
        sys::signal_group(*group, signal);
    }
    for pid in pids {
        sys::signal_process(*pid, signal);
    }
}

/// Living processes below this one, and those that carry its cookie. Zombies and the watchdog do
/// not count.
pub fn descendants() -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let watchdog = watchdog::pid();
    let mut found = BTreeSet::new();
    let mut todo = vec![own];
    while let Some(pid) = todo.pop() {
        for child in children_of(pid) {
            if Some(child) != watchdog && found.insert(child) {
                todo.push(child);
            }
        }
    }
    found.extend(carriers().filter(|pid| *pid != own && Some(*pid) != watchdog));
    found.into_iter().filter(|pid| state(*pid).is_some_and(|s| s != 'Z' && s != 'X')).collect()
}

fn children_of(pid: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    lists
        .flat_map(|l| l.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Our children, by birth or adopted, ended or not.
fn own_children() -> Vec<(i32, Status)> {
    let own = std::process::id().cast_signed();
    let watchdog = watchdog::pid();
    let children = children_of(own).into_iter().filter(|pid| Some(*pid) != watchdog);
    children.filter_map(|pid| Some((pid, status(pid)?))).collect()
}

fn carriers() -> impl Iterator<Item = i32> {
    carriers_of(format!("{COOKIE_VARIABLE}={}", *COOKIE).into_bytes())
}

fn carriers_of(wanted: Vec<u8>) -> impl Iterator<Item = i32> {
    every_pid().filter(move |pid| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|b| *b == 0).any(|v| v == wanted))
    })
}

fn every_pid() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok())
}

pub(crate) struct Status {
    state: char,
    group: i32,
    session: i32,
    /// In ticks since the machine was started.
    start: u64,
}

/// From `/proc/PID/stat`; the fields follow the command's name, which may hold anything.
fn status(pid: i32) -> Option<Status> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Status> {
    // State, parent, group, session.
    let mut fields = stat.rsplit_once(") ")?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    // The twenty-second of all.
    let start = fields.nth(15)?.parse().ok()?;
    Some(Status { state, group, session, start })
}

fn state(pid: i32) -> Option<char> {
    status(pid).map(|status| status.state)
}
