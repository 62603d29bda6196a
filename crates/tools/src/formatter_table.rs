//! The formatters that are known.

use super::When;

pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) extensions: &'static [&'static str],
    pub(super) command: &'static [&'static str],
    pub(super) when: When,
    /// It runs what the project brings: plugins, its own toolchain.
    pub(super) runs_project_code: bool,
}

const fn row(
    name: &'static str,
    extensions: &'static [&'static str],
    command: &'static [&'static str],
    when: When,
) -> Row {
    Row { name, extensions, command, when, runs_project_code: false }
}

const fn running(row: Row) -> Row {
    Row { runs_project_code: true, ..row }
}

const SCRIPT: &[&str] = &[".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"];
const WEB: &[&str] = &[
    ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".html", ".htm", ".css", ".scss",
    ".sass", ".less", ".vue", ".svelte", ".json", ".jsonc", ".yaml", ".yml", ".toml", ".xml",
    ".md", ".mdx", ".graphql", ".gql",
];
const C: &[&str] =
    &[".c", ".cc", ".cpp", ".cxx", ".c++", ".h", ".hh", ".hpp", ".hxx", ".h++", ".ino", ".C", ".H"];

/// In this order they are run. `$FILE` is the file.
#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    row("gofmt", &[".go"], &["gofmt", "-w", "$FILE"], When::Found),
    running(row("mix", &[".ex", ".exs", ".eex", ".heex", ".leex", ".neex", ".sface"], &["mix", "format", "$FILE"], When::Found)),
    running(row("prettier", WEB, &["prettier", "--write", "$FILE"], When::Package("prettier"))),
    running(row("oxfmt", SCRIPT, &["oxfmt", "$FILE"], When::Package("oxfmt"))),
    row("biome", WEB, &["biome", "format", "--write", "$FILE"], When::Marker(&["biome.json", "biome.jsonc"])),
    row("zig", &[".zig", ".zon"], &["zig", "fmt", "$FILE"], When::Found),
    row("clang-format", C, &["clang-format", "-i", "$FILE"], When::Marker(&[".clang-format"])),
    row("ktlint", &[".kt", ".kts"], &["ktlint", "-F", "$FILE"], When::Found),
    row("ruff", &[".py", ".pyi"], &["ruff", "format", "$FILE"], When::Ruff),
    running(row("uv", &[".py", ".pyi"], &["uv", "format", "--", "$FILE"], When::WithoutRuff)),
    row("air", &[".R"], &["air", "format", "$FILE"], When::Found),
    running(row("rubocop", &[".rb", ".rake", ".gemspec", ".ru"], &["rubocop", "--autocorrect", "$FILE"], When::Found)),
    running(row("standardrb", &[".rb", ".rake", ".gemspec", ".ru"], &["standardrb", "--fix", "$FILE"], When::Found)),
    row("htmlbeautifier", &[".erb"], &["htmlbeautifier", "$FILE"], When::Found),
    row("dart", &[".dart"], &["dart", "format", "$FILE"], When::Found),
    row("ocamlformat", &[".ml", ".mli"], &["ocamlformat", "-i", "$FILE"], When::Marker(&[".ocamlformat"])),
    row("terraform", &[".tf", ".tfvars"], &["terraform", "fmt", "$FILE"], When::Found),
    row("latexindent", &[".tex"], &["latexindent", "-w", "-s", "$FILE"], When::Found),
    row("gleam", &[".gleam"], &["gleam", "format", "$FILE"], When::Found),
    row("shfmt", &[".sh", ".bash"], &["shfmt", "-w", "$FILE"], When::Found),
    row("nixfmt", &[".nix"], &["nixfmt", "$FILE"], When::Found),
    // A project can name a toolchain of its own.
    running(row("rustfmt", &[".rs"], &["rustfmt", "$FILE"], When::Found)),
    running(row("pint", &[".php"], &["./vendor/bin/pint", "$FILE"], When::Composer("laravel/pint"))),
    row("ormolu", &[".hs"], &["ormolu", "-i", "$FILE"], When::Found),
    row("cljfmt", &[".clj", ".cljs", ".cljc", ".edn"], &["cljfmt", "fix", "--quiet", "$FILE"], When::Found),
    row("dfmt", &[".d"], &["dfmt", "-i", "$FILE"], When::Found),
];
