//! Whether bubblewrap mounted what it was told to. It goes by names, and a child that still runs can make
//! a name mean something else while it works. So it is stopped when all is mounted and before the command
//! begins, and the kernel is asked what lies where.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// How long it may take to mount everything, on a machine that has much else to do.
const DEADLINE_MS: i32 = 20_000;

/// What it reads last, and what it makes of that: the one place where something can always be made.
const LAST: &str = "/dev/fence";

/// What a child has of its own, made for it; it lies nowhere else.
const OWN: &[&str] = &["/dev", "/dev/pts", "/proc"];

/// What must have been mounted.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) writable: Vec<PathBuf>,
    pub(super) read_only: Vec<PathBuf>,
}

/// Our ends of what it is held up by.
#[derive(Debug)]
pub(crate) struct Meeting {
    wanted: Wanted,
    /// It says here which process it works in.
    says: io::PipeReader,
    /// Full. It takes from here when everything else is done, and goes on when this is closed.
    holds: io::PipeWriter,
}

impl Meeting {
    /// Also what it is told, and its ends, which must be passed to it.
    pub(super) fn new(wanted: Wanted) -> io::Result<(Self, Vec<OsString>, [OwnedFd; 2])> {
        let (says, tells) = io::pipe()?;
        let (takes, mut holds) = io::pipe()?;
        let file = holds.as_raw_fd();
        // SAFETY: integers only. The smallest that there is; the kernel says how large that is.
        let size = unsafe {
            libc::fcntl(file, libc::F_SETFL, libc::O_NONBLOCK);
            libc::fcntl(file, libc::F_SETPIPE_SZ, 1)
        };
        let size = usize::try_from(size).map_err(|_| io::Error::last_os_error())?;
        holds.write_all(&vec![b'\n'; size])?;
        let (tells, takes) = (OwnedFd::from(tells), OwnedFd::from(takes));
        let number = |end: &OwnedFd| OsString::from(end.as_raw_fd().to_string());
        let words = vec!["--info-fd".into(), number(&tells), "--file".into(), number(&takes)];
        let words = words.into_iter().chain([LAST.into()]).collect();
        Ok((Self { wanted, says, holds }, words, [tells, takes]))
    }

    /// Waits until everything is mounted, and lets it go on if it is as it should be. Where it ended by
    /// itself nothing was started, and it has said why.
    pub(crate) fn meet(mut self) -> io::Result<()> {
        let Some(process) = self.process()? else { return Ok(()) };
        if wait_for(self.holds.as_raw_fd(), libc::POLLOUT)? & libc::POLLERR != 0 {
            return Ok(());
        }
        let theirs = fs::read(format!("/proc/{process}/mountinfo"))?;
        let theirs = entries(&theirs, Path::new("/newroot"));
        let own = entries(&fs::read("/proc/self/mountinfo")?, Path::new("/"));
        check(&own, &theirs, &self.wanted).map_err(|path| {
            io::Error::other(format!(
                "{} became something else while the sandbox was set up, so nothing was started",
                path.display()
            ))
        })
    }

    fn process(&mut self) -> io::Result<Option<u32>> {
        let mut said = Vec::new();
        let mut part = [0; 512];
        while !said.contains(&b'}') {
            wait_for(self.says.as_raw_fd(), libc::POLLIN)?;
            match self.says.read(&mut part)? {
                0 => return Ok(None),
                count => said.extend_from_slice(&part[..count]),
            }
        }
        let said = String::from_utf8_lossy(&said);
        let number = said.split_once("\"child-pid\":").and_then(|(_, rest)| {
            let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        });
        number.map(Some).ok_or_else(|| io::Error::other("the sandbox does not say where it works"))
    }
}

fn wait_for(descriptor: i32, events: i16) -> io::Result<i16> {
    let mut poll = libc::pollfd { fd: descriptor, events, revents: 0 };
    loop {
        // SAFETY: one structure, which lives through the call.
        match unsafe { libc::poll(&raw mut poll, 1, DEADLINE_MS) } {
            0 => return Err(io::Error::new(io::ErrorKind::TimedOut, "the sandbox takes too long")),
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
            _ => return Ok(poll.revents),
        }
    }
}

