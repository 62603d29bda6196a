//! What the scripted model answers, and how badly.

use serde_json::{Value, json};

use crate::server::Wire;

/// The answer to one request.
#[derive(Debug, Clone)]
pub enum Answer {
    Reply(Reply),
    /// An HTTP error with its headers.
    Status {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// A body of our own, sent as an event stream.
    Raw(Vec<u8>),
    /// A body in pieces, with an end of its own.
    Pieces {
        pieces: Vec<Vec<u8>>,
        after: After,
    },
    /// Reads the request and closes without a byte.
    Close,
    /// Takes the connection and never reads or says anything.
    Silence,
}

/// What happens after the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Close,
    /// Nothing more, with the connection open.
    Hold,
    /// The connection breaks before the announced length is reached.
    Reset,
    /// The last piece again and again, until the other side has had enough.
    Forever,
    /// The same, so many times a second.
    ForeverAt(u32),
}

/// A well-formed answer, unless told otherwise.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    text: Vec<String>,
    calls: Vec<(String, String, String)>,
    finish: Option<String>,
    input_tokens: Option<u64>,
    pub(crate) split: Option<usize>,
    pub(crate) hold_after_text: bool,
    pub(crate) cut_after_text: bool,
    pub(crate) pause_after_text: bool,
}

impl Answer {
    pub fn text(text: &str) -> Self {
        Self::Reply(Reply::default().say(text))
    }

    /// One call, with an id made of the tool's name.
    pub fn call(tool: &str, arguments: Value) -> Self {
        Self::Reply(Reply::default().call(tool, arguments))
    }

