//! What a call would touch, as data.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toolwright_permission::Request;
use toolwright_session::Touched;
use toolwright_session::images::Reach;

use crate::Workspace;
use crate::containment::OUTSIDE_SANDBOX;
use crate::floor::{Harm, refusal};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    Read {
        path: PathBuf,
        extent: Extent,
    },
    /// A search below a folder; `permission` is the searching tool's own key.
    Search {
        permission: &'static str,
        pattern: String,
        root: PathBuf,
    },
    Write {
        path: PathBuf,
        /// What would change, for the person who decides.
        diff: String,
    },
    Execute {
        command: String,
        directory: PathBuf,
    },
    /// Words typed into a command that runs already.
    Type {
        job: String,
        text: String,
    },
    /// A page or a service on the network.
    Fetch {
        /// The asking tool's own key: `webfetch`, `websearch`.
        permission: &'static str,
        url: String,
    },
    /// Another agent that works on its own and asks for itself.
    Delegate {
        agent: String,
    },
    /// Something that an MCP server is asked for, or asks for itself.
    Mcp {
        server: String,
        permission: String,
        pattern: String,
        /// What is sent, for the person who decides.
        preview: String,
        /// What the server says of it: good enough for the order of calls, for nothing else.
        read_only: bool,
    },
    /// Whatever else rules can be written for: a custom tool's own key and pattern.
    Custom {
        permission: String,
        pattern: String,
        read_only: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The file, or the folder's own entries.
    Single,
    /// Everything below.
    Tree,
}

/// A call's declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What the call is about, in one line, before it has run.
    pub summary: String,
    pub accesses: Vec<Access>,
    /// How long the call may take, where it says so itself.
    pub time_limit: Option<Duration>,
    /// Its commands run without the sandbox that is there.
    pub outside: bool,
    /// That they do is our idea and not the model's.
    pub unasked: bool,
    /// The sandbox does not hold all that it should: what runs in it is asked about as if it were none.
    pub leaks: bool,
}

/// Paths of one call that are remembered: enough for any edit, not for a search through a tree.
const TOUCHED_CAP: usize = 64;

impl Plan {
    pub fn new(summary: impl Into<String>, accesses: Vec<Access>) -> Self {
        Self {
            summary: summary.into(),
            accesses,
            time_limit: None,
            outside: false,
            unasked: false,
            leaks: false,
        }
    }

