//! What is asked of git: sizes and contents of objects, and which files go through a filter. Nothing
//! is asked that could lock, write, fetch or run a program of the repository's.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use toolwright_proc::{Ended, Spec};

use super::state::Hash;
use super::store::Images;

/// Git answers from its own files; where that takes longer, we do without it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a hook or a user's shell points git elsewhere.
const WITHHELD: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
];

fn git(root: &Path, arguments: &[&str], input: Vec<u8>) -> Spec {
    let mut spec = Spec::new("git", root).arg("-c").arg("core.fsmonitor=false");
    for argument in arguments {
        spec = spec.arg(*argument);
    }
    spec.withheld = WITHHELD.iter().map(|name| (*name).to_owned()).collect();
    spec.env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(input)
        .separate_errors()
}

/// Runs it and gives all that it said.
async fn ask(spec: Spec) -> io::Result<Vec<u8>> {
    let work = async {
        let mut child = spec.spawn().map_err(io::Error::other)?;
        let mut said = Vec::new();
        if let Some(mut output) = child.output() {
            output.read_to_end(&mut said).await?;
        }
        match child.wait().await {
            Ended::Exit(0) => Ok(said),
            ended => Err(io::Error::other(format!("git failed ({ended:?})"))),
        }
    };
    tokio::time::timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn objects_of(folder: &Path, how: &str, objects: &[String]) -> Spec {
    let mut input = objects.join("\n").into_bytes();
    input.push(b'\n');
    git(folder, &["--git-dir=.", "cat-file", how, "--buffer"], input)
}

/// The sizes of those objects that are there and are files' contents. `folder` is the repository's own:
/// the files may be gone by the time.
pub(super) async fn sizes(folder: &Path, objects: &[String]) -> io::Result<HashMap<String, u64>> {
    if objects.is_empty() {
        return Ok(HashMap::new());
    }
    let said = ask(objects_of(folder, "--batch-check", objects)).await?;
    let said = String::from_utf8_lossy(&said);
    let sizes = said.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (object, kind, size) = (words.next()?, words.next()?, words.next()?);
        (kind == "blob").then(|| Some((object.to_owned(), size.parse().ok()?)))?
    });
    Ok(sizes.collect())
}

/// Whether any filter is configured, for whatever files. Where that cannot be told, as if.
async fn has_filters(root: &Path) -> bool {
    let arguments = &["config", "--includes", "--get-regexp", r"^filter\."];
    let asked = async {
        let mut child = git(root, arguments, Vec::new()).spawn().ok()?;
        Some(child.wait().await)
    };
    // One says that there is none.
    !matches!(tokio::time::timeout(PATIENCE, asked).await, Ok(Some(Ended::Exit(1))))
}

/// Those of the paths (below `root`) whose content in the repository is not that on disk, because
/// programs stand in between.
pub(super) async fn filtered(root: &Path, paths: &[PathBuf]) -> io::Result<HashSet<PathBuf>> {
    if paths.is_empty() || !has_filters(root).await {
        return Ok(HashSet::new());
    }
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(path.as_os_str().as_bytes());
        input.push(0);
    }
    let said = ask(git(root, &["check-attr", "-z", "--stdin", "filter"], input)).await?;
    let parts: Vec<&[u8]> = said.split(|byte| *byte == 0).collect();
    let named =
        parts.chunks_exact(3).filter(|part| part[2] != b"unspecified" && part[2] != b"unset");
    Ok(named.map(|part| PathBuf::from(OsString::from_vec(part[0].to_vec()))).collect())
}

/// Takes objects into the store. Those that are no longer there are missing from what is returned.
pub(super) async fn take(
    folder: &Path,
    objects: &[String],
    images: &Images,
) -> io::Result<HashMap<String, (Hash, u64)>> {
    if objects.is_empty() {
        return Ok(HashMap::new());
    }
    let spec = objects_of(folder, "--batch", objects);
    let work = async {
        let mut child = spec.spawn().map_err(io::Error::other)?;
        let Some(output) = child.output() else { return Ok(HashMap::new()) };
        let mut output = BufReader::with_capacity(256 << 10, output);
        let mut taken = HashMap::new();
        let mut header = String::new();
        loop {
            header.clear();
            if output.read_line(&mut header).await? == 0 {
                break;
            }
            let words: Vec<&str> = header.trim_end().split(' ').collect();
            // "<name> missing" has nothing behind it.
            let [object, _kind, size] = words.as_slice() else { continue };
            let object = (*object).to_owned();
            let size: u64 = size.parse().map_err(io::Error::other)?;
            if let Some(kept) = take_one(&mut output, size, images).await? {
                taken.insert(object, kept);
            }
        }
        child.wait().await;
        Ok(taken)
    };
    tokio::time::timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Reads one content to its end, whether it can be kept or not.
async fn take_one(
    output: &mut (impl AsyncBufReadExt + Unpin),
    size: u64,
    images: &Images,
) -> io::Result<Option<(Hash, u64)>> {
    let mut incoming = images.incoming().ok();
    let mut left = size;
    while left > 0 {
        let piece = output.fill_buf().await?;
        if piece.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let count = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        // A content that cannot be kept is read on and dropped.
        if incoming.as_mut().is_some_and(|incoming| incoming.push(&piece[..count]).is_err()) {
            incoming = None;
        }
        output.consume(count);
        left -= count as u64;
    }
    // The line break behind it.
    output.read_u8().await?;
    Ok(incoming.and_then(|incoming| incoming.finish(false).ok()))
}
