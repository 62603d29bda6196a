//! Prompts of servers, and what else a face may ask a server for: as data, for slash commands and
//! mentions.

use std::sync::Arc;

use rmcp::model::{ArgumentInfo, ClientRequest, CompleteRequest, CompleteRequestParams, Reference};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolwright_llm::{Content, Media};
use toolwright_tool::{Outputs, ToolOutput};

use crate::content;
use crate::live::{Listing, Waiting};
use crate::resources;
use crate::server::{Phase, Server};
use crate::servers::Servers;

/// A prompt that a server offers. People call it `server:name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptInfo {
    pub server: String,
    pub name: String,
    pub description: String,
    pub arguments: Vec<PromptArgument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub description: String,
    pub required: bool,
}

/// A resource that a server offers. People mention it as `@server:uri`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceInfo {
    pub server: String,
    pub uri: String,
    pub name: String,
    pub description: String,
    pub mime: Option<String>,
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

impl Servers {
    /// The prompts of all servers that are connected. One that does not answer has none.
    pub async fn prompts(&self) -> Vec<PromptInfo> {
        let mut found = Vec::new();
        for (server, items) in self.listed(Listing::Prompts).await {
            found.extend(items.iter().map(|item| PromptInfo {
                server: server.spec.name.clone(),
                name: text(item, "name"),
                description: text(item, "description"),
                arguments:
                    item["arguments"].as_array().map(|list| arguments(list)).unwrap_or_default(),
            }));
        }
        found
    }

    /// The server and the prompt that `server:prompt` means, where there is such a server.
    pub fn prompt_named(&self, name: &str) -> Option<(String, String)> {
        let (server, prompt) = name.trim_start_matches('/').split_once(':')?;
        self.named(server).ok()?;
        Some((server.to_owned(), prompt.to_owned()))
    }

    /// The resources of all servers that are connected.
    pub async fn resources(&self) -> Vec<ResourceInfo> {
        let mut found = Vec::new();
        for (server, items) in self.listed(Listing::Resources).await {
            found.extend(items.iter().map(|item| ResourceInfo {
                server: server.spec.name.clone(),
                uri: text(item, "uri"),
                name: text(item, "name"),
                description: text(item, "description"),
                mime: item["mimeType"].as_str().map(str::to_owned),
            }));
        }
        found
    }

    async fn listed(&self, listing: Listing) -> Vec<(Arc<Server>, Vec<Value>)> {
        let cancel = CancellationToken::new();
        let mut all = Vec::new();
        for server in self.all().iter() {
            let Phase::Ready(live) = server.phase() else { continue };
            let offers = match listing {
                Listing::Prompts => live.info.capabilities.prompts.is_some(),
                _ => live.info.capabilities.resources.is_some(),
            };
            if offers && let Ok(items) = resources::list(server, listing, &cancel).await {
                all.push((Arc::clone(server), items));
            }
        }
        all
    }

