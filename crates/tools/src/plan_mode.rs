//! The way into planning and out of it. A person agrees to each; whoever runs the session then goes
//! on with the other agent, which the outcome names as `switch_agent`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_session::{Ending, Session};
use toolwright_tool::{
    Choice, Inquiry, InquiryItem, Plan, PlanContext, Planned, RunContext, Tool, ToolError,
    ToolOutput,
};

use crate::question::{PATIENCE, inquire};

pub const PLAN_ENTER: &str = "plan_enter";
pub const PLAN_EXIT: &str = "plan_exit";

/// The agents that these tools go between.
pub const PLAN_AGENT: &str = "plan";
pub const BUILD_AGENT: &str = "build";

/// The agent that the person agreed to in the newest turn.
pub fn agreed_agent(session: &Session) -> Option<String> {
    let outcomes =
        session.steps_of_turn().flat_map(|step| step.calls()).filter_map(|c| c.outcome());
    let agreed = outcomes
        .filter(|o| o.ending == Ending::Completed && [PLAN_ENTER, PLAN_EXIT].contains(&&*o.tool))
        .filter_map(|outcome| outcome.details["switch_agent"].as_str());
    agreed.last().map(str::to_owned)
}

/// `file` is where the session's plan is written, as it is shown.
pub struct PlanEnter {
    pub file: String,
}

pub struct PlanExit {
    pub file: String,
}

#[derive(Deserialize, JsonSchema)]
pub struct Nothing {}

impl Tool for PlanEnter {
    type Arguments = Nothing;
    type Prepared = ();

    fn name(&self) -> &str {
        PLAN_ENTER
    }

    fn description(&self) -> &str {
        include_str!("plan_enter.md")
    }

    async fn plan(&self, _: Nothing, _: &PlanContext) -> Planned<()> {
        Planned::ready(Plan::new("ask whether to plan first", Vec::new()).within(PATIENCE), ())
    }

    async fn run(&self, (): (), context: RunContext) -> Result<ToolOutput, ToolError> {
        let asked = item(
            "Plan Mode",
            format!("Plan first, in {}, before anything is changed?", self.file),
            ["Switch to the plan agent", "Go on with the build agent"],
        );
        agree(asked, &context, "Go on without a plan.").await?;
        let text = format!(
            "The user agreed to plan first. The plan agent takes over with your next answer and writes its plan to {}. End your turn now and wait.",
            self.file
        );
        let details = json!({ "switch_agent": PLAN_AGENT, "plan": self.file });
        Ok(agreed(text, "Switching to plan agent", details))
    }
}

impl Tool for PlanExit {
    type Arguments = Nothing;
    type Prepared = ();

    fn name(&self) -> &str {
        PLAN_EXIT
    }

    fn description(&self) -> &str {
        include_str!("plan_exit.md")
    }

    async fn plan(&self, _: Nothing, _: &PlanContext) -> Planned<()> {
        Planned::ready(Plan::new("ask whether the plan is good", Vec::new()).within(PATIENCE), ())
    }

    async fn run(&self, (): (), context: RunContext) -> Result<ToolOutput, ToolError> {
        let asked = item(
            "Build Agent",
            format!("The plan in {} is complete. Switch to the build agent and begin?", self.file),
            ["Switch to the build agent and carry the plan out", "Stay and refine the plan"],
        );
        agree(asked, &context, "Stay with the plan and ask what should be different.").await?;
        let text = "The user agreed to the plan. The build agent takes over with your next answer. End your turn now and wait.";
        let details = json!({ "switch_agent": BUILD_AGENT, "plan": self.file });
        Ok(agreed(text.to_owned(), "Switching to build agent", details))
    }
}

fn item(header: &str, question: String, [yes, no]: [&str; 2]) -> InquiryItem {
    let choice = |label: &str, about: &str| Choice {
        label: label.to_owned(),
        description: about.to_owned(),
    };
    let options = vec![choice("Yes", yes), choice("No", no)];
    InquiryItem { question, header: header.to_owned(), options, multiple: false, custom: false }
}

/// Only a clear yes is one.
async fn agree(item: InquiryItem, context: &RunContext, advice: &str) -> Result<(), ToolError> {
    let replies = inquire(&Inquiry { items: vec![item] }, context).await?;
    if replies.first().is_some_and(|labels| labels.iter().any(|label| label == "Yes")) {
        return Ok(());
    }
    Err(ToolError::for_model(format!("The user dismissed this question. {advice}")))
}

fn agreed(text: String, title: &str, details: Value) -> ToolOutput {
    ToolOutput::text(text).titled(title).with_details(details)
}
