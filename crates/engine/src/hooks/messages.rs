//! A conversation in the form that plugins know, `{info, parts}`, and what they made of it. A call and
//! its result are one part, so that none can be left without the other; what was not changed is sent
//! with the bytes that it had.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolwright_llm::{Block, Content, Turn};

/// Every turn with a number by which it is found again.
pub(super) fn shown(turns: &[Arc<Turn>], session: &str) -> Vec<Value> {
    turns.iter().enumerate().map(|(at, turn)| message(at, turn, session)).collect()
}

fn message_id(at: usize) -> String {
    format!("msg_{at:06}")
}

fn part_id(at: usize, part: usize) -> String {
    format!("prt_{at:06}_{part:04}")
}

fn message(at: usize, turn: &Turn, session: &str) -> Value {
    let id = message_id(at);
    let about = |part: usize| {
        let mut about = Map::new();
        about.insert("id".to_owned(), json!(part_id(at, part)));
        about.insert("messageID".to_owned(), json!(id));
        about.insert("sessionID".to_owned(), json!(session));
        about
    };
    let with = |part: usize, more: Value| {
        let mut own = about(part);
        own.extend(more.as_object().cloned().unwrap_or_default());
        Value::Object(own)
    };
    match turn {
        Turn::User(content) => {
            let parts = content.iter().enumerate().map(|(n, part)| with(n, content_part(part)));
            {
                let info = json!({ "id": id, "sessionID": session, "role": "user" });
                json!({ "info": info, "parts": parts.collect::<Vec<_>>() })
            }
        }
        Turn::Assistant { origin, blocks } => {
            let parts = blocks.iter().enumerate().filter_map(|(n, b)| Some(with(n, block(b)?)));
            let info = json!({
                "id": id, "sessionID": session, "role": "assistant", "providerID": origin.provider, "modelID": origin.model,
            });
            json!({ "info": info, "parts": parts.collect::<Vec<_>>() })
        }
    }
}

fn content_part(content: &Content) -> Value {
    match content {
        Content::Text { text } => json!({ "type": "text", "text": text }),
        // Not its bytes: they would be copied for each request.
        Content::Media(media) => {
            json!({ "type": "file", "mime": media.mime, "filename": media.name, "url": "" })
        }
    }
}

fn block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text, .. } => json!({ "type": "text", "text": text }),
        Block::Reasoning { text, .. } => json!({ "type": "reasoning", "text": text }),
        Block::ServerTool { .. } => return None,
        Block::Call { id, name, arguments, result, .. } => {
            let input: Value = serde_json::from_str(arguments.get()).unwrap_or_default();
            let said = words(&result.content);
            let state = match result.is_error {
                false => json!({
                    "status": "completed", "input": input, "output": said, "title": "",
                    "metadata": {}, "time": { "start": 0, "end": 0 },
                }),
                true => json!({
                    "status": "error", "input": input, "error": said, "time": { "start": 0, "end": 0 },
                }),
            };
            json!({ "type": "tool", "callID": id, "tool": name, "state": state })
        }
    })
}

