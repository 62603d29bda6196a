//! What a child may reach, held by the kernel.
//!
//! A [`Fence`] is data: where a child may write, what it must not change or read, which network it
//! has. A [`Layer`] is what this machine has to hold a fence with; the two together are a
//! [`Sandbox`], and [`crate::Spec::fenced`] starts a child inside one.

mod bridge;
mod bubblewrap;
mod guard;
#[cfg(target_os = "linux")]
mod landlock;
mod memory;
#[cfg(target_os = "linux")]
mod mounted;
mod proxy;
mod roots;
mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
mod sockets;
mod stopped;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

pub use bridge::{BRIDGE_COMMAND, run_bridge, set_helper};
pub use bubblewrap::Bubblewrap;
pub(crate) use guard::Guard;
pub use guard::{PutBack, changed_by_us, keep_aside_in};
pub use memory::remember_in;
pub use roots::Roots;
pub use stopped::Stopped;

/// What a child may reach. Everything can be read that is not named unreadable, and nothing can be
/// written that is not named writable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fence {
    pub writable: Vec<PathBuf>,
    /// Inside what is writable: must stay as it is, also where it does not exist yet.
    pub read_only: Vec<PathBuf>,
    pub unreadable: Vec<PathBuf>,
    pub network: Network,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    #[default]
    Off,
    On,
    /// Only these, and what ends in `.` and one of those that begin with `*.`.
    Hosts(Vec<String>),
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::On => f.write_str("on"),
            Self::Hosts(hosts) => f.write_str(&hosts.join(", ")),
        }
    }
}

/// What holds a fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    /// A view of the file system, of processes and of the network of its own.
    Bubblewrap(Bubblewrap),
    /// Rules of the kernel's on files and signals (the interface's version), and a filter of system
    /// calls.
    Landlock(u32),
    /// macOS's own.
    Seatbelt,
}

impl Layer {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bubblewrap(_) => "bubblewrap",
            Self::Landlock(_) => "landlock",
            Self::Seatbelt => "seatbelt",
        }
    }

    /// What this layer cannot hold by itself, for people.
    pub fn gaps(&self) -> Vec<&'static str> {
        match self {
            Self::Bubblewrap(_) | Self::Seatbelt => Vec::new(),
            Self::Landlock(version) => {
                let mut gaps = vec![
                    "protected files inside the workspace are put back after a command",
                    "no network at all unless it is on, not even on this machine",
                    "modes, owners and times of files outside can be changed",
                ];
                if *version < LANDLOCK_SCOPES {
                    gaps.push("signals to other programs are not stopped (needs Linux 6.12)");
                }
                gaps
            }
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bubblewrap(_) => f.write_str("bubblewrap"),
            Self::Landlock(version) => write!(f, "Landlock {version} + seccomp"),
            Self::Seatbelt => f.write_str("Seatbelt"),
        }
    }
}

/// The first version that knows truncation; before it, files outside could be emptied.
const LANDLOCK_LEAST: u32 = 3;
/// The first version that keeps signals and abstract sockets inside.
const LANDLOCK_SCOPES: u32 = 6;

static AVAILABLE: LazyLock<Vec<Layer>> = LazyLock::new(|| {
    let mut found = Vec::new();
    if cfg!(target_os = "macos") && crate::is_executable(Path::new(seatbelt::PROGRAM)) {
        found.push(Layer::Seatbelt);
    }
    #[cfg(target_os = "linux")]
    {
        found.extend(Bubblewrap::probe().map(Layer::Bubblewrap));
        let version = landlock::version();
        if version >= LANDLOCK_LEAST && seccomp::is_known_machine() {
            found.push(Layer::Landlock(version));
        }
    }
    found
});

/// The layers that work here, the best first. Tried once in the life of this program.
pub fn available() -> &'static [Layer] {
    &AVAILABLE
}

/// Begins to try them, so that they are known when they are needed.
pub fn probe_in_background() {
    if LazyLock::get(&AVAILABLE).is_none() {
        // Without a thread it is done by whoever asks first.
        std::thread::Builder::new().spawn(|| LazyLock::force(&AVAILABLE).len()).ok();
    }
}

/// A fence and what holds it.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub layer: Layer,
    pub fence: Fence,
    roots: Arc<Roots>,
}

/// Finds the sandbox for whoever starts children, when one is first started: there may be none, and
/// where one is required and cannot be had, the words say so.
#[derive(Clone)]
pub struct Find(Arc<FindSandbox>);

