//! Several calls as one: each is planned, judged, scheduled and reported like a call of its own, by
//! the same pipeline. What they would touch together is the plan of the whole.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_permission::Request;
use toolwright_session::{Ending, Outcome};

use crate::access::Plan;
use crate::door::{Inquiry, Replies, Unanswered};
use crate::final_answer::FinalAnswer;
use crate::pipeline::{
    CallRequest, Decision, Gate, Pipeline, Question, Update, failed, not_started,
};
use crate::tool::{PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput};

pub struct BatchTool;

const NAME: &str = "batch";

/// More are answered as too many.
const CALLS: usize = 25;

/// Calls that steer the turn itself, which is not for a part of one.
const EXCLUDED: [&str; 4] = [NAME, FinalAnswer::NAME, "plan_enter", "plan_exit"];

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// The calls, at most 25.
    #[schemars(length(min = 1))]
    tool_calls: Vec<InnerCall>,
}

#[derive(Deserialize, JsonSchema)]
struct InnerCall {
    /// The tool's name.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    parameters: Map<String, Value>,
}

pub struct Prepared {
    calls: Vec<Entry>,
    /// What was asked for with the whole: it need not be asked for again.
    requests: Vec<Request>,
}

struct Entry {
    tool: String,
    /// The call, or why it will not be made.
    call: Result<CallRequest, String>,
}

impl Tool for BatchTool {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        include_str!("batch.md")
    }

    fn explain_invalid(&self, problems: &[String], _: &Value) -> Option<String> {
        let lines: Vec<String> = problems.iter().map(|problem| format!("  - {problem}")).collect();
        Some(format!(
            "Invalid parameters for tool 'batch':\n{}\n\nExpected payload format:\n  {}",
            lines.join("\n"),
            r#"{"tool_calls": [{"tool": "tool_name", "parameters": {...}}, {...}]}"#
        ))
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let pipeline = &context.pipeline;
        let (mut accesses, mut summaries) = (Vec::new(), Vec::new());
        let mut calls = Vec::new();
        let mut limit = Duration::ZERO;
        for (at, InnerCall { tool, parameters }) in arguments.tool_calls.into_iter().enumerate() {
            if at >= CALLS {
                let why = format!("Maximum of {CALLS} tools allowed in batch");
                calls.push(Entry { tool, call: Err(why) });
                continue;
            }
            let call = CallRequest {
                id: format!("{NAME}_{at}"),
                name: tool.clone(),
                arguments: Value::Object(parameters).to_string(),
                cut: false,
            };
            // What is wrong with a call is told when its turn comes; others may change that first.
            if let Ok(readable) = pipeline.read(&call) {
                if EXCLUDED.contains(&readable.tool()) {
                    let why = format!(
                        "Tool '{tool}' is not allowed in batch. Disallowed tools: {}",
                        EXCLUDED.join(", ")
                    );
                    calls.push(Entry { tool, call: Err(why) });
                    continue;
                }
                if let Ok(ready) = pipeline.plan(&readable, &CancellationToken::new()).await {
                    limit += ready.plan.time_limit.unwrap_or(context.deadline);
                    summaries.push(format!("{} ({})", ready.plan.summary, ready.tool));
                    accesses.extend(ready.plan.accesses);
                }
            }
            calls.push(Entry { tool, call: Ok(call) });
        }
        let summary = format!("batch of {}: {}", calls.len(), summaries.join("; "));
        let plan = Plan::new(summary, accesses).within(limit.max(context.deadline));
        let requests = plan.requests(&context.workspace);
        Planned::ready(plan, Prepared { calls, requests })
    }

    async fn run(&self, batch: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let outcomes = run_all(batch, &context).await?;
        Ok(report(outcomes, context.cancel.is_cancelled()))
    }
}

