//! `tw import`: sessions of other programs.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwright::Workbench;
use toolwright::session::import::{Foreign, ImportError, Source};
use toolwright::session::{Index, Store};

use crate::args::{Import, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{harmless, note, print};

struct Importer<'a> {
    store: Store,
    here: PathBuf,
    options: &'a Import,
    index: Index,
    rows: Vec<Value>,
    /// Sessions that are here now, old ones too.
    taken: usize,
}

pub fn import(shared: &Shared, options: &Import) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let store = workbench.store();
    let index = Index::open(&store)?;
    let here = workbench.workspace.directory().to_owned();
    let mut importer = Importer { store, here, options, index, rows: Vec::new(), taken: 0 };
    let mut failed = 0;
    for path in &options.paths {
        let from_web =
            path.to_str().is_some_and(|p| p.starts_with("http:") || p.starts_with("https:"));
        if from_web {
            return Err(Problem::usage(format!(
                "{} is an address: fetch it first (curl -o session.json …) and import the file",
                path.display()
            )));
        }
        let sources = Source::find(path)
            .map_err(|e| Problem::usage(format!("cannot import {}: {e}", path.display())))?;
        if sources.is_empty() {
            return Err(Problem::usage(format!(
                "there is no .json or .jsonl file in {}",
                path.display()
            )));
        }
        // In a folder, other files are to be expected.
        let in_folder = path.is_dir();
        let before = importer.taken;
        failed += sources.iter().filter(|source| !importer.source(source, in_folder)).count();
        if in_folder && importer.taken == before && failed == 0 {
            note(&format!("tw: no session was found in {}", path.display()));
            failed += 1;
        }
    }
    if options.json {
        print(&format!("{}\n", Value::Array(importer.rows)));
    }
    Ok(if failed == 0 { Exit::Done } else { Exit::Failed })
}

impl Importer<'_> {
    /// Says what came of one session; whether it is as it should be.
    fn source(&mut self, source: &Source, in_folder: bool) -> bool {
        let name = source.name.display();
        match source.read() {
            Ok(foreign) => self.keep(&source.name, &foreign),
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
        self.taken += 1;
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
            count => format!(", {count} sessions of agents"),
        };
        print(&format!(
            "Imported from {}: {id}  {} prompts, {} answers, {} calls{children}\n",
            foreign.from, contents.prompts, contents.answers, contents.calls
        ));
        for notice in notices {
            note(&format!("! {}", harmless(&notice)));
        }
        true
    }
}
