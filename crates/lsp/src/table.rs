//! The servers that are known, and what people say about them in their configuration.

use std::collections::BTreeMap;

use serde_json::Value;

/// A server as it is used: a row of the table, changed by what people say.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    pub id: String,
    /// Endings with their dot, or whole names.
    pub extensions: Vec<String>,
    /// The first that is found is started.
    pub(crate) commands: Vec<Vec<String>>,
    pub(crate) root: Root,
    pub env: BTreeMap<String, String>,
    pub initialization: Option<Value>,
    /// Looking at a project with it runs what the project brings: build scripts, plugins, its own
    /// compiler.
    pub runs_project_code: bool,
}

/// How the folder is found that a server works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    /// Names or `*endings` in a folder that make it a root; the first list that is found anywhere
    /// upwards decides.
    pub(crate) markers: &'static [&'static [&'static str]],
    /// Where one of these is found, the server is not for this project.
    pub(crate) unless: &'static [&'static str],
    /// Without a marker there is no server, instead of one for the whole folder.
    pub(crate) strict: bool,
    pub(crate) climb: Climb,
}

/// A root may be a part of something larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Climb {
    Stay,
    /// To the `Cargo.toml` that has the workspace.
    CargoWorkspace,
    /// Along the `pom.xml` files that name the one below as a module.
    MavenModules,
}

struct Row {
    id: &'static str,
    extensions: &'static [&'static str],
    commands: &'static [&'static [&'static str]],
    root: Root,
    runs_project_code: bool,
}

const LOCK: &[&str] =
    &["package-lock.json", "bun.lockb", "bun.lock", "pnpm-lock.yaml", "yarn.lock"];
const DENO: &[&str] = &["deno.json", "deno.jsonc"];
const SCRIPT: &[&str] = &[".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts"];
const SCRIPT_AND_VUE: &[&str] =
    &[".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue"];