/// A line of the kernel's list.
#[derive(Debug)]
struct Entry {
    id: Vec<u8>,
    parent: Vec<u8>,
    /// Of which file system, and where in it what is seen here lies.
    device: Vec<u8>,
    root: PathBuf,
    at: PathBuf,
    writable: bool,
    /// Nothing lies over it.
    seen: bool,
}

/// Those below `base`, as seen from there.
fn entries(list: &[u8], base: &Path) -> Vec<Entry> {
    let all: Vec<Entry> = list.split(|byte| *byte == b'\n').filter_map(entry).collect();
    let by_id: HashMap<&[u8], &Entry> = all.iter().map(|entry| (&*entry.id, entry)).collect();
    let under = |entry: &Entry| by_id.get(&*entry.parent).copied();
    let covers = |entry: &&Entry| under(entry).is_some_and(|below| below.at == entry.at);
    let covered: HashSet<&[u8]> = all.iter().filter(covers).map(|entry| &*entry.parent).collect();
    let reachable = |entry: &Entry| {
        let mut way = vec![entry];
        // A list that leads in circles is not one of the kernel's.
        while let Some(next) = way.last().and_then(|last| under(last)) {
            if way.len() > all.len() {
                return false;
            }
            way.push(next);
        }
        let hidden = |pair: &[&Entry]| pair[0].at != pair[1].at && covered.contains(&*pair[1].id);
        !covered.contains(&*entry.id) && !way.windows(2).any(hidden)
    };
    let seen: Vec<bool> = all.iter().map(reachable).collect();
    let found = all.into_iter().zip(seen).filter_map(|(entry, seen)| {
        let at = Path::new("/").join(entry.at.strip_prefix(base).ok()?);
        Some(Entry { at, seen, ..entry })
    });
    found.collect()
}

fn entry(line: &[u8]) -> Option<Entry> {
    let mut words = line.split(|byte| *byte == b' ');
    let mut next = || words.next().map(<[u8]>::to_vec);
    let (id, parent, device) = (next()?, next()?, next()?);
    let (root, at) = (path(&next()?), path(&next()?));
    let is_writable = |options: &[u8]| options.split(|byte| *byte == b',').any(|one| one == b"rw");
    let here = is_writable(&next()?);
    let whole = words.next_back().is_none_or(is_writable);
    Some(Entry { id, parent, device, root, at, writable: here && whole, seen: true })
}

/// Blanks and their like stand there as numbers.
fn path(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, after @ ..] = rest {
        let number = match after {
            [a, b, c, ..] if *first == b'\\' => {
                let digits = [*a, *b, *c];
                std::str::from_utf8(&digits).ok().and_then(|text| u8::from_str_radix(text, 8).ok())
            }
            _ => None,
        };
        bytes.push(number.unwrap_or(*first));
        rest = if number.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// In which file system something lies, and where in it.
fn place<'a>(own: &'a [Entry], path: &Path) -> Option<(&'a [u8], PathBuf)> {
    let around = own.iter().filter(|entry| entry.seen && path.starts_with(&entry.at));
    let entry = around.max_by_key(|entry| entry.at.components().count())?;
    let rest = path.strip_prefix(&entry.at).ok()?;
    let whole = if rest == Path::new("") { entry.root.clone() } else { entry.root.join(rest) };
    Some((&entry.device, whole))
}

/// Gives what is not as it should be.
fn check(own: &[Entry], theirs: &[Entry], wanted: &Wanted) -> Result<(), PathBuf> {
    let top = |path: &Path| theirs.iter().rfind(|entry| entry.seen && entry.at == path);
    let is_itself = |entry: &Entry| {
        place(own, &entry.at)
            .is_some_and(|(device, root)| device == entry.device && root == entry.root)
    };
    for path in &wanted.read_only {
        if top(path).is_none_or(|entry| entry.writable) {
            return Err(path.clone());
        }
    }
    let covered = |path: &&PathBuf| wanted.read_only.iter().any(|own| path.starts_with(own));
    for path in wanted.writable.iter().filter(|path| !covered(path)) {
        if !top(path).is_some_and(is_itself) {
            return Err(path.clone());
        }
    }
    let count = |list: &[Entry], at: &Path| list.iter().filter(|entry| entry.at == at).count();
    for entry in theirs.iter().filter(|entry| entry.seen && entry.writable) {
        let is_fresh = || {
            OWN.iter().any(|own| entry.at == Path::new(own))
                && !own.iter().any(|other| other.device == entry.device)
        };
        let is_device = || entry.at.starts_with("/dev") && is_a_device(entry.at.file_name());
        let is_wanted = || wanted.writable.contains(&entry.at);
        // Something else that is mounted there outside too: inside a folder that may be written, or where
        // bubblewrap could not close it because nobody can look into it.
        let is_known = || {
            let inside = wanted.writable.iter().any(|root| entry.at.starts_with(root));
            inside || count(theirs, &entry.at) <= count(own, &entry.at)
        };
        let fits = is_fresh() || (is_itself(entry) && (is_device() || is_wanted() || is_known()));
        if !fits {
            return Err(entry.at.clone());
        }
    }
    Ok(())
}

