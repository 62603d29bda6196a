//! `tw plugin`: packages with plugins. They are fetched when somebody asks for it, never by a run.

use serde_json::{Value, json};
use toolwright::{PackageError, Workbench};

use crate::args::{PluginAction, Plugins, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{note, print};

pub async fn plugin(shared: &Shared, options: Plugins) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let packages = workbench.packages();
    let failed = |error: PackageError| match error {
        PackageError::Name(_) | PackageError::NoNpm => Problem::usage(error.to_string()),
        PackageError::Failed { .. } => Problem::failed(error.to_string()),
    };
    match options.action {
        PluginAction::Install { name } => {
            let (package, version) = packages.install(&name).await.map_err(failed)?;
            print(&format!("{package} {version}\n"));
            note(&format!(
                "It is used where the settings name it:  \"plugin\": [\"{package}\"]  What it does goes through your permissions."
            ));
        }
        PluginAction::Remove { name } => {
            packages.remove(&name).await.map_err(failed)?;
        }
        PluginAction::List { json: as_json } => {
            let installed = packages.installed();
            if as_json {
                let all: Vec<Value> = installed
                    .iter()
                    .map(|(name, version)| json!({ "name": name, "version": version }))
                    .collect();
                print(&format!("{}\n", Value::Array(all)));
            } else {
                let lines: String =
                    installed.iter().map(|(name, version)| format!("{name} {version}\n")).collect();
                print(&lines);
            }
        }
    }
    Ok(Exit::Done)
}