const SCRIPT_AND_PAGES: &[&str] =
    &[".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".astro", ".svelte"];
const BIOME: &[&str] = &[
    ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json", ".jsonc", ".vue",
    ".astro", ".svelte", ".css", ".graphql", ".gql", ".html",
];
const PYTHON: &[&str] = &[
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "Pipfile",
    "pyrightconfig.json",
];
const GRADLE: &[&str] = &["settings.gradle", "settings.gradle.kts", "gradlew", "gradlew.bat"];
const BUILD: &[&str] = &["build.gradle", "build.gradle.kts", "pom.xml", ".project", ".classpath"];

const fn root(markers: &'static [&'static [&'static str]]) -> Root {
    Root { markers, unless: &[], strict: false, climb: Climb::Stay }
}

const fn strict(root: Root) -> Root {
    Root { strict: true, ..root }
}

const fn row(
    id: &'static str,
    extensions: &'static [&'static str],
    commands: &'static [&'static [&'static str]],
    root: Root,
) -> Row {
    Row { id, extensions, commands, root, runs_project_code: false }
}

/// For servers that cannot look at a project without running some of it.
const fn running(row: Row) -> Row {
    Row { runs_project_code: true, ..row }
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    row("deno", &[".ts", ".tsx", ".js", ".jsx", ".mjs"], &[&["deno", "lsp"]], strict(root(&[DENO]))),
    running(row("typescript", SCRIPT, &[&["typescript-language-server", "--stdio"]],
        Root { unless: DENO, ..root(&[LOCK]) })),
    running(row("vue", &[".vue"], &[&["vue-language-server", "--stdio"]], root(&[LOCK]))),
    running(row("svelte", &[".svelte"], &[&["svelteserver", "--stdio"]], root(&[LOCK]))),
    running(row("astro", &[".astro"], &[&["astro-ls", "--stdio"]], root(&[LOCK]))),
    running(row("eslint", SCRIPT_AND_VUE, &[&["vscode-eslint-language-server", "--stdio"]],
        strict(root(&[&["eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts",
            ".eslintrc", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml", ".eslintrc.yaml"]])))),
    running(row("oxlint", SCRIPT_AND_PAGES, &[&["oxc_language_server"], &["oxlint", "--lsp"]],
        strict(root(&[&[".oxlintrc.json"]])))),
    row("biome", BIOME, &[&["biome", "lsp-proxy", "--stdio"]], strict(root(&[&["biome.json", "biome.jsonc"]]))),
    row("gopls", &[".go"], &[&["gopls"]], root(&[&["go.work"], &["go.mod", "go.sum"]])),
    running(row("ruby-lsp", &[".rb", ".rake", ".gemspec", ".ru"], &[&["rubocop", "--lsp"]], root(&[&["Gemfile"]]))),
    row("pyright", &[".py", ".pyi"], &[&["pyright-langserver", "--stdio"], &["basedpyright-langserver", "--stdio"]],
        root(&[PYTHON])),
    row("ty", &[".py", ".pyi"], &[&["ty", "server"]], root(&[&["ty.toml"], PYTHON])),
    running(row("elixir-ls", &[".ex", ".exs"], &[&["elixir-ls"], &["language_server.sh"]], root(&[&["mix.exs", "mix.lock"]]))),
    running(row("zls", &[".zig", ".zon"], &[&["zls"]], root(&[&["build.zig"]]))),
    running(row("csharp", &[".cs", ".csx"], &[&["roslyn-language-server", "--stdio", "--autoLoadProjects"], &["csharp-ls"]],
        root(&[&["*.slnx", "*.sln", "*.csproj", "global.json"]]))),
    running(row("razor", &[".razor", ".cshtml"], &[&["roslyn-language-server", "--stdio", "--autoLoadProjects"]],
        root(&[&["*.slnx", "*.sln", "*.csproj", "global.json"]]))),
    running(row("fsharp", &[".fs", ".fsi", ".fsx", ".fsscript"], &[&["fsautocomplete"]],
        root(&[&["*.slnx", "*.sln", "*.fsproj", "global.json"]]))),
    running(row("sourcekit-lsp", &[".swift", ".objc", "objcpp"], &[&["sourcekit-lsp"]],
        root(&[&["Package.swift", "*.xcodeproj", "*.xcworkspace"]]))),
    running(row("rust", &[".rs"], &[&["rust-analyzer"]],
        Root { climb: Climb::CargoWorkspace, ..root(&[&["Cargo.toml", "Cargo.lock"]]) })),
    row("clangd", &[".c", ".cpp", ".cc", ".cxx", ".c++", ".h", ".hpp", ".hh", ".hxx", ".h++"],
        &[&["clangd", "--background-index", "--clang-tidy"]],
        root(&[&["compile_commands.json", "compile_flags.txt", ".clangd"]])),
    running(row("jdtls", &[".java"], &[&["jdtls"]],
        Root { climb: Climb::MavenModules, ..strict(root(&[GRADLE, BUILD])) })),
    running(row("kotlin-ls", &[".kt", ".kts"], &[&["kotlin-lsp", "--stdio"], &["kotlin-language-server"]],
        root(&[GRADLE, BUILD]))),
    row("yaml-ls", &[".yaml", ".yml"], &[&["yaml-language-server", "--stdio"]], root(&[LOCK])),
    running(row("lua-ls", &[".lua"], &[&["lua-language-server"]],
        root(&[&[".luarc.json", ".luarc.jsonc", ".luacheckrc", ".stylua.toml", "stylua.toml", "selene.toml", "selene.yml"]]))),
    row("php intelephense", &[".php"], &[&["intelephense", "--stdio"]],
        root(&[&["composer.json", "composer.lock", ".php-version"]])),
    row("prisma", &[".prisma"], &[&["prisma", "language-server"], &["prisma-language-server", "--stdio"]],
        Root { unless: &["package.json"], ..root(&[&["schema.prisma", "prisma"]]) }),
    running(row("dart", &[".dart"], &[&["dart", "language-server", "--lsp"]],
        root(&[&["pubspec.yaml", "analysis_options.yaml"]]))),
    running(row("ocaml-lsp", &[".ml", ".mli"], &[&["ocamllsp"]],
        root(&[&["dune-project", "dune-workspace", ".merlin", "opam"]]))),
    row("gleam", &[".gleam"], &[&["gleam", "lsp"]], root(&[&["gleam.toml"]])),
    row("bash", &[".sh", ".bash", ".zsh", ".ksh"], &[&["bash-language-server", "start"]], root(&[])),
    running(row("terraform", &[".tf", ".tfvars"], &[&["terraform-ls", "serve"]],
        root(&[&[".terraform.lock.hcl", "terraform.tfstate", "*.tf"]]))),
    row("texlab", &[".tex", ".bib"], &[&["texlab"]], root(&[&[".latexmkrc", "latexmkrc", ".texlabroot", "texlabroot"]])),
    row("dockerfile", &[".dockerfile", "Dockerfile", "Containerfile"], &[&["docker-langserver", "--stdio"]], root(&[])),
    running(row("clojure-lsp", &[".clj", ".cljs", ".cljc", ".edn"], &[&["clojure-lsp", "listen"]],
        root(&[&["deps.edn", "project.clj", "shadow-cljs.edn", "bb.edn", "build.boot"]]))),
    running(row("nixd", &[".nix"], &[&["nixd"]], root(&[&["flake.nix"]]))),
    row("tinymist", &[".typ", ".typc"], &[&["tinymist"]], root(&[&["typst.toml"]])),
    running(row("haskell-language-server", &[".hs", ".lhs"], &[&["haskell-language-server-wrapper", "--lsp"]],
        root(&[&["stack.yaml", "cabal.project", "hie.yaml", "*.cabal"]]))),
    running(row("julials", &[".jl"],
        &[&["julia", "--startup-file=no", "--history-file=no", "-e", "using LanguageServer; runserver()"]],
        root(&[&["Project.toml", "Manifest.toml", "*.jl"]]))),
];

/// What people say about servers.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Setting {
    #[default]
    Off,
    /// Those of the table.
    BuiltIn,
    /// Those of the table, with changes and additions.
    With(Vec<(String, Entry)>),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    pub disabled: bool,
    pub command: Option<Vec<String>>,
    pub extensions: Option<Vec<String>>,
    pub env: BTreeMap<String, String>,
    pub initialization: Option<Value>,
}

/// The servers that a setting means. `ty` looks at Python instead of pyright where that is wanted.
/// Fails with words for the person who wrote the setting.
pub fn configured(setting: Setting, ty: bool) -> Result<Vec<Server>, String> {
    let entries = match setting {
        Setting::Off => return Ok(Vec::new()),
        Setting::BuiltIn => Vec::new(),
        Setting::With(entries) => entries,
    };
    let passed_over = if ty { "pyright" } else { "ty" };
    let used = TABLE.iter().filter(|row| row.id != passed_over);
    let mut servers: Vec<Server> = used.map(Row::server).collect();
    for (id, entry) in entries {
        if entry.disabled {
            servers.retain(|server| server.id != id);
            continue;
        }
        let row = TABLE.iter().find(|row| row.id == id).map(Row::server);
        let known = servers.iter().position(|server| server.id == id);
        let mut server = match (row, &entry.command, &entry.extensions) {
            (Some(server), ..) => server,
            (None, Some(_), Some(extensions)) if !extensions.is_empty() => Server::new(&id),
            (None, None, _) => {
                return Err(format!("lsp.{id}: a server of your own needs a command"));
            }
            (None, ..) => return Err(format!("lsp.{id}: a server of your own needs extensions")),
        };
        if let Some(command) = entry.command {
            if command.first().is_none_or(String::is_empty) {
                return Err(format!("lsp.{id}: the command is empty"));
            }
            server.commands = vec![command];
        }
        server.extensions = entry.extensions.unwrap_or(server.extensions);
        server.env = entry.env;
        server.initialization = entry.initialization;
        match known {
            Some(at) => servers[at] = server,
            None => servers.push(server),
        }
    }
    Ok(servers)
}

impl Row {
    fn server(&self) -> Server {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        Server {
            extensions: words(self.extensions),
            commands: self.commands.iter().map(|command| words(command)).collect(),
            root: self.root.clone(),
            runs_project_code: self.runs_project_code,
            ..Server::new(self.id)
        }
    }
}

impl Server {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            extensions: Vec::new(),
            commands: Vec::new(),
            root: root(&[]),
            env: BTreeMap::new(),
            initialization: None,
            runs_project_code: false,
        }
    }

    /// Its first push for a file holds only what was quick to find.
    pub(crate) fn first_push_is_partial(&self) -> bool {
        self.id == "typescript"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(id: &str, entry: Entry) -> Result<Vec<Server>, String> {
        configured(Setting::With(vec![(id.to_owned(), entry)]), false)
    }

    fn words(list: &[&str]) -> Option<Vec<String>> {
        Some(list.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn servers_are_off_unless_somebody_turns_them_on() {
        assert_eq!(configured(Setting::Off, false), Ok(vec![]));
        let all = configured(Setting::BuiltIn, false).unwrap();
        let ids: Vec<&str> = all.iter().map(|server| server.id.as_str()).collect();
        for expected in ["rust", "gopls", "pyright", "typescript", "clangd"] {
            assert!(ids.contains(&expected), "{expected}");
        }
        assert!(!ids.contains(&"ty"));
        let with_ty = configured(Setting::BuiltIn, true).unwrap();
        assert!(with_ty.iter().any(|s| s.id == "ty") && !with_ty.iter().any(|s| s.id == "pyright"));
    }

    #[test]
    fn every_row_can_be_used() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(!row.extensions.is_empty() && !row.commands.is_empty(), "{}", row.id);
            assert!(TABLE[..at].iter().all(|other| other.id != row.id), "{} twice", row.id);
        }
    }

    #[test]
    fn entries_remove_change_and_add() {
        let off = with("rust", Entry { disabled: true, ..Entry::default() }).unwrap();
        assert!(off.iter().all(|server| server.id != "rust"));
        let entry = Entry { command: words(&["ra"]), ..Entry::default() };
        let changed = with("rust", entry).unwrap();
        let rust = changed.iter().find(|server| server.id == "rust").unwrap();
        assert_eq!((rust.commands[0][0].as_str(), rust.extensions[0].as_str()), ("ra", ".rs"));
        assert_eq!(rust.root.climb, Climb::CargoWorkspace);
        let own = Entry { command: words(&["x"]), extensions: words(&[".x"]), ..Entry::default() };
        assert_eq!(with("mine", own).unwrap().last().unwrap().id, "mine");
    }

    #[test]
    fn an_entry_that_cannot_work_says_what_is_missing() {
        let cases = [
            (Entry::default(), "needs a command"),
            (Entry { command: words(&["x"]), ..Entry::default() }, "needs extensions"),
            (
                Entry { command: words(&[]), extensions: words(&[".x"]), ..Entry::default() },
                "command is empty",
            ),
        ];
        for (entry, expected) in cases {
            let error = with("mine", entry).unwrap_err();
            assert!(error.starts_with("lsp.mine: ") && error.contains(expected), "{error}");
        }
    }
}
