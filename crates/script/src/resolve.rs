//! Which file an import means: ours, one beside the script, or a package in a `node_modules` folder.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Modules that the engine brings; `js/node.js` has them.
const BUILT_IN: &[&str] = &[
    "assert",
    "assert/strict",
    "async_hooks",
    "buffer",
    "bun",
    "child_process",
    "constants",
    "crypto",
    "events",
    "fs",
    "fs/promises",
    "module",
    "os",
    "path",
    "path/posix",
    "perf_hooks",
    "process",
    "querystring",
    "string_decoder",
    "timers",
    "timers/promises",
    "tty",
    "url",
    "util",
];

/// Those of which only the names are there.
const NAMED: &[&str] = &[
    "diagnostics_channel",
    "dgram",
    "dns",
    "dns/promises",
    "http",
    "http2",
    "inspector",
    "https",
    "net",
    "readline",
    "readline/promises",
    "stream",
    "stream/promises",
    "tls",
    "v8",
    "vm",
    "worker_threads",
    "zlib",
];

/// Names under which our own plugin module is known.
const PLUGIN: &[&str] = &["@opencode-ai/plugin", "@opencode-ai/plugin/tool", "toolwright"];
const ZOD: &[&str] = &["zod", "zod/v4", "zod/v3", "zod/mini", "zod/v4-mini"];

const ENDINGS: &[&str] = &["", ".ts", ".js", ".mjs", ".cjs", ".mts", ".cts", ".json"];
const INDEXES: &[&str] = &["index.ts", "index.js", "index.mjs", "index.cjs"];

/// How something is asked for: packages may have a file for each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Import,
    Require,
}

impl Way {
    /// What a package may call a file that is meant for this way. The first that it names counts.
    fn conditions(self) -> &'static [&'static str] {
        match self {
            Self::Import => &["import", "module", "node", "default"],
            Self::Require => &["require", "node", "default"],
        }
    }

    /// Better than nothing.
    const OTHERS: &'static [&'static str] = &["import", "module", "require", "bun", "default"];
}

/// The full name of what `base` wants as `name`: `tw:…`, `node:…` or a path.
pub(crate) fn resolve(base: &str, name: &str, way: Way) -> Result<String, String> {
    if name.starts_with("tw:") {
        return Ok(name.to_owned());
    }
    if PLUGIN.contains(&name) {
        return Ok("tw:plugin".to_owned());
    }
    if ZOD.contains(&name) {
        return Ok("tw:zod".to_owned());
    }
    let plain = name.strip_prefix("node:").unwrap_or(name);
    if BUILT_IN.contains(&plain) || NAMED.contains(&plain) {
        return Ok(format!("node:{plain}"));
    }
    if name.starts_with('#') {
        return own_import(Path::new(base), name, way)
            .and_then(|path| std::fs::canonicalize(path).ok())
            .map(|path| path.display().to_string())
            .ok_or_else(|| format!("no package.json above {base} says what \"{name}\" is"));
    }
    if name.starts_with("node:") || name.starts_with("bun:") {
        return Err(format!(
            "the module \"{name}\", imported by {base}, is not available in Toolwright's script engine"
        ));
    }
    let folder = Path::new(base).parent().unwrap_or(Path::new("/"));
    let path = name.strip_prefix("file://").unwrap_or(name);
    let found = if path.starts_with('.') || path.starts_with('/') {
        file_at(&folder.join(path), way)
    } else {
        package(folder, name, way)
    };
    let found = found.and_then(|path| std::fs::canonicalize(path).ok());
    match found {
        Some(path) => Ok(path.display().to_string()),
        None if path.starts_with('.') || path.starts_with('/') => {
            Err(format!("cannot find \"{name}\", imported by {base}"))
        }
        None => Err(format!(
            "cannot find the package \"{name}\", imported by {base}: no node_modules folder above it has it"
        )),
    }
}

/// The file that a path without its ending, or a folder, stands for.
fn file_at(path: &Path, way: Way) -> Option<PathBuf> {
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let direct = ENDINGS.iter().map(|ending| with(ending)).find(|p| p.is_file());
    // TypeScript is imported under the name that it will have when it is compiled.
    let compiled = || {
        let stem = path.to_str()?.strip_suffix(".js")?;
        Some(PathBuf::from(format!("{stem}.ts"))).filter(|p| p.is_file())
    };
    let index = || INDEXES.iter().map(|name| path.join(name)).find(|p| p.is_file());
    direct.or_else(compiled).or_else(|| entry_of(path, way)).or_else(index)
}

fn package(folder: &Path, name: &str, way: Way) -> Option<PathBuf> {
    let mut parts = name.splitn(if name.starts_with('@') { 3 } else { 2 }, '/');
    let mut package = parts.next()?.to_owned();
    if name.starts_with('@') {
        package = format!("{package}/{}", parts.next()?);
    }
    let inside = parts.next();
    for above in folder.ancestors() {
        let home = above.join("node_modules").join(&package);
        if !home.is_dir() {
            continue;
        }
        let Some(inside) = inside else { return file_at(&home, way) };
        let wanted = format!("./{inside}");
        let exported = manifest(&home)
            .and_then(|manifest| exported(&manifest["exports"], &wanted, way))
            .and_then(|file| file_at(&home.join(file), way));
        return exported.or_else(|| file_at(&home.join(inside), way));
    }
    None
}

/// What a package calls something of its own, by its `imports`.
fn own_import(base: &Path, name: &str, way: Way) -> Option<PathBuf> {
    let (home, manifest) =
        base.ancestors().skip(1).find_map(|folder| Some((folder, manifest(folder)?)))?;
    let file = exported(&manifest["imports"], name, way)?;
    match file.starts_with('.') {
        true => file_at(&home.join(file), way),
        false => package(home, &file, way),
    }
}

