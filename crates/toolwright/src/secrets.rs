//! Which values are ours to keep quiet about: the keys that we send to providers, wherever they were
//! found.

use std::collections::BTreeMap;

use toolwright_config::{ProviderSettings, Settings};
use toolwright_llm::PROVIDERS;
use toolwright_tool::Secrets;

use crate::configured::search_variables;

/// What people write where a program wants a key and the server does not. Masking these would
/// damage ordinary text.
const PLACEHOLDERS: &[&str] = &[
    "anything",
    "changeme",
    "dummy-key",
    "lm-studio",
    "lmstudio",
    "no-key-required",
    "not-needed",
    "not-required",
    "placeholder",
    "sk-no-key-required",
    "undefined",
    "your-api-key",
];

/// Every variable that may hold a key: those of the known providers and those that the settings
/// name.
pub(crate) fn key_variables(settings: &Settings) -> impl Iterator<Item = &str> {
    let known = PROVIDERS.iter().flat_map(|p| p.key_variables).copied();
    let own = settings.provider.values().flat_map(|p| &p.env).map(String::as_str);
    known.chain(own).chain(search_variables(settings))
}

/// From the environment, the settings and the stored keys (by provider).
pub(crate) fn collect(
    settings: &Settings,
    env: &dyn Fn(&str) -> Option<String>,
    stored: BTreeMap<String, String>,
) -> Secrets {
    let found = key_variables(settings).filter_map(|name| Some((name.to_owned(), env(name)?)));
    let configured = settings.provider.iter().flat_map(|(id, own)| of_provider(id, own));
    let kept = stored.into_iter().map(|(id, key)| (format!("stored key of {id}"), key));
    let search = settings.websearch.api_key.iter();
    let search = search.map(|key| ("websearch.apiKey".to_owned(), key.clone()));
    let all = found
        .chain(configured)
        .chain(kept)
        .chain(search)
        .map(|(name, v)| (name, v.trim().to_owned()));
    Secrets::new(all.filter(|(_, value)| !PLACEHOLDERS.contains(&value.to_lowercase().as_str())))
}

fn of_provider(id: &str, own: &ProviderSettings) -> Vec<(String, String)> {
    let options = format!("provider.{id}.options");
    let key = own.options.api_key.iter().map(|key| (format!("{options}.apiKey"), key.clone()));
    let headers = own.options.headers.iter().filter(|(name, value)| authorises(name, value));
    let headers = headers.map(|(name, value)| {
        // The scheme is no secret, and other programs print what follows it without it.
        let secret = value.split_once(' ').map_or(value.as_str(), |(_, rest)| rest);
        (format!("{options}.headers.{name}"), secret.to_owned())
    });
    key.chain(headers).collect()
}

fn authorises(name: &str, value: &str) -> bool {
    let (name, value) = (name.to_lowercase(), value.to_lowercase());
    let by_name = ["authorization", "api-key", "apikey", "token", "secret", "password", "cookie"];
    by_name.iter().any(|part| name.contains(part))
        || ["bearer ", "basic "].iter().any(|scheme| value.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_that_may_hold_a_key_is_looked_at() {
        let settings: Settings = serde_json::from_value(serde_json::json!({
            "provider": {
                "own": {
                    "env": ["OWN_TOKEN"],
                    "options": {
                        "apiKey": "key-in-the-settings",
                        "headers": {
                            "Authorization": "Bearer header-token-1",
                            "X-Title": "an ordinary header",
                            "X-Other": "Basic dXNlcjpwYXNz",
                        },
                    },
                },
                "local": { "options": { "apiKey": "lm-studio" } },
            },
            "websearch": { "apiKey": "key-of-a-search", "env": "SEARCH_TOKEN" },
        }))
        .unwrap();
        let env = |name: &str| match name {
            "ANTHROPIC_API_KEY" => Some("key-in-the-environment".to_owned()),
            "SEARCH_TOKEN" => Some("token-of-a-search".to_owned()),
            "OWN_TOKEN" => Some("token-of-my-own\n".to_owned()),
            _ => None,
        };
        let stored = BTreeMap::from([("openai".to_owned(), "key-that-was-stored".to_owned())]);
        let secrets = collect(&settings, &env, stored);
        for (value, mark) in [
            ("key-in-the-environment", "[masked: ANTHROPIC_API_KEY]"),
            ("token-of-my-own", "[masked: OWN_TOKEN]"),
            ("key-in-the-settings", "[masked: provider.own.options.apiKey]"),
            ("header-token-1", "[masked: provider.own.options.headers.Authorization]"),
            ("dXNlcjpwYXNz", "[masked: provider.own.options.headers.X-Other]"),
            ("key-that-was-stored", "[masked: stored key of openai]"),
            ("key-of-a-search", "[masked: websearch.apiKey]"),
            ("token-of-a-search", "[masked: SEARCH_TOKEN]"),
            ("lm-studio", "lm-studio"),
            ("an ordinary header", "an ordinary header"),
        ] {
            assert_eq!(secrets.mask(value), mark);
        }
    }
}
