//! Files, in the words of Node's `fs`.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use serde_json::{Value, json};
use toolwright_tool::Extent;

use super::{Done, Guard, Host, HostError, Permit};

/// A script's memory would not hold more.
const FILE_CAP_BYTES: u64 = 32 << 20;

/// Entries of one listing.
const LISTING_CAP: usize = 100_000;

impl Host {
    pub(super) async fn file(&self, op: &str, payload: &Value, guard: Option<&dyn Guard>) -> Done {
        let named = payload["path"].as_str().unwrap_or_default();
        let path = self.workspace().resolve(named);
        // The name itself, where a link is meant and not what it leads to: in the folder that it really is in.
        let place = match (Path::new(named).parent(), Path::new(named).file_name()) {
            (Some(folder), Some(name)) => {
                self.workspace().resolve(&folder.display().to_string()).join(name)
            }
            _ => path.clone(),
        };
        let permit = match op {
            "readdir" if payload["recursive"] == true => {
                self.may_read(&path, Extent::Tree, guard).await?;
                Permit::default()
            }
            "readFile" | "readdir" | "stat" | "realpath" | "readlink" => {
                self.may_read(&path, Extent::Single, guard).await?;
                Permit::default()
            }
            "rename" | "link" => {
                let to = self.workspace().resolve(payload["to"].as_str().unwrap_or_default());
                self.may_write(&[&path, &to], op, guard).await?
            }
            "copy" => {
                self.may_read(&path, Extent::Tree, guard).await?;
                let to = self.workspace().resolve(payload["to"].as_str().unwrap_or_default());
                self.may_write(&[&to], "copy to", guard).await?
            }
            "remove" if place != path => self.may_write(&[&place, &path], "remove", guard).await?,
            "remove" => self.may_write(&[&path], "remove", guard).await?,
            "symlink" => {
                // Judged by where it leads as well: what is written through it is written there.
                let folder = path.parent().unwrap_or(&path).to_owned();
                let target = payload["target"].as_str().unwrap_or_default();
                let leads = self.workspace().resolve_in(&folder, target);
                self.may_write(&[&place, &leads], "link", guard).await?
            }
            _ => self.may_write(&[&path], "write", guard).await?,
        };
        let workspace = std::sync::Arc::clone(self.workspace());
        let (op, payload) = (op.to_owned(), payload.clone());
        let work = move || {
            let to = workspace.resolve(payload["to"].as_str().unwrap_or_default());
            let call = payload["syscall"].as_str().unwrap_or(&op);
            perform(&op, &path, &place, &to, &payload).map_err(|e| said(&e, call, &path))
        };
        // Goes on if nobody waits any more: a write that has begun is not stopped, and what it did is
        // known only after it.
        let work = tokio::spawn(async move {
            let done = tokio::task::spawn_blocking(work).await;
            permit.end().await;
            done
        });
        match work.await {
            Ok(Ok(done)) => done,
            Ok(Err(e)) | Err(e) => Err(HostError::from(e.to_string())),
        }
    }
}