async fn run_all(batch: Prepared, context: &RunContext) -> Result<Vec<Outcome>, ToolError> {
    let outer = &context.pipeline;
    let gate = Inside {
        gate: Arc::clone(&outer.gate),
        requests: batch.requests,
        position: context.door.position,
    };
    let pipeline = Pipeline {
        gate: Arc::new(gate),
        // It speaks of steps, and these calls are not steps.
        cache: None,
        ..outer.clone()
    };
    let mut outcomes = Vec::new();
    let (mut requests, mut places) = (Vec::new(), Vec::new());
    for (at, Entry { tool, call }) in batch.calls.into_iter().enumerate() {
        match call {
            Ok(call) => {
                outcomes.push(not_started(&tool));
                requests.push(call);
                places.push(at);
            }
            Err(why) => outcomes.push(failed(&tool, why)),
        }
    }
    let (sender, mut updates) = mpsc::channel(CALLS);
    let running = pipeline.run_calls(requests, context.cancel.clone(), sender);
    let watching = async {
        let (mut settled, mut fatal) = (0, None);
        while let Some(update) = updates.recv().await {
            match update {
                // The whole is on record with all that it may touch.
                Update::Starting { go, .. } => {
                    go.send(()).ok();
                }
                Update::Progress { position, text, keep } => {
                    let text = format!("[{}] {text}", places[position] + 1);
                    match keep {
                        true => context.progress.note(text),
                        false => context.progress.update(text),
                    }
                }
                Update::Settled { position, outcome } => {
                    settled += 1;
                    context.progress.update(format!("{settled} of {} done", places.len()));
                    outcomes[places[position]] = outcome;
                }
                Update::Fatal { message } => fatal = Some(message),
            }
        }
        fatal
    };
    let ((), fatal) = tokio::join!(running, watching);
    match fatal {
        Some(message) => Err(ToolError::Fatal(message)),
        None => Ok(outcomes),
    }
}

fn report(outcomes: Vec<Outcome>, interrupted: bool) -> ToolOutput {
    let total = outcomes.len();
    let good = outcomes.iter().filter(|o| o.ending == Ending::Completed).count();
    let mut text = if good == total {
        format!("All {total} tools executed successfully.")
    } else {
        format!("Executed {good}/{total} tools successfully. {} failed.", total - good)
    };
    let (mut attachments, mut details, mut cost) = (Vec::new(), Vec::new(), None);
    for (at, outcome) in outcomes.into_iter().enumerate() {
        let success = outcome.ending == Ending::Completed;
        let status = serde_json::to_value(outcome.ending).unwrap_or_default();
        text.push_str(&format!(
            "\n\n<result call=\"{}\" tool=\"{}\" status={status}>\n{}\n</result>",
            at + 1,
            outcome.tool,
            outcome.output.trim_end()
        ));
        details.push(json!({
            "tool": outcome.tool, "success": success, "title": outcome.title,
            "details": outcome.details,
        }));
        attachments.extend(outcome.attachments);
        if let Some(spent) = outcome.cost {
            cost = Some(cost.unwrap_or(0.0) + spent);
        }
    }
    let tools: Vec<&Value> = details.iter().map(|entry| &entry["tool"]).collect();
    let details = json!({
        "totalCalls": total, "successful": good, "failed": total - good,
        "tools": tools, "details": details,
    });
    let title = format!("Batch execution ({good}/{total} successful)");
    ToolOutput {
        attachments,
        interrupted,
        cost,
        ..ToolOutput::text(text).titled(title).with_details(details)
    }
}

/// Lets pass what was decided with the whole, and asks about everything else.
struct Inside {
    gate: Arc<dyn Gate>,
    requests: Vec<Request>,
    position: usize,
}

impl Gate for Inside {
    fn decide<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Decision> {
        if question.hint == crate::hooks::Hint::Nothing
            && question.requests.iter().all(|request| self.requests.contains(request))
        {
            let why = "allowed with the batch".to_owned();
            return std::future::ready(Decision::Allow { why }).boxed();
        }
        let mut question = question.clone();
        question.position = self.position;
        async move { self.gate.decide(&question).await }.boxed()
    }

    fn allows_silently(&self, requests: &[Request]) -> bool {
        self.gate.allows_silently(requests)
    }

    fn inquire<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Result<Replies, Unanswered>> {
        self.gate.inquire(inquiry)
    }

    fn allows_by_rule(&self, request: &Request) -> bool {
        self.gate.allows_by_rule(request)
    }
}
