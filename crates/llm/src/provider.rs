//! Providers as data: a row says how to reach one, and nothing else in the crate knows its name.

use crate::wire::Wire;

/// One provider. A new one is a new row.
#[derive(Debug, Clone, Copy)]
pub struct Provider {
    pub id: &'static str,
    pub name: &'static str,
    pub wire: Wire,
    /// Empty where everybody has an address of their own.
    pub base_url: &'static str,
    /// Environment variables that may hold the key, the first one set wins.
    pub key_variables: &'static [&'static str],
    /// Environment variable that replaces `base_url`.
    pub base_url_variable: &'static str,
    /// Used when a key is there and no model was named.
    pub default_model: Option<&'static str>,
    /// A server on the user's own machine: no key needed.
    pub local: bool,
    pub quirks: Quirks,
}

/// Where a provider differs from the others of its wire format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Refuses `max_tokens`, wants `max_completion_tokens`.
    pub max_completion_tokens: bool,
    /// Servers behind this name may have no Responses route: then Chat Completions is spoken.
    pub chat_fallback: bool,
    /// The key goes into an `api-key` header.
    pub api_key_header: bool,
    /// Wants the reasoning of a step with calls back, as `reasoning_content`.
    pub reasoning_content: bool,
    /// Call ids have exactly nine letters or digits, and a user may not speak right after a tool.
    pub mistral_order: bool,
    /// The model does not reason: asking for its reasoning is refused.
    pub no_reasoning: bool,
    /// Models behind it write their thinking into the text, in `<think>` marks.
    pub inline_think: bool,
    /// Streams a tool's arguments as they are written where it is asked to. Other servers of the
    /// wire refuse the word, so it holds for the provider's own address only.
    pub eager_input: bool,
    /// Holds an answer to a JSON Schema by itself, beside tools.
    pub native_form: bool,
}

const NO_QUIRKS: Quirks = Quirks {
    max_completion_tokens: false,
    chat_fallback: false,
    api_key_header: false,
    reasoning_content: false,
    mistral_order: false,
    no_reasoning: false,
    inline_think: false,
    eager_input: false,
    native_form: false,
};

/// Rows of the common kind whose models think between their calls.
const fn thinking(row: Provider) -> Provider {
    Provider { quirks: Quirks { reasoning_content: true, ..NO_QUIRKS }, ..row }
}

const fn cloud(
    id: &'static str,
    name: &'static str,
    base_url: &'static str,
    key_variables: &'static [&'static str],
    base_url_variable: &'static str,
) -> Provider {
    Provider {
        id,
        name,
        wire: Wire::OpenaiChat,
        base_url,
        key_variables,
        base_url_variable,
        default_model: None,
        local: false,
        quirks: NO_QUIRKS,
    }
}

const fn local(id: &'static str, name: &'static str, base_url: &'static str) -> Provider {
    let quirks = Quirks { inline_think: true, ..NO_QUIRKS };
    Provider { local: true, quirks, ..cloud(id, name, base_url, &[], "") }
}