    /// The call has a time of its own.
    pub fn within(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Its commands run without the sandbox.
    pub fn outside_sandbox(mut self) -> Self {
        self.outside = true;
        self
    }

    /// Running outside is offered, because the sandbox stopped it; the model did not ask for that.
    pub fn offered(mut self) -> Self {
        self.unasked = true;
        self
    }

    /// The sandbox around its commands leaks.
    pub fn leaking(mut self) -> Self {
        self.leaks = true;
        self
    }

    /// The single paths that the call declares, as people write them.
    pub fn touched(&self, workspace: &Workspace) -> Touched {
        let mut touched = Touched::default();
        for access in self.accesses.iter().take(TOUCHED_CAP) {
            match access {
                Access::Read { path, extent: Extent::Single } => {
                    touched.reads.push(workspace.relative(path));
                }
                Access::Write { path, .. } => touched.writes.push(workspace.relative(path)),
                _ => {}
            }
        }
        touched
    }

    /// Whether the call may change something.
    pub fn has_effects(&self) -> bool {
        self.accesses.iter().any(Access::may_change)
    }

    /// What the call may change of files. Our own tools declare what they write; of a command, and of
    /// what others brought, nobody knows.
    pub fn reach(&self, workspace: &Workspace, own: bool) -> Reach {
        let mut reach = Reach { what: self.summary.clone(), ..Reach::default() };
        for access in &self.accesses {
            match access {
                Access::Write { path, .. } => reach.writes.push(path.clone()),
                Access::Execute { .. } => {
                    let requests = access.requests(workspace);
                    let harmless =
                        |request: &Request| request.harmless || request.permission != "bash";
                    reach.anything |= !requests.iter().all(harmless);
                }
                Access::Custom { read_only: false, .. } => reach.anything |= !own,
                _ => {}
            }
        }
        reach
    }

    /// Whether it looks at files and does nothing else. A call that declares nothing may still ask a
    /// person or remember something.
    pub(crate) fn only_looks(&self) -> bool {
        let looks = |a: &Access| matches!(a, Access::Read { .. } | Access::Search { .. });
        !self.accesses.is_empty() && self.accesses.iter().all(looks)
    }

    pub(crate) fn conflicts_with(&self, earlier: &[Access]) -> bool {
        self.accesses.iter().any(|a| earlier.iter().any(|b| a.conflicts_with(b)))
    }

    /// The plan in the words of permission rules, each request once.
    pub fn requests(&self, workspace: &Workspace) -> Vec<Request> {
        let mut requests: Vec<Request> = Vec::new();
        for access in &self.accesses {
            for mut request in access.requests(workspace) {
                request.contained &= !self.outside && !self.leaks;
                if !requests.contains(&request) {
                    requests.push(request);
                }
            }
        }
        let commands = self.accesses.iter().filter_map(|access| match access {
            Access::Execute { command, .. } if self.outside => Some(command.trim().to_owned()),
            _ => None,
        });
        requests.extend(commands.map(|command| Request {
            permission: OUTSIDE_SANDBOX.to_owned(),
            pattern: command.clone(),
            always: command,
            unasked: self.unasked,
            ..Request::default()
        }));
        requests
    }

    /// The same plan as if it only read: what a failed call may say about its files depends on it.
    pub(crate) fn as_reads(&self) -> Self {
        let read = |access: &Access| match access {
            Access::Write { path, .. } => {
                Access::Read { path: path.clone(), extent: Extent::Single }
            }
            Access::Execute { directory, .. } => {
                Access::Read { path: directory.clone(), extent: Extent::Single }
            }
            other => other.clone(),
        };
        Self::new(self.summary.clone(), self.accesses.iter().map(read).collect())
    }

    /// What a person should see before deciding: the diff or the command.
    pub fn preview(&self) -> Option<String> {
        let parts = self.accesses.iter().filter_map(|access| match access {
            Access::Write { diff, .. } if !diff.is_empty() => Some(diff.clone()),
            Access::Execute { command, .. } => Some(command.clone()),
            Access::Type { text, .. } => Some(text.clone()),
            Access::Mcp { preview, .. } if !preview.is_empty() => Some(preview.clone()),
            _ => None,
        });
        let text = parts.collect::<Vec<_>>().join("\n");
        (!text.is_empty()).then_some(text)
    }
}

/// Keys of what only the session itself notices.
const OF_THE_SESSION: &[&str] = &["todowrite", "todoread", "bash_output", "bash_kill"];

impl Access {
    pub(crate) fn may_change(&self) -> bool {
        match self {
            Self::Read { .. } | Self::Search { .. } | Self::Fetch { .. } => false,
            Self::Write { .. }
            | Self::Execute { .. }
            | Self::Type { .. }
            | Self::Delegate { .. } => true,
            Self::Mcp { read_only, .. } | Self::Custom { read_only, .. } => !read_only,
        }
    }

    /// Whether two calls with these accesses must keep their order. A shell may read anything, so it
    /// is ordered against declared writes; two shells run side by side, as people expect of them.
    fn conflicts_with(&self, other: &Self) -> bool {
        use Access::{Custom, Delegate, Execute, Mcp, Write};
        match (self, other) {
            // Another agent may run anything too, and several of them may work at once.
            (Write { .. }, Execute { .. } | Delegate { .. })
            | (Execute { .. } | Delegate { .. }, Write { .. }) => true,
            (Write { path, .. }, touched) | (touched, Write { path, .. }) => touched.touches(path),
            (
                Custom { permission: a, read_only: false, .. },
                Custom { permission: b, read_only: false, .. },
            ) => a == b,
            // One tool of a server may need what another has done.
            (Mcp { server: a, read_only: x, .. }, Mcp { server: b, read_only: y, .. }) => {
                a == b && !(*x && *y)
            }
            _ => false,
        }
    }

