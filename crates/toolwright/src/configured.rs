//! The tools that need to be told something first: where they may look, whom they ask, what there is.

use std::sync::Arc;

use toolwright_config::{Config, Settings, WebsearchSettings};
use toolwright_tool::{AnyTool, BatchTool, Registry, Source};
use toolwright_tools::{
    CodeSearch, SearchOptions, SearchProvider, Skill, SkillTool, WebFetch, WebFetchOptions,
    WebSearch,
};

/// Search services with the variables that hold their keys, in the order in which they are looked
/// for.
const SEARCH_KEYS: &[(&str, &str)] =
    &[("exa", "EXA_API_KEY"), ("brave", "BRAVE_API_KEY"), ("tavily", "TAVILY_API_KEY")];

type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Variables that may hold the key of a search service.
pub(crate) fn search_variables(settings: &Settings) -> impl Iterator<Item = &str> {
    let own = settings.websearch.env.as_deref();
    SEARCH_KEYS.iter().map(|(_, variable)| *variable).chain(own)
}

/// The search service that is configured, if one is, or what is wrong with the settings.
pub(crate) fn search_provider(
    settings: &WebsearchSettings,
    env: Environment<'_>,
) -> Result<Option<Arc<dyn SearchProvider>>, String> {
    let set = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    let own_key = settings.api_key.clone().or_else(|| settings.env.as_deref().and_then(set));
    let usual = |id: &str| SEARCH_KEYS.iter().find(|(known, _)| *known == id).map(|(_, v)| *v);
    let (provider, key) = match (&settings.provider, &settings.base_url) {
        (Some(id), _) => (Some(id.clone()), own_key.or_else(|| usual(id).and_then(set))),
        (None, Some(_)) => (None, own_key),
        (None, None) => {
            let found = SEARCH_KEYS.iter().find_map(|(id, v)| Some(((*id).to_owned(), set(v)?)));
            let found = own_key.map(|key| ("exa".to_owned(), key)).or(found);
            found.map_or((None, None), |(id, key)| (Some(id), Some(key)))
        }
    };
    SearchOptions { provider, key, base_url: settings.base_url.clone() }.provider()
}

/// Puts them into the registry. What cannot be used here can be called and is not listed.
pub(crate) fn register(
    registry: &Registry,
    config: &Config,
    skills: Vec<Skill>,
    env: Environment<'_>,
) {
    let settings = &config.settings;
    let fetch = WebFetch::new(WebFetchOptions {
        allow_private: settings.webfetch.allow_private,
        allow_hosts: settings.webfetch.allow_hosts.clone(),
    });
    registry.register_from(Source::BuiltIn, Arc::new(fetch));
    // Whoever opened the workbench was told what is wrong with it.
    let provider = search_provider(&settings.websearch, env).unwrap_or_default();
    let listed = if provider.is_some() { Source::BuiltIn } else { Source::Hidden };
    let year = jiff::Zoned::now().year();
    let search: [Arc<dyn AnyTool>; 2] =
        [Arc::new(WebSearch::new(provider.clone(), year)), Arc::new(CodeSearch::new(provider))];
    for tool in search {
        registry.register_from(listed, tool);
    }
    register_skills(registry, skills);
    if settings.experimental.batch_tool {
        registry.register_from(Source::BuiltIn, Arc::new(BatchTool));
    }
}

pub(crate) fn register_skills(registry: &Registry, skills: Vec<Skill>) {
    let tool = SkillTool::new(skills);
    let listed = if tool.is_empty() { Source::Hidden } else { Source::BuiltIn };
    registry.register_from(listed, Arc::new(tool));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_service_is_found_by_its_key_or_by_the_settings() {
        let none = |_: &str| None;
        let keys = |name: &str| match name {
            "TAVILY_API_KEY" | "BRAVE_API_KEY" | "MY_KEY" => Some("k".to_owned()),
            _ => None,
        };
        let of = |value: serde_json::Value, env: Environment<'_>| {
            let settings: WebsearchSettings = serde_json::from_value(value).unwrap();
            search_provider(&settings, env).map(|p| p.map(|p| p.id().to_owned()))
        };
        let some = |id: &str| Ok(Some(id.to_owned()));
        use serde_json::json;
        assert_eq!(of(json!({}), &none), Ok(None));
        assert_eq!(of(json!({}), &keys), some("brave"));
        assert_eq!(of(json!({"provider": "tavily"}), &keys), some("tavily"));
        assert_eq!(of(json!({"provider": "exa"}), &keys), Ok(None));
        assert_eq!(of(json!({"provider": "exa", "env": "MY_KEY"}), &keys), some("exa"));
        assert_eq!(of(json!({"apiKey": "k"}), &none), some("exa"));
        assert_eq!(of(json!({"baseURL": "http://x/"}), &none), some("custom"));
        assert!(of(json!({"provider": "searxng"}), &none).is_err());
    }
}
