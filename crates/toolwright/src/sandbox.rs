//! The fence for a folder: what its commands may write, change, read and reach, and what holds it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};

use toolwright_config::{
    Config, NetworkWord, Paths, SandboxLayer, SandboxMode, SandboxNetwork, SandboxSettings,
};
use toolwright_proc::sandbox::{self, Fence, Find as FindSandbox, Layer, Network, Roots, Sandbox};
use toolwright_tool::{Containment, Workspace};

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
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".xprofile",
    ".xinitrc",
    ".pam_environment",
    ".inputrc",
    ".vimrc",
    ".emacs",
    ".gitconfig",
    ".npmrc",
    ".cargo/config.toml",
    ".cargo/bin",
    ".local/bin",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/nvim",
    ".config/systemd",
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
    ".mcp.json",
];

/// In the git folder, and in those of submodules and further work trees inside it: what git runs, and
/// what says what else it runs. `commondir` sends it to another folder for all of that.
const GIT_SETTINGS: &[&str] = &["hooks", "config", "config.worktree", "commondir"];

/// Submodules and work trees that are protected like the repository around them.
const INNER_GIT_CAP: usize = 64;

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
    sandbox: Option<Arc<Sandbox>>,
    /// The folder is so wide that a fence around it is none.
    is_wide: bool,
    why_none: &'static str,
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
        let fence = fence(settings, paths, workspace);
        let roots = Arc::new(Roots::hold(&fence));
        let wanted = settings.layer.unwrap_or(SandboxLayer::Auto);
        let (home, directory) = (paths.home.clone(), workspace.directory().to_owned());
        let is_wide =
            directory.parent().is_none() || (home != directory && home.starts_with(&directory));
        let find = move || {
            let fits = |layer: &&Layer| match wanted {
                SandboxLayer::Auto => true,
                SandboxLayer::Bubblewrap => layer.name() == "bubblewrap",
                SandboxLayer::Landlock => layer.name() == "landlock",
            };
            match sandbox::available().iter().find(fits) {
                Some(layer) => {
                    let sandbox = Sandbox::around(layer.clone(), fence, roots);
                    Ok(Found { sandbox: Some(Arc::new(sandbox)), is_wide, why_none: "" })
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
        }
    }

    fn off() -> Self {
        let found = || Ok(Found { why_none: "switched off", ..Found::default() });
        Self { found: Arc::new(LazyLock::new(Box::new(found))), is_off: true, counts: false }
    }

    /// The sandbox for commands, if there is one; fails where one is required and none works.
    pub fn sandbox(&self) -> Result<Option<Arc<Sandbox>>, String> {
        self.found().map(|found| found.sandbox.clone()).map_err(str::to_owned)
    }

    /// As the tools take it.
    pub(crate) fn as_find(&self) -> Option<FindSandbox> {
        let own = self.clone();
        Some(FindSandbox::new(move || own.sandbox()))
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
            Ok(Found { sandbox: Some(sandbox), is_wide: false, .. }) if self.counts => {
                Containment {
                    is_closed: sandbox.network() == Network::Off && sandbox.unheld().is_empty(),
                    protected: sandbox.fence.read_only.clone(),
                }
            }
            _ => Containment::default(),
        }
    }

    /// In one line, for people.
    pub fn describe(&self) -> String {
        match self.found() {
            Err(problem) => problem.to_owned(),
            Ok(Found { sandbox: None, why_none, .. }) => format!("none ({why_none})"),
            Ok(Found { sandbox: Some(sandbox), is_wide, .. }) => {
                let wide = if *is_wide { "; this folder is too wide to be a fence" } else { "" };
                let open = match sandbox.unheld().as_slice() {
                    [] => String::new(),
                    [first, ..] => format!("; {} cannot be kept unreadable", first.display()),
                };
                format!("{}, network {}{wide}{open}", sandbox.layer, sandbox.network())
            }
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

fn fence(settings: &SandboxSettings, paths: &Paths, workspace: &Workspace) -> Fence {
    let home = std::fs::canonicalize(&paths.home).unwrap_or_else(|_| paths.home.clone());
    let (directory, worktree) = (workspace.directory(), workspace.worktree());
    let named = |text: &String| match text.strip_prefix("~/").or(text.strip_prefix("$HOME/")) {
        Some(inside) => home.join(inside),
        None => directory.join(text),
    };
    let mut writable = vec![worktree.to_owned(), directory.to_owned(), std::env::temp_dir()];
    let git = git_folders(worktree);
    writable.extend(git.iter().cloned());
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
    let mut read_only: Vec<PathBuf> =
        folders.flat_map(|folder| PROJECT_SETTINGS.iter().map(|name| folder.join(name))).collect();
    let mut repositories = git.clone();
    for git in &git {
        add_inner_git(&git.join("modules"), 3, &mut repositories);
        add_inner_git(&git.join("worktrees"), 0, &mut repositories);
    }
    let settings_of = |git: &PathBuf| GIT_SETTINGS.iter().map(|name| git.join(name)).collect();
    read_only.extend(repositories.iter().flat_map::<Vec<_>, _>(settings_of));
    let is_writable = |path: &Path| writable.iter().any(|root| path.starts_with(root));
    read_only.extend(START_UP.iter().map(|name| home.join(name)).filter(|path| is_writable(path)));
    let own = [paths.config.join("toolwright"), paths.config.join("opencode"), paths.data.clone()];
    read_only.extend(own.into_iter().filter(|path| is_writable(path)));

    let shown: Vec<PathBuf> = settings.readable.iter().map(named).collect();
    let mut unreadable: Vec<PathBuf> = KEY_STORES.iter().map(|name| home.join(name)).collect();
    unreadable.extend(SYSTEM_SECRETS.iter().map(PathBuf::from));
    unreadable.retain(|path| !shown.contains(path));
    unreadable.push(paths.data.join("auth.json"));
    unreadable.extend(settings.unreadable.iter().map(named));
    Fence { writable, read_only, unreadable, network: network(settings) }
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
    let linked = std::fs::read_to_string(&own).ok().and_then(|text| {
        let to = text.strip_prefix("gitdir:")?.trim().to_owned();
        std::fs::canonicalize(worktree.join(to)).ok()
    });
    let Some(linked) = linked else {
        return std::fs::canonicalize(own).into_iter().filter(|folder| folder.is_dir()).collect();
    };
    // A file of the workspace says where this is: it is believed where that folder says so too.
    let knows_us = |folder: &Path| {
        let back = std::fs::read_to_string(folder.join("gitdir")).ok();
        let back = back.and_then(|to| std::fs::canonicalize(to.trim()).ok());
        let config = std::fs::read_to_string(folder.join("config")).unwrap_or_default();
        let module = config.lines().find_map(|line| line.trim().strip_prefix("worktree = "));
        let module = module.and_then(|to| std::fs::canonicalize(folder.join(to)).ok());
        back.as_deref() == Some(own.as_path()) || module.as_deref() == Some(worktree)
    };
    if !knows_us(&linked) {
        return Vec::new();
    }
    let shared = std::fs::read_to_string(linked.join("commondir")).ok();
    let shared = shared.and_then(|to| std::fs::canonicalize(linked.join(to.trim())).ok());
    let around = |folder: &PathBuf| linked.starts_with(folder) && folder.join("HEAD").is_file();
    shared.filter(around).into_iter().chain([linked.clone()]).collect()
}

/// What git keeps of submodules (whose names may have slashes) and of further work trees.
fn add_inner_git(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if found.len() > INNER_GIT_CAP || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if path.join("HEAD").exists() {
            add_inner_git(&path.join("modules"), depth, found);
            found.push(path);
        } else if depth > 0 {
            add_inner_git(&path, depth - 1, found);
        }
    }
}

#[cfg(test)]
#[path = "sandbox_tests.rs"]
mod tests;