    pub fn status(status: u16, body: &str) -> Self {
        Self::Status { status, headers: Vec::new(), body: body.to_owned() }
    }
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl Reply {
    /// One delta of text.
    pub fn say(mut self, text: &str) -> Self {
        self.text.push(text.to_owned());
        self
    }

    pub fn call(self, tool: &str, arguments: Value) -> Self {
        let text = arguments.to_string();
        self.raw_call(tool, &text)
    }

    /// Arguments that need not be JSON.
    pub fn raw_call(mut self, tool: &str, arguments: &str) -> Self {
        let id = format!("call_{}_{tool}", self.calls.len());
        self.calls.push((id, tool.to_owned(), arguments.to_owned()));
        self
    }

    pub fn with_id(mut self, id: &str) -> Self {
        self.calls.last_mut().expect("a call to name").0 = id.to_owned();
        self
    }

    pub fn finish(mut self, word: &str) -> Self {
        self.finish = Some(word.to_owned());
        self
    }

    /// What the request is said to have cost.
    pub fn input_tokens(mut self, tokens: u64) -> Self {
        self.input_tokens = Some(tokens);
        self
    }

    /// At most this many bytes in one write.
    pub fn split(mut self, bytes: usize) -> Self {
        self.split = Some(bytes);
        self
    }

    /// Sends the text, then nothing, with the connection open.
    pub fn hold_after_text(mut self) -> Self {
        self.hold_after_text = true;
        self
    }

    /// Sends the text, and the rest once [`crate::ModelServer::resume`] is called.
    pub fn pause_after_text(mut self) -> Self {
        self.pause_after_text = true;
        self
    }

    /// Sends the text and half an event, then closes.
    pub fn cut_after_text(mut self) -> Self {
        self.cut_after_text = true;
        self
    }

    /// The events before and after the end of the text.
    pub(crate) fn encode(&self, wire: Wire) -> (Vec<u8>, Vec<u8>) {
        match wire {
            Wire::Anthropic => self.anthropic(),
            Wire::Chat => self.chat(),
            Wire::Responses => self.responses(),
            Wire::Gemini => self.gemini(),
        }
    }

    fn responses(&self) -> (Vec<u8>, Vec<u8>) {
        let event = |kind: &str, mut data: Value| {
            data["type"] = kind.into();
            format!("event: {kind}\ndata: {data}\n\n")
        };
        let mut head =
            event("response.created", json!({"response": {"id": "resp_1", "model": "m"}}));
        let mut tail = String::new();
        let mut index = 0;
        if !self.text.is_empty() {
            let item =
                json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []});
            head.push_str(&event(
                "response.output_item.added",
                json!({"output_index": 0, "item": item}),
            ));
            for text in &self.text {
                let delta = json!({"output_index": 0, "content_index": 0, "delta": text});
                head.push_str(&event("response.output_text.delta", delta));
            }
            let content = json!([{"type": "output_text", "text": self.text.concat()}]);
            let item =
                json!({"type": "message", "id": "msg_1", "role": "assistant", "content": content});
            tail.push_str(&event(
                "response.output_item.done",
                json!({"output_index": 0, "item": item}),
            ));
            index += 1;
        }
        for (id, name, arguments) in &self.calls {
            let mut item = json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": ""});
            tail.push_str(&event(
                "response.output_item.added",
                json!({"output_index": index, "item": item}),
            ));
            let delta = json!({"output_index": index, "delta": arguments});
            tail.push_str(&event("response.function_call_arguments.delta", delta));
            item["arguments"] = json!(arguments);
            tail.push_str(&event(
                "response.output_item.done",
                json!({"output_index": index, "item": item}),
            ));
            index += 1;
        }
        let usage = json!({"input_tokens": 10, "output_tokens": 20});
        let response = match self.finish.as_deref() {
            Some("max_tokens") => json!({"id": "resp_1", "status": "incomplete", "usage": usage,
                "incomplete_details": {"reason": "max_output_tokens"}}),
            _ => json!({"id": "resp_1", "status": "completed", "usage": usage}),
        };
        tail.push_str(&event("response.completed", json!({"response": response})));
        (head.into_bytes(), tail.into_bytes())
    }

    fn gemini(&self) -> (Vec<u8>, Vec<u8>) {
        let chunk = |parts: Value, finish: Option<&str>| {
            let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
            if let Some(word) = finish {
                candidate["finishReason"] = word.into();
            }
            let usage = json!({"promptTokenCount": 10, "candidatesTokenCount": 20});
            format!("data: {}\n\n", json!({"candidates": [candidate], "usageMetadata": usage}))
        };
        let mut head = String::new();
        for text in &self.text {
            head.push_str(&chunk(json!([{"text": text}]), None));
        }
        let call = |(_, name, arguments): &(String, String, String)| {
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            json!({"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "sig"})
        };
        let calls: Vec<Value> = self.calls.iter().map(call).collect();
        let tail = chunk(json!(calls), Some(self.finish.as_deref().unwrap_or("STOP")));
        (head.into_bytes(), tail.into_bytes())
    }

    fn anthropic(&self) -> (Vec<u8>, Vec<u8>) {
        let event = |kind: &str, mut data: Value| {
            data["type"] = kind.into();
            format!("event: {kind}\ndata: {data}\n\n")
        };
        let mut head = event(
            "message_start",
            json!({"message": {"id": "msg_1", "role": "assistant", "content": [],
                "usage": {"input_tokens": self.input_tokens.unwrap_or(10), "output_tokens": 1}}}),
        );
        let mut index = 0;
        if !self.text.is_empty() {
            let block = json!({"index": index, "content_block": {"type": "text", "text": ""}});
            head.push_str(&event("content_block_start", block));
            for text in &self.text {
                let delta = json!({"index": index, "delta": {"type": "text_delta", "text": text}});
                head.push_str(&event("content_block_delta", delta));
            }
        }
        let mut tail = String::new();
        if !self.text.is_empty() {
            tail.push_str(&event("content_block_stop", json!({"index": index})));
            index += 1;
        }
        for (id, name, arguments) in &self.calls {
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            tail.push_str(&event(
                "content_block_start",
                json!({"index": index, "content_block": block}),
            ));
            let delta = json!({"type": "input_json_delta", "partial_json": arguments});
            tail.push_str(&event("content_block_delta", json!({"index": index, "delta": delta})));
            tail.push_str(&event("content_block_stop", json!({"index": index})));
            index += 1;
        }
        let usual = if self.calls.is_empty() { "end_turn" } else { "tool_use" };
        let reason = self.finish.as_deref().unwrap_or(usual);
        let end = json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}});
        tail.push_str(&event("message_delta", end));
        tail.push_str(&event("message_stop", json!({})));
        (head.into_bytes(), tail.into_bytes())
    }

    fn chat(&self) -> (Vec<u8>, Vec<u8>) {
        let chunk = |delta: Value, finish: Option<&str>| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            format!("data: {}\n\n", json!({"id": "c1", "choices": [choice]}))
        };
        let mut head = chunk(json!({"role": "assistant", "content": ""}), None);
        for text in &self.text {
            head.push_str(&chunk(json!({"content": text}), None));
        }
        let mut tail = String::new();
        for (n, (id, name, arguments)) in self.calls.iter().enumerate() {
            let function = json!({"name": name, "arguments": arguments});
            let call = json!({"index": n, "id": id, "type": "function", "function": function});
            tail.push_str(&chunk(json!({"tool_calls": [call]}), None));
        }
        let usual = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        tail.push_str(&chunk(json!({}), Some(self.finish.as_deref().unwrap_or(usual))));
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 20}});
        tail.push_str(&format!("data: {usage}\n\ndata: [DONE]\n\n"));
        (head.into_bytes(), tail.into_bytes())
    }
}
