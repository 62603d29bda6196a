//! Where things are kept, by the XDG rules.

use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct Paths {
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`: `toolwright` and `opencode` stand below it.
    pub config: PathBuf,
    /// Our own state.
    pub data: PathBuf,
    /// What an administrator has set for everybody.
    pub managed: PathBuf,
}

impl Paths {
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let absolute = |name: &str| env(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let home = absolute("HOME").unwrap_or_else(|| PathBuf::from("/"));
        Self {
            config: absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            data: absolute("XDG_DATA_HOME")
                .unwrap_or_else(|| home.join(".local/share"))
                .join("toolwright"),
            // Movable for tests only: what binds everybody must not be moved by a variable.
            managed: absolute("TOOLWRIGHT_MANAGED_DIR")
                .filter(|_| cfg!(debug_assertions))
                .unwrap_or_else(|| PathBuf::from("/etc")),
            home,
        }
    }

    /// What says what may be done, and what was: not to be changed by what it is about.
    pub fn own(&self) -> [PathBuf; 3] {
        [self.data.clone(), self.config.join("toolwright"), self.config.join("opencode")]
    }

    pub fn sessions(&self) -> PathBuf {
        self.data.join("sessions")
    }
}
