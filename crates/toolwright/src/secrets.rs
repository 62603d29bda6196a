//! Which values are ours to keep quiet about: the keys that we send to providers, wherever they were
//! found.

use std::collections::BTreeMap;

use toolwright_config::{McpSettings, OauthSetting, ProviderSettings, Settings};
use toolwright_llm::PROVIDERS;
use toolwright_tool::Secrets;

use crate::configured::search_variables;
use crate::mcp::tokens_in;

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
    let kept = stored.into_iter().flat_map(|(id, key)| match id.strip_prefix("mcp_") {
        // Tokens of a server are kept together with what else is known of it.
        Some(server) => tokens_in(&key)
            .into_iter()
            .map(|token| (format!("stored token of {server}"), token))
            .collect(),
        None => vec![(format!("stored key of {id}"), key)],
    });
    let search = settings.websearch.api_key.iter();
    let search = search.map(|key| ("websearch.apiKey".to_owned(), key.clone()));
    let servers = settings.mcp.iter().flat_map(|(name, own)| of_server(name, own));
    let all = found
        .chain(configured)
        .chain(kept)
        .chain(search)
        .chain(servers)
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

/// What a server is told to sign in with.
fn of_server(id: &str, own: &McpSettings) -> Vec<(String, String)> {
    let headers = own.headers.iter().filter(|(name, value)| authorises(name, value));
    let headers = headers.map(|(name, value)| {
        let secret = value.split_once(' ').map_or(value.as_str(), |(_, rest)| rest);
        (format!("mcp.{id}.headers.{name}"), secret.to_owned())
    });
    let variables = own
        .environment
        .iter()
        .filter(|(name, value)| authorises(name, value) || name.to_lowercase().ends_with("_key"));
    let variables =
        variables.map(|(name, value)| (format!("mcp.{id}.environment.{name}"), value.clone()));
    let secret = match &own.oauth {
        Some(OauthSetting::With(oauth)) => oauth.client_secret.clone(),
        _ => None,
    };
    let secret = secret.map(|secret| (format!("mcp.{id}.oauth.clientSecret"), secret));
    let words = own.command.iter().flatten().map(String::as_str).collect::<Vec<_>>();
    let given = given_to(&words).map(|secret| (format!("mcp.{id}.command"), secret));
    let address = own.url.as_deref().map(in_address).unwrap_or_default();
    let address = address.into_iter().map(|secret| (format!("mcp.{id}.url"), secret));
    headers.chain(variables).chain(secret).chain(given).chain(address).collect()
}

/// Options of a command that sign in: `--api-key KEY`, `--api-key=KEY`, `API_KEY=KEY`.
fn given_to(words: &[&str]) -> impl Iterator<Item = String> {
    let is_key = |name: &str| {
        let name = name.to_lowercase().replace('_', "-");
        authorises(&name, "") || name.ends_with("-key")
    };
    let split = words.iter().filter_map(|word| word.split_once('='));
    let apart = words.windows(2).map(|pair| (pair[0], pair[1]));
    let apart = apart.filter(|(name, value)| name.starts_with('-') && !value.starts_with('-'));
    let all: Vec<String> =
        split.chain(apart).filter(|(name, _)| is_key(name)).map(|(_, v)| v.to_owned()).collect();
    all.into_iter()
}

/// What an address holds beside the place: who signs in, and the values behind the `?`.
fn in_address(url: &str) -> Vec<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, asked) = rest.split_once('?').unwrap_or((rest, ""));
    let host = place.split('/').next().unwrap_or_default();
    let user = host.rsplit_once('@').map(|(user, _)| user).unwrap_or_default();
    let asked = asked.split('#').next().unwrap_or_default();
    let values = asked.split('&').filter_map(|pair| Some(pair.split_once('=')?.1));
    let user = user.split_once(':').map_or(user, |(_, password)| password);
    values.chain([user]).filter(|v| !v.is_empty()).map(str::to_owned).collect()
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
            "mcp": { "s": {
                "headers": { "Authorization": "Bearer token-of-a-server" },
                "environment": { "GITHUB_TOKEN": "token-for-a-child", "MODE": "a plain word" },
                "command": ["x", "--api-key", "key-of-an-option", "--token=token-in-one", "--mode", "a-plain-option"],
                "url": "https://me:password-in-it@host.example/mcp?apiKey=key-in-an-address#x",
            } },
        }))
        .unwrap();
        let env = |name: &str| match name {
            "ANTHROPIC_API_KEY" => Some("key-in-the-environment".to_owned()),
            "SEARCH_TOKEN" => Some("token-of-a-search".to_owned()),
            "OWN_TOKEN" => Some("token-of-my-own\n".to_owned()),
            _ => None,
        };
        let tokens = serde_json::json!({"serverUrl": "x", "credentials": {"token_response": {"access_token": "kept-access-token"}}});
        let stored = BTreeMap::from([
            ("openai".to_owned(), "key-that-was-stored".to_owned()),
            ("mcp_s".to_owned(), tokens.to_string()),
        ]);
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
            ("token-of-a-server", "[masked: mcp.s.headers.Authorization]"),
            ("token-for-a-child", "[masked: mcp.s.environment.GITHUB_TOKEN]"),
            ("kept-access-token", "[masked: stored token of s]"),
            ("key-of-an-option", "[masked: mcp.s.command]"),
            ("token-in-one", "[masked: mcp.s.command]"),
            ("password-in-it", "[masked: mcp.s.url]"),
            ("key-in-an-address", "[masked: mcp.s.url]"),
            ("host.example", "host.example"),
            ("a-plain-option", "a-plain-option"),
            ("a plain word", "a plain word"),
            ("lm-studio", "lm-studio"),
            ("an ordinary header", "an ordinary header"),
        ] {
            assert_eq!(secrets.mask(value), mark);
        }
    }
}
