//! The fence for a folder: what its commands may write, change, read and reach, and what holds it.

mod git;
mod links;
mod made;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};

use toolwright_config::{
    Config, McpSandbox, NetworkWord, Paths, SandboxLayer, SandboxMode, SandboxNetwork,
    SandboxSettings, Trust, files_named,
};
use toolwright_proc::sandbox::{self, Fence, Find as FindSandbox, Layer, Network, Roots, Sandbox};
use toolwright_tool::{Containment, Workspace};
use toolwright_tools::{AfterCommand, Ran};

/// Set to `off`, `on` or `auto`; counts above the settings and below the command line.
const VARIABLE: &str = "TOOLWRIGHT_SANDBOX";

/// In the home folder: keys, passwords, cookies, and what stands for its owner elsewhere.
const KEY_STORES: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".mozilla",
    ".thunderbird",
    "snap/firefox",
    "snap/chromium",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/opencode/auth.json",
    "Library/Keychains",
    "Library/Cookies",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
];

/// Of the machine. Root could read them.
const SYSTEM_SECRETS: &[&str] =
    &["/etc/shadow", "/etc/gshadow", "/etc/ssl/private", "/run/secrets"];

/// In the home folder: run by the next shell, desktop or git. Counts where home is writable.
const START_UP: &[&str] = &[
    ".bashrc",
    ".bash_aliases",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".oh-my-zsh",
    ".xprofile",
    ".xsessionrc",
    ".xinitrc",
    ".pam_environment",
    ".inputrc",
    ".vimrc",
    ".vim",
    ".emacs",
    ".emacs.d",
    ".tmux.conf",
    ".gdbinit",
    ".gitconfig",
    ".npmrc",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/bin",
    ".docker/cli-plugins",
    ".codex/config.toml",
    ".local/bin",
    ".local/lib",
    ".local/share/applications",
    ".local/share/dbus-1",
    ".local/share/systemd",
    "bin",
    ".config/autostart",
    ".config/Code/User",
    ".config/emacs",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/nvim",
    ".config/systemd",
    ".config/pip",
    ".config/plasma-workspace",
    ".config/tmux",
    ".config/zsh",
    ".config/opencode",
    ".config/toolwright",
    ".claude/settings.json",
    "Library/LaunchAgents",
];

/// In the home folder: what builds keep between runs and can make again.
const CACHES: &[&str] = &[
    ".cargo/registry",
    ".cargo/git",
    ".cache/ccache",
    ".cache/deno",
    ".cache/go-build",
    ".cache/pip",
    ".cache/pypoetry",
    ".cache/sccache",
    ".cache/uv",
    ".cache/yarn",
    ".cache/zig",
    ".bun/install/cache",
    ".gradle/caches",
    ".ivy2/cache",
    ".m2/repository",
    ".npm/_cacache",
    ".npm/_logs",
    ".nuget/packages",
    ".local/share/pnpm/store",
    "go/pkg/mod",
    "Library/Caches/go-build",
    "Library/Caches/pip",
];

/// In every folder of the project down to the working directory: what decides about later runs.
const PROJECT_SETTINGS: &[&str] = &[
    ".opencode",
    ".toolwright",
    "opencode.json",
    "opencode.jsonc",
    "toolwright.json",
    "toolwright.jsonc",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".mcp.json",
];

/// What holds this folder's commands, found out when it is first asked.
#[derive(Clone)]
pub struct Protection {
    found: Arc<LazyLock<Result<Found, String>, Find>>,
    is_off: bool,
    /// Whether what it holds need not be asked about: not where only a file that nobody trusts closes it.
    counts: bool,
}

type Find = Box<dyn FnOnce() -> Result<Found, String> + Send>;

#[derive(Debug, Clone, Default)]
struct Found {
    held: Option<Held>,
    /// The folder is so wide that a fence around it is none.
    is_wide: bool,
    why_none: &'static str,
}

#[derive(Debug, Clone)]
struct Held {
    layer: Layer,
    network: Network,
    /// Later, because that takes a look through the folder.
    drawn: Arc<LazyLock<Drawn, Draw>>,
}

type Draw = Box<dyn FnOnce() -> Drawn + Send>;

#[derive(Debug)]
struct Drawn {
    sandbox: Arc<Sandbox>,
    look: Option<made::Look>,
}

