//! What follows an edit in a folder, as people have configured it: language servers and formatters.

use std::path::PathBuf;

use toolwright_config::{FormatterSettings, Ordered, ServerSettings, Settings, Switchable};
pub use toolwright_lsp::NoProgram;
use toolwright_lsp::{Entry, Options, Place, Server, Servers, Setting, Timing, configured};
use toolwright_proc::sandbox::Network;
use toolwright_tool::Workspace;
use toolwright_tools::{Feedback, FormatterEntry, FormatterSetting, Formatters};

use crate::Workbench;
use crate::sandbox::Protection;
use crate::secrets;

/// Chooses `ty` for Python instead of pyright, as in OpenCode.
const TY_FLAGS: [&str; 2] = ["OPENCODE_EXPERIMENTAL_LSP_TY", "TOOLWRIGHT_LSP_TY"];

/// Fails with words for the person who wrote the settings.
pub(crate) fn feedback(
    settings: &Settings,
    workspace: &Workspace,
    trusted: bool,
    protection: &Protection,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Feedback, String> {
    let place = place(workspace, trusted, env);
    let withheld: Vec<String> = secrets::key_variables(settings).map(str::to_owned).collect();
    let servers = configured(of_servers(settings.lsp.clone()), wants_ty(env))?;
    let formatter = of_formatters(settings.formatter.clone());
    let passed = &settings.sandbox.environment;
    let formatters = Formatters::new(formatter, place.clone(), withheld.clone())?
        .fenced(protection.as_find(), passed.clone());
    // Servers look up what a project needs, so the network is theirs; files are not.
    let (sandbox, passed) = (Some(protection.with_network(Network::On)), passed.clone());
    let options = Options { place, servers, withheld, passed, sandbox };
    let servers = Servers::new(options, Timing::default());
    Ok(Feedback::new(servers, formatters))
}

fn place(workspace: &Workspace, trusted: bool, env: &dyn Fn(&str) -> Option<String>) -> Place {
    Place {
        directory: workspace.directory().to_owned(),
        worktree: workspace.worktree().to_owned(),
        trusted,
        path: std::env::var_os("PATH").unwrap_or_default(),
        virtual_env: env("VIRTUAL_ENV").map(PathBuf::from),
    }
}

fn wants_ty(env: &dyn Fn(&str) -> Option<String>) -> bool {
    let set = |flag: &str| env(flag).is_some_and(|value| matches!(value.as_str(), "1" | "true"));
    TY_FLAGS.into_iter().any(set)
}

/// A language server that could be used in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageServer {
    pub id: String,
    /// What would be started, or why it cannot be.
    pub program: Result<PathBuf, NoProgram>,
    /// People speak of it in their configuration.
    pub is_named: bool,
}

impl Workbench {
    /// The language servers that are turned on; all that are known where none is.
    pub fn language_servers(&self) -> Vec<LanguageServer> {
        let env = |name: &str| self.variable(name);
        let place = place(&self.workspace, self.is_trusted, &env);
        let setting = of_servers(self.config.settings.lsp.clone());
        let named: Vec<String> = match &setting {
            Setting::With(entries) => entries.iter().map(|(id, _)| id.clone()).collect(),
            Setting::Off | Setting::BuiltIn => Vec::new(),
        };
        let setting = if setting == Setting::Off { Setting::BuiltIn } else { setting };
        // What is wrong with the setting was said when the folder was opened.
        let servers = configured(setting, wants_ty(&env)).unwrap_or_default();
        let one = |server: Server| LanguageServer {
            program: place.installed(&server),
            is_named: named.contains(&server.id),
            id: server.id,
        };
        servers.into_iter().map(one).collect()
    }

    /// Whether language servers are turned on here.
    pub fn uses_language_servers(&self) -> bool {
        of_servers(self.config.settings.lsp.clone()) != Setting::Off
    }
}

fn of_servers(settings: Option<Switchable<ServerSettings>>) -> Setting {
    let entry = |(id, s): (String, ServerSettings)| {
        let ServerSettings { disabled, command, extensions, env, initialization } = s;
        (id, Entry { disabled, command, extensions, env, initialization })
    };
    match settings {
        None | Some(Switchable::All(false)) => Setting::Off,
        Some(Switchable::All(true)) => Setting::BuiltIn,
        Some(Switchable::With(Ordered(all))) => Setting::With(all.into_iter().map(entry).collect()),
    }
}

fn of_formatters(settings: Option<Switchable<FormatterSettings>>) -> FormatterSetting {
    let entry = |(name, s): (String, FormatterSettings)| {
        let FormatterSettings { disabled, command, environment, extensions } = s;
        (name, FormatterEntry { disabled, command, environment, extensions })
    };
    match settings {
        None | Some(Switchable::All(false)) => FormatterSetting::Off,
        Some(Switchable::All(true)) => FormatterSetting::BuiltIn,
        Some(Switchable::With(Ordered(all))) => {
            FormatterSetting::With(all.into_iter().map(entry).collect())
        }
    }
}
