//! The protocol's names for languages.

use std::path::Path;

const NAMES: &[(&str, &[&str])] = &[
    ("bat", &["bat", "cmd"]),
    ("bibtex", &["bib"]),
    ("c", &["c"]),
    ("cpp", &["cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "h++", "ino"]),
    ("clojure", &["clj", "cljs", "cljc", "edn"]),
    ("csharp", &["cs", "csx"]),
    ("aspnetcorerazor", &["razor", "cshtml"]),
    ("css", &["css"]),
    ("dart", &["dart"]),
    ("dockerfile", &["dockerfile", "Dockerfile"]),
    ("elixir", &["ex", "exs"]),
    ("fsharp", &["fs", "fsi", "fsx", "fsscript"]),
    ("go", &["go"]),
    ("graphql", &["graphql", "gql"]),
    ("haskell", &["hs", "lhs"]),
    ("html", &["html", "htm"]),
    ("java", &["java"]),
    ("javascript", &["js", "mjs", "cjs"]),
    ("javascriptreact", &["jsx"]),
    ("json", &["json"]),
    ("jsonc", &["jsonc"]),
    ("julia", &["jl"]),
    ("kotlin", &["kt", "kts"]),
    ("latex", &["tex"]),
    ("less", &["less"]),
    ("markdown", &["md"]),
    ("objective-c", &["m", "objc"]),
    ("objective-cpp", &["mm", "objcpp"]),
    ("ocaml", &["ml", "mli"]),
    ("php", &["php"]),
    ("prisma", &["prisma"]),
    ("python", &["py", "pyi"]),
    ("ruby", &["rb", "rake", "gemspec", "ru"]),
    ("rust", &["rs"]),
    ("sass", &["sass"]),
    ("scss", &["scss"]),
    ("shellscript", &["sh", "bash", "zsh", "ksh"]),
    ("swift", &["swift"]),
    ("terraform", &["tf"]),
    ("terraform-vars", &["tfvars"]),
    ("typescript", &["ts", "mts", "cts"]),
    ("typescriptreact", &["tsx"]),
    ("typst", &["typ", "typc"]),
    ("xml", &["xml"]),
    ("yaml", &["yaml", "yml"]),
];

/// Most are called as their files end; a file without an ending is plain text.
pub(crate) fn of(path: &Path) -> String {
    let ending = path.extension().or(path.file_name()).unwrap_or_default().to_string_lossy();
    let named = NAMES.iter().find(|(_, endings)| endings.contains(&ending.as_ref()));
    match (named, path.extension()) {
        (Some((name, _)), _) => (*name).to_owned(),
        (None, Some(_)) => ending.into_owned(),
        (None, None) => "plaintext".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_language_that_servers_expect() {
        let cases = [
            ("a.rs", "rust"),
            ("a.tsx", "typescriptreact"),
            ("a.d.ts", "typescript"),
            ("Dockerfile", "dockerfile"),
            ("x.zig", "zig"),
            ("README", "plaintext"),
        ];
        for (file, expected) in cases {
            assert_eq!(of(Path::new(file)), expected);
        }
    }
}