fn perform(op: &str, path: &Path, place: &Path, to: &Path, payload: &Value) -> io::Result<Value> {
    match op {
        "readFile" => Ok(json!(STANDARD.encode(read(path)?))),
        "writeFile" => {
            let data = payload["data"].as_str().unwrap_or_default();
            let data = STANDARD.decode(data).map_err(io::Error::other)?;
            // A pipe would be waited for until somebody reads it.
            if fs::metadata(path).is_ok_and(|facts| is_endless(&facts)) {
                return Err(io::Error::new(ErrorKind::Unsupported, "it is no regular file"));
            }
            if payload["exclusive"] == true {
                fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(place)?
                    .write_all(&data)?;
            } else if payload["append"] == true {
                fs::OpenOptions::new().append(true).create(true).open(path)?.write_all(&data)?;
            } else {
                fs::write(path, data)?;
            }
            set_mode(path, &payload["mode"])?;
            Ok(Value::Null)
        }
        "readdir" => {
            let mut found = Vec::new();
            list(path, "", payload["recursive"] == true, &mut found)?;
            Ok(json!(found))
        }
        "stat" => {
            // The link itself is what was named, not what that leads to.
            let facts = if payload["link"] == true {
                fs::symlink_metadata(place)
            } else {
                fs::metadata(path)
            };
            match facts {
                Ok(facts) => Ok(stat(&facts)),
                Err(e) if payload["quiet"] == true && e.kind() == ErrorKind::NotFound => {
                    Ok(Value::Null)
                }
                Err(e) => Err(e),
            }
        }
        "mkdir" if payload["recursive"] == true => {
            fs::create_dir_all(path)?;
            Ok(Value::Null)
        }
        "mkdir" => fs::create_dir(path).map(|()| Value::Null),
        "remove" => {
            let facts = match fs::symlink_metadata(place) {
                Err(e) if e.kind() == ErrorKind::NotFound && payload["force"] == true => {
                    return Ok(Value::Null);
                }
                other => other?,
            };
            if !facts.is_dir() {
                fs::remove_file(place)?;
            } else if payload["recursive"] == true {
                fs::remove_dir_all(path)?;
            } else {
                fs::remove_dir(path)?;
            }
            Ok(Value::Null)
        }
        "link" => fs::hard_link(path, to).map(|()| Value::Null),
        "utimes" => {
            let time = |key: &str| {
                let ms = payload[key].as_f64().unwrap_or(0.0).clamp(0.0, 1e14);
                let time = Duration::from_secs_f64(ms / 1e3);
                let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
                Timespec { tv_sec: seconds, tv_nsec: i64::from(time.subsec_nanos()) }
            };
            let times =
                Timestamps { last_access: time("atimeMs"), last_modification: time("mtimeMs") };
            // By its name: to open a pipe is to wait for its other end.
            utimensat(CWD, path, &times, AtFlags::empty())?;
            Ok(Value::Null)
        }
        "rename" => fs::rename(path, to).map(|()| Value::Null),
        "copy" => copy(path, to, payload["recursive"] == true).map(|()| Value::Null),
        "realpath" => Ok(json!(fs::canonicalize(path)?)),
        "readlink" => Ok(json!(fs::read_link(place)?)),
        "symlink" => {
            let target = payload["target"].as_str().unwrap_or_default();
            std::os::unix::fs::symlink(target, place).map(|()| Value::Null)
        }
        "chmod" => set_mode(path, &payload["mode"]).map(|()| Value::Null),
        "mkdtemp" => {
            for attempt in 0..100u32 {
                let tag = format!(
                    "{:06x}",
                    std::process::id().wrapping_mul(2_654_435_761).wrapping_add(attempt)
                        & 0xff_ffff
                );
                let mut name = path.as_os_str().to_owned();
                name.push(tag);
                match fs::create_dir(&name) {
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                    Err(e) => return Err(e),
                    Ok(()) => return Ok(json!(PathBuf::from(name))),
                }
            }
            Err(ErrorKind::AlreadyExists.into())
        }
        _ => Err(io::Error::new(ErrorKind::Unsupported, format!("fs has no {op} here"))),
    }
}

fn set_mode(path: &Path, mode: &Value) -> io::Result<()> {
    let mode = match mode {
        Value::Number(mode) => mode.as_u64().and_then(|m| u32::try_from(m).ok()),
        Value::String(octal) => u32::from_str_radix(octal.trim_start_matches("0o"), 8).ok(),
        _ => None,
    };
    match mode {
        Some(mode) => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
        None => Ok(()),
    }
}

