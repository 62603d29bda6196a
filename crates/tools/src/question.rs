//! Asks the person what only a person can answer.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{
    Choice, Inquiry, InquiryItem, Plan, PlanContext, Planned, Replies, RunContext, Tool, ToolError,
    ToolOutput, Unanswered,
};

pub struct Question;

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    questions: Vec<Asked>,
}

#[derive(Deserialize, JsonSchema)]
struct Asked {
    /// The whole question.
    question: String,
    /// A word or two for it (at most 30 characters).
    #[serde(default)]
    header: String,
    /// What can be chosen.
    #[serde(default)]
    options: Vec<Offered>,
    /// Whether more than one option may be chosen.
    #[serde(default)]
    multiple: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Offered {
    /// One to five words.
    label: String,
    /// What choosing it means.
    #[serde(default)]
    description: String,
}

/// A person thinks for as long as they like; a run that nobody looks at must end all the same.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

impl Tool for Question {
    type Arguments = Arguments;
    type Prepared = Inquiry;

    fn name(&self) -> &str {
        "question"
    }

    fn description(&self) -> &str {
        include_str!("question.md")
    }

    async fn plan(&self, arguments: Arguments, _: &PlanContext) -> Planned<Inquiry> {
        let items: Vec<InquiryItem> = arguments.questions.into_iter().map(item).collect();
        let plan = Plan::new(format!("ask {}", counted(items.len())), Vec::new()).within(PATIENCE);
        if items.is_empty() {
            let text = "Nothing is asked: give at least one question.";
            return Planned::failed(plan, ToolError::for_model(text));
        }
        Planned::ready(plan, Inquiry { items })
    }

    async fn run(&self, inquiry: Inquiry, context: RunContext) -> Result<ToolOutput, ToolError> {
        let replies = inquire(&inquiry, &context).await?;
        let pairs = inquiry.items.iter().enumerate().map(|(at, item)| {
            let answer = replies.get(at).filter(|labels| !labels.is_empty());
            let answer = answer.map_or("Unanswered".to_owned(), |labels| labels.join(", "));
            format!("\"{}\"=\"{answer}\"", item.question)
        });
        let pairs = pairs.collect::<Vec<_>>().join(", ");
        let text = format!(
            "User has answered your questions: {pairs}. You can now go on with these answers in mind."
        );
        let questions: Vec<&str> =
            inquiry.items.iter().map(|item| item.question.as_str()).collect();
        Ok(ToolOutput::text(text)
            .titled(format!("Asked {}", counted(inquiry.items.len())))
            .with_details(json!({ "answers": replies, "questions": questions })))
    }
}

/// The answers, or the error with which a call that needs them ends.
pub(crate) async fn inquire(inquiry: &Inquiry, context: &RunContext) -> Result<Replies, ToolError> {
    let asked = tokio::select! {
        asked = context.door.inquire(inquiry) => asked,
        () = context.cancel.cancelled() => Err(Unanswered::Dismissed),
    };
    asked.map_err(|unanswered| {
        ToolError::for_model(match unanswered {
            Unanswered::Dismissed => "The user dismissed this question",
            Unanswered::Nobody => {
                "Nobody can be asked in this run. Decide by yourself, and say in your answer what you assumed."
            }
        })
    })
}

fn item(asked: Asked) -> InquiryItem {
    let Asked { question, header, options, multiple } = asked;
    let choice = |Offered { label, description }| Choice { label, description };
    let options = options.into_iter().map(choice).collect();
    InquiryItem { question, header, options, multiple, custom: true }
}

fn counted(count: usize) -> String {
    format!("{count} question{}", if count == 1 { "" } else { "s" })
}
