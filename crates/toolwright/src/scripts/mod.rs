//! Tools and plugins that people wrote: found in their folders, described once, registered beside ours.
//!
//! What a script does goes through the same rules as everything else; the files of a project are not
//! run before its folder is trusted. Without such files nothing of this is touched.

mod client;
mod configure;
mod form;
mod guard;
mod hook;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolwright_config::{ConfigFolder, PLUGIN_FOLDERS, TOOL_FOLDERS, config_folders};
use toolwright_engine::{Hook, Inbox, PermissionGate};
use toolwright_permission::{LayerKind, shipped_defaults};
use toolwright_script::{
    Definition, Described, EXECUTE, ExecuteTool, Host, HostOptions, Kind, Program, ProgramTool,
    Script, ScriptTool,
};
use toolwright_session::images::Keeper;
use toolwright_tool::{AnyTool, Registry, Source};

use crate::secrets;
use crate::workbench::Workbench;
use client::PluginClient;
use form::unusable;
use guard::{GateGuard, Post};
use hook::PluginHook;

const ENDINGS: &[&str] = &["js", "ts", "mjs", "mts", "cjs", "cts"];

/// Hooks of plugins that are called here, by the names that people know.
const KNOWN_HOOKS: &[&str] = &[
    "event",
    "config",
    "provider",
    "chat.message",
    "chat.params",
    "chat.headers",
    "permission.ask",
    "command.execute.before",
    "tool.execute.before",
    "tool.execute.after",
    "tool.definition",
    "shell.env",
    "experimental.chat.messages.transform",
    "experimental.chat.system.transform",
    "experimental.session.compacting",
    "experimental.text.complete",
    "dispose",
    "tool",
];

/// Keys of rules beside the shipped ones that decide about more than a tool of the same name, or about
/// tools that join later.
const RULE_KEYS: &[&str] = &[
    "apply_patch",
    "batch",
    "bash_input",
    "codesearch",
    "doom_loop",
    "mcp_sampling",
    "multiedit",
    "outside_sandbox",
    "plan_enter",
    "plan_exit",
    "question",
    "todoread",
    "webfetch",
    "websearch",
    "write",
];
/// Those that make no sense here, with what to do instead.
const OTHER_WAYS: &[(&str, &str)] = &[(
    "auth",
    "it wants to sign in at a provider, which plugins cannot do here: keep a key with  tw auth login",
)];

/// The scripts of one agent: each agent has its own, so that none acts with another's rules.
#[derive(Default)]
pub(crate) struct Scripts {
    tools: Vec<Arc<Script>>,
    programs: Vec<Program>,
    plugins: Vec<Arc<PluginHook>>,
    post: Post,
    memory: Option<PathBuf>,
    host: Option<Arc<Host>>,
    client: Option<Arc<PluginClient>>,
    code_mode: bool,
}

/// Folders whose files may be used. What is left out of the others was said with the settings.
fn usable(bench: &Workbench) -> Vec<ConfigFolder> {
    let (directory, worktree) = (bench.workspace.directory(), bench.workspace.worktree());
    let mut folders = config_folders(&bench.paths, directory, worktree);
    folders.retain(|folder| folder.kind != LayerKind::Project || bench.is_trusted);
    folders
}

