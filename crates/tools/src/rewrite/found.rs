//! Looking at a file before it is changed.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use toolwright_session::held::open_real;
use toolwright_tool::{ToolError, cannot};

use crate::seen::Stamp;

/// Bytes of a file that is changed in memory.
const FILE_CAP_BYTES: u64 = 256 << 20;

/// Bytes up to which a file is compared whole before it is written; above, its stamp speaks for it.
const COMPARE_CAP_BYTES: usize = 4 << 20;

/// Bytes from which on a file need not be held to be changed.
const LARGE_BYTES: u64 = 4 << 20;

/// Bytes of a file that can be changed without being held. Looking for a place must not take for ever.
const LARGE_CAP_BYTES: u64 = 4 << 30;

/// A path as it was looked at; without content if nothing was there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) content: Option<Vec<u8>>,
    pub(crate) stamp: Option<Stamp>,
    pub(crate) mode: Option<Permissions>,
    /// A file whose content is not held; its stamp is settled.
    pub(crate) large: Option<Arc<File>>,
    /// The stamp tells of every later change.
    settled: bool,
}

impl Found {
    /// The content of a regular file, or nothing where there is none.
    pub(crate) fn at(path: &Path) -> Result<Self, ToolError> {
        let failed = cannot_read(path);
        let too_large = || {
            let limit = FILE_CAP_BYTES >> 20;
            let text =
                format!("{} has more than {limit} MiB; change it with a command.", path.display());
            ToolError::for_model(text)
        };
        let Some((file, data, now)) = open_regular(path)? else { return Ok(Self::default()) };
        if data.len() > FILE_CAP_BYTES {
            return Err(too_large());
        }
        let mut content = Vec::with_capacity(usize::try_from(data.len()).unwrap_or(0) + 1);
        // A file of the system may say that it is empty and never end.
        let got = (&file).take(FILE_CAP_BYTES + 1).read_to_end(&mut content).map_err(&failed)?;
        if got as u64 > FILE_CAP_BYTES {
            return Err(too_large());
        }
        let stamp = Stamp::of(&data);
        let settled =
            stamp.is_settled(now) && Stamp::of(&file.metadata().map_err(failed)?) == stamp;
        let (content, stamp, mode) = (Some(content), Some(stamp), Some(data.permissions()));
        Ok(Self { content, stamp, mode, settled, large: None })
    }

    /// As [`Self::at`], but a large file is not held, if its stamp can speak for it.
    pub(crate) fn look_at(path: &Path) -> Result<Self, ToolError> {
        if let Some((file, data, now)) = open_regular(path)? {
            let stamp = Stamp::of(&data);
            if (LARGE_BYTES..=LARGE_CAP_BYTES).contains(&data.len()) && stamp.is_settled(now) {
                let (stamp, mode) = (Some(stamp), Some(data.permissions()));
                let large = Some(Arc::new(file));
                return Ok(Self { content: None, stamp, mode, large, settled: true });
            }
        }
        Self::at(path)
    }

    /// Whether what was read of a large file until now is what it held when it was looked at.
    pub(crate) fn is_unchanged(&self) -> bool {
        let now = self.large.as_ref().and_then(|file| file.metadata().ok());
        now.is_some_and(|data| Some(Stamp::of(&data)) == self.stamp)
    }

    pub(crate) fn exists(&self) -> bool {
        self.stamp.is_some()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.content.as_deref().unwrap_or_default()
    }

    /// Whether the path is still as it was looked at.
    pub(super) fn holds(&self, path: &Path) -> Result<bool, ToolError> {
        if self.large.is_some() || (self.settled && self.bytes().len() > COMPARE_CAP_BYTES) {
            let now = fs::symlink_metadata(path).ok().map(|data| Stamp::of(&data));
            return Ok(now == self.stamp);
        }
        Ok(Self::at(path)?.content == self.content)
    }
}

/// A regular file, what is known of it, and when that was so; nothing where there is none. A device or a
/// pipe would never end; a folder is not a file.
fn open_regular(path: &Path) -> Result<Option<(File, Metadata, SystemTime)>, ToolError> {
    let failed = cannot_read(path);
    let Some(file) = open(path).map_err(&failed)? else { return Ok(None) };
    let now = SystemTime::now();
    let data = file.metadata().map_err(&failed)?;
    if data.is_dir() {
        let text = format!("Path is a directory, not a file: {}", path.display());
        return Err(ToolError::for_model(text));
    }
    if !data.is_file() {
        let text = format!("{} is not a regular file.", path.display());
        return Err(ToolError::for_model(text));
    }
    Ok(Some((file, data, now)))
}

fn cannot_read(path: &Path) -> impl Fn(io::Error) -> ToolError {
    move |error| cannot("read", path, &error)
}

/// Nothing where there is none. Opening does not wait for whoever writes into a pipe.
fn open(path: &Path) -> io::Result<Option<File>> {
    match open_real(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
