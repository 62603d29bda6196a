//! Files as they were found and as they shall become, changed together or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use toolwright_session::held::open_real;
use toolwright_tool::{Access, Files, Plan, PlanContext, Planned, ToolError, cannot};

use crate::diff::{Change, change};
use crate::feedback::Edited;
use crate::seen::{Seen, Stamp};

/// Bytes of a file that is changed in memory.
const FILE_CAP_BYTES: u64 = 256 << 20;

/// Bytes up to which a file is compared whole before it is written; above, its stamp speaks for it.
const COMPARE_CAP_BYTES: usize = 4 << 20;

/// The byte-order mark belongs to the file, not to the model's text.
pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A file that a call is about.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    pub(crate) shown: String,
}

impl Target {
    pub(crate) fn of(file_path: &str, context: &PlanContext) -> Self {
        let path = context.workspace.resolve(file_path);
        let shown = context.workspace.relative(&path);
        Self { path, shown }
    }

    fn declare(&self, verb: &str, diff: String) -> Plan {
        let access = Access::Write { path: self.path.clone(), diff };
        Plan::new(format!("{verb} {}", self.shown), vec![access])
    }
}

/// Plans a change of one file: looks at it, lets `make` say what shall become of it, and declares the
/// difference. `asked` is what is wrong with the question itself, before anything is looked at.
pub(crate) async fn plan_one<T: Send + 'static>(
    verb: &str,
    target: Target,
    seen: &Seen,
    asked: Result<(), ToolError>,
    make: impl FnOnce(&Target, Found) -> Result<(Rewrite, T), ToolError> + Send + 'static,
) -> Planned<(Rewrite, T)> {
    let (seen, file) = (seen.clone(), target.clone());
    let made = match asked {
        Err(error) => Err(error),
        Ok(()) => {
            crate::walk::blocking(move || {
                let found = Found::at(&file.path)?;
                seen.check(&file.path, &file.shown, &found)?;
                make(&file, found)
            })
            .await
        }
    };
    match made {
        Ok((rewrite, rest)) => {
            let plan = target.declare(verb, rewrite.change.patch.clone());
            Planned::ready(plan, (rewrite, rest))
        }
        Err(error) => Planned::failed(target.declare(verb, String::new()), error),
    }
}

/// The content of a file, or nothing where there is none.
pub(crate) fn read_existing(path: &Path) -> Result<Option<Vec<u8>>, ToolError> {
    Ok(Found::at(path)?.content)
}

/// Fails if a file no longer holds what a plan was made for.
pub(crate) fn unchanged_since_plan(
    path: &Path,
    shown: &str,
    old: Option<&[u8]>,
) -> Result<(), ToolError> {
    if read_existing(path)?.as_deref() == old {
        return Ok(());
    }
    let text =
        format!("{shown} was changed by something else just now; nothing was written. Retry.");
    Err(ToolError::for_model(text))
}

/// A path as it was looked at; without content if nothing was there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) content: Option<Vec<u8>>,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) mode: Option<Permissions>,
    /// The stamp tells of every later change.
    settled: bool,
}

impl Found {
    /// The content of a regular file, or nothing where there is none. A device or a pipe would never
    /// end; a folder is not a file.
    pub(crate) fn at(path: &Path) -> Result<Self, ToolError> {
        let failed = |e: io::Error| cannot("read", path, &e);
        let too_large = || {
            let limit = FILE_CAP_BYTES >> 20;
            let text =
                format!("{} has more than {limit} MiB; change it with a command.", path.display());
            ToolError::for_model(text)
        };
        let Some(file) = open(path).map_err(failed)? else { return Ok(Self::default()) };
        let now = SystemTime::now();
        let data = file.metadata().map_err(failed)?;
        if data.is_dir() {
            let text = format!("Path is a directory, not a file: {}", path.display());
            return Err(ToolError::for_model(text));
        }
        if !data.is_file() {
            let text = format!("{} is not a regular file.", path.display());
            return Err(ToolError::for_model(text));
        }
        if data.len() > FILE_CAP_BYTES {
            return Err(too_large());
        }
        let mut content = Vec::with_capacity(usize::try_from(data.len()).unwrap_or(0) + 1);
        // A file of the system may say that it is empty and never end.
        let got = (&file).take(FILE_CAP_BYTES + 1).read_to_end(&mut content).map_err(failed)?;
        if got as u64 > FILE_CAP_BYTES {
            return Err(too_large());
        }
        let stamp = Stamp::of(&data);
        let settled =
            stamp.is_settled(now) && Stamp::of(&file.metadata().map_err(failed)?) == stamp;
        let (content, stamp, mode) = (Some(content), Some(stamp), Some(data.permissions()));
        Ok(Self { content, stamp, mode, settled })
    }

    fn bytes(&self) -> &[u8] {
        self.content.as_deref().unwrap_or_default()
    }

    /// Whether the path is still as it was looked at.
    fn holds(&self, path: &Path) -> Result<bool, ToolError> {
        if self.settled && self.bytes().len() > COMPARE_CAP_BYTES {
            let now = fs::symlink_metadata(path).ok().map(|data| Stamp::of(&data));
            return Ok(now == self.stamp);
        }
        Ok(Self::at(path)?.content == self.content)
    }
}

/// Nothing where there is none. Opening does not wait for whoever writes into a pipe.
fn open(path: &Path) -> io::Result<Option<File>> {
    match open_real(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A part that is replaced, in bytes of the old content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) range: Range<usize>,
    pub(crate) new: Vec<u8>,
}

