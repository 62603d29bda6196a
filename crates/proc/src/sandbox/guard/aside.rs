//! Where things go that a command made in a protected place: nobody's work is lost, and none of it is
//! where it would count.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::folder::{Folder, disarm};

/// Stands in the name of whatever was moved away.
const ASIDE: &str = "stopped-by-sandbox";

/// Bytes of a name that are kept: with what is added it must still be a name.
const NAME_BYTES: usize = 150;

static BASE: OnceLock<PathBuf> = OnceLock::new();
static PLACE: OnceLock<Option<Place>> = OnceLock::new();

/// A folder of this process, outside whatever children can write.
struct Place {
    folder: Folder,
    path: PathBuf,
}

/// Names the folder that takes what commands made in protected places. No child may be able to write
/// there; where one could, and where it is on another disk, things stay near their place.
pub fn keep_aside_in(folder: PathBuf) {
    // The first word counts.
    BASE.set(folder).ok();
}

/// The folder of this program itself, which holds that one.
pub(super) fn is_own(path: &Path) -> bool {
    BASE.get().and_then(|base| base.parent()) == Some(path)
}

/// Moves something away from where it counts. Gives the folder in which it lies now; nothing if it
/// could only be removed.
pub(super) fn take(
    parent: &Folder,
    name: &OsStr,
    root: (&Path, &Folder),
    writable: &[PathBuf],
) -> io::Result<Option<PathBuf>> {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let is_outside = |place: &&Place| !writable.iter().any(|own| place.path.starts_with(own));
    if let Some(place) = place().filter(is_outside) {
        let mut new = OsString::from(format!("{}-", LAST.fetch_add(1, Ordering::Relaxed)));
        new.push(shortened(name));
        if parent.rename(name, &place.folder, &new).is_ok() {
            disarm(&place.folder, &new);
            return Ok(Some(place.path.clone()));
        }
    }
    let mut new = shortened(name).to_owned();
    new.push(format!(".{ASIDE}-{}", random()));
    if parent.rename(name, root.1, &new).is_ok() {
        disarm(root.1, &new);
        return Ok(Some(root.0.to_owned()));
    }
    parent.remove(name).map(|()| None)
}

/// Nobody can have taken it.
pub(super) fn random() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}

fn shortened(name: &OsStr) -> &OsStr {
    let bytes = name.as_bytes();
    OsStr::from_bytes(&bytes[..bytes.len().min(NAME_BYTES)])
}

/// Made when it is first needed.
fn place() -> Option<&'static Place> {
    PLACE.get_or_init(|| make().ok()).as_ref()
}

fn make() -> io::Result<Place> {
    let base = BASE.get().ok_or(io::ErrorKind::NotFound)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(base)?;
    let base = fs::canonicalize(base)?;
    let name = OsString::from(format!("{}-{}", std::process::id(), &random()[..8]));
    let folder = Folder::open(&base)?.make(&name, 0o700)?;
    Ok(Place { folder, path: base.join(name) })
}