impl Scripts {
    /// Finds them; nothing is run.
    pub(crate) fn find(bench: &Workbench) -> (Self, Vec<String>) {
        let (folders, mut notices) = (usable(bench), Vec::new());
        let (mut tools, mut programs, mut plugins) = (Vec::new(), Vec::new(), Vec::new());
        for folder in &folders {
            for file in folder.all_files(TOOL_FOLDERS) {
                if folder.files(TOOL_FOLDERS, ENDINGS).contains(&file) {
                    tools.push(file);
                } else if Program::could_be(&file) {
                    programs.push(file);
                }
            }
            plugins.extend(
                folder
                    .files(PLUGIN_FOLDERS, ENDINGS)
                    .into_iter()
                    .map(|file| (file, serde_json::Value::Null)),
            );
        }
        let configured = crate::plugins::configured(bench);
        notices.extend(configured.notices);
        plugins.extend(configured.found);
        let code_mode = code_mode(bench);
        if tools.is_empty() && plugins.is_empty() && programs.is_empty() && !code_mode {
            return (Self::default(), notices);
        }
        let mut own_folders: Vec<PathBuf> = folders.into_iter().map(|f| f.path).collect();
        own_folders
            .extend(plugins.iter().filter_map(|(file, _)| file.parent().map(Path::to_owned)));
        let own_folders =
            own_folders.iter().filter_map(|f| std::fs::canonicalize(f).ok()).collect();
        let withheld: Vec<String> =
            secrets::key_variables(&bench.config.settings).map(str::to_owned).collect();
        let client = Arc::new(PluginClient::new(bench));
        let host = Host::new(HostOptions {
            workspace: Arc::clone(&bench.workspace),
            environment: environment(&withheld),
            withheld,
            passed: bench.config.settings.sandbox.environment.clone(),
            sandbox: bench.protection.as_find(),
            own_folders,
            client: Some(Arc::clone(&client) as _),
        });
        let post = Post::default();
        let script = |file: &Path, kind| Script::new(file, kind, Arc::clone(&host));
        let tools = tools.iter().map(|file| Arc::new(script(file, Kind::Tools))).collect();
        let plugin = |(file, options): (PathBuf, serde_json::Value)| {
            let script = Arc::new(script(&file, Kind::Plugin).with_options(options));
            let guard = GateGuard::new(&post, Arc::clone(&bench.workspace), &file);
            Arc::new(PluginHook::new(script, Arc::new(guard)))
        };
        let plugins = plugins.into_iter().map(plugin).collect();
        let programs = programs.into_iter().map(|file| Program::new(file, &host)).collect();
        let memory = Some(bench.paths.data.join("scripts"));
        let (host, client) = (Some(host), Some(client));
        (Self { tools, programs, plugins, post, memory, host, client, code_mode }, notices)
    }

    /// From here on this one decides for plugins.
    fn stand_under(&self, gate: &Arc<PermissionGate>) {
        self.post.set(gate);
    }

    /// What plugins that begin from here on find configured.
    fn show_settings(&self, settings: serde_json::Value) {
        if let Some(host) = &self.host {
            host.set_settings(settings);
        }
    }

    /// Who notes what plugins do to files.
    pub(crate) fn noted_by(&self, keeper: Option<&Keeper>) {
        self.post.set_keeper(keeper.cloned());
    }

    /// Whom plugins talk to where they say something to the session.
    pub(crate) fn talk_to(&self, inbox: Arc<Inbox>) {
        if let Some(client) = &self.client {
            client.talk_to(inbox);
        }
    }

    /// For the engine, in the order in which they were found.
    pub(crate) fn hooks(&self, session: &str) -> Vec<Arc<dyn Hook>> {
        for plugin in &self.plugins {
            plugin.belongs_to(session);
        }
        if let Some(client) = &self.client {
            client.belongs_to(session);
        }
        self.plugins.iter().map(|plugin| Arc::clone(plugin) as Arc<dyn Hook>).collect()
    }

