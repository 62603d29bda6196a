//! Where modules come from: which files a script may import, how they are made ready, and what they know of
//! where they lie.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Function, Module, Object, Value};
use serde_json::json;

use crate::engine::{ENTRY, Js, throw};
use crate::parts;
use crate::realm::Shared;
use crate::resolve::{Way, resolve};
use crate::source::{Form, Origins, Place, Source, prepare};

/// A file that was read for a script.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) hash: String,
    origins: Option<Arc<Origins>>,
    /// How much of ours stands before its first line.
    before: u32,
}

impl Shared {
    /// What lies with the script, and packages that lie above it. Of the project itself only code: data is
    /// read with `fs`, which asks.
    fn may_import(&self, path: &Path) -> Result<(), String> {
        let Some(home) = &self.home else {
            return Err("a program of code mode imports no files".to_owned());
        };
        let mut homes = self.host.own_folders().iter().chain([home]);
        let is_own = |folder: &PathBuf| path.starts_with(folder);
        let is_package = |folder: &PathBuf| {
            let packages = folder.ancestors().map(|above| above.join("node_modules"));
            packages.into_iter().any(|packages| path.starts_with(packages))
        };
        let is_code = path.extension().is_some_and(|e| e != "json");
        let is_project = is_code && path.starts_with(self.host.workspace().worktree());
        if homes.any(|folder| is_own(folder) || is_package(folder)) || is_project {
            return Ok(());
        }
        Err(format!(
            "{} is outside of what scripts may import: read it with fs instead",
            path.display()
        ))
    }

    pub(crate) fn read(&self, path: &str) -> Result<String, String> {
        self.may_import(Path::new(path))?;
        let bytes = std::fs::read(path).map_err(|e| format!("cannot read {path}: {e}"))?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.entry(path.into()).or_insert(Loaded { hash, origins: None, before: 0 });
        String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8"))
    }

    pub(crate) fn load(&self, path: &str) -> Result<Source, String> {
        let text = self.read(path)?;
        let mut source = prepare(Path::new(path), &text)?;
        if let Some(origins) = source.origin.take() {
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(file) = loaded.get_mut(Path::new(path)) {
                file.origins = Some(Arc::new(origins));
            }
        }
        Ok(source)
    }

    /// Remembers that something of ours was put before a file's first line.
    pub(crate) fn put_before(&self, path: &str, ours: &str) {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = loaded.get_mut(Path::new(path)) {
            file.before = u32::try_from(ours.chars().count()).unwrap_or(0);
        }
    }
}

/// The first place of a stack that is in a file of the user's, as it stands in that file.
pub(crate) fn place_in(shared: &Shared, stack: &str) -> Option<String> {
    let loaded = shared.loaded.lock().unwrap_or_else(PoisonError::into_inner);
    stack.lines().find_map(|line| {
        let place = line.trim().trim_start_matches("at ").trim_end_matches(')');
        let place = place.rsplit_once('(').map_or(place, |(_, place)| place);
        let mut parts = place.rsplitn(3, ':');
        let column: u32 = parts.next()?.parse().ok()?;
        let line: u32 = parts.next()?.parse().ok()?;
        let path = parts.next()?;
        let file = loaded.get(Path::new(path))?;
        let before = if line == 1 { file.before } else { 0 };
        let at = Place { line, column: column.saturating_sub(before) };
        let at = file.origins.as_ref().and_then(|origins| origins.of(at)).unwrap_or(at);
        Some(format!("{path}:{}:{}", at.line, at.column))
    })
}

