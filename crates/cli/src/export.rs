//! `tw export`: a session for other programs and for people.

use toolwright::Workbench;
use toolwright::session::export::{document, page, sanitized};

use crate::args::{Export, ExportFormat, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{note, print};

pub fn export(shared: &Shared, options: &Export) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let store = workbench.store();
    let chronicle = match &options.id {
        Some(id) => store.chronicle(id)?,
        None => store.latest_chronicle(workbench.workspace.directory())?,
    };
    let mut form = store.export(&chronicle);
    if options.sanitize {
        form = sanitized(form);
    }
    let text = match options.format {
        ExportFormat::Json => {
            let text = serde_json::to_string_pretty(&form);
            format!("{}\n", text.map_err(|e| Problem::failed(format!("cannot export: {e}")))?)
        }
        ExportFormat::Markdown => document(&form),
        ExportFormat::Html => page(&form),
    };
    match &options.output {
        None => print(&text),
        Some(path) => {
            let failed = |e| Problem::failed(format!("cannot write {}: {e}", path.display()));
            std::fs::write(path, text).map_err(failed)?;
            note(&format!("Wrote {}", path.display()));
        }
    }
    Ok(Exit::Done)
}