    /// Asks each file what it offers and puts its tools into the registry. What goes wrong with one is
    /// said and leaves the others alone. Gives the names of the tools, and what is to be said.
    pub(crate) async fn register(
        &self,
        registry: &Registry,
        gate: &Arc<PermissionGate>,
        session: &str,
        agent: &str,
    ) -> (Vec<String>, Vec<String>) {
        self.stand_under(gate);
        if let Some(host) = self.host.as_ref().filter(|_| self.code_mode) {
            // Each of its calls is judged by itself.
            gate.allow_by_default(EXECUTE);
            let tool = ExecuteTool::new(Arc::clone(host));
            // Not as one of ours: nobody knows beforehand which files its calls will change.
            registry.register_from(Source::Custom, Arc::new(tool));
        }
        let memory = self.memory.as_deref();
        let programs = self.programs.iter().map(|program| program.describe(memory));
        let programs = futures_util::future::join_all(programs).await;
        // A program does as it likes: a script of the same name must not speak for it.
        let run: Vec<String> = programs.iter().flatten().map(|d| d.name.clone()).collect();
        let (mut notices, mut names) = (Vec::new(), Vec::new());
        let mut put = |source: Source, tool: Arc<dyn AnyTool>, from: &Path, asks_itself: bool| {
            let name = tool.name().to_owned();
            let (description, parameters) = (String::new(), tool.schema());
            let definition = Definition { name: name.clone(), description, parameters };
            if let Some(problem) = unusable(&definition) {
                notices.push(format!("{}: {problem}", from.display()));
                return;
            }
            // What it does asks for itself; that it is called is no more than a function call. Not where
            // the name stands for something else too: that would be let through with it.
            if asks_itself && !run.contains(&name) && !is_rule_key(&name, registry) {
                gate.allow_by_default(&name);
            }
            if registry.contains(&name) {
                notices.push(format!(
                    "{}: its tool {name} takes the place of another one",
                    from.display()
                ));
            }
            registry.register_from(source, tool);
            names.push(name);
        };
        let described = self.tools.iter().map(|script| script.describe(memory, None));
        let described = futures_util::future::join_all(described).await;
        // What was only looked at needs no engine until it is called; to take one apart is work that nobody
        // waits for.
        self.tools.iter().for_each(|script| script.rest());
        let mut problems = Vec::new();
        for (script, described) in self.tools.iter().zip(described) {
            for definition in taken(script.path(), described, &mut problems) {
                let tool = ScriptTool::new(Arc::clone(script), definition, session, agent);
                put(Source::Custom, Arc::new(tool), script.path(), true);
            }
        }
        for (program, described) in self.programs.iter().zip(programs) {
            match described {
                Ok(definition) => {
                    let tool = ProgramTool::new(program.clone(), definition, session, agent);
                    put(Source::Custom, Arc::new(tool), program.path(), false);
                }
                Err(problem) => problems.push(format!("{}: {problem}", program.path().display())),
            }
        }
        for plugin in &self.plugins {
            let script = plugin.script();
            let described = plugin.describe(memory).await;
            if let Ok(Described { hooks, .. }) = &described {
                problems.extend(without_effect(script.path(), hooks));
            }
            for definition in taken(script.path(), described, &mut problems) {
                let tool = ScriptTool::new(Arc::clone(script), definition, session, agent);
                put(Source::Plugin, Arc::new(tool), script.path(), true);
            }
        }
        notices.extend(problems);
        notices.extend(self.host.iter().flat_map(|host| host.take_notices()));
        (names, notices)
    }
}

/// What of a plugin does nothing here, said once for all of it.
fn without_effect(path: &Path, hooks: &[String]) -> Vec<String> {
    let other = |hook: &str| OTHER_WAYS.iter().find(|(name, _)| *name == hook);
    let mut said: Vec<String> = hooks
        .iter()
        .filter_map(|hook| other(hook))
        .map(|(_, words)| format!("{}: {words}", path.display()))
        .collect();
    let odd = |hook: &&str| !KNOWN_HOOKS.contains(hook) && other(hook).is_none();
    let odd: Vec<&str> = hooks.iter().map(String::as_str).filter(odd).collect();
    if !odd.is_empty() {
        let odd = odd.join(", ");
        said.push(format!("{}: these of its hooks have no effect here: {odd}", path.display()));
    }
    said
}

/// Off unless somebody wants it: most models do better with plain calls.
fn code_mode(bench: &Workbench) -> bool {
    let on = |name: &str| matches!(bench.variable(name).as_deref(), Some("1" | "true"));
    bench.config.settings.experimental.code_mode || on("OPENCODE_EXPERIMENTAL_CODE_MODE")
}

fn taken(
    path: &Path,
    described: Result<Described, toolwright_script::ScriptError>,
    problems: &mut Vec<String>,
) -> Vec<Definition> {
    match described {
        Ok(described) => {
            let said = described.problems.iter().map(|p| format!("{}: {p}", path.display()));
            problems.extend(said);
            described.tools
        }
        Err(error) => {
            problems.push(format!("{}: it is not used: {error}", path.display()));
            Vec::new()
        }
    }
}

/// Whether rules with this key are about something else than a tool of a script's.
fn is_rule_key(name: &str, registry: &Registry) -> bool {
    let of_script = matches!(registry.source_of(name), Some(Source::Custom | Source::Plugin));
    RULE_KEYS.contains(&name)
        || shipped_defaults().rules.iter().any(|rule| rule.permission == name)
        || (registry.is_judged_by(name) && !of_script)
}

/// What scripts see: everything but our own keys and what steers a program's loader.
fn environment(withheld: &[String]) -> BTreeMap<String, String> {
    let kept = |name: &str| {
        !withheld.iter().any(|w| w == name)
            && !name.starts_with("LD_")
            && !name.starts_with("DYLD_")
    };
    std::env::vars().filter(|(name, _)| kept(name)).collect()
}
