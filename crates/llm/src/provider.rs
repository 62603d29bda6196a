//! Providers as data: a row says how to reach one, and nothing else in the crate knows its name.

use crate::wire::Wire;

/// One provider. A new one is a new row.
#[derive(Debug, Clone, Copy)]
pub struct Provider {
    pub id: &'static str,
    pub name: &'static str,
    pub wire: Wire,
    pub base_url: &'static str,
    /// Environment variables that may hold the key, the first one set wins.
    pub key_variables: &'static [&'static str],
    /// Environment variable that replaces `base_url`.
    pub base_url_variable: &'static str,
    /// Used when a key is there and no model was named.
    pub default_model: Option<&'static str>,
    /// A server on the user's own machine: no key needed.
    pub local: bool,
}

const fn cloud(
    id: &'static str,
    name: &'static str,
    base_url: &'static str,
    key_variables: &'static [&'static str],
    base_url_variable: &'static str,
) -> Provider {
    let (wire, default_model, local) = (Wire::OpenaiChat, None, false);
    Provider { id, name, wire, base_url, key_variables, base_url_variable, default_model, local }
}

const fn local(id: &'static str, name: &'static str, base_url: &'static str) -> Provider {
    let (key_variables, base_url_variable, default_model): (&[&str], _, _) = (&[], "", None);
    let (wire, local) = (Wire::OpenaiChat, true);
    Provider { id, name, wire, base_url, key_variables, base_url_variable, default_model, local }
}

/// In the order in which a default is looked for.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        wire: Wire::AnthropicMessages,
        default_model: Some("claude-sonnet-5"),
        ..cloud(
            "anthropic",
            "Anthropic",
            "https://api.anthropic.com",
            &["ANTHROPIC_API_KEY"],
            "ANTHROPIC_BASE_URL",
        )
    },
    Provider {
        default_model: Some("gpt-5.5"),
        ..cloud(
            "openai",
            "OpenAI",
            "https://api.openai.com/v1",
            &["OPENAI_API_KEY"],
            "OPENAI_BASE_URL",
        )
    },
    cloud(
        "openai-chat",
        "OpenAI (Chat Completions)",
        "https://api.openai.com/v1",
        &["OPENAI_API_KEY"],
        "OPENAI_BASE_URL",
    ),
    cloud(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_KEY"],
        "OPENROUTER_BASE_URL",
    ),
    cloud("groq", "Groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], "GROQ_BASE_URL"),
    cloud("xai", "xAI", "https://api.x.ai/v1", &["XAI_API_KEY"], "XAI_BASE_URL"),
    cloud(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com/v1",
        &["DEEPSEEK_API_KEY"],
        "DEEPSEEK_BASE_URL",
    ),
    cloud(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        &["MISTRAL_API_KEY"],
        "MISTRAL_BASE_URL",
    ),
    local("ollama", "Ollama", "http://127.0.0.1:11434/v1"),
    local("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1"),
    local("llama.cpp", "llama.cpp", "http://127.0.0.1:8080/v1"),
    local("vllm", "vLLM", "http://127.0.0.1:8000/v1"),
];

pub fn provider(id: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|p| p.id == id)
}

impl Provider {
    /// The variable that holds this provider's key, and the key. Empty counts as not set.
    pub fn key_from(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
        self.key_variables
            .iter()
            .find_map(|name| env(name).filter(|v| !v.trim().is_empty()).map(|v| (*name, v)))
    }

    /// How to reach it, with the environment's key and address.
    pub fn endpoint(&self, env: &dyn Fn(&str) -> Option<String>) -> Endpoint {
        let own = env(self.base_url_variable).filter(|v| !v.trim().is_empty());
        Endpoint {
            provider: self.id.to_owned(),
            wire: self.wire,
            base_url: own.unwrap_or_else(|| self.base_url.to_owned()),
            key: self.key_from(env).map(|(_, key)| key.trim().to_owned()),
            headers: Vec::new(),
        }
    }
}

/// Where requests go and what they carry besides the body.
#[derive(Clone)]
pub struct Endpoint {
    pub provider: String,
    pub wire: Wire,
    pub base_url: String,
    pub key: Option<String>,
    pub headers: Vec<(String, String)>,
}

/// Written by hand so that no log line can hold the key.
impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("wire", &self.wire)
            .field("base_url", &self.base_url)
            .field("key", &self.key.as_ref().map(|_| "***"))
            .finish_non_exhaustive()
    }
}
