//! `tw import`: sessions of other programs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwright::Workbench;
use toolwright::session::import::{Foreign, ImportError, Source};
use toolwright::session::{Index, Store};

use crate::args::{Import, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{counted, harmless, note, print};

struct Importer<'a> {
    store: Store,
    here: PathBuf,
    options: &'a Import,
    index: Index,
    rows: Vec<Value>,
    /// How many sessions were found, those too that are here already.
    found: usize,
    /// What was kept by now, by its program and its id there. The index does not know of it yet.
    kept: HashMap<(&'static str, String), String>,
}

pub fn import(shared: &Shared, options: &Import) -> Result<Exit, Problem> {
    let is_address = |p: &str| p.starts_with("http:") || p.starts_with("https:");
    if let Some(path) = options.paths.iter().find(|path| path.to_str().is_some_and(is_address)) {
        return Err(Problem::usage(format!(
            "{} is an address: fetch it first (curl -o session.json …) and import the file",
            path.display()
        )));
    }
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let store = workbench.store();
    let index = Index::open(&store)?;
    let here = workbench.workspace.directory().to_owned();
    let (rows, found, kept) = Default::default();
    let mut importer = Importer { store, here, options, index, rows, found, kept };
    // What cannot be taken does not hold up the rest.
    let failed = options.paths.iter().map(|path| importer.path(path)).sum::<usize>();
    if options.json {
        print(&format!("{}\n", Value::Array(importer.rows)));
    }
    Ok(if failed == 0 { Exit::Done } else { Exit::Failed })
}

impl Importer<'_> {
    /// How much of what is there could not be taken.
    fn path(&mut self, path: &Path) -> usize {
        let sources = match Source::find(path) {
            Ok(sources) => sources,
            Err(error) => {
                note(&format!("tw: cannot import {}: {error}", path.display()));
                return 1;
            }
        };
        // In a folder, other files are to be expected.
        let in_folder = path.is_dir();
        let before = self.found;
        let taken = sources.into_iter().map(|source| self.source(source, in_folder));
        let failed = taken.filter(|is_taken| !is_taken).count();
        if failed == 0 && self.found == before {
            note(&format!("tw: no session was found in {}", path.display()));
            return 1;
        }
        failed
    }

    /// Says what came of one session; whether it is as it should be.
    fn source(&mut self, source: Source, in_folder: bool) -> bool {
        let path = source.name.clone();
        let name = path.display();
        match source.read() {
            Ok(foreign) => self.keep(&path, &foreign),
            Err(ImportError::Unknown | ImportError::Empty) if in_folder => true,
            Err(ImportError::Io(error)) => {
                note(&format!("tw: cannot read {name}: {error}"));
                false
            }
            Err(error) => {
                note(&format!("tw: cannot import {name}: {error}"));
                false
            }
        }
    }

    fn keep(&mut self, path: &Path, foreign: &Foreign) -> bool {
        self.found += 1;
        let source = (foreign.from, foreign.id.clone());
        if let Some(twin) = self.kept.get(&source) {
            note(&format!("{} is the same session: {twin}", path.display()));
            self.rows.push(json!({ "file": path, "id": twin, "new": false }));
            return true;
        }
        // An index that cannot answer does not stand in the way.
        let before = self.index.imported(foreign.from, &foreign.id).ok().flatten();
        if let Some(before) = before.filter(|_| !self.options.again) {
            note(&format!(
                "{} is here already: {before} (--again imports it once more)",
                path.display()
            ));
            self.rows.push(json!({ "file": path, "id": before, "new": false }));
            return true;
        }
        // Where the work was, if that is here.
        let own = Path::new(&foreign.directory);
        let is_here = own.is_absolute() && own.is_dir();
        let place = if self.options.here || !is_here { &self.here } else { own };
        let id = match self.store.keep(foreign, place, env!("CARGO_PKG_VERSION")) {
            Ok(id) => id,
            Err(error) => {
                note(&format!("tw: cannot keep {}: {error}", path.display()));
                return false;
            }
        };
        // Without an id, nothing tells it from others.
        if !foreign.id.is_empty() {
            self.kept.insert(source, id.clone());
        }
        let contents = foreign.contents();
        let mut notices = foreign.notices.clone();
        if !is_here && !self.options.here && !foreign.directory.is_empty() {
            notices.push(format!("{} is no folder here: kept for this one", foreign.directory));
        }
        if self.options.json {
            self.rows.push(json!({
                "file": path, "id": id, "new": true, "from": foreign.from, "original": foreign.id,
                "directory": place, "prompts": contents.prompts, "answers": contents.answers,
                "calls": contents.calls, "children": foreign.children.len(), "notices": notices,
            }));
            return true;
        }
        let children = match foreign.children.len() {
            0 => String::new(),
            1 => ", 1 session of an agent".to_owned(),
            count => format!(", {count} sessions of agents"),
        };
        let prompts = counted(contents.prompts, "prompt");
        let answers = counted(contents.answers, "answer");
        let calls = counted(contents.calls, "call");
        print(&format!(
            "Imported from {}: {id}  {prompts}, {answers}, {calls}{children}\n",
            foreign.from
        ));
        for notice in notices {
            note(&format!("! {}", harmless(&notice)));
        }
        true
    }
}
