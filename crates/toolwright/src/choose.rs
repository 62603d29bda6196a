//! Which model answers: what was asked for, else what the configuration says, else what there is a
//! key for, else a server on this machine, else the demo.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolwright_config::{ProviderSettings, Settings};
use toolwright_llm::wire::Wire;
use toolwright_llm::{
    Deadlines, DemoModel, Endpoint, HttpModel, LocalServer, Model, PROVIDERS, Price, Quirks, Retry,
    Trace, find_local_servers, models_of, provider,
};

use crate::keyring::{self, Keyring, KeyringError};

/// Variables by name.
pub type Environment<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// A model, and why it is this one.
#[derive(Clone)]
pub struct Chosen {
    pub model: Arc<dyn Model>,
    pub why: Selection,
    pub max_output_tokens: Option<u32>,
    /// Tokens that it takes, if known.
    pub window: Option<u32>,
    pub price: Option<Price>,
    /// Where requests go; nothing for the demo.
    pub base_url: Option<String>,
    /// A key that came out of the keyring, by its provider: no output may show it.
    pub(crate) unlocked: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    Asked,
    Configured,
    /// The variable that holds the key.
    KeyFound(String),
    LocalServer(String),
    Demo,
}

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(
        "\"{0}\" names no provider; write the model as PROVIDER/MODEL, for example anthropic/{0}"
    )]
    NoProvider(String),
    #[error("there is no provider \"{id}\"{}; known: {known}", nearest.as_ref().map_or(String::new(), |n| format!(" (did you mean \"{n}\"?)")))]
    UnknownProvider { id: String, nearest: Option<String>, known: String },
    #[error(
        "there is no key for {name}: set {variables} or provider.{id}.options.apiKey in the configuration"
    )]
    NoKey { id: String, name: String, variables: String },
    #[error(
        "the provider \"{0}\" has no address: set provider.{0}.options.baseURL in the configuration"
    )]
    NoAddress(String),
    #[error(
        "the key for {id} is kept in the system's keyring, but {source}; set {variables}, or: tw auth login {id}"
    )]
    Keyring { id: String, variables: String, source: KeyringError },
}

/// Chooses. Looks at the network (loopback only) just when nothing else gives a model.
pub async fn choose_model(
    asked: Option<&str>,
    settings: &Settings,
    env: Environment<'_>,
    refreshed: Option<&str>,
    trace: Option<Trace>,
) -> Result<Chosen, ModelError> {
    let named = async |spec: &str, why| named(spec, settings, env, refreshed, trace, why).await;
    if let Some(spec) = asked {
        return named(spec, Selection::Asked).await;
    }
    if let Some(spec) = settings.model.as_deref().filter(|spec| !spec.is_empty()) {
        return named(spec, Selection::Configured).await;
    }
    for row in PROVIDERS {
        let Some(model) = row.default_model else { continue };
        let configured = settings.provider.get(row.id).and_then(|p| p.options.api_key.as_ref());
        let why = match (row.key_from(env), configured) {
            (Some((variable, _)), _) => Selection::KeyFound(variable.to_owned()),
            (None, Some(key)) if !key.is_empty() => Selection::Configured,
            _ => continue,
        };
        return named(&format!("{}/{model}", row.id), why).await;
    }
    let local = if env("TOOLWRIGHT_LOCAL_SERVERS").as_deref() == Some("off") {
        Vec::new()
    } else {
        find_local_servers().await
    };
    if let Some(LocalServer { provider, models, .. }) = local.into_iter().next() {
        let why = Selection::LocalServer(provider.name.to_owned());
        let model = models.into_iter().next().unwrap_or_default();
        return named(&format!("{}/{model}", provider.id), why).await;
    }
    Ok(demo(Selection::Demo))
}

fn demo(why: Selection) -> Chosen {
    Chosen {
        model: Arc::new(DemoModel::default()),
        why,
        max_output_tokens: None,
        window: None,
        price: None,
        base_url: None,
        unlocked: None,
    }
}

pub(crate) async fn named(
    spec: &str,
    settings: &Settings,
    env: Environment<'_>,
    refreshed: Option<&str>,
    trace: Option<Trace>,
    why: Selection,
) -> Result<Chosen, ModelError> {
    if spec == "demo" || spec == "demo/demo" {
        return Ok(demo(why));
    }
    let Some((id, model)) = spec.split_once('/').filter(|(id, m)| !id.is_empty() && !m.is_empty())
    else {
        return Err(ModelError::NoProvider(spec.to_owned()));
    };
    let own = settings.provider.get(id);
    let mut endpoint = endpoint(id, own, env)?;
    let unlocked = unlock(&mut endpoint, env).await?;
    let about = own.and_then(|o| o.models.get(model));
    let sent = about.and_then(|m| m.id.as_deref()).unwrap_or(model);
    let facts = models_of(id, refreshed).remove(sent).unwrap_or_default();
    let limit = about.and_then(|m| m.limit.clone()).unwrap_or_default();
    let window = limit.context.or(facts.limit.context);
    let configured = limit.output;
    // Only Anthropic's wire needs a number; elsewhere the server's own limit is the right one.
    let known = facts.limit.output.filter(|_| endpoint.wire == Wire::AnthropicMessages);
    let max_output_tokens = configured.or(known.map(|limit| limit.min(USUAL_OUTPUT_TOKENS)));
    let own_price = about.and_then(|m| m.cost.clone()).and_then(|c| serde_json::from_value(c).ok());
    let price = own_price.or(facts.cost.clone());
    let base_url = Some(endpoint.base_url.clone());
    let (deadlines, retry) = patience(own);
    let model = Arc::new(
        HttpModel::new(endpoint, sent, deadlines, retry).with_facts(facts).with_trace(trace),
    );
    Ok(Chosen { model, why, max_output_tokens, window, price, base_url, unlocked })
}