    fn touches(&self, path: &Path) -> bool {
        match self {
            Self::Read { path: own, extent: Extent::Single } => {
                own == path || path.parent() == Some(own)
            }
            Self::Read { path: own, extent: Extent::Tree } => path.starts_with(own),
            Self::Search { root, .. } => path.starts_with(root),
            // A file where the other needs a folder, or the other way round, is a conflict too.
            Self::Write { path: own, .. } => path.starts_with(own) || own.starts_with(path),
            Self::Execute { .. }
            | Self::Type { .. }
            | Self::Fetch { .. }
            | Self::Delegate { .. }
            | Self::Mcp { .. }
            | Self::Custom { .. } => false,
        }
    }

    fn requests(&self, workspace: &Workspace) -> Vec<Request> {
        let mut found = self.plain_requests(workspace);
        for request in &mut found {
            // What is done outside has a request of its own, and another agent's work has its own.
            let is_free = matches!(self, Self::Delegate { .. })
                || request.permission == "external_directory"
                || OF_THE_SESSION.contains(&request.permission.as_str());
            request.read_only |= is_free || !self.may_change();
        }
        found
    }

    fn plain_requests(&self, workspace: &Workspace) -> Vec<Request> {
        let request = |permission: &str, pattern: String, always: &str| Request {
            permission: permission.to_owned(),
            pattern,
            always: always.to_owned(),
            ..Request::default()
        };
        let of_path = |permission: &str, path: &Path| Request {
            also: Some(path.display().to_string()),
            ..request(permission, workspace.relative(path), "*")
        };
        let mut found = Vec::new();
        let mut outside = |folder: &Path| {
            if !workspace.contains(folder) {
                let pattern = format!("{}/*", folder.display());
                found.push(request("external_directory", pattern.clone(), &pattern));
            }
        };
        match self {
            Self::Read { path, .. } => {
                // What is inside has its folder inside: a search asks this of each file, and need not look.
                if !workspace.contains(path) {
                    outside(if path.is_dir() { path } else { path.parent().unwrap_or(path) });
                }
                found.push(of_path("read", path));
            }
            Self::Search { permission, pattern, root } => {
                outside(root);
                found.push(request(permission, pattern.clone(), "*"));
            }
            Self::Write { path, .. } => {
                // The workspace's own folder is inside it, the folder around that is not.
                let own = workspace.contains(path);
                outside(path.parent().filter(|_| !own).unwrap_or(path));
                let floor = refusal(Harm::Writes, path, path, None, workspace);
                let contained = own && workspace.containment().holds_write(path);
                found.push(Request { floor, contained, ..of_path("edit", path) });
            }
            Self::Execute { command, directory } => {
                outside(directory);
                found.extend(crate::shell::requests(command, directory, workspace));
            }
            Self::Type { job, text } => {
                // It may be a shell that reads: a rule against a command holds for its words too.
                let commands = toolwright_permission::analyse(text).commands;
                let spelled = commands.iter().filter_map(|c| c.spelled.clone());
                let mut lines: Vec<String> =
                    commands.iter().map(|c| c.text.clone()).chain(spelled).collect();
                if lines.is_empty() {
                    lines.push(text.clone());
                }
                let floor = crate::shell::floor(text, workspace.directory(), workspace);
                for line in lines {
                    let pattern = format!("job {job}: {line}");
                    let request = request("bash", pattern.clone(), &pattern);
                    found.push(Request { also: Some(line), floor: floor.clone(), ..request });
                }
            }
            Self::Fetch { permission, url } => {
                found.push(request(permission, url.clone(), "*"));
            }
            Self::Delegate { agent } => {
                found.push(request("task", agent.clone(), "*"));
            }
            Self::Mcp { permission, pattern, .. } | Self::Custom { permission, pattern, .. } => {
                found.push(request(permission, pattern.clone(), "*"));
            }
        }
        found
    }
}
