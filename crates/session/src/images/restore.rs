//! Brings paths to a state: each in one step, so that whoever looks sees the old or the new.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::beside::beside;
use super::known::{mark_of, open};
use super::scan::{Facts, Kind};
use super::state::{Hash, State};
use super::store::Images;
use crate::fail::fail_point;
use crate::held::{Held, is_elsewhere};

/// What stands at a path now. Nothing is kept of it.
pub(super) fn current(path: &Path, images: &Images) -> State {
    match Facts::in_place(path) {
        Ok(None) => State::Absent,
        _ => standing(path, images),
    }
}

/// As [`current`]. What is as it was left is told as it was told then, also where the disk was full at
/// that time and its content could not be kept.
pub(super) fn current_like(path: &Path, left: Option<&State>, images: &Images) -> State {
    match (current(path, images), left) {
        (State::File { .. }, Some(left)) if is_marked(path, left) => left.clone(),
        (now, _) => now,
    }
}

/// Whether what stands at a path is what was not kept.
fn is_marked(path: &Path, left: &State) -> bool {
    let State::Unkept { mark, .. } = left else { return false };
    matches!(Facts::at(path), Ok(Some(facts)) if mark_of(&facts) == *mark)
}

fn is_still(path: &Path, from: &State, images: &Images) -> bool {
    standing(path, images) == *from || is_marked(path, from)
}

fn standing(path: &Path, images: &Images) -> State {
    let found = (|| {
        let Some(facts) = Facts::at(path)? else { return Ok(State::Absent) };
        Ok(match facts.kind {
            Kind::Folder => State::Folder { mode: facts.mode },
            Kind::Link => State::Link { target: fs::read_link(path)? },
            Kind::Other => unkept(&facts, "it is no file"),
            Kind::File if facts.len > images.largest() => unkept(&facts, "it is too large"),
            Kind::File => {
                let (hash, len) = hash(open(path)?)?;
                State::File { hash, mode: facts.mode, len }
            }
        })
    })();
    found.unwrap_or_else(|e: io::Error| State::Unkept {
        mark: String::new(),
        why: format!("it cannot be read: {e}"),
    })
}

fn unkept(facts: &Facts, why: &str) -> State {
    State::Unkept { mark: mark_of(facts), why: why.to_owned() }
}

fn hash(mut file: File) -> io::Result<(Hash, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; 64 << 10];
    let mut len = 0;
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((hasher.finalize().into(), len)),
            count => {
                hasher.update(&piece[..count]);
                len += count as u64;
            }
        }
    }
}

/// One path on its way to what it shall be.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) path: PathBuf,
    pub(super) from: State,
    pub(super) to: State,
}

/// Why a folder cannot make way.
const NOT_EMPTY: &str = "a folder is there, and something else is in it";

/// What became of a path.
#[derive(Debug)]
pub(super) enum Moved {
    Done,
    /// A folder that would have gone, but something else is in it.
    NotEmpty,
    Failed(String),
}

/// In an order in which files make way for folders and folders for files.
pub(super) fn carry_out(moves: &[Move], images: &Images) -> Vec<Moved> {
    let mut done: Vec<Moved> = moves.iter().map(|_| Moved::Done).collect();
    let mut order: Vec<usize> = (0..moves.len()).collect();
    order.sort_by_key(|at| moves[*at].path.components().count());
    let mut attempt = |at: usize, result: io::Result<()>| {
        fail_point("undo.file");
        if let Err(error) = result {
            let is_full = error.kind() == io::ErrorKind::DirectoryNotEmpty;
            done[at] = match is_full {
                true if moves[at].to == State::Absent => Moved::NotEmpty,
                true => Moved::Failed(NOT_EMPTY.to_owned()),
                false => Moved::Failed(error.to_string()),
            };
            return false;
        }
        true
    };
    let mut left: Vec<usize> = Vec::new();
    for at in order.iter().rev() {
        let Move { path, from, to } = &moves[*at];
        let makes_way = *to == State::Absent || from.is_folder() != to.is_folder();
        if !makes_way || attempt(*at, remove(path, from, images)) {
            left.push(*at);
        }
    }
    left.reverse();
    for at in &left {
        let Move { path, from, to } = &moves[*at];
        if to.is_folder() && !from.is_folder() {
            attempt(*at, make_folder(path));
        }
    }
    for at in &left {
        let Move { path, from, to } = &moves[*at];
        // What stood in the way of something else is gone by now.
        let from = if from.is_folder() == to.is_folder() { from } else { &State::Absent };
        match to {
            State::File { hash, mode, .. } => {
                attempt(*at, write_file(path, from, (hash, *mode), images));
            }
            State::Link { target } => {
                attempt(*at, write_link(path, from, target, images));
            }
            _ => {}
        }
    }
    // Last, and the deepest first: one of them may forbid writing.
    for at in left.iter().rev() {
        if let Move { path, to: State::Folder { mode }, .. } = &moves[*at] {
            attempt(*at, fs::set_permissions(path, Permissions::from_mode(*mode)));
        }
    }
    done
}

fn remove(path: &Path, from: &State, images: &Images) -> io::Result<()> {
    // There is nothing to look for where a link may still stand in the place of its folder.
    if *from == State::Absent {
        return Ok(());
    }
    let (_folder, place) = match held(path, Held::open) {
        // An earlier attempt may have come this far.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let result = match from {
        State::Folder { .. } => fs::remove_dir(&place),
        from if is_still(&place, from, images) => fs::remove_file(&place),
        _ if standing(&place, images) == State::Absent => return Ok(()),
        _ => return Err(changed()),
    };
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    Held::make(path).map(drop).map_err(|error| explained(path, error))
}

/// Planned a while ago: an editor may have saved it since.
fn changed() -> io::Error {
    io::Error::other("it changed while it was being brought back")
}

fn write_file(
    path: &Path,
    from: &State,
    (hash, mode): (&Hash, u32),
    images: &Images,
) -> io::Result<()> {
    let (folder, place) = held(path, Held::make)?;
    let name = beside(path);
    let mut beside = tempfile::Builder::new().prefix(&name).tempfile_in(folder.path())?;
    images.copy_to(hash, beside.as_file_mut())?;
    fail_point("undo.half");
    beside.as_file().set_permissions(Permissions::from_mode(mode))?;
    if !is_still(&place, from, images) {
        return Err(changed());
    }
    beside.persist(&place).map_err(|e| e.error)?;
    Ok(())
}

fn write_link(path: &Path, from: &State, target: &Path, images: &Images) -> io::Result<()> {
    let (folder, place) = held(path, Held::make)?;
    let name = beside(path);
    let link = |name: &Path| symlink(target, name);
    let made = tempfile::Builder::new().prefix(&name).make_in(folder.path(), link)?;
    if !is_still(&place, from, images) {
        return Err(changed());
    }
    made.persist(&place).map_err(|e| e.error)?;
    Ok(())
}

/// The folder that it stands in, held open, and its place there. A folder on the way may have been
/// replaced by a link since: nothing is written where that leads.
fn held(path: &Path, open: fn(&Path) -> io::Result<Held>) -> io::Result<(Held, PathBuf)> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let held = open(folder).map_err(|error| explained(folder, error))?;
    let place = held.join(path.file_name().unwrap_or_default());
    Ok((held, place))
}

fn explained(folder: &Path, error: io::Error) -> io::Error {
    match is_elsewhere(&error) {
        true => io::Error::other(format!("{} leads elsewhere now", folder.display())),
        false => error,
    }
}