/// What never ends, or waits for somebody.
fn is_endless(facts: &Metadata) -> bool {
    let kind = facts.file_type();
    kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let too_large = || {
        let message = format!("the file is too large for a script (over {FILE_CAP_BYTES} bytes)");
        io::Error::new(ErrorKind::FileTooLarge, message)
    };
    let facts = fs::metadata(path)?;
    if is_endless(&facts) {
        return Err(io::Error::new(ErrorKind::Unsupported, "it is no regular file"));
    }
    if facts.len() > FILE_CAP_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // It may grow while it is read, and some say nothing about their size.
    fs::File::open(path)?.take(FILE_CAP_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_CAP_BYTES { Err(too_large()) } else { Ok(bytes) }
}

fn copy(from: &Path, to: &Path, recursive: bool) -> io::Result<()> {
    let facts = fs::metadata(from)?;
    if is_endless(&facts) {
        return Err(io::Error::new(ErrorKind::Unsupported, "it is no regular file"));
    }
    if !facts.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    // It would never end.
    if to.starts_with(from) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "a folder is not copied into itself"));
    }
    if !recursive {
        return Err(io::Error::new(
            ErrorKind::IsADirectory,
            "a folder is copied with recursive: true",
        ));
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        // A link stays one: what it leads to is nobody's who was asked.
        if fs::symlink_metadata(&entry)?.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&entry)?, to.join(name))?;
        } else {
            copy(&entry, &to.join(name), true)?;
        }
    }
    Ok(())
}

fn kind(facts: &Metadata) -> &'static str {
    let kind = facts.file_type();
    if kind.is_dir() {
        "folder"
    } else if kind.is_symlink() {
        "link"
    } else if kind.is_file() {
        "file"
    } else {
        "other"
    }
}

fn stat(facts: &Metadata) -> Value {
    let ms = |seconds: i64, nanos: i64| seconds as f64 * 1000.0 + nanos as f64 / 1e6;
    json!({
        "kind": kind(facts), "size": facts.len(), "mode": facts.mode(), "uid": facts.uid(),
        "gid": facts.gid(), "ino": facts.ino(), "dev": facts.dev(), "nlink": facts.nlink(),
        "mtimeMs": ms(facts.mtime(), facts.mtime_nsec()),
        "atimeMs": ms(facts.atime(), facts.atime_nsec()),
        "ctimeMs": ms(facts.ctime(), facts.ctime_nsec()),
    })
}

fn list(folder: &Path, before: &str, recursive: bool, found: &mut Vec<Value>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if found.len() >= LISTING_CAP {
            return Ok(());
        }
        let facts = entry.path().symlink_metadata()?;
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        found.push(json!({ "name": name, "kind": kind(&facts) }));
        if recursive && facts.is_dir() {
            list(&entry.path(), &format!("{name}/"), true, found)?;
        }
    }
    Ok(())
}

/// As Node says it: a code, words, the system's call and the path.
fn said(error: &io::Error, call: &str, path: &Path) -> HostError {
    let (code, words) = match error.kind() {
        ErrorKind::NotFound => ("ENOENT", "no such file or directory".to_owned()),
        ErrorKind::PermissionDenied => ("EACCES", "permission denied".to_owned()),
        ErrorKind::AlreadyExists => ("EEXIST", "file already exists".to_owned()),
        ErrorKind::NotADirectory => ("ENOTDIR", "not a directory".to_owned()),
        ErrorKind::IsADirectory => ("EISDIR", "illegal operation on a directory".to_owned()),
        ErrorKind::DirectoryNotEmpty => ("ENOTEMPTY", "directory not empty".to_owned()),
        ErrorKind::StorageFull => ("ENOSPC", "no space left on device".to_owned()),
        _ => ("EIO", error.to_string()),
    };
    let mut more = json!({ "syscall": call, "path": path });
    if let Some(number) = error.raw_os_error() {
        more["errno"] = json!(-number);
    }
    let message = format!("{code}: {words}, {call} '{}'", path.display());
    HostError { message, code: Some(code), more }
}
