//! What is said to a model, independent of any wire format.
//!
//! A call carries its own result, so a request that holds a call without a result cannot be built.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One request to a model.
#[derive(Debug, Clone)]
pub struct Request {
    pub system: Arc<str>,
    /// Shared, because each request repeats all turns of the one before.
    pub turns: Vec<Arc<Turn>>,
    pub tools: Arc<[ToolDefinition]>,
    pub tool_choice: ToolChoice,
    /// Where the wire needs a number and none is given, one that every current model takes is sent.
    pub max_output_tokens: Option<u32>,
    pub sampling: Sampling,
    /// Nothing leaves it to the provider.
    pub effort: Option<Effort>,
    /// A JSON Schema that the provider is to hold the answer to. Sent where [`crate::Model::takes_form`]
    /// says so; whoever asks validates the answer all the same.
    pub output_schema: Option<Arc<serde_json::Value>>,
    /// What goes with this request beside the endpoint's own headers, and in place of those.
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// The schema to send. A closing word without tools is for people.
    pub(crate) fn form(&self) -> Option<&serde_json::Value> {
        self.output_schema.as_deref().filter(|_| self.tool_choice == ToolChoice::Auto)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// Tools stay listed (the prompt's prefix does not move) and must not be called.
    None,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, Serialize)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    pub parameters: serde_json::Value,
}

/// Which model made a reply. Opaque data in the reply goes back to no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub provider: String,
    pub model: String,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

#[derive(Debug, Clone)]
pub enum Turn {
    User(Vec<Content>),
    Assistant { origin: Origin, blocks: Vec<Block> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    Text { text: String },
    Media(Media),
}

impl Content {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// An image or a document, base64-encoded once when it enters the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Media {
    pub mime: String,
    pub base64: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Media {
    /// What these bytes are, if it is something that models look at. The content decides, not a name.
    pub fn mime_of(bytes: &[u8]) -> Option<&'static str> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
            [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
            [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
            [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
            _ => None,
        }
    }

    /// Bytes that every provider takes: 5 MiB in base64 for an image.
    pub fn cap_bytes(mime: &str) -> u64 {
        if mime.starts_with("image/") { (5 << 20) / 4 * 3 } else { 20 << 20 }
    }
}

/// The maker's own data (a signature, an item's id): sent back unchanged, to the maker only.
pub type Opaque = Option<serde_json::Value>;

/// How words are chosen. Nothing leaves it to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub seed: Option<i64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
}

/// How hard the model should think, on one scale for all providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Max,
}

#[derive(Debug, Clone)]
pub enum Block {
    Text {
        text: String,
        opaque: Opaque,
    },
    Reasoning {
        text: String,
        opaque: Opaque,
    },
    /// What the provider did by itself.
    ServerTool {
        opaque: serde_json::Value,
    },
    Call {
        opaque: Opaque,
        id: String,
        name: String,
        /// A JSON object. What a model sent that was none is wrapped by the history's owner.
        arguments: Box<RawValue>,
        result: CallResult,
    },
}

#[derive(Debug, Clone)]
pub struct CallResult {
    pub content: Vec<Content>,
    pub is_error: bool,
}
