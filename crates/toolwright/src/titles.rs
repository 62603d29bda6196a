//! Which model names sessions: the one that the configuration calls small, else a cheap one of the same
//! provider.

use std::sync::Arc;

use futures_util::FutureExt;
use toolwright_engine::{FindNamer, Namer};
use toolwright_llm::{models_of, provider};

use crate::choose::{Chosen, Selection, named};
use crate::workbench::Workbench;

/// What providers call their small models.
const SMALL: &[(&str, &str)] = &[
    ("anthropic", "-haiku-"),
    ("openai", "-nano"),
    ("openai-chat", "-nano"),
    ("google", "-flash-lite"),
    ("deepseek", "-flash"),
    ("mistral", "ministral-8b-"),
];

/// Nothing where none was chosen and none is known to be there.
pub(crate) fn find_namer(bench: &Workbench, chosen: &Chosen) -> Option<FindNamer> {
    let wanted = bench.config.settings.small_model.clone();
    let origin = chosen.model.origin().clone();
    let is_demo = chosen.base_url.is_none();
    // An address of the user's own need not know the provider's models, and a key that is locked away
    // is not fetched twice for a name.
    let is_usual = provider(&origin.provider).map(|row| row.base_url) == chosen.base_url.as_deref();
    let can_guess = is_usual && chosen.unlocked.is_none();
    if wanted.as_deref() == Some("") || is_demo || (wanted.is_none() && !can_guess) {
        return None;
    }
    let bench = bench.clone();
    Some(Arc::new(move || {
        let (bench, wanted, origin) = (bench.clone(), wanted.clone(), origin.clone());
        async move {
            let refreshed = bench.refreshed_models();
            let spec = match wanted {
                Some(spec) => spec,
                None => {
                    let small = small_of(&origin.provider, &origin.model, refreshed.as_deref())?;
                    format!("{}/{small}", origin.provider)
                }
            };
            let settings = &bench.config.settings;
            let env = |name: &str| bench.variable(name);
            let why = Selection::Configured;
            let small = named(&spec, settings, &env, refreshed.as_deref(), None, why).await.ok()?;
            // The demo names nothing.
            small.base_url.is_some().then_some(Namer { model: small.model, price: small.price })
        }
        .boxed()
    }))
}

/// The newest small model of a provider whose models we know, if it costs no more than the one in use.
fn small_of(id: &str, used: &str, refreshed: Option<&str>) -> Option<String> {
    let models = models_of(id, refreshed);
    let dear = models.get(used)?.cost.as_ref()?.output;
    let (_, part) = SMALL.iter().find(|(known, _)| *known == id)?;
    let small = models.iter().filter(|(name, facts)| {
        let priced = facts.cost.as_ref().is_some_and(|cost| cost.output <= dear);
        name.contains(part) && priced && !name.contains("image") && !name.contains("live")
    });
    // Their names sort by their age.
    small.map(|(name, _)| name.clone()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_model_is_known_cheap_and_of_the_same_provider() {
        for (id, used, part) in [
            ("anthropic", "claude-opus-4-5", "haiku"),
            ("openai", "gpt-5.4-mini", "nano"),
            ("google", "gemini-2.5-pro", "flash-lite"),
        ] {
            let found = small_of(id, used, None);
            let known = models_of(id, None);
            if known.contains_key(used) {
                let found = found.unwrap();
                assert!(found.contains(part) && known.contains_key(&found), "{found}");
            }
        }
        assert_eq!(small_of("anthropic", "m", None), None, "a model that nobody knows");
        assert_eq!(small_of("groq", "whatever", None), None);
    }
}