/// Finds modules and makes them ready.
#[derive(Clone)]
pub(crate) struct Modules {
    pub(crate) shared: Arc<Shared>,
}

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Js<String> {
        resolve(base, name, Way::Import).map_err(|problem| throw(ctx, &problem))
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Js<Module<'js, Declared>> {
        if name.starts_with("tw:") || name.starts_with("node:") {
            return around(ctx, name, "builtin", false);
        }
        if name.ends_with(".json") {
            let text = self.shared.read(name).map_err(|problem| throw(ctx, &problem))?;
            let value: serde_json::Value = serde_json::from_str(&text)
                .map_err(|e| throw(ctx, &format!("{name} is no JSON: {e}")))?;
            return Module::declare(ctx.clone(), name, format!("export default {value};"));
        }
        let source = self.shared.load(name).map_err(|problem| throw(ctx, &problem))?;
        match source.form {
            Form::Module => {
                let before = old_names(name, &source.code);
                self.shared.put_before(name, &before);
                let code = with_before(&before, source.code);
                let module = Module::declare(ctx.clone(), name, code)?;
                tell_place(&module.meta()?, name)?;
                Ok(module)
            }
            Form::Script => around(ctx, name, "load", true),
        }
    }
}

/// A module in the newer form around something that is none: what it has is what it exports.
fn around<'js>(ctx: &Ctx<'js>, name: &str, by: &str, older: bool) -> Js<Module<'js, Declared>> {
    let entry: Object<'js> = ctx.globals().get(ENTRY)?;
    let value: Value<'js> = entry.get::<_, Function<'js>>(by)?.call((name,))?;
    let names: Vec<String> = entry.get::<_, Function<'js>>("names")?.call((value,))?;
    let quoted = json!(name);
    let mut code = format!("const m = globalThis.{ENTRY}.{by}({quoted});\n");
    code.push_str("const d = m && m.__esModule && 'default' in m ? m.default : m;\nexport { d as default };\n");
    for (at, name) in names.iter().filter(|name| *name != "__esModule").enumerate() {
        code.push_str(&format!(
            "const v{at} = m[{}];\nexport {{ v{at} as {name} }};\n",
            json!(name)
        ));
    }
    if older {
        code.push_str("const o = true;\nexport { o as __older };\n");
        return Module::declare(ctx.clone(), name, code);
    }
    parts::shared(ctx, &code, name, || code.clone())
}

/// Where a module lies, in the words of both Node and Bun.
fn tell_place(meta: &Object<'_>, path: &str) -> Js<()> {
    let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
    let address = reqwest::Url::from_file_path(path).map(String::from).unwrap_or_default();
    meta.set("url", address)?;
    meta.set("filename", path)?;
    meta.set("path", path)?;
    meta.set("dirname", folder)?;
    meta.set("dir", folder)?;
    meta.set("file", path.rsplit('/').next().unwrap_or_default())?;
    meta.set("main", false)?;
    let from = path.to_owned();
    let find = move |ctx: Ctx<'_>, name: String| {
        resolve(&from, &name, Way::Import).map_err(|problem| throw(&ctx, &problem))
    };
    meta.set("resolve", Function::new(meta.ctx().clone(), find)?)
}

/// Names of the older form that people use in modules too, where the file does not have them itself.
fn old_names(path: &str, code: &str) -> String {
    let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
    let own = |name: &str| {
        let declared = ["const ", "let ", "var ", "function ", "import "].iter();
        declared.clone().any(|word| code.contains(&format!("{word}{name}")))
            || code.contains(&format!("as {name}"))
    };
    let mut before = String::new();
    let values = [
        ("__dirname", json!(folder).to_string()),
        ("__filename", json!(path).to_string()),
        ("require", format!("globalThis.{ENTRY}.requireFrom({})", json!(path))),
    ];
    for (name, value) in values {
        if code.contains(name) && !own(name) {
            before.push_str(&format!("const {name} = {value};"));
        }
    }
    before
}

/// Before a file's first line, so that all others stay where they are.
fn with_before(before: &str, code: String) -> String {
    if before.is_empty() {
        return code;
    }
    // Nothing may stand before a line for the shell.
    match code.strip_prefix("#!").and_then(|rest| rest.split_once('\n')) {
        Some((_, rest)) => format!("{before}\n{rest}"),
        None => format!("{before}{code}"),
    }
}
