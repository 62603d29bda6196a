//! `task`: another agent does a piece of work in a session of its own and reports.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use toolwright_llm::Content;
use toolwright_session::TurnStatus;
use toolwright_tool::{
    Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::engine::Engine;
use crate::event::{Event, TurnEnd};

/// Whom work can be given to.
pub trait Crew: Send + Sync + 'static {
    fn workers(&self) -> Vec<Worker>;
    /// An engine for the work, with a session of its own, or that of earlier work. Fails with words
    /// for the model.
    fn hire(&self, order: Order) -> BoxFuture<'static, Result<Engine, String>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub name: String,
    pub description: String,
}

/// Who is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub agent: String,
    /// The session of earlier work that is to be gone on with.
    pub task_id: Option<String>,
}

/// Events of a worker that may wait before it is held up.
const EVENTS_AHEAD: usize = 64;

pub struct Task {
    crew: Arc<dyn Crew>,
    description: String,
}

impl Task {
    pub fn new(crew: Arc<dyn Crew>) -> Self {
        let mut description = include_str!("prompts/task.md").trim().to_owned();
        description.push_str("\n\nAgents:");
        for Worker { name, description: about } in crew.workers() {
            let about = if about.is_empty() { "Only when the user asks for it." } else { &about };
            description.push_str(&format!("\n- {name}: {about}"));
        }
        Self { crew, description }
    }
}

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// What the work is, in 3 to 5 words.
    description: String,
    /// Everything that the agent needs to know: it sees nothing else.
    prompt: String,
    /// Which agent does it.
    subagent_type: String,
    /// The id of earlier work to go on with.
    task_id: Option<String>,
    /// The command that this comes from, if any.
    #[serde(rename = "command")]
    _command: Option<String>,
}

impl Tool for Task {
    type Arguments = Arguments;
    type Prepared = Arguments;

    fn name(&self) -> &str {
        "task"
    }

    fn description(&self) -> &str {
        &self.description
    }

    async fn plan(&self, arguments: Arguments, _: &PlanContext) -> Planned<Arguments> {
        let agent = arguments.subagent_type.clone();
        let summary = format!("{agent}: {}", arguments.description);
        // It has a budget of its own; the time of one tool call is not meant for it.
        let plan = Plan::new(summary, vec![Access::Delegate { agent: agent.clone() }])
            .within(Duration::MAX);
        let workers = self.crew.workers();
        if workers.iter().any(|worker| worker.name == agent) {
            return Planned::ready(plan, arguments);
        }
        let known: Vec<&str> = workers.iter().map(|worker| worker.name.as_str()).collect();
        let text = format!(
            "Unknown agent type: {agent} is not a valid agent type. There are: {}.",
            known.join(", ")
        );
        Planned::failed(plan, ToolError::for_model(text))
    }

    async fn run(
        &self,
        arguments: Arguments,
        context: RunContext,
    ) -> Result<ToolOutput, ToolError> {
        let Arguments { description, prompt, subagent_type, task_id, .. } = arguments;
        let order = Order { agent: subagent_type.clone(), task_id };
        let mut engine = tokio::select! {
            hired = self.crew.hire(order) => hired.map_err(ToolError::ForModel)?,
            () = context.cancel.cancelled() => {
                let nothing = ToolOutput::text("It was interrupted before it began.");
                return Ok(ToolOutput { interrupted: true, ..nothing });
            }
        };
        let id = engine.session().header.session.clone();
        let parent = engine.session().header.parent.clone();
        let model = engine.model().to_string();
        let (sender, mut events) = mpsc::channel(EVENTS_AHEAD);
        let turn = engine.prompt(vec![Content::text(prompt)], &context.cancel, &sender);
        tokio::pin!(turn);
        // The id first: it is what the work can be gone on with.
        context
            .progress
            .note(format!("Its work so far is kept: give \"{id}\" as task_id to go on with it."));
        context.progress.update(format!("task_id {id}"));
        let mut calls = 0;
        let end = loop {
            tokio::select! {
                end = &mut turn => break end,
                Some(event) = events.recv() => {
                    if let Event::CallStarted { tool, summary, .. } = event {
                        calls += 1;
                        context.progress.update(format!("task_id {id}, {calls} calls, now {tool} {summary}"));
                    }
                }
            }
        };
        let details = json!({
            "sessionId": id, "parentSessionId": parent, "agent": subagent_type,
            "model": model, "steps": end.steps, "calls": calls,
            "status": end.status, "denials": end.denials,
        });
        Ok(report(&id, &description, &end, details))
    }
}

fn report(id: &str, description: &str, end: &TurnEnd, details: serde_json::Value) -> ToolOutput {
    let wrap = |state: &str, tag: &str, text: &str| {
        format!("<task id=\"{id}\" state=\"{state}\">\n<{tag}>\n{text}\n</{tag}>\n</task>")
    };
    let answer = end.answer.trim();
    let problem = end.problem.as_deref().unwrap_or("it was stopped");
    let had = |problem: &str| match answer {
        "" => problem.to_owned(),
        answer => format!("{problem}\nThe last that it said: {answer}"),
    };
    let mut failed = false;
    let (text, interrupted) = match end.status {
        TurnStatus::Done => (wrap("completed", "task_result", answer), false),
        TurnStatus::Denied => {
            let what: Vec<String> =
                end.denials.iter().map(|d| format!("{} {}", d.tool, d.summary)).collect();
            let text = format!("{answer}\n(Denied on the way: {}.)", what.join("; "));
            (wrap("denied", "task_result", text.trim()), false)
        }
        TurnStatus::OutOfBudget => {
            let text = format!("{answer}\n({problem}; give its id as task_id to go on with it.)");
            (wrap("completed", "task_result", text.trim()), false)
        }
        TurnStatus::Failed => {
            let text = format!("{}\nGive its id as task_id to try to go on with it.", had(problem));
            failed = true;
            (wrap("error", "task_error", &text), false)
        }
        TurnStatus::Interrupted => (wrap("error", "task_error", &had("It was interrupted.")), true),
    };
    let output = ToolOutput::text(text).titled(description).with_details(details);
    ToolOutput { interrupted, failed, cost: end.cost, ..output }
}