fn is_a_device(name: Option<&OsStr>) -> bool {
    let names = ["null", "zero", "full", "random", "urandom", "tty", "console"];
    name.is_some_and(|name| names.iter().any(|own| own.as_bytes() == name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTSIDE: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:6 / /dev rw - devtmpfs devtmpfs rw
24 22 0:21 / /proc rw - proc proc rw
25 22 0:9 /old /home rw - ext4 /dev/vdb rw
26 25 0:10 /sub /home rw - ext4 /dev/vdc rw
";

    fn inside(more: &str) -> Vec<Entry> {
        let text = format!(
            "\
43 64 254:0 / /oldroot rw - ext4 /dev/vda rw
65 64 0:40 /newroot /newroot rw - tmpfs tmpfs rw
66 65 254:0 / /newroot ro - ext4 /dev/vda rw
67 66 0:6 / /newroot/dev ro - devtmpfs devtmpfs rw
70 66 0:9 /old /newroot/home rw - ext4 /dev/vdb rw
71 70 0:10 /sub /newroot/home ro - ext4 /dev/vdc rw
86 67 0:41 / /newroot/dev rw - tmpfs tmpfs rw
87 86 0:6 /null /newroot/dev/null rw - devtmpfs devtmpfs rw
{more}"
        );
        entries(text.as_bytes(), Path::new("/newroot"))
    }

    fn judge(more: &str) -> Result<(), PathBuf> {
        let own = entries(OUTSIDE.as_bytes(), Path::new("/"));
        let wanted = Wanted {
            writable: vec![PathBuf::from("/home/x/my work")],
            read_only: vec![PathBuf::from("/home/x/my work/.git/hooks")],
        };
        check(&own, &inside(more), &wanted)
    }

    #[test]
    fn only_what_was_meant_may_be_written() {
        let work =
            "90 71 0:10 /sub/x/my\\040work /newroot/home/x/my\\040work rw - ext4 /dev/vdc rw\n";
        let hooks = "91 90 0:10 /sub/x/my\\040work/.git/hooks \
            /newroot/home/x/my\\040work/.git/hooks ro - ext4 /dev/vdc rw\n";
        let good = format!("{work}{hooks}");
        assert_eq!(judge(&good), Ok(()));
        let path = |text: &str| Err(PathBuf::from(text));
        assert_eq!(judge(work), path("/home/x/my work/.git/hooks"));
        assert_eq!(judge(&good.replace(" ro ", " rw ")), path("/home/x/my work/.git/hooks"));
        // Another folder in its place.
        let other = good.replace("/sub/x/my\\040work /new", "/sub/y /new");
        assert_eq!(judge(&other), path("/home/x/my work"));
        // The same name on another disk.
        let other = good.replace("90 71 0:10 ", "90 71 0:11 ");
        assert_eq!(judge(&other), path("/home/x/my work"));
        // A further one, where a link led; even on top of what is mounted there anyway.
        for (line, at) in [
            ("92 66 254:0 /etc /newroot/etc rw - ext4 /dev/vda rw", "/etc"),
            ("92 71 0:10 /sub /newroot/home rw - ext4 /dev/vdc rw", "/home/x/my work/.git/hooks"),
            ("92 86 0:6 / /newroot/dev rw - devtmpfs devtmpfs rw", "/dev"),
        ] {
            assert_eq!(judge(&format!("{good}{line}\n")), path(at), "{line}");
        }
    }
}
