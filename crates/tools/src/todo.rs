//! The list of what is to be done: written whole by the model, kept for the session, and found again
//! in its log when the session is taken up later.

use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolwright_session::Session;
use toolwright_tool::{
    Access, AnyTool, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// What is to be done, in a few words.
    pub content: String,
    /// pending, in_progress, completed or cancelled.
    #[serde(default = "pending")]
    pub status: String,
    /// high, medium or low.
    #[serde(default = "medium")]
    pub priority: String,
}

fn pending() -> String {
    "pending".to_owned()
}

fn medium() -> String {
    "medium".to_owned()
}

/// One session's list. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Todos {
    list: Arc<Mutex<Vec<Todo>>>,
}

const WRITE: &str = "todowrite";

impl Todos {
    /// The list as the newest call that wrote it left it.
    pub fn restore(session: &Session) -> Self {
        Self { list: Arc::new(Mutex::new(written(session))) }
    }

    pub fn list(&self) -> Vec<Todo> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Both tools over this list.
    pub fn tools(&self) -> [Arc<dyn AnyTool>; 2] {
        [Arc::new(TodoWrite(self.clone())), Arc::new(TodoRead(self.clone()))]
    }

    fn replace(&self, list: Vec<Todo>) {
        *self.list.lock().unwrap_or_else(PoisonError::into_inner) = list;
    }

    fn shown(&self) -> ToolOutput {
        let todos = self.list();
        let left = todos.iter().filter(|todo| todo.status != "completed").count();
        // Strings in a list: there is nothing in it that could not be written.
        let text = serde_json::to_string_pretty(&todos).unwrap_or_default();
        ToolOutput::text(text)
            .titled(format!("{left} todos"))
            .with_details(json!({ "todos": todos }))
    }
}

fn written(session: &Session) -> Vec<Todo> {
    let list = session.standing().todos().cloned();
    list.and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default()
}

/// Both tools answer to one key, and count as changing something, so that calls in one message keep
/// their order.
fn access() -> Vec<Access> {
    let (permission, pattern) = (WRITE.to_owned(), "*".to_owned());
    vec![Access::Custom { permission, pattern, read_only: false }]
}

pub struct TodoWrite(Todos);

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// The whole list, in order.
    todos: Vec<Todo>,
}

impl Tool for TodoWrite {
    type Arguments = Arguments;
    type Prepared = Vec<Todo>;

    fn name(&self) -> &str {
        WRITE
    }

    fn description(&self) -> &str {
        include_str!("todowrite.md")
    }

    fn recall(&self, session: &Session) {
        self.0.replace(written(session));
    }

    async fn plan(&self, arguments: Arguments, _: &PlanContext) -> Planned<Vec<Todo>> {
        let summary = format!("write a list of {} todos", arguments.todos.len());
        Planned::ready(Plan::new(summary, access()), arguments.todos)
    }

    async fn run(&self, todos: Vec<Todo>, _: RunContext) -> Result<ToolOutput, ToolError> {
        self.0.replace(todos);
        Ok(self.0.shown())
    }
}

pub struct TodoRead(Todos);

#[derive(Deserialize, JsonSchema)]
pub struct Nothing {}

impl Tool for TodoRead {
    type Arguments = Nothing;
    type Prepared = ();

    fn name(&self) -> &str {
        "todoread"
    }

    fn description(&self) -> &str {
        include_str!("todoread.md")
    }

    fn permission(&self) -> &str {
        WRITE
    }

    async fn plan(&self, _: Nothing, _: &PlanContext) -> Planned<()> {
        Planned::ready(Plan::new("read the list of todos", access()), ())
    }

    async fn run(&self, (): (), _: RunContext) -> Result<ToolOutput, ToolError> {
        Ok(self.0.shown())
    }
}