fn manifest(folder: &Path) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(folder.join("package.json")).ok()?).ok()
}

/// The file by which a package is entered.
fn entry_of(folder: &Path, way: Way) -> Option<PathBuf> {
    let manifest = manifest(folder)?;
    let named = |key: &str| manifest[key].as_str().map(str::to_owned);
    // Only bundlers know the second; what is imported is best there, and what is required is not.
    let keys = match way {
        Way::Import => ["module", "main"],
        Way::Require => ["main", "module"],
    };
    let main =
        exported(&manifest["exports"], ".", way).or_else(|| keys.into_iter().find_map(named))?;
    // A folder that names itself would be looked for without end.
    if matches!(main.trim_end_matches('/'), "." | "") {
        return None;
    }
    file_at(&folder.join(main), way)
}

/// What a package's `exports` say about one of its entries.
fn exported(exports: &Value, entry: &str, way: Way) -> Option<String> {
    fn chosen(value: &Value, conditions: &[&str], depth: usize) -> Option<String> {
        match value {
            Value::String(file) => Some(file.clone()),
            Value::Array(list) if depth > 0 => {
                list.iter().find_map(|value| chosen(value, conditions, depth - 1))
            }
            Value::Object(map) if depth > 0 => {
                let fitting = map.iter().filter(|(key, _)| conditions.contains(&key.as_str()));
                fitting.into_iter().find_map(|(_, value)| chosen(value, conditions, depth - 1))
            }
            _ => None,
        }
    }
    let of = |value: &Value| {
        chosen(value, way.conditions(), 8).or_else(|| chosen(value, Way::OTHERS, 8))
    };
    let Some(map) = exports.as_object() else {
        return (entry == ".").then(|| of(exports)).flatten();
    };
    if !map.keys().any(|key| key.starts_with(['.', '#'])) {
        return (entry == ".").then(|| of(exports)).flatten();
    }
    if let Some(value) = map.get(entry) {
        return of(value);
    }
    map.iter().find_map(|(key, value)| {
        let (before, after) = key.split_once('*')?;
        let middle = entry.strip_prefix(before)?.strip_suffix(after)?;
        Some(of(value)?.replace('*', middle))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_as_people_write_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("tools/a.ts", "");
        write("tools/lib/b.ts", "");
        write("tools/lib/index.js", "");
        write("node_modules/plain/package.json", r#"{"main":"./main.cjs"}"#);
        write("node_modules/plain/main.cjs", "");
        write(
            "node_modules/@s/p/package.json",
            r#"{"exports":{".":{"types":"./x.d.ts","import":"./m.js"},"./sub/*":{"default":"./d/*.js"}}}"#,
        );
        write("node_modules/@s/p/m.js", "");
        write("node_modules/@s/p/d/q.js", "");
        write(
            "node_modules/inner/package.json",
            r##"{"exports":"./i.js","imports":{"#util/*":{"node":"./u/*.js","default":"./b/*.js"},"#out":"plain"}}"##,
        );
        write("node_modules/inner/i.js", "");
        write("node_modules/inner/u/x.js", "");
        write(
            "node_modules/dual/package.json",
            r#"{"module":"./m.js","exports":{".":{"types":"./t.d.ts","node":{"import":"./i.mjs","require":"./r.cjs"},"default":"./d.js"},"./only":{"require":"./r.cjs"}}}"#,
        );
        write("node_modules/dual/i.mjs", "");
        write("node_modules/dual/r.cjs", "");
        write("node_modules/two/package.json", r#"{"module":"./m.js","main":"./c.js"}"#);
        write("node_modules/two/m.js", "");
        write("node_modules/two/c.js", "");
        write("node_modules/self/package.json", r#"{"main":"."}"#);
        let base = root.join("tools/a.ts").display().to_string();
        let found = |name: &str| {
            resolve(&base, name, Way::Import).map(|p| {
                p.strip_prefix(&format!("{}/", root.display())).map_or(p.clone(), str::to_owned)
            })
        };
        for (name, expected) in [
            ("./lib/b", "tools/lib/b.ts"),
            ("./lib/b.ts", "tools/lib/b.ts"),
            ("./lib/b.js", "tools/lib/b.ts"),
            ("./lib", "tools/lib/index.js"),
            ("plain", "node_modules/plain/main.cjs"),
            ("@s/p", "node_modules/@s/p/m.js"),
            ("@s/p/sub/q", "node_modules/@s/p/d/q.js"),
            ("dual", "node_modules/dual/i.mjs"),
            ("dual/only", "node_modules/dual/r.cjs"),
            ("two", "node_modules/two/m.js"),
            ("node:fs", "node:fs"),
            ("fs/promises", "node:fs/promises"),
            ("@opencode-ai/plugin", "tw:plugin"),
            ("zod", "tw:zod"),
        ] {
            assert_eq!(found(name).as_deref(), Ok(expected), "{name}");
        }
        for (name, expected) in [("dual", "r.cjs"), ("two", "c.js"), ("@s/p", "m.js")] {
            let found = resolve(&base, name, Way::Require).unwrap();
            assert!(found.ends_with(&format!("/{expected}")), "{name}: {found}");
        }
        let inner = root.join("node_modules/inner/i.js").display().to_string();
        let own = |name: &str| {
            resolve(&inner, name, Way::Import).map(|p| p.rsplit('/').next().unwrap().to_owned())
        };
        assert_eq!(own("#util/x").as_deref(), Ok("x.js"));
        assert_eq!(own("#nothing").ok(), None);
        for missing in ["./nothing", "nothing", "node:sqlite", "bun:sqlite", "#x", "self"] {
            assert!(found(missing).is_err(), "{missing}");
        }
    }
}
