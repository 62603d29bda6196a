//! A running call's way back to whoever decides: for what it learned only while it ran, and for
//! questions that only a person can answer.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::access::Plan;
use crate::hooks::Hint;
use crate::pipeline::{Decision, DeniedBy, Gate, Question};
use crate::tool::ToolError;
use crate::workspace::Workspace;

#[derive(Clone)]
pub struct Door {
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) tool: String,
    pub(crate) position: usize,
    /// Who said no, if somebody did.
    pub(crate) denied: Arc<Mutex<Option<DeniedBy>>>,
}

/// Questions for a person, answered together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inquiry {
    pub items: Vec<InquiryItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InquiryItem {
    pub question: String,
    /// A word or two for a narrow place.
    pub header: String,
    pub options: Vec<Choice>,
    /// More than one option may be chosen.
    #[serde(default)]
    pub multiple: bool,
    /// Words of one's own are an answer too.
    #[serde(default)]
    pub custom: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub label: String,
    #[serde(default)]
    pub description: String,
}

/// For each question the labels that were chosen, or the words that were said.
pub type Replies = Vec<Vec<String>>;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// The person did not want to answer.
    Dismissed,
    /// Nobody can be asked in this run.
    Nobody,
}

impl Door {
    /// Asks for something that the plan did not declare, in the same way and by the same rules. What
    /// is refused comes back as the error to end the call with.
    pub async fn ask(&self, plan: &Plan) -> Result<(), ToolError> {
        let question = Question {
            position: self.position,
            tool: self.tool.clone(),
            summary: plan.summary.clone(),
            requests: plan.requests(&self.workspace),
            preview: plan.preview(),
            hint: Hint::Nothing,
            arguments: serde_json::Value::Null,
        };
        match self.gate.decide(&question).await {
            Decision::Allow { .. } => Ok(()),
            Decision::Deny { by, message } => {
                *self.denied.lock().unwrap_or_else(PoisonError::into_inner) = Some(by);
                Err(ToolError::ForModel(message))
            }
        }
    }

    /// Asks a person.
    pub async fn inquire(&self, inquiry: &Inquiry) -> Result<Replies, Unanswered> {
        self.gate.inquire(inquiry).await
    }

    pub(crate) fn denied(&self) -> Option<DeniedBy> {
        *self.denied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