/// The pieces of the new content, in order.
pub(crate) fn pieces<'a>(
    old: &'a [u8],
    splices: &'a [Splice],
) -> impl Iterator<Item = &'a [u8]> + Clone {
    let starts = std::iter::once(0).chain(splices.iter().map(|s| s.range.end));
    let ends = splices.iter().map(|s| s.range.start).chain([old.len()]);
    let kept = starts.zip(ends).map(|(start, end)| old.get(start..end).unwrap_or_default());
    let new = splices.iter().map(|s| s.new.as_slice()).chain([&[][..]]);
    kept.zip(new).flat_map(|(kept, new)| [kept, new])
}

/// What lies between the beginning and the end that both have.
pub(crate) fn splice_between(old: &[u8], new: &[u8]) -> Vec<Splice> {
    if old == new {
        return Vec::new();
    }
    let start = common(old.chunks(4096), new.chunks(4096), |(a, b)| {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    });
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = common(old_rest.rchunks(4096), new_rest.rchunks(4096), |(a, b)| {
        a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
    });
    let range = start..old.len() - end;
    vec![Splice { range, new: new_rest[..new_rest.len() - end].to_vec() }]
}

fn common<'a>(
    old: impl Iterator<Item = &'a [u8]>,
    new: impl Iterator<Item = &'a [u8]>,
    within: impl Fn((&[u8], &[u8])) -> usize,
) -> usize {
    let mut total = 0;
    for (a, b) in old.zip(new) {
        if a != b {
            return total + within((a, b));
        }
        total += a.len();
    }
    total
}

/// One file of a change.
pub(crate) struct Rewrite {
    pub(crate) target: Target,
    pub(crate) found: Found,
    after: After,
    pub(crate) change: Change,
}

enum After {
    Content { splices: Vec<Splice>, mode: Option<Permissions> },
    Gone,
}

impl Rewrite {
    pub(crate) fn splice(target: &Target, found: Found, splices: Vec<Splice>) -> Self {
        let change = change(&target.shown, found.bytes(), &splices);
        let after = After::Content { splices, mode: None };
        Self { target: target.clone(), found, after, change }
    }

    pub(crate) fn replace(target: &Target, found: Found, content: &[u8]) -> Self {
        let splices = splice_between(found.bytes(), content);
        Self::splice(target, found, splices)
    }

    pub(crate) fn remove(target: &Target, found: Found) -> Self {
        let all = Splice { range: 0..found.bytes().len(), new: Vec::new() };
        let change = change(&target.shown, found.bytes(), &[all]);
        Self { target: target.clone(), found, after: After::Gone, change }
    }

    /// A new file is made with this mode.
    pub(crate) fn with_mode(mut self, wanted: Option<Permissions>) -> Self {
        if let After::Content { mode, .. } = &mut self.after {
            *mode = wanted;
        }
        self
    }

    /// For what follows a change.
    pub(crate) fn into_edited(self) -> Edited {
        let Target { path, shown } = self.target;
        Edited { path, shown, old: self.found.content }
    }

    pub(crate) fn existed(&self) -> bool {
        self.found.content.is_some()
    }

    pub(crate) fn removes(&self) -> bool {
        matches!(self.after, After::Gone)
    }

    fn apply(&self, files: &Files) -> Result<(), ToolError> {
        let path = &self.target.path;
        match &self.after {
            After::Content { splices, mode } => {
                files.write_parts(path, pieces(self.found.bytes(), splices), mode.clone())
            }
            After::Gone => files.remove(path),
        }
    }

    fn take_back(&self, files: &Files) -> Result<(), ToolError> {
        let path = &self.target.path;
        match &self.found.content {
            Some(content) => files.write_parts(path, [content.as_slice()], self.found.mode.clone()),
            None if fs::symlink_metadata(path).is_ok() => files.remove(path),
            None => Ok(()),
        }
    }
}

/// Between looking and writing nobody else of this process may write.
static WRITING: Mutex<()> = Mutex::new(());

/// Makes all the changes. If one of them fails, those before it are taken back.
pub(crate) fn commit(rewrites: &[Rewrite], files: &Files, seen: &Seen) -> Result<(), ToolError> {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    for Rewrite { target, found, .. } in rewrites {
        // A person may take their time to decide; what they decided about must still be so.
        if !found.holds(&target.path)? {
            let shown = &target.shown;
            let text = format!(
                "{shown} was changed by something else just now; nothing was written. Read it again and retry."
            );
            return Err(ToolError::for_model(text));
        }
    }
    let mut folders = Vec::new();
    for (at, rewrite) in rewrites.iter().enumerate() {
        folders.extend(missing_folders(&rewrite.target.path));
        if let Err(error) = rewrite.apply(files) {
            return Err(roll_back(&rewrites[..at], &folders, files, error));
        }
    }
    for Rewrite { target, after, .. } in rewrites {
        match after {
            After::Content { .. } => seen.note(&target.path),
            After::Gone => seen.forget(&target.path),
        }
    }
    Ok(())
}

fn roll_back(done: &[Rewrite], folders: &[PathBuf], files: &Files, error: ToolError) -> ToolError {
    let stuck = done.iter().rev().filter(|r| r.take_back(files).is_err());
    let stuck: Vec<&str> = stuck.map(|r| r.target.shown.as_str()).collect();
    for folder in folders {
        // One that somebody else uses by now stays.
        fs::remove_dir(folder).ok();
    }
    let rest = match (done.is_empty(), stuck.is_empty()) {
        (true, _) => return error,
        (false, true) => "No file was changed.".to_owned(),
        (false, false) => {
            format!("These could not be put back as they were: {}.", stuck.join(", "))
        }
    };
    ToolError::for_model(format!("{error}. {rest}"))
}

/// The folders that writing the file would make, the innermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    above.take_while(|folder| !folder.exists()).map(Path::to_owned).collect()
}
