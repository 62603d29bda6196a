//! A conversation as a file: what `tw export` writes, in the form that the name asks for.

use std::path::Path;

use toolwright::Workbench;
use toolwright::session::export::{document, page};

/// Writes a session below the folder and says where. `usual` is the form where no name says another.
pub(super) fn to_file(
    bench: &Workbench,
    id: &str,
    name: Option<&str>,
    usual: &str,
) -> Result<String, String> {
    let short: String = id.trim_start_matches("ses_").chars().take(10).collect();
    let name = name.map_or_else(|| format!("session-{short}.{usual}"), str::to_owned);
    let path = bench.workspace.directory().join(&name);
    if path.exists() {
        return Err(format!("{name} is there already; give another name: /export NAME"));
    }
    let store = bench.store();
    let chronicle = store.chronicle(id).map_err(|error| error.to_string())?;
    let form = store.export(&chronicle);
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let text = match extension.to_ascii_lowercase().as_str() {
        "json" => serde_json::to_string_pretty(&form).map_err(|error| error.to_string())? + "\n",
        "html" | "htm" => page(&form),
        _ => document(&form),
    };
    write(&path, &text).map_err(|problem| format!("cannot write {}: {problem}", path.display()))?;
    Ok(path.display().to_string())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    std::fs::File::create_new(path)?.write_all(text.as_bytes())
}