/// In the order in which a default is looked for.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        wire: Wire::AnthropicMessages,
        default_model: Some("claude-sonnet-5"),
        quirks: Quirks { eager_input: true, native_form: true, ..NO_QUIRKS },
        ..cloud(
            "anthropic",
            "Anthropic",
            "https://api.anthropic.com",
            &["ANTHROPIC_API_KEY"],
            "ANTHROPIC_BASE_URL",
        )
    },
    Provider {
        wire: Wire::OpenaiResponses,
        default_model: Some("gpt-5.5"),
        quirks: Quirks {
            max_completion_tokens: true,
            chat_fallback: true,
            native_form: true,
            ..NO_QUIRKS
        },
        ..cloud(
            "openai",
            "OpenAI",
            "https://api.openai.com/v1",
            &["OPENAI_API_KEY"],
            "OPENAI_BASE_URL",
        )
    },
    Provider {
        quirks: Quirks { max_completion_tokens: true, native_form: true, ..NO_QUIRKS },
        ..cloud(
            "openai-chat",
            "OpenAI (Chat Completions)",
            "https://api.openai.com/v1",
            &["OPENAI_API_KEY"],
            "OPENAI_BASE_URL",
        )
    },
    Provider {
        wire: Wire::OpenaiResponses,
        quirks: Quirks {
            max_completion_tokens: true,
            chat_fallback: true,
            api_key_header: true,
            native_form: true,
            ..NO_QUIRKS
        },
        ..cloud(
            "azure",
            "Azure OpenAI",
            "",
            &["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
            "AZURE_OPENAI_BASE_URL",
        )
    },
    Provider {
        wire: Wire::Gemini,
        default_model: Some("gemini-3.5-flash"),
        quirks: Quirks { native_form: true, ..NO_QUIRKS },
        ..cloud(
            "google",
            "Google",
            "https://generativelanguage.googleapis.com/v1beta",
            &["GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_API_KEY"],
            "GEMINI_BASE_URL",
        )
    },
    Provider {
        default_model: Some("anthropic/claude-sonnet-5"),
        ..cloud(
            "openrouter",
            "OpenRouter",
            "https://openrouter.ai/api/v1",
            &["OPENROUTER_API_KEY"],
            "OPENROUTER_BASE_URL",
        )
    },
    cloud("groq", "Groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], "GROQ_BASE_URL"),
    cloud("xai", "xAI", "https://api.x.ai/v1", &["XAI_API_KEY"], "XAI_BASE_URL"),
    thinking(cloud(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com/v1",
        &["DEEPSEEK_API_KEY"],
        "DEEPSEEK_BASE_URL",
    )),
    Provider {
        quirks: Quirks { mistral_order: true, ..NO_QUIRKS },
        ..cloud(
            "mistral",
            "Mistral",
            "https://api.mistral.ai/v1",
            &["MISTRAL_API_KEY"],
            "MISTRAL_BASE_URL",
        )
    },
    cloud(
        "togetherai",
        "Together",
        "https://api.together.xyz/v1",
        &["TOGETHER_API_KEY"],
        "TOGETHER_BASE_URL",
    ),
    cloud(
        "fireworks-ai",
        "Fireworks",
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_API_KEY"],
        "FIREWORKS_BASE_URL",
    ),
    cloud(
        "cerebras",
        "Cerebras",
        "https://api.cerebras.ai/v1",
        &["CEREBRAS_API_KEY"],
        "CEREBRAS_BASE_URL",
    ),
    thinking(cloud(
        "moonshotai",
        "Moonshot",
        "https://api.moonshot.ai/v1",
        &["MOONSHOT_API_KEY"],
        "MOONSHOT_BASE_URL",
    )),
    thinking(cloud(
        "zai",
        "Z.ai",
        "https://api.z.ai/api/paas/v4",
        &["ZHIPU_API_KEY"],
        "ZHIPU_BASE_URL",
    )),
    cloud(
        "minimax",
        "MiniMax",
        "https://api.minimax.io/v1",
        &["MINIMAX_API_KEY"],
        "MINIMAX_BASE_URL",
    ),
    cloud(
        "alibaba",
        "Alibaba",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        &["DASHSCOPE_API_KEY"],
        "DASHSCOPE_BASE_URL",
    ),
    cloud(
        "github-models",
        "GitHub Models",
        "https://models.github.ai/inference",
        &["GITHUB_TOKEN"],
        "GITHUB_BASE_URL",
    ),
    cloud(
        "huggingface",
        "Hugging Face",
        "https://router.huggingface.co/v1",
        &["HF_TOKEN"],
        "HF_BASE_URL",
    ),
    cloud(
        "nvidia",
        "NVIDIA",
        "https://integrate.api.nvidia.com/v1",
        &["NVIDIA_API_KEY"],
        "NVIDIA_BASE_URL",
    ),
    cloud(
        "perplexity",
        "Perplexity",
        "https://api.perplexity.ai",
        &["PERPLEXITY_API_KEY"],
        "PERPLEXITY_BASE_URL",
    ),
    cloud(
        "cohere",
        "Cohere",
        "https://api.cohere.ai/compatibility/v1",
        &["COHERE_API_KEY"],
        "COHERE_BASE_URL",
    ),
    cloud(
        "deepinfra",
        "Deep Infra",
        "https://api.deepinfra.com/v1/openai",
        &["DEEPINFRA_API_KEY"],
        "DEEPINFRA_BASE_URL",
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

    /// Whether an address is the provider's own, however it is written.
    pub fn is_at(&self, url: &str) -> bool {
        let plain = |url: &str| {
            let url = url.trim().trim_end_matches('/');
            url.strip_suffix("/v1").unwrap_or(url).to_owned()
        };
        plain(url) == plain(self.base_url)
    }

    /// How to reach it, with the environment's key and address.
    pub fn endpoint(&self, env: &dyn Fn(&str) -> Option<String>) -> Endpoint {
        let own = env(self.base_url_variable).filter(|v| !v.trim().is_empty());
        let eager_input =
            self.quirks.eager_input && own.as_deref().is_none_or(|url| self.is_at(url));
        Endpoint {
            provider: self.id.to_owned(),
            wire: self.wire,
            base_url: own.unwrap_or_else(|| self.base_url.to_owned()),
            key: self.key_from(env).map(|(_, key)| key.trim().to_owned()),
            headers: Vec::new(),
            ca_file: None,
            quirks: Quirks { eager_input, ..self.quirks },
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
    /// Authorities to believe besides the system's own.
    pub ca_file: Option<std::path::PathBuf>,
    pub quirks: Quirks,
}

impl Endpoint {
    /// A text of the server's without our secrets in it.
    pub(crate) fn masked(&self, text: &str) -> String {
        let secrets = self.key.iter().chain(self.headers.iter().map(|(_, value)| value));
        // Very short values would mask innocent words.
        secrets
            .filter(|secret| secret.len() >= 8)
            .fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }
}

/// Written by hand so that no log line can hold the key.
impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("wire", &self.wire)
            .field("key", &self.key.as_ref().map(|_| "***"))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eager_arguments_are_asked_of_anthropic_itself_only() {
        let eager = |env: &dyn Fn(&str) -> Option<String>| {
            provider("anthropic").unwrap().endpoint(env).quirks.eager_input
        };
        assert!(eager(&|_| None));
        let own = |name: &str| (name == "ANTHROPIC_BASE_URL").then(|| "https://proxy".to_owned());
        assert!(!eager(&own));
        let same = |name: &str| {
            (name == "ANTHROPIC_BASE_URL").then(|| "https://api.anthropic.com/v1/".to_owned())
        };
        assert!(eager(&same));
        let others = PROVIDERS.iter().filter(|p| p.id != "anthropic");
        assert!(others.into_iter().all(|p| !p.quirks.eager_input));
    }
}
