//! `tw models`: what there is, what it takes, what it costs.

use serde_json::{Value, json};
use toolwright::Workbench;
use toolwright::llm::{ModelFacts, PROVIDERS, fetch_catalogue, models_of};

use crate::args::{Models, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{note, print};

pub async fn models(shared: &Shared, options: &Models) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    if options.refresh {
        refresh(&workbench).await?;
    }
    let refreshed = workbench.refreshed_models();
    let env = |name: &str| std::env::var(name).ok();
    let settings = &workbench.config.settings;
    let mut providers: Vec<&str> = PROVIDERS
        .iter()
        .filter(|p| {
            let configured = settings.provider.contains_key(p.id);
            options.all
                || options.provider.as_deref() == Some(p.id)
                || configured
                || p.key_from(&env).is_some()
        })
        .map(|p| p.id)
        .collect();
    providers.extend(settings.provider.keys().map(String::as_str));
    providers.sort_unstable();
    providers.dedup();
    if let Some(wanted) = &options.provider {
        providers.retain(|p| p == wanted);
        if providers.is_empty() {
            return Err(Problem::usage(format!(
                "there is no provider {wanted:?}; see `tw models --all`"
            )));
        }
    }
    let mut rows = Vec::new();
    for provider in providers {
        let mut known = models_of(provider, refreshed.as_deref());
        for name in settings.provider.get(provider).into_iter().flat_map(|p| p.models.keys()) {
            known.entry(name.clone()).or_default();
        }
        rows.extend(known.into_iter().map(|(name, facts)| (format!("{provider}/{name}"), facts)));
    }
    if options.json {
        let list: Vec<Value> =
            rows.iter().map(|(id, facts)| json!({ "id": id, "facts": facts })).collect();
        print(&format!("{}\n", Value::Array(list)));
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        note(
            "No provider has a key here. `tw models --all` lists everything; `tw doctor` says what to do.",
        );
    }
    let lines: Vec<String> = rows.iter().map(|(id, facts)| line(id, facts)).collect();
    print(&lines.concat());
    Ok(Exit::Done)
}

fn line(id: &str, facts: &ModelFacts) -> String {
    let thousand = |n: u32| {
        if n >= 1_000_000 { format!("{}M", n / 1_000_000) } else { format!("{}k", n / 1000) }
    };
    let context = facts.limit.context.map_or_else(|| "?".to_owned(), thousand);
    let price = match &facts.cost {
        Some(price) => format!("${} in, ${} out per million", price.input, price.output),
        None => "price unknown".to_owned(),
    };
    format!("{id:<56} {context:>6}  {price}\n")
}

async fn refresh(workbench: &Workbench) -> Result<(), Problem> {
    let url = std::env::var("TOOLWRIGHT_MODELS_URL");
    let url = url.unwrap_or_else(|_| "https://models.dev/api.json".to_owned());
    let text = fetch_catalogue(&url)
        .await
        .map_err(|e| Problem::failed(format!("{e}\n    The list that was there is kept.")))?;
    let file = workbench.models_file();
    let failed = |e| Problem::failed(format!("cannot write {}: {e}", file.display()));
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let fresh = file.with_extension("json.new");
    std::fs::write(&fresh, text).map_err(failed)?;
    std::fs::rename(&fresh, &file).map_err(failed)?;
    note(&format!("The list of models is now the one of {url}."));
    Ok(())
}