/// Tokens of an answer that are enough for any file worth writing at once.
const USUAL_OUTPUT_TOKENS: u32 = 32_000;

fn endpoint(
    id: &str,
    own: Option<&ProviderSettings>,
    env: Environment<'_>,
) -> Result<Endpoint, ModelError> {
    let row = provider(id);
    let mut endpoint = match (row, own) {
        (Some(row), _) => row.endpoint(env),
        (None, Some(_)) => Endpoint {
            provider: id.to_owned(),
            wire: Wire::OpenaiChat,
            base_url: String::new(),
            key: None,
            headers: Vec::new(),
            ca_file: None,
            quirks: Quirks::default(),
        },
        (None, None) => return Err(unknown_provider(id)),
    };
    let built_in = row.is_some_and(|row| endpoint.base_url == row.base_url);
    let mut own_address = !built_in;
    if let Some(own) = own {
        let given = own.options.base_url.as_deref().or(own.api.as_deref());
        if let Some(url) = given.filter(|url| !url.is_empty()) {
            url.clone_into(&mut endpoint.base_url);
            own_address = true;
            endpoint.quirks.eager_input &= row.is_some_and(|row| row.is_at(url));
        }
        match own.npm.as_deref() {
            Some("@ai-sdk/anthropic") => endpoint.wire = Wire::AnthropicMessages,
            Some("@ai-sdk/openai-compatible") => endpoint.wire = Wire::OpenaiChat,
            Some("@ai-sdk/openai" | "@ai-sdk/azure") => endpoint.wire = Wire::OpenaiResponses,
            Some("@ai-sdk/google") => endpoint.wire = Wire::Gemini,
            _ => {}
        }
        let configured = own.options.api_key.clone().filter(|key| !key.is_empty());
        let from_env = || own.env.iter().find_map(|name| env(name));
        endpoint.key = configured.or_else(from_env).or(endpoint.key);
        endpoint.headers = own.options.headers.clone().into_iter().collect();
        endpoint.ca_file = own.options.ca_file.as_deref().map(|path| from_home(path, env));
        let said = own.options.structured_output;
        endpoint.quirks.native_form = said.unwrap_or(endpoint.quirks.native_form);
    }
    if endpoint.base_url.is_empty() {
        return Err(ModelError::NoAddress(id.to_owned()));
    }
    // An address of the user's own may need no key; the provider's own does.
    if let Some(row) = row.filter(|row| !row.local && !own_address)
        && endpoint.key.is_none()
    {
        let variables = row.key_variables.join(" or ");
        let (id, name) = (id.to_owned(), row.name.to_owned());
        return Err(ModelError::NoKey { id, name, variables });
    }
    Ok(endpoint)
}

fn from_home(path: &str, env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    match (path.strip_prefix("~/"), env("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// Fetches a key that the keyring holds: only here, when it is known that it is needed.
async fn unlock(
    endpoint: &mut Endpoint,
    env: Environment<'_>,
) -> Result<Option<(String, String)>, ModelError> {
    let Some(id) = endpoint.key.as_deref().and_then(keyring::behind_placeholder) else {
        return Ok(None);
    };
    let id = id.to_owned();
    let answer = match Keyring::find(env) {
        Some(keyring) => keyring.look_up(&id).await,
        None => Err(KeyringError::Unusable("there is none in this session".to_owned())),
    };
    let failed = |source| ModelError::Keyring {
        id: id.clone(),
        variables: provider(&id).map_or(String::new(), |row| row.key_variables.join(" or ")),
        source,
    };
    let key = answer.map_err(failed)?;
    endpoint.key = Some(key.clone());
    Ok(Some((id, key)))
}

fn patience(own: Option<&ProviderSettings>) -> (Deadlines, Retry) {
    let mut deadlines = Deadlines::default();
    let mut retry = Retry::default();
    if let Some(options) = own.map(|o| &o.options) {
        let millis = |value: Option<u64>, usual| value.map_or(usual, Duration::from_millis);
        deadlines.first_event = millis(options.header_timeout, deadlines.first_event);
        deadlines.between_events = millis(options.chunk_timeout, deadlines.between_events);
        retry.retries = options.retries.unwrap_or(retry.retries);
    }
    (deadlines, retry)
}

fn unknown_provider(id: &str) -> ModelError {
    let distance = |known: &str| strsim::damerau_levenshtein(known, id);
    let nearest = PROVIDERS.iter().map(|p| p.id).min_by_key(|known| distance(known));
    // Of a short name nearly everything is three letters away.
    let near = id.chars().count().div_ceil(3).min(3);
    let nearest = nearest.filter(|known| distance(known) <= near).map(str::to_owned);
    let known = PROVIDERS.iter().map(|p| p.id).collect::<Vec<_>>().join(", ");
    ModelError::UnknownProvider { id: id.to_owned(), nearest, known }
}
