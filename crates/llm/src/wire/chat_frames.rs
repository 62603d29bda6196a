//! The frames of OpenAI Chat Completions, as loosely as servers send them.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Str;
use crate::Usage;

/// What is rare or large stands in a box: a chunk is moved several times while it is read, and most
/// hold twenty characters.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) choices: Option<Few<Choice<'a>>>,
    pub(super) usage: Option<Box<Value>>,
    /// Groq's place for the usage.
    pub(super) x_groq: Option<Box<Value>>,
    pub(super) error: Option<Box<Value>>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Str<'a>>,
    /// Where some servers put it.
    pub(super) usage: Option<Box<Value>>,
    /// OpenRouter's place for what went wrong behind it.
    pub(super) error: Option<Box<Value>>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    /// Text, or typed parts (Mistral's thinking).
    #[serde(borrow)]
    pub(super) content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_text: Option<Str<'a>>,
    /// OpenRouter's form; often repeats what `reasoning` says.
    pub(super) reasoning_details: Option<Box<Value>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Few<CallDelta<'a>>>,
    /// What calls were named before they could be several.
    #[serde(borrow)]
    pub(super) function_call: Option<Box<FunctionDelta<'a>>>,
}

/// A list that nearly always holds one, which then costs no allocation.
pub(super) struct Few<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Few<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = Few<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<Self::Value, A::Error> {
                let first = seq.next_element()?;
                let mut more = Vec::new();
                if first.is_some() {
                    while let Some(item) = seq.next_element()? {
                        more.push(item);
                    }
                }
                Ok(Few { first, more })
            }
        }
        deserializer.deserialize_seq(Visitor(PhantomData))
    }
}

pub(super) enum Text<'a> {
    Plain(Cow<'a, str>),
    Other(Box<Value>),
}

/// By hand: an untagged enum would copy every text before it is looked at.
impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text or parts of one")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text::Plain(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text::Plain(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                seq: A,
            ) -> Result<Self::Value, A::Error> {
                let access = serde::de::value::SeqAccessDeserializer::new(seq);
                Box::deserialize(access).map(Text::Other)
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<Self::Value, A::Error> {
                let access = serde::de::value::MapAccessDeserializer::new(map);
                Box::deserialize(access).map(Text::Other)
            }
            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Text::Other(Box::new(number.into())))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Text::Other(Box::new(number.into())))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Text::Other(Box::new(number.into())))
            }
            fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
                Ok(Text::Other(Box::new(flag.into())))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[derive(Deserialize)]
pub(super) struct CallDelta<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) function: Option<FunctionDelta<'a>>,
    /// What free-form tools have instead.
    #[serde(borrow)]
    pub(super) custom: Option<Box<FunctionDelta<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Str<'a>>,
    /// A string in the standard; some servers send the object itself.
    #[serde(borrow)]
    pub(super) arguments: Option<Text<'a>>,
    /// Of a free-form tool.
    #[serde(borrow)]
    pub(super) input: Option<Text<'a>>,
}

/// The same chunk with what has an odd type put right or left out. A whole answer becomes a chunk:
/// its `message` is what all deltas would have added up to.
pub(super) fn mend(mut chunk: Value, stream: bool) -> Value {
    let drop_unless = |object: &mut Map<String, Value>, key: &str, fits: fn(&Value) -> bool| {
        if object.get(key).is_some_and(|value| !value.is_null() && !fits(value)) {
            object.shift_remove(key);
        }
    };
    let as_number = |object: &mut Map<String, Value>, key: &str| {
        let number = object.get(key).and_then(|v| v.as_u64().or_else(|| v.as_str()?.parse().ok()));
        match number {
            Some(number) => object.insert(key.to_owned(), number.into()),
            None => object.shift_remove(key),
        };
    };
    let as_text = |object: &mut Map<String, Value>, key: &str| {
        if let Some(value @ (Value::Number(_) | Value::Bool(_))) = object.get(key) {
            let text = value.to_string();
            object.insert(key.to_owned(), text.into());
        }
        drop_unless(object, key, Value::is_string);
    };
    if let Some(object) = chunk.as_object_mut() {
        drop_unless(object, "choices", Value::is_array);
    }
    if let Some(choices) = chunk.get_mut("choices").and_then(Value::as_array_mut) {
        choices.retain(Value::is_object);
        for choice in choices.iter_mut().filter_map(Value::as_object_mut) {
            as_number(choice, "index");
            as_text(choice, "finish_reason");
            if !stream && let Some(message) = choice.shift_remove("message") {
                choice.insert("delta".to_owned(), message);
            }
            drop_unless(choice, "delta", Value::is_object);
            let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) else {
                continue;
            };
            for key in ["reasoning_content", "reasoning_text", "refusal"] {
                drop_unless(delta, key, Value::is_string);
            }
            drop_unless(delta, "function_call", Value::is_object);
            drop_unless(delta, "tool_calls", Value::is_array);
            let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
            for call in calls.into_iter().flatten().filter_map(Value::as_object_mut) {
                as_number(call, "index");
                as_text(call, "id");
                drop_unless(call, "function", Value::is_object);
                if let Some(function) = call.get_mut("function").and_then(Value::as_object_mut) {
                    as_text(function, "name");
                }
            }
        }
    }
    chunk
}

pub(super) fn read_usage(usage: &Value) -> Usage {
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let cache_read = match number("/prompt_tokens_details/cached_tokens") {
        // DeepSeek's name for the same.
        0 => number("/prompt_cache_hit_tokens"),
        cached => cached,
    };
    // Moonshot's place for it.
    let cache_read = if cache_read == 0 { number("/cached_tokens") } else { cache_read };
    let cache_write = number("/prompt_tokens_details/cache_write_tokens");
    let (prompt, completion) = (number("/prompt_tokens"), number("/completion_tokens"));
    let reasoning = number("/completion_tokens_details/reasoning_tokens");
    // xAI counts reasoning beside the completion, the others inside it; the total tells.
    let all = completion.saturating_add(reasoning);
    let beside = number("/total_tokens") == prompt.saturating_add(all);
    Usage {
        // The prompt's count includes what was cached.
        input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
        output: if beside { all } else { completion },
        reasoning,
        cache_read,
        cache_write,
    }
}