type FindSandbox = dyn Fn() -> Result<Option<Arc<Sandbox>>, String> + Send + Sync;

impl Find {
    pub fn new(
        find: impl Fn() -> Result<Option<Arc<Sandbox>>, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(find))
    }

    pub fn find(&self) -> Result<Option<Arc<Sandbox>>, String> {
        (self.0)()
    }
}

impl fmt::Debug for Find {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Find")
    }
}

/// What one child needs to be inside: made before the fork, used after it.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    /// Stands before the command.
    pub(crate) wrapper: Option<(PathBuf, Vec<OsString>)>,
    /// It does not become the command but looks after it.
    pub(crate) stays: bool,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) enter: Enter,
    pub(crate) guard: Option<Guard>,
    /// To be kept before the child is let go.
    #[cfg(target_os = "linux")]
    pub(crate) meeting: Option<mounted::Meeting>,
    /// The way to the named hosts, for as long as the child lives.
    pub(crate) proxy: Option<Arc<proxy::Proxy>>,
}

/// What is done between fork and exec. All memory is there already.
#[derive(Debug, Default)]
pub(crate) struct Enter {
    /// Stays open in the child.
    kept: Vec<OwnedFd>,
    #[cfg(target_os = "linux")]
    rules: Option<landlock::Rules>,
    #[cfg(target_os = "linux")]
    filter: Option<seccomp::Program>,
    /// Give up what root may do beside its own files.
    drop_capabilities: bool,
}

impl Sandbox {
    pub fn new(layer: Layer, fence: Fence) -> Self {
        let roots = Arc::new(Roots::hold(&fence));
        Self::around(layer, fence, roots)
    }

    /// With the folders that have been held since the fence was drawn.
    pub fn around(layer: Layer, fence: Fence, roots: Arc<Roots>) -> Self {
        Self { layer, fence, roots }
    }

    /// What the fence says must not be read and this layer cannot keep from children.
    pub fn unheld(&self) -> Vec<PathBuf> {
        #[cfg(target_os = "linux")]
        if matches!(self.layer, Layer::Landlock(_)) {
            // Where a root is no longer what it was, nothing is started.
            return self.roots.check().map_or_else(
                |_| self.fence.unreadable.clone(),
                |roots| landlock::unheld(&self.fence, &roots),
            );
        }
        Vec::new()
    }

