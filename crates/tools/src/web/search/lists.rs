//! Services that answer with a list of results: Brave, Tavily, SearXNG, and any other that takes
//! and gives the same simple form.

use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::service::{Depth, Found, Hit, Inquiry, Outgoing, SearchProvider, parsed};

/// What these services give at most in one answer.
const PAGE: u32 = 20;

pub(crate) struct Brave {
    pub(crate) key: String,
    pub(crate) url: Url,
}

impl SearchProvider for Brave {
    fn id(&self) -> &str {
        "brave"
    }

    fn name(&self) -> &str {
        "Brave"
    }

    fn request(&self, inquiry: &Inquiry) -> Outgoing {
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("q", &inquiry.query)
            .append_pair("count", &inquiry.results.min(PAGE).to_string());
        let headers = vec![
            ("accept", "application/json".to_owned()),
            ("x-subscription-token", self.key.clone()),
        ];
        Outgoing { method: Method::GET, url, headers, body: None }
    }

    fn read(&self, answer: &str) -> Result<Found, String> {
        let mut answer = parsed(self.name(), answer)?;
        Ok(hits(answer["web"]["results"].take()))
    }
}

pub(crate) struct Tavily {
    pub(crate) key: String,
    pub(crate) url: Url,
}

impl SearchProvider for Tavily {
    fn id(&self) -> &str {
        "tavily"
    }

    fn name(&self) -> &str {
        "Tavily"
    }

    fn request(&self, inquiry: &Inquiry) -> Outgoing {
        let depth = if inquiry.depth == Depth::Deep { "advanced" } else { "basic" };
        let body = json!({
            "query": inquiry.query,
            "max_results": inquiry.results.min(PAGE),
            "search_depth": depth,
        });
        let headers = vec![("authorization", format!("Bearer {}", self.key))];
        Outgoing { method: Method::POST, url: self.url.clone(), headers, body: Some(body) }
    }

    fn read(&self, answer: &str) -> Result<Found, String> {
        let mut answer = parsed(self.name(), answer)?;
        Ok(hits(answer["results"].take()))
    }
}

/// An instance of one's own; the settings name its address.
pub(crate) struct SearXng {
    pub(crate) url: Url,
}

impl SearchProvider for SearXng {
    fn id(&self) -> &str {
        "searxng"
    }

    fn name(&self) -> &str {
        "SearXNG"
    }

    fn request(&self, inquiry: &Inquiry) -> Outgoing {
        let mut url = self.url.clone();
        if !url.path().ends_with("/search") {
            let path = format!("{}/search", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        url.query_pairs_mut().append_pair("q", &inquiry.query).append_pair("format", "json");
        Outgoing { method: Method::GET, url, headers: Vec::new(), body: None }
    }

    fn read(&self, answer: &str) -> Result<Found, String> {
        let mut answer = parsed(self.name(), answer)
            .map_err(|e| format!("{e} The instance must allow the format json."))?;
        Ok(hits(answer["results"].take()))
    }
}

/// Any service that takes `{query, numResults}` and gives `{results: [{title, url, text}]}`.
pub(crate) struct Custom {
    pub(crate) key: Option<String>,
    pub(crate) url: Url,
}

impl SearchProvider for Custom {
    fn id(&self) -> &str {
        "custom"
    }

    fn name(&self) -> &str {
        "The search service"
    }

    fn request(&self, inquiry: &Inquiry) -> Outgoing {
        let mut body = json!({ "query": inquiry.query, "numResults": inquiry.results });
        if let Some(tokens) = inquiry.code_tokens {
            body["tokensNum"] = json!(tokens);
        }
        let bearer = |key: &String| ("authorization", format!("Bearer {key}"));
        let headers = self.key.iter().map(bearer).collect();
        Outgoing { method: Method::POST, url: self.url.clone(), headers, body: Some(body) }
    }

    fn read(&self, answer: &str) -> Result<Found, String> {
        let mut answer = parsed(self.name(), answer)?;
        match answer["text"].as_str() {
            Some(text) => Ok(Found::Text(text.to_owned())),
            None => Ok(hits(answer["results"].take())),
        }
    }
}

/// Each service has its own word for the text of a result.
fn hits(results: Value) -> Found {
    let text = |hit: &Value, keys: &[&str]| {
        keys.iter().find_map(|key| hit[*key].as_str()).unwrap_or_default().to_owned()
    };
    let results = results.as_array().cloned().unwrap_or_default();
    let hit = |hit: &Value| Hit {
        title: text(hit, &["title"]),
        url: text(hit, &["url", "link"]),
        text: text(hit, &["text", "content", "description", "snippet"]),
    };
    Found::Hits(results.iter().map(hit).filter(|hit| !hit.url.is_empty()).collect())
}
