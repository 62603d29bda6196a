//! What a sandbox under the tools holds, for those who decide whether to ask.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// The permission to run a command without the sandbox that is there.
pub const OUTSIDE_SANDBOX: &str = "outside_sandbox";

/// What needs no question, because it cannot leave the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Containment {
    /// Commands run in a sandbox without network, and files of the workspace are written under it.
    pub is_closed: bool,
    /// Inside the workspace, and still not to be written without a question: what decides about
    /// later runs, ours and git's.
    pub protected: Vec<PathBuf>,
}

impl Containment {
    /// Whoever moves, removes or fills a folder also changes what is protected inside it.
    pub(crate) fn holds_write(&self, path: &Path) -> bool {
        let touches = |own: &PathBuf| path.starts_with(own) || own.starts_with(path);
        self.is_closed && !self.protected.iter().any(touches)
    }
}

type Find = Box<dyn FnOnce() -> Containment + Send>;

/// Found out when it is first needed: trying what this machine can do takes a moment.
#[derive(Clone)]
pub(crate) struct Later(Arc<LazyLock<Containment, Find>>);

impl Later {
    pub(crate) fn new(find: impl FnOnce() -> Containment + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(find))))
    }

    pub(crate) fn get(&self) -> &Containment {
        LazyLock::force(&self.0)
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LazyLock::get(&self.0).fmt(f)
    }
}

impl Default for Later {
    fn default() -> Self {
        Self::new(Containment::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_protected_is_asked_about_from_above_and_from_below() {
        let protected = vec![PathBuf::from("/w/.git/hooks"), PathBuf::from("/w/a.json")];
        let closed = Containment { is_closed: true, protected };
        for (path, held) in [
            ("/w/src/main.rs", true),
            ("/w/.git/index", true),
            ("/w/.github/x", true),
            ("/w/.git/hooks", false),
            ("/w/.git/hooks/pre-commit", false),
            ("/w/a.json", false),
            ("/w/a.json5", true),
            // Moved away, edited and moved back; or copied over.
            ("/w/.git", false),
            ("/w", false),
        ] {
            assert_eq!(closed.holds_write(Path::new(path)), held, "{path}");
        }
        assert!(!Containment::default().holds_write(Path::new("/w/src")));
    }
}