impl Protection {
    pub(crate) fn new(
        config: &Config,
        paths: &Paths,
        workspace: &Workspace,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let settings = &config.settings.sandbox;
        // What an administrator requires is nobody's to switch off.
        let required = settings.managed.map(SandboxMode::from).filter(|m| *m == SandboxMode::On);
        let mode_of = |settings: &SandboxSettings| {
            let preferred = required.or_else(|| PREFERRED.get().copied());
            let preferred = preferred.or_else(|| mode_named(&env(VARIABLE)?));
            preferred.or(settings.enabled.map(SandboxMode::from)).unwrap_or_default()
        };
        let mode = mode_of(settings);
        let trusted = config.trusted_sandbox();
        let counts = mode_of(&trusted) != SandboxMode::Off && network(&trusted) == Network::Off;
        if mode == SandboxMode::Off {
            return Self::off();
        }
        sandbox::keep_aside_in(paths.data.join("stopped-by-sandbox"));
        let wanted = settings.layer.unwrap_or(SandboxLayer::Auto);
        let (settings, paths, workspace) = (settings.clone(), paths.clone(), workspace.clone());
        let run = run_outside(config, &paths, &workspace);
        let find = move || {
            let is_wide = is_wide(&settings, &paths, &workspace);
            let fits = |layer: &&Layer| match wanted {
                SandboxLayer::Auto => true,
                SandboxLayer::Bubblewrap => layer.name() == "bubblewrap",
                SandboxLayer::Landlock => layer.name() == "landlock",
            };
            match sandbox::available().iter().find(fits) {
                Some(layer) => {
                    let fence = Fence { network: network(&settings), ..Fence::default() };
                    let network = Sandbox::new(layer.clone(), fence).network();
                    let draw = move || {
                        let fence = fence_of(&settings, &paths, &workspace, run);
                        let look =
                            || made::Look::new(workspace.worktree(), fence.read_only.clone());
                        let look = (!is_wide).then(look);
                        let roots = Arc::new(Roots::hold(&fence));
                        let sandbox = Sandbox::around(layer.clone(), fence, roots);
                        Drawn { sandbox: Arc::new(sandbox), look }
                    };
                    let drawn = Arc::new(LazyLock::new(Box::new(draw) as Draw));
                    let held = Some(Held { layer: layer.clone(), network, drawn });
                    Ok(Found { held, is_wide, why_none: "" })
                }
                None if mode == SandboxMode::On => Err(REQUIRED.to_owned()),
                None => Ok(Found { why_none: "none works here", ..Found::default() }),
            }
        };
        Self { found: Arc::new(LazyLock::new(Box::new(find))), is_off: false, counts }
    }

    /// Begins to try what this machine can do, so that it is known when it is needed.
    pub(crate) fn begin(&self, data: &Path) {
        if !self.is_off {
            sandbox::remember_in(data.join("sandbox-works"));
            sandbox::probe_in_background();
            let own = self.clone();
            // Without a thread it is done by whoever asks first.
            std::thread::Builder::new().spawn(move || own.sandbox().is_ok()).ok();
        }
    }

    fn off() -> Self {
        let found = || Ok(Found { why_none: "switched off", ..Found::default() });
        Self { found: Arc::new(LazyLock::new(Box::new(found))), is_off: true, counts: false }
    }

    /// Fails where a sandbox is required and none works.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.found().map(drop).map_err(str::to_owned)
    }

    /// The sandbox for commands, if there is one; fails where one is required and none works.
    pub fn sandbox(&self) -> Result<Option<Arc<Sandbox>>, String> {
        let drawn = self.found().map(Found::drawn).map_err(str::to_owned)?;
        Ok(drawn.map(|drawn| Arc::clone(&drawn.sandbox)))
    }

    /// As the tools take it.
    pub(crate) fn as_find(&self) -> Option<FindSandbox> {
        let own = self.clone();
        Some(FindSandbox::new(move || own.sandbox()))
    }

    /// What is done after each command: looks for repositories that it made. Not where the folder is too wide
    /// to be looked through.
    pub(crate) fn after_command(&self) -> Option<AfterCommand> {
        let own = self.clone();
        let after = move |ran: Ran| {
            let drawn = own.found().ok().and_then(Found::drawn);
            let look = drawn.and_then(|drawn| drawn.look.as_ref());
            look.map_or(String::new(), |look| look.after(ran))
        };
        (!self.is_off).then(|| Arc::new(after) as AfterCommand)
    }

    /// The same fence around files, whatever commands have of the network.
    pub(crate) fn with_network(&self, network: Network) -> FindSandbox {
        let own = self.clone();
        FindSandbox::new(move || {
            let changed = |sandbox: Arc<Sandbox>| {
                let mut sandbox = Arc::unwrap_or_clone(sandbox);
                sandbox.fence.network = network.clone();
                Arc::new(sandbox)
            };
            Ok(own.sandbox()?.map(changed))
        })
    }

    fn found(&self) -> Result<&Found, &str> {
        LazyLock::force(&self.found).as_ref().map_err(String::as_str)
    }

    pub(crate) fn containment(&self) -> Containment {
        match self.found() {
            Ok(found @ Found { held: Some(held), is_wide: false, .. }) if self.counts => {
                let drawn = found.drawn().map(|drawn| drawn.sandbox.fence.read_only.clone());
                Containment {
                    is_closed: held.network == Network::Off && found.unheld().is_empty(),
                    protected: drawn.unwrap_or_default(),
                }
            }
            _ => Containment::default(),
        }
    }

    /// In one line, for people.
    pub fn describe(&self) -> String {
        match self.found() {
            Err(problem) => problem.to_owned(),
            Ok(Found { held: None, why_none, .. }) => format!("none ({why_none})"),
            Ok(found @ Found { held: Some(Held { layer, network, .. }), is_wide, .. }) => {
                let wide = if *is_wide { "; this folder is too wide to be a fence" } else { "" };
                let open = match found.unheld().as_slice() {
                    [] => String::new(),
                    [first, ..] => format!("; {} cannot be kept unreadable", first.display()),
                };
                format!("{layer}, network {network}{wide}{open}")
            }
        }
    }
}