    /// Everything that this child needs. Fails where the fence cannot be held: then nothing is to be
    /// started.
    pub(crate) fn prepare(&self, directory: &Path) -> io::Result<Cell> {
        match &self.layer {
            #[cfg(target_os = "linux")]
            Layer::Bubblewrap(program) => self.in_bubblewrap(program, directory),
            #[cfg(target_os = "linux")]
            Layer::Landlock(version) => self.in_landlock(*version),
            #[cfg(not(target_os = "linux"))]
            Layer::Bubblewrap(_) | Layer::Landlock(_) => {
                let _ = directory;
                Err(io::Error::new(io::ErrorKind::Unsupported, "this sandbox is for Linux only"))
            }
            Layer::Seatbelt => {
                let profile = seatbelt::profile(&self.found()?);
                let wrapper = (PathBuf::from(seatbelt::PROGRAM), vec!["-p".into(), profile.into()]);
                // Its rules hold for names that do not exist yet too: nothing needs to be put back.
                Ok(Cell { wrapper: Some(wrapper), ..Cell::default() })
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn in_bubblewrap(&self, program: &Bubblewrap, directory: &Path) -> io::Result<Cell> {
        use std::os::fd::AsRawFd;

        let mut fence = self.found()?;
        fence.network = self.network();
        let filter = seccomp::for_bubblewrap().into_file()?;
        let (covered, open): (Vec<_>, _) =
            self.fence.read_only.iter().cloned().partition(|path| bubblewrap::can_cover(path));
        fence.read_only = covered;
        let mounts = bubblewrap::mounts(&fence, &sockets::bound(&fence)?);
        let mut arguments = bubblewrap::arguments(&fence, program, &mounts);
        let mut cell = Cell::default();
        let mut before: Vec<OsString> = Vec::new();
        if let Network::Hosts(hosts) = &fence.network {
            let proxy = proxy::Proxy::start(hosts)?;
            let socket = OsString::from(proxy.path());
            arguments.extend(["--ro-bind".into(), socket.clone(), socket]);
            (before, cell.environment) = bridge::command(proxy.path())?;
            cell.proxy = Some(proxy);
        }
        // One that has powers of its own hides from us what it does.
        if !program.is_setuid {
            let (meeting, words, ends) = mounted::Meeting::new(bubblewrap::wanted(&mounts))?;
            arguments.extend(words);
            cell.enter.kept.extend(ends);
            cell.meeting = Some(meeting);
        }
        arguments.extend(["--seccomp".into(), filter.as_raw_fd().to_string().into()]);
        arguments.extend(["--chdir".into(), directory.into(), "--".into()]);
        arguments.extend(before);
        // In a network of its own a child meets no abstract socket but its own.
        cell.enter.rules = match (&fence.network, program.is_setuid) {
            (Network::On, false) => landlock::scopes_only()?,
            _ => None,
        };
        cell.enter.kept.push(filter);
        cell.guard = Guard::of(&Fence { read_only: open, ..self.fence.clone() }, |_| false)?;
        cell.wrapper = Some((program.program.clone(), arguments));
        cell.stays = true;
        Ok(cell)
    }

    #[cfg(target_os = "linux")]
    fn in_landlock(&self, version: u32) -> io::Result<Cell> {
        let fence = &self.fence;
        let mut cell = Cell::default();
        cell.enter.rules = Some(landlock::rules(fence, &self.roots.check()?, version)?);
        // Rules on ports say nothing of addresses: named hosts would be all hosts.
        cell.enter.filter = Some(seccomp::for_landlock(fence.network == Network::On));
        cell.enter.drop_capabilities = true;
        cell.guard = Guard::of(&self.fence, |_| false)?;
        Ok(cell)
    }

    /// The fence as it is on this machine now: real paths, and none that does not exist, except what must
    /// not be made.
    fn found(&self) -> io::Result<Fence> {
        let real = self.fence.unreadable.iter().filter_map(|path| std::fs::canonicalize(path).ok());
        let mut unreadable: Vec<_> = real.collect();
        unreadable.sort();
        unreadable.dedup();
        Ok(Fence {
            writable: self.roots.check()?.iter().map(|root| root.path.clone()).collect(),
            read_only: self.fence.read_only.clone(),
            unreadable,
            network: self.fence.network.clone(),
        })
    }

    /// Whether the fence's network is what the child has: named hosts need a network of its own.
    pub fn network(&self) -> Network {
        match (&self.fence.network, &self.layer) {
            (Network::Hosts(_), Layer::Bubblewrap(_)) if bridge::has_helper() => {
                self.fence.network.clone()
            }
            (Network::Hosts(_), _) => Network::Off,
            (network, _) => network.clone(),
        }
    }

    /// Protected files that a child could change and that are too large to be put back. While there are
    /// some, the fence is not closed.
    pub fn unwatched(&self) -> io::Result<Vec<PathBuf>> {
        match &self.layer {
            Layer::Bubblewrap(_) => guard::unwatched(&self.fence, bubblewrap::can_cover),
            Layer::Landlock(_) => guard::unwatched(&self.fence, |_| false),
            Layer::Seatbelt => Ok(Vec::new()),
        }
    }

    /// Looks for what this fence forbids in what a command said before it failed.
    pub fn stopped(&self, directory: &Path, output: &str) -> Option<Stopped> {
        stopped::find(self, directory, output)
    }
}

impl Fence {
    /// Whether a child may write there.
    pub fn allows_write(&self, path: &Path) -> bool {
        let inside = |all: &[PathBuf]| all.iter().any(|own| path.starts_with(own));
        inside(&self.writable) && !inside(&self.read_only) && !inside(&self.unreadable)
    }
}

impl Enter {
    /// In the child, before it becomes the command. Async-signal-safe calls on prepared memory only.
    #[cfg(target_os = "linux")]
    pub(crate) fn apply(&self) -> io::Result<()> {
        use std::os::fd::AsRawFd;

        crate::sys::close_on_exec_from(3);
        for descriptor in &self.kept {
            crate::sys::keep_on_exec(descriptor.as_raw_fd())?;
        }
        if self.rules.is_some() || self.filter.is_some() {
            crate::sys::no_new_privileges()?;
        }
        if let Some(rules) = &self.rules {
            if self.filter.is_some() {
                rules.allow_terminal()?;
            }
            rules.restrict()?;
        }
        if self.drop_capabilities {
            crate::sys::drop_capabilities()?;
        }
        if let Some(filter) = &self.filter {
            filter.load()?;
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn apply(&self) -> io::Result<()> {
        let _ = (&self.kept, self.drop_capabilities);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
