//! What hooks may change of a request and of its answer.

use serde_json::{Value, json};
use toolwright_llm::{Request, ToolDefinition};
use toolwright_session::ReplyPart;

use super::{Hooks, Point, messages};
use crate::agent_loop::Turn;

impl Turn<'_> {
    /// Shows a request to those who want to change it. An abort is seen by the step that follows.
    pub(crate) async fn show_request(&mut self, request: &mut Request) {
        self.ask_for_parameters(request).await;
        self.ask_for_headers(request).await;
        if self.world.hooks.any(Point::MessagesTransform) {
            let session = self.world.record.session().header.session.clone();
            let output = json!({ "messages": messages::shown(&request.turns, &session) });
            if let Some(mut output) = self.ask(Point::MessagesTransform, output).await {
                let said = output["messages"].take();
                request.turns = messages::taken_back(&request.turns, &said, &session);
            }
        }
    }

    /// What all hooks of a point leave; nothing where nobody is asked or waits for it any more.
    async fn ask(&self, point: Point, output: Value) -> Option<Value> {
        if !self.world.hooks.any(point) {
            return None;
        }
        let model = self.world.model.origin().to_string();
        let input = json!({ "agent": self.world.agent, "model": model });
        tokio::select! {
            ran = self.world.hooks.run(point, &input, output) => Some(ran.output),
            () = self.world.cancel.cancelled() => None,
            () = self.time_is_up.cancelled() => None,
        }
    }

    /// How words are chosen.
    async fn ask_for_parameters(&mut self, request: &mut Request) {
        let output = json!({
            "temperature": request.sampling.temperature, "topP": request.sampling.top_p,
            "maxOutputTokens": request.max_output_tokens, "options": {},
        });
        let Some(output) = self.ask(Point::ChatParams, output).await else { return };
        let number = |key: &str| output[key].as_f64().map(|n| n as f32);
        request.sampling.temperature = number("temperature");
        request.sampling.top_p = number("topP");
        let tokens = output["maxOutputTokens"].as_u64();
        request.max_output_tokens = tokens.and_then(|n| u32::try_from(n).ok());
    }

    async fn ask_for_headers(&mut self, request: &mut Request) {
        let Some(output) = self.ask(Point::ChatHeaders, json!({ "headers": {} })).await else {
            return;
        };
        let headers = output["headers"].as_object().into_iter().flatten();
        let header = |(name, value): (&String, &Value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.clone(), value)
        };
        request.headers.extend(headers.filter(|(_, value)| !value.is_null()).map(header));
    }

    /// The texts of an answer as hooks leave them, before it is recorded.
    pub(crate) async fn show_texts(&mut self, parts: &mut [ReplyPart]) {
        if !self.world.hooks.any(Point::TextComplete) {
            return;
        }
        let step = self.world.record.session().step_count();
        for (at, part) in parts.iter_mut().enumerate() {
            let ReplyPart::Text { text, opaque } = part else { continue };
            let input = json!({ "messageID": format!("step_{step}"), "partID": format!("part_{step}_{at}") });
            let ran = tokio::select! {
                ran = self.world.hooks.run(Point::TextComplete, &input, json!({ "text": text })) => ran,
                () = self.world.cancel.cancelled() => return,
            };
            if let Some(changed) = ran.output["text"].as_str().filter(|said| said != text) {
                *text = changed.to_owned();
                // What its maker signed is not this text any more.
                *opaque = None;
            }
        }
    }
}

impl Hooks {
    /// The tools of a list as hooks want them to be seen. Calls are checked by what the tools say.
    pub(crate) async fn show_tools(&self, tools: &mut [ToolDefinition]) {
        if !self.any(Point::ToolDefinition) {
            return;
        }
        for tool in tools {
            let input = json!({ "toolID": tool.name });
            let output = json!({ "description": tool.description, "parameters": tool.parameters });
            let mut ran = self.run(Point::ToolDefinition, &input, output).await;
            if let Some(description) = ran.output["description"].as_str() {
                tool.description = description.to_owned();
            }
            // No provider takes anything else.
            let parameters = ran.output["parameters"].take();
            if parameters["type"] == "object" {
                tool.parameters = parameters;
            }
        }
    }
}