    /// A prompt of a server, filled in: what is said to the model. Words without names belong to its
    /// arguments in their order.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        words: &[String],
        cancel: &CancellationToken,
    ) -> Result<Vec<Content>, String> {
        let server = self.named(server)?;
        let all = resources::list(&server, Listing::Prompts, cancel).await?;
        let Some(item) = all.iter().find(|item| item["name"] == name) else {
            let names: Vec<_> = all.iter().map(|item| text(item, "name")).collect();
            return Err(format!(
                "The MCP server {} has no prompt {name:?}. There are: {}.",
                server.spec.name,
                names.join(", ")
            ));
        };
        let wanted = item["arguments"].as_array().map(|list| arguments(list)).unwrap_or_default();
        let given = fill(&wanted, words)?;
        let live = server.live(cancel).await?;
        let known = server.hub.begin(None);
        let waiting = Waiting { known: &known, timeout: server.spec.timeout, cancel };
        let result = match live.get_prompt(name, given, &waiting).await {
            Ok(result) => result,
            Err(error) => return Err(server.explain(error).await),
        };
        let messages = result["messages"].as_array().cloned().unwrap_or_default();
        let said: Vec<Content> = messages.iter().flat_map(message).collect();
        if said.is_empty() {
            return Err(format!("The prompt {name} of {} is empty.", server.spec.name));
        }
        Ok(said)
    }

    /// What a resource holds.
    pub async fn resource(
        &self,
        server: &str,
        uri: &str,
        outputs: &Outputs,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, String> {
        let server = self.named(server)?;
        let result = resources::read(&server, uri, None, cancel).await?;
        content::resource(&result, outputs)
            .ok_or_else(|| format!("The MCP server {} has nothing at {uri}.", server.spec.name))
    }

    /// What could stand for an argument of a prompt.
    pub async fn complete(
        &self,
        server: &str,
        prompt: &str,
        argument: &str,
        so_far: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, String> {
        let server = self.named(server)?;
        let live = server.live(cancel).await?;
        if live.info.capabilities.completions.is_none() {
            return Ok(Vec::new());
        }
        let argument = ArgumentInfo::new(argument, so_far);
        let params = CompleteRequestParams::new(Reference::for_prompt(prompt), argument);
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
        let known = server.hub.begin(None);
        let waiting = Waiting { known: &known, timeout: server.spec.timeout, cancel };
        match live.plain(request, &waiting).await {
            Ok(result) => {
                let values = result["completion"]["values"].as_array().cloned();
                let words = values.unwrap_or_default();
                Ok(words.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            Err(error) => Err(server.explain(error).await),
        }
    }
}

fn arguments(list: &[Value]) -> Vec<PromptArgument> {
    let argument = |item: &Value| PromptArgument {
        name: text(item, "name"),
        description: text(item, "description"),
        required: item["required"] == true,
    };
    list.iter().map(argument).collect()
}

/// `name=value` where the name is known, and in order otherwise; the last one takes what is left.
fn fill(wanted: &[PromptArgument], words: &[String]) -> Result<Map<String, Value>, String> {
    let mut given = Map::new();
    let mut loose = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if wanted.iter().any(|argument| argument.name == name) => {
                given.insert(name.to_owned(), value.into());
            }
            _ => loose.push(word.as_str()),
        }
    }
    let open: Vec<&PromptArgument> =
        wanted.iter().filter(|argument| !given.contains_key(&argument.name)).collect();
    for (n, argument) in open.iter().enumerate() {
        let is_last = n + 1 == open.len();
        let value = match loose.get(n) {
            None => break,
            Some(_) if is_last => loose[n..].join(" "),
            Some(word) => (*word).to_owned(),
        };
        given.insert(argument.name.clone(), value.into());
    }
    let missing: Vec<&str> = wanted
        .iter()
        .filter(|argument| argument.required && !given.contains_key(&argument.name))
        .map(|argument| argument.name.as_str())
        .collect();
    if missing.is_empty() {
        return Ok(given);
    }
    Err(format!("it needs {}", missing.join(", ")))
}

/// One message of a prompt. What the model is to have said before is told as such.
fn message(message: &Value) -> Vec<Content> {
    let by_model = message["role"] == "assistant";
    let blocks = match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        block => vec![block.clone()],
    };
    let say = |words: &str| match by_model {
        true => Content::text(format!("(You said: {words})")),
        false => Content::text(words),
    };
    let content = |block: &Value| match block["type"].as_str()? {
        "text" => Some(say(block["text"].as_str()?)),
        "image" => Some(Content::Media(Media {
            mime: text(block, "mimeType"),
            base64: block["data"].as_str()?.into(),
            name: None,
        })),
        "resource" => {
            let resource = &block["resource"];
            let uri = text(resource, "uri");
            match resource["text"].as_str() {
                Some(words) => Some(say(&format!("Resource: {uri}\n{words}"))),
                None => Some(say(&format!("(a resource that is no text: {uri})"))),
            }
        }
        "resource_link" => Some(say(&format!("Resource: {}", text(block, "uri")))),
        _ => None,
    };
    blocks.iter().filter_map(content).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_fill_arguments_by_name_and_in_order() {
        let wanted: Vec<_> = [("city", true), ("tone", false), ("more", false)]
            .map(|(name, required)| PromptArgument {
                name: name.to_owned(),
                description: String::new(),
                required,
            })
            .into();
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            fill(&wanted, &words).map(Value::Object)
        };
        assert_eq!(of(&["Rome"]), Ok(json!({"city": "Rome"})));
        let all = json!({"tone": "dry", "city": "Rome", "more": "a b=c"});
        assert_eq!(of(&["tone=dry", "Rome", "a", "b=c"]), Ok(all));
        assert_eq!(of(&["tone=dry"]), Err("it needs city".to_owned()));
    }
}
