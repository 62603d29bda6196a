//! Exa, spoken to as a tool server over JSON-RPC: it writes the text for models itself.

use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::service::{Found, Inquiry, Outgoing, SearchProvider};

pub(crate) struct Exa {
    pub(crate) key: String,
    pub(crate) url: Url,
}

impl SearchProvider for Exa {
    fn id(&self) -> &str {
        "exa"
    }

    fn name(&self) -> &str {
        "Exa"
    }

    fn request(&self, inquiry: &Inquiry) -> Outgoing {
        let (tool, arguments) = match inquiry.code_tokens {
            Some(tokens) => {
                ("get_code_context_exa", json!({ "query": inquiry.query, "tokensNum": tokens }))
            }
            None => {
                let mut arguments = json!({
                    "query": inquiry.query,
                    "type": inquiry.depth,
                    "numResults": inquiry.results,
                    "livecrawl": inquiry.livecrawl,
                });
                if let Some(characters) = inquiry.characters {
                    arguments["contextMaxCharacters"] = json!(characters);
                }
                ("web_search_exa", arguments)
            }
        };
        let mut url = self.url.clone();
        url.query_pairs_mut().append_pair("exaApiKey", &self.key);
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments },
        });
        let accept = ("accept", "application/json, text/event-stream".to_owned());
        Outgoing { method: Method::POST, url, headers: vec![accept], body: Some(body) }
    }

    fn read(&self, answer: &str) -> Result<Found, String> {
        let events = answer.lines().filter_map(|line| line.strip_prefix("data:"));
        for text in std::iter::once(answer).chain(events) {
            // Frames that are no JSON, such as an end mark, say nothing.
            let Ok(message) = serde_json::from_str::<Value>(text.trim()) else { continue };
            if let Some(problem) = message["error"]["message"].as_str() {
                return Err(format!("Exa says: {problem}"));
            }
            let Some(content) = message["result"]["content"].as_array() else { continue };
            let text = content.iter().find_map(|item| item["text"].as_str()).unwrap_or_default();
            return match message["result"]["isError"].as_bool() {
                Some(true) => Err(format!("Exa says: {text}")),
                _ => Ok(Found::Text(text.to_owned())),
            };
        }
        Ok(Found::Text(String::new()))
    }
}
