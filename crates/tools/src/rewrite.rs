//! Files as they were found and as they shall become, changed together or not at all.

mod found;

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use toolwright_tool::{Access, Files, Plan, PlanContext, Planned, ToolError};

use crate::diff::{Change, change, change_within};
use crate::edit::excerpt::Excerpt;
use crate::feedback::{Before, Edited};
use crate::seen::Seen;
pub(crate) use found::Found;

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
/// difference. `asked` is what is wrong with the question itself, before anything is looked at; `look` says
/// whether a large file is to be held.
pub(crate) async fn plan_one<T: Send + 'static>(
    verb: &str,
    target: Target,
    seen: &Seen,
    asked: Result<(), ToolError>,
    look: fn(&Path) -> Result<Found, ToolError>,
    make: impl FnOnce(&Target, Found) -> Result<(Rewrite, T), ToolError> + Send + 'static,
) -> Planned<(Rewrite, T)> {
    let (seen, file) = (seen.clone(), target.clone());
    let made = match asked {
        Err(error) => Err(error),
        Ok(()) => {
            crate::walk::blocking(move || {
                let found = look(&file.path)?;
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

    /// Of a large file, of which the lines around the changes are known.
    pub(crate) fn within(
        target: &Target,
        found: Found,
        splices: Vec<Splice>,
        around: &[Excerpt],
    ) -> Self {
        let change = change_within(&target.shown, around, &splices);
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
        let Found { content, large, .. } = self.found;
        let old = match large {
            Some(file) => Before::Large(file),
            None => Before::Held(content.unwrap_or_default()),
        };
        Edited { path, shown, old }
    }

    pub(crate) fn existed(&self) -> bool {
        self.found.exists()
    }

    pub(crate) fn removes(&self) -> bool {
        matches!(self.after, After::Gone)
    }

    fn apply(&self, files: &Files) -> Result<(), ToolError> {
        let path = &self.target.path;
        match &self.after {
            After::Content { splices, mode } => match &self.found.large {
                Some(old) => self.copy(old, splices, files),
                None => files.write_parts(path, pieces(self.found.bytes(), splices), mode.clone()),
            },
            After::Gone => files.remove(path),
        }
    }

    /// Lets the kernel copy what stays of a large file.
    fn copy(&self, old: &File, splices: &[Splice], files: &Files) -> Result<(), ToolError> {
        let Target { path, shown } = &self.target;
        files.write_with(path, None, |new| {
            copy_around(old, splices, new).map_err(|e| {
                ToolError::for_model(format!("Cannot write {}: {e}", path.display()))
            })?;
            // It may have changed while it was copied.
            if self.found.is_unchanged() { Ok(()) } else { Err(changed_meanwhile(shown)) }
        })
    }

    fn take_back(&self, files: &Files) -> Result<(), ToolError> {
        let path = &self.target.path;
        let Found { content, large, mode, .. } = &self.found;
        match (content, large) {
            (Some(content), _) => files.write_parts(path, [content.as_slice()], mode.clone()),
            (None, Some(old)) => self.copy(old, &[], files),
            (None, None) if fs::symlink_metadata(path).is_ok() => files.remove(path),
            (None, None) => Ok(()),
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
            return Err(changed_meanwhile(&target.shown));
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

fn changed_meanwhile(shown: &str) -> ToolError {
    ToolError::for_model(format!(
        "{shown} was changed by something else just now; nothing was written. Read it again and retry."
    ))
}

/// Writes the changed content of a file without holding it.
fn copy_around(old: &File, splices: &[Splice], new: &mut File) -> io::Result<()> {
    let mut at = 0;
    for Splice { range, new: text } in splices {
        copy_part(old, at, Some(range.start as u64 - at), new)?;
        new.write_all(text)?;
        at = range.end as u64;
    }
    copy_part(old, at, None, new)
}

fn copy_part(mut old: &File, from: u64, count: Option<u64>, new: &mut File) -> io::Result<()> {
    old.seek(SeekFrom::Start(from))?;
    let count = count.unwrap_or(u64::MAX);
    let copied = io::copy(&mut old.take(count), new)?;
    if count != u64::MAX && copied < count {
        return Err(io::ErrorKind::UnexpectedEof.into());
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
