//! What plugins know as `client`: the parts of the interface that make sense inside the program.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolwright_config::{Agent, Command};
use toolwright_engine::Inbox;
use toolwright_llm::Content;
use toolwright_script::Client;
use toolwright_session::Store;

use crate::workbench::Workbench;

pub(super) struct PluginClient {
    store: Store,
    /// What does not change while a session is open.
    fixed: Vec<(&'static str, Value)>,
    directory: PathBuf,
    worktree: PathBuf,
    session: OnceLock<String>,
    inbox: Mutex<Option<Arc<Inbox>>>,
}

impl PluginClient {
    pub(super) fn new(bench: &Workbench) -> Self {
        let (directory, worktree) = (bench.workspace.directory(), bench.workspace.worktree());
        let home = bench.paths.home.display().to_string();
        let settings = &bench.config.settings;
        let agent = |a: Agent| {
            json!({
                "name": a.name, "description": a.description, "hidden": a.hidden,
                "mode": format!("{:?}", a.mode).to_lowercase(), "prompt": a.prompt,
            })
        };
        let agents: Vec<Value> = Agent::all(settings, &home).into_iter().map(agent).collect();
        let command = |c: Command| json!({ "name": c.name, "description": c.description, "template": c.template, "agent": c.agent });
        let commands: Vec<Value> = Command::all(settings).into_iter().map(command).collect();
        let project = json!({ "id": worktree, "worktree": worktree, "vcs": "git" });
        let path = json!({
            "home": home, "state": bench.paths.data, "config": bench.paths.config.join("toolwright"),
            "worktree": worktree, "directory": directory,
        });
        let config = super::configure::without_secrets(&bench.config.value).0;
        let fixed = vec![
            ("app.agents", json!(agents)),
            ("command.list", json!(commands)),
            ("config.get", config),
            ("path.get", path),
            ("project.list", json!([project])),
            ("project.current", project),
        ];
        let (directory, worktree) = (directory.to_owned(), worktree.to_owned());
        let (session, inbox) = (OnceLock::new(), Mutex::default());
        Self { store: bench.store(), fixed, directory, worktree, session, inbox }
    }

    pub(super) fn belongs_to(&self, session: &str) {
        self.session.get_or_init(|| session.to_owned());
    }

    pub(super) fn talk_to(&self, inbox: Arc<Inbox>) {
        *self.inbox.lock().unwrap_or_else(PoisonError::into_inner) = Some(inbox);
    }

    /// A session in the form that it is exported in.
    fn form(&self, input: &Value) -> Result<Value, String> {
        let id = session_of(input).ok_or("which session? give path: { id }")?;
        let chronicle = self.store.chronicle(id).map_err(|e| e.to_string())?;
        // What was said in other folders is none of its business.
        let said_in = Path::new(&chronicle.session.header.directory);
        if !said_in.starts_with(&self.worktree) {
            return Err(format!("there is no session {id} in this folder"));
        }
        Ok(self.store.export(&chronicle))
    }

    fn messages(&self, input: &Value) -> Result<Value, String> {
        let mut messages = self.form(input)?["messages"].take();
        let limit = input["query"]["limit"].as_u64().or(input["limit"].as_u64());
        if let (Some(list), Some(limit)) = (messages.as_array_mut(), limit) {
            let beyond = list.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
            list.drain(..beyond);
        }
        Ok(messages)
    }

    /// Says something to the session that the plugin works in. Nobody waits for an answer: the turn that
    /// would give it may be waiting for the plugin.
    fn say(&self, input: &Value) -> Result<Value, String> {
        if session_of(input) != self.session.get().map(String::as_str) {
            return Err("a plugin talks to its own session only".to_owned());
        }
        let body = if input["body"].is_object() { &input["body"] } else { input };
        let parts = body["parts"].as_array().into_iter().flatten();
        let content: Vec<Content> =
            parts.filter_map(|part| part["text"].as_str()).map(Content::text).collect();
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let inbox = inbox.ok_or("the session has not begun")?;
        let id = match body["noReply"] == true {
            true => inbox.steer(content),
            false => inbox.follow_up(content),
        };
        let id = id.ok_or("too many messages wait already")?;
        Ok(json!({ "info": { "id": id.to_string(), "role": "user" }, "parts": [] }))
    }

    fn list(&self) -> Value {
        let of = |summary: toolwright_session::Summary| json!({ "id": summary.id, "title": summary.title, "directory": self.directory });
        self.store.list(Some(&self.directory)).into_iter().map(of).collect()
    }

    fn answer(&self, name: &str, input: &Value) -> Option<Result<Value, String>> {
        if let Some((_, value)) = self.fixed.iter().find(|(known, _)| *known == name) {
            return Some(Ok(value.clone()));
        }
        Some(match name {
            "session.get" => self.form(input).map(|mut form| form["info"].take()),
            "session.messages" => self.messages(input),
            "session.list" => Ok(self.list()),
            "session.status" => Ok(json!({})),
            "session.prompt" | "session.promptAsync" => self.say(input),
            _ => return None,
        })
    }
}

impl Client for PluginClient {
    fn call<'a>(
        &'a self,
        name: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Option<Result<Value, String>>> {
        async move { self.answer(name, &input) }.boxed()
    }
}

/// Both forms in which clients name a session.
fn session_of(input: &Value) -> Option<&str> {
    let named =
        [&input["path"]["id"], &input["path"]["sessionID"], &input["sessionID"], &input["id"]];
    named.into_iter().find_map(Value::as_str)
}