impl Found {
    fn drawn(&self) -> Option<&Drawn> {
        self.held.as_ref().map(|held| LazyLock::force(&held.drawn))
    }

    /// What the layer cannot keep unreadable. Only one has to be asked, with a fence that is drawn.
    fn unheld(&self) -> Vec<PathBuf> {
        match &self.held {
            Some(Held { layer: Layer::Landlock(_), .. }) => {
                self.drawn().map(|drawn| drawn.sandbox.unheld()).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}

const REQUIRED: &str = "the settings require a sandbox and none works on this machine: install \
    bubblewrap, or let sandbox.enabled be \"auto\"";

static PREFERRED: OnceLock<SandboxMode> = OnceLock::new();

/// The command line's word, for all that this program does: it counts above the environment and
/// the settings.
pub fn prefer_sandbox(mode: SandboxMode) {
    // The first word counts.
    PREFERRED.set(mode).ok();
}

fn mode_named(word: &str) -> Option<SandboxMode> {
    match word.trim().to_lowercase().as_str() {
        "off" | "false" | "0" => Some(SandboxMode::Off),
        "on" | "true" | "1" => Some(SandboxMode::On),
        "auto" => Some(SandboxMode::Auto),
        _ => None,
    }
}

/// A path of the settings.
fn named(text: &str, home: &Path, directory: &Path) -> PathBuf {
    match text.strip_prefix("~/").or(text.strip_prefix("$HOME/")) {
        Some(inside) => home.join(inside),
        None => directory.join(text),
    }
}

fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether the home folder, or all there is, may be written. Of a home folder too much is run by other
/// programs to be named one by one.
fn is_wide(settings: &SandboxSettings, paths: &Paths, workspace: &Workspace) -> bool {
    let (home, directory) = (real(&paths.home), workspace.directory());
    let more = settings.writable.iter().map(|text| real(&named(text, &home, directory)));
    let mut all = more.chain([directory.to_owned(), workspace.worktree().to_owned()]);
    all.any(|root| root.parent().is_none() || home.starts_with(&root))
}

/// Files of the workspace that run outside the fence: those that commands of hooks and of MCP servers name.
fn run_outside(config: &Config, paths: &Paths, workspace: &Workspace) -> Vec<PathBuf> {
    let (directory, worktree) = (workspace.directory(), workspace.worktree());
    let mut found: Vec<PathBuf> =
        config.hooks.iter().flat_map(|hook| hook.files.keys().cloned()).collect();
    // Also what nobody trusts yet: it may be trusted later, as it is then.
    found.extend(Trust::new(paths).run_outside(directory, worktree));
    for server in config.settings.mcp.values() {
        let is_inside = server.sandbox.is_some_and(|inside| inside != McpSandbox::Switch(false));
        let from = directory.join(server.cwd.as_deref().unwrap_or_default());
        for word in server.command.iter().flatten().filter(|_| !is_inside) {
            found.extend(files_named(word, worktree, &[&from]));
        }
    }
    found
}

fn fence_of(
    settings: &SandboxSettings,
    paths: &Paths,
    workspace: &Workspace,
    run: Vec<PathBuf>,
) -> Fence {
    let home = real(&paths.home);
    let (directory, worktree) = (workspace.directory(), workspace.worktree());
    let named = |text: &String| named(text, &home, directory);
    let mut writable = vec![worktree.to_owned(), directory.to_owned(), std::env::temp_dir()];
    writable.extend(git_folders(worktree));
    if settings.caches.unwrap_or(true) {
        writable.extend(CACHES.iter().map(|name| home.join(name)));
    }
    writable.extend(settings.writable.iter().map(named));
    // A fence is drawn with real paths; what does not exist holds nothing.
    let mut writable: Vec<PathBuf> =
        writable.iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect();
    writable.sort();
    writable.dedup();

    let folders = directory.ancestors().take_while(|folder| folder.starts_with(worktree));
    let mut decides: Vec<PathBuf> =
        folders.flat_map(|folder| PROJECT_SETTINGS.iter().map(|name| folder.join(name))).collect();
    decides.extend(run);
    let of_git =
        [home.join(".gitconfig"), paths.config.join("git/config"), "/etc/gitconfig".into()];
    decides.extend(git::obeyed(worktree, &home, &of_git));
    decides.extend(START_UP.iter().map(|name| home.join(name)));
    decides.extend([paths.config.join("toolwright"), paths.config.join("opencode")]);
    let own = decides.iter().filter(|folder| !is_around(&real(folder), workspace));
    let behind: Vec<PathBuf> = own.flat_map(|folder| links::links_inside(folder)).collect();
    decides.extend(behind);
    decides.push(paths.data.clone());
    // Keys that are not there yet: whoever makes them decides who may come in.
    let keys = KEY_STORES.iter().map(|name| home.join(name)).filter(|path| !path.exists());
    decides.extend(keys);
    let read_only = protected(&decides, &writable, workspace);

    let shown: Vec<PathBuf> = settings.readable.iter().map(named).collect();
    let mut unreadable: Vec<PathBuf> = KEY_STORES.iter().map(|name| home.join(name)).collect();
    unreadable.extend(SYSTEM_SECRETS.iter().map(PathBuf::from));
    unreadable.retain(|path| !shown.contains(path));
    unreadable.push(paths.data.join("auth.json"));
    unreadable.extend(settings.unreadable.iter().map(named));
    Fence { writable, read_only, unreadable, network: network(settings) }
}

/// A link to the folder itself must not close all of it.
fn is_around(path: &Path, workspace: &Workspace) -> bool {
    workspace.directory().starts_with(path) || workspace.worktree().starts_with(path)
}

/// Where these really are and the links that lead there, as far as a child could write them.
fn protected(decides: &[PathBuf], writable: &[PathBuf], workspace: &Workspace) -> Vec<PathBuf> {
    let is_writable = |path: &PathBuf| writable.iter().any(|root| path.starts_with(root));
    let mut found: Vec<PathBuf> = decides.iter().flat_map(|path| links::with_links(path)).collect();
    found.retain(|path| is_writable(path) && !is_around(path, workspace));
    found.sort();
    // Sorted by their parts, what is inside another one stands behind it.
    let mut outer: Option<PathBuf> = None;
    found.retain(|path| {
        let is_inside = outer.as_ref().is_some_and(|outer| path.starts_with(outer));
        if !is_inside {
            outer = Some(path.clone());
        }
        !is_inside
    });
    found
}

fn network(settings: &SandboxSettings) -> Network {
    match &settings.network {
        None | Some(SandboxNetwork::Word(NetworkWord::Off)) => Network::Off,
        Some(SandboxNetwork::Word(NetworkWord::On)) => Network::On,
        Some(SandboxNetwork::Hosts(hosts)) if hosts.is_empty() => Network::Off,
        Some(SandboxNetwork::Hosts(hosts)) => Network::Hosts(hosts.clone()),
    }
}

/// The repository's own folder, and for a worktree that is one of several, the shared one too.
fn git_folders(worktree: &Path) -> Vec<PathBuf> {
    let own = worktree.join(".git");
    let Some(folder) = git::git_folder(&own) else { return Vec::new() };
    if !own.is_file() {
        return vec![folder];
    }
    // A file of the workspace says where this is: it is believed where that folder says so too.
    let back = std::fs::read_to_string(folder.join("gitdir")).ok();
    let back = back.and_then(|to| std::fs::canonicalize(folder.join(to.trim())).ok());
    let module = git::work_tree_of(&folder);
    if back.as_deref() != Some(own.as_path()) && module.as_deref() != Some(worktree) {
        return Vec::new();
    }
    let around = |shared: &PathBuf| folder.starts_with(shared) && shared.join("HEAD").is_file();
    git::shared_folder(&folder).filter(around).into_iter().chain([folder.clone()]).collect()
}

#[cfg(test)]
mod tests;
