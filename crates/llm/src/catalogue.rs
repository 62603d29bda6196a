//! Models and their limits and prices, in the form of models.dev: a compiled-in list that a user's
//! refreshed copy and own entries override.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Usage;

/// One provider a line, so that a look-up reads one line and not all.
const COMPILED_IN: &str = include_str!("catalogue.jsonl");

/// What is known of a model. Everything may be missing: an unknown model is used all the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelFacts {
    pub name: Option<String>,
    pub limit: Limits,
    pub cost: Option<Price>,
    pub reasoning: Option<bool>,
    pub tool_call: Option<bool>,
    /// Takes images and documents.
    pub attachment: Option<bool>,
    pub temperature: Option<bool>,
    /// Its provider can hold it to a schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<bool>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    pub context: Option<u32>,
    pub output: Option<u32>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    /// Other prices for prompts that are larger than `size` tokens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<Tier>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tier {
    pub size: u64,
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
}

impl Price {
    /// What a request cost, in US dollars.
    pub fn of(&self, usage: &Usage) -> f64 {
        let prompt = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        let tier = self.tiers.iter().filter(|t| prompt > t.size).max_by_key(|t| t.size);
        let (input, output, read, write) = match tier {
            Some(t) => (t.input, t.output, t.cache_read, t.cache_write),
            None => (self.input, self.output, self.cache_read, self.cache_write),
        };
        // A cache without a price of its own costs as much as fresh input.
        let million = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        million(usage.input, input)
            + million(usage.output, output)
            + million(usage.cache_read, read.unwrap_or(input))
            + million(usage.cache_write, write.unwrap_or(input))
    }
}

#[derive(Deserialize)]
struct Entry {
    models: BTreeMap<String, ModelFacts>,
}

/// The models of one provider, from the compiled-in list or from `refreshed` (models.dev's own
/// JSON) where that has the provider.
pub fn models_of(provider: &str, refreshed: Option<&str>) -> BTreeMap<String, ModelFacts> {
    // OpenAI's second row is the same house.
    let provider = if provider == "openai-chat" { "openai" } else { provider };
    let fresh = refreshed
        .and_then(|text| serde_json::from_str::<BTreeMap<String, serde_json::Value>>(text).ok())
        .and_then(|mut all| serde_json::from_value::<Entry>(all.remove(provider)?).ok());
    let compiled_in = || {
        let start = format!("{{\"id\":\"{provider}\",");
        let line = COMPILED_IN.lines().find(|line| line.starts_with(&start))?;
        serde_json::from_str::<Entry>(line).ok()
    };
    fresh.or_else(compiled_in).map(|entry| entry.models).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PROVIDERS;

    #[test]
    fn every_line_of_the_compiled_in_list_is_readable() {
        for line in COMPILED_IN.lines() {
            let entry: Entry = serde_json::from_str(line).unwrap();
            assert!(!entry.models.is_empty(), "{}", &line[..40]);
        }
    }

    #[test]
    fn every_default_model_is_known() {
        for provider in PROVIDERS {
            if let Some(model) = provider.default_model {
                assert!(
                    models_of(provider.id, None).contains_key(model),
                    "{}/{model}",
                    provider.id
                );
            }
        }
    }

    #[test]
    fn prices_count_cache_and_tiers() {
        let price = Price {
            input: 2.0,
            output: 10.0,
            cache_read: Some(0.2),
            cache_write: None,
            tiers: vec![Tier { size: 1_000_000, input: 4.0, output: 20.0, ..Tier::default() }],
        };
        let usage =
            Usage { input: 500_000, output: 100_000, cache_read: 500_000, ..Usage::default() };
        assert!((price.of(&usage) - (1.0 + 1.0 + 0.1)).abs() < 1e-9);
        let more = Usage { input: 600_000, ..usage };
        assert!((price.of(&more) - (2.4 + 2.0 + 2.0)).abs() < 1e-9);
    }

    #[test]
    fn a_refreshed_list_wins_and_a_broken_one_is_ignored() {
        let fresh = r#"{"anthropic":{"models":{"new":{"limit":{"context":5}}}}}"#;
        assert_eq!(models_of("anthropic", Some(fresh)).len(), 1);
        assert!(models_of("openai", Some(fresh)).len() > 5);
        assert!(models_of("anthropic", Some("{broken")).len() > 5);
        assert!(models_of("nowhere", None).is_empty());
    }
}