fn words(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        Content::Text { text } => Some(text.as_str()),
        Content::Media(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The turns that changed messages stand for. What is no list of messages changes nothing.
pub(super) fn taken_back(turns: &[Arc<Turn>], messages: &Value, session: &str) -> Vec<Arc<Turn>> {
    let Some(messages) = messages.as_array() else { return turns.to_vec() };
    let taken: Vec<_> =
        messages.iter().filter_map(|message| turn_of(turns, message, session)).collect();
    // A request without a word in it is none.
    if taken.is_empty() { turns.to_vec() } else { taken }
}

fn turn_of(turns: &[Arc<Turn>], given: &Value, session: &str) -> Option<Arc<Turn>> {
    let known = given["info"]["id"].as_str().and_then(number);
    let known = known.and_then(|at| Some((at, turns.get(at)?)));
    let parts = given["parts"].as_array()?;
    let Some((at, turn)) = known else {
        return (given["info"]["role"] != "assistant")
            .then(|| parts.iter().filter_map(new_text).collect::<Vec<_>>())
            .filter(|content| !content.is_empty())
            .map(|content| Arc::new(Turn::User(content)));
    };
    if message(at, turn, session)["parts"].as_array() == Some(parts) {
        return Some(Arc::clone(turn));
    }
    let own = |part: &Value| {
        let id = part["id"].as_str()?.strip_prefix(&format!("prt_{at:06}_"))?;
        id.parse::<usize>().ok()
    };
    match turn.as_ref() {
        Turn::User(content) => {
            let content: Vec<Content> = parts
                .iter()
                .filter_map(|part| match own(part).and_then(|n| content.get(n)) {
                    Some(Content::Media(media)) => Some(Content::Media(media.clone())),
                    _ => new_text(part),
                })
                .collect();
            (!content.is_empty()).then(|| Arc::new(Turn::User(content)))
        }
        Turn::Assistant { origin, blocks } => {
            // What is not shown cannot have been taken out.
            let hidden = |n: usize| matches!(blocks.get(n), Some(Block::ServerTool { .. }));
            let mut kept: Vec<(usize, Block)> = (0..blocks.len())
                .filter(|n| hidden(*n))
                .filter_map(|n| Some((n, blocks.get(n)?.clone())))
                .collect();
            let mut last = 0;
            for part in parts {
                match own(part).and_then(|n| Some((n, blocks.get(n)?))) {
                    Some((n, block)) => {
                        last = n;
                        kept.push((n, changed(block, part)));
                    }
                    None => {
                        let text = part["text"].as_str().filter(|_| part["type"] == "text");
                        let said = |text: &str| Block::Text { text: text.to_owned(), opaque: None };
                        kept.extend(text.map(|text| (last, said(text))));
                    }
                }
            }
            kept.sort_by_key(|(n, _)| *n);
            let blocks: Vec<Block> = kept.into_iter().map(|(_, block)| block).collect();
            let origin = origin.clone();
            (!blocks.is_empty()).then(|| Arc::new(Turn::Assistant { origin, blocks }))
        }
    }
}

fn number(id: &str) -> Option<usize> {
    id.strip_prefix("msg_")?.parse().ok()
}

fn new_text(part: &Value) -> Option<Content> {
    let text = part["text"].as_str().filter(|text| !text.is_empty() && part["type"] == "text")?;
    Some(Content::text(text))
}

fn changed(block: &Block, part: &Value) -> Block {
    let mut block = block.clone();
    let new = |key: &str| part[key].as_str().map(str::to_owned);
    match &mut block {
        Block::Text { text, opaque } => {
            if let Some(said) = new("text").filter(|said| said != text) {
                (*text, *opaque) = (said, None);
            }
        }
        // Signed by its maker, word for word.
        Block::Reasoning { .. } | Block::ServerTool { .. } => {}
        Block::Call { arguments, result, .. } => {
            let state = &part["state"];
            let input = &state["input"];
            let same = |raw: &RawValue| {
                serde_json::from_str::<Value>(raw.get()).is_ok_and(|known| known == *input)
            };
            if input.is_object()
                && !same(arguments)
                && let Ok(raw) = serde_json::value::to_raw_value(input)
            {
                *arguments = raw;
            }
            let said = state["output"].as_str().or(state["error"].as_str());
            if let Some(said) = said.filter(|said| *said != words(&result.content)) {
                let media = |part: &Content| matches!(part, Content::Media(_));
                result.content.retain(media);
                result.content.insert(0, Content::text(said));
            }
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use toolwright_llm::{CallResult, Origin};

    use super::*;

    fn conversation() -> Vec<Arc<Turn>> {
        let call = |id: &str, output: &str| Block::Call {
            opaque: Some(json!("signed")),
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments: serde_json::value::to_raw_value(&json!({ "a": 1 })).unwrap(),
            result: CallResult { content: vec![Content::text(output)], is_error: false },
        };
        let origin = Origin { provider: "p".to_owned(), model: "m".to_owned() };
        let said = Block::Text { text: "hm".to_owned(), opaque: None };
        vec![
            Arc::new(Turn::User(vec![Content::text("go")])),
            Arc::new(Turn::Assistant {
                origin,
                blocks: vec![said, call("1", "long"), call("2", "b")],
            }),
            Arc::new(Turn::User(vec![Content::text("on")])),
        ]
    }

    fn results(turn: &Turn) -> Vec<String> {
        let Turn::Assistant { blocks, .. } = turn else { return Vec::new() };
        let result = |block: &Block| match block {
            Block::Call { result, .. } => Some(words(&result.content)),
            _ => None,
        };
        blocks.iter().filter_map(result).collect()
    }

    #[test]
    fn what_nobody_changed_is_the_same_turn() {
        let turns = conversation();
        let back = taken_back(&turns, &Value::Array(shown(&turns, "s")), "s");
        assert_eq!(back.len(), turns.len());
        assert!(back.iter().zip(&turns).all(|(a, b)| Arc::ptr_eq(a, b)));
    }

    #[test]
    fn an_output_is_replaced_and_a_part_is_dropped_with_its_result() {
        let turns = conversation();
        let mut messages = shown(&turns, "s");
        messages[1]["parts"][1]["state"]["output"] = json!("short");
        let back = taken_back(&turns, &json!(messages), "s");
        assert_eq!(results(&back[1]), ["short", "b"]);
        assert!(Arc::ptr_eq(&back[2], &turns[2]));
        messages[1]["parts"].as_array_mut().unwrap().remove(2);
        assert_eq!(results(&taken_back(&turns, &json!(messages), "s")[1]), ["short"]);
    }

    #[test]
    fn messages_come_and_go_and_nonsense_changes_nothing() {
        let turns = conversation();
        let mut messages = shown(&turns, "s");
        messages.remove(0);
        messages.push(
            json!({ "info": { "role": "user" }, "parts": [{ "type": "text", "text": "new" }] }),
        );
        messages.push(json!({ "info": { "role": "assistant" }, "parts": [{ "type": "tool" }] }));
        messages.push(json!("nonsense"));
        let back = taken_back(&turns, &json!(messages), "s");
        assert_eq!(back.len(), 3);
        assert!(matches!(back[2].as_ref(), Turn::User(c) if *c == [Content::text("new")]));
        for nothing in [json!(null), json!([]), json!([{ "info": {} }])] {
            assert_eq!(taken_back(&turns, &nothing, "s").len(), 3, "{nothing}");
        }
    }
}
