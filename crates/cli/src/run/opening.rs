//! From what somebody gave a run to what the model is told first.

use std::time::Duration;

use tokio::sync::mpsc;
use toolwright::config::Command;
use toolwright::llm::Content;
use toolwright::session::TurnStatus;
use toolwright::{CancellationToken, Event, Handover, NotSaid, TurnEnd};

use super::{FAREWELL, nothing_done};

/// What a run begins with.
pub struct Beginning {
    pub opening: Opening,
    pub given: Vec<Content>,
    /// What the person typed: only there a mention is meant.
    pub own_words: String,
}

impl Beginning {
    /// What the model is told. Questions on the way may stay open: whoever wants to leave can.
    pub async fn content(
        self,
        handover: &Handover,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> Result<Vec<Content>, TurnEnd> {
        let Self { opening, given, own_words } = self;
        let grace = match opening {
            // A server hears of it first.
            Opening::Server { .. } => FAREWELL,
            Opening::Words | Opening::Command(..) => Duration::ZERO,
        };
        let said = async {
            let mut content = opening.content(given, handover, cancel).await?;
            let (resources, problems) = handover.resources(&own_words, cancel).await;
            content.extend(resources);
            for text in problems {
                events.send(Event::Notice { text }).await.ok();
            }
            Ok(content)
        };
        let stopped = async {
            cancel.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        let said = tokio::select! {
            said = said => said,
            () = stopped => Ok(Vec::new()),
        };
        if cancel.is_cancelled() {
            return Err(TurnEnd { status: TurnStatus::Interrupted, ..nothing_done() });
        }
        said.map_err(|problem| {
            let status = match problem {
                NotSaid::Denied(_) => TurnStatus::Denied,
                NotSaid::Failed(_) => TurnStatus::Failed,
            };
            TurnEnd { status, problem: Some(problem.to_string()), ..nothing_done() }
        })
    }
}

/// How a run begins: with a person's words as they are, or with a command of theirs.
pub enum Opening {
    Words,
    Command(Box<Command>, String),
    /// A prompt of an MCP server, with the words that go into it.
    Server {
        server: String,
        prompt: String,
        words: Vec<String>,
    },
}

impl Opening {
    /// What the model is told. What a command needs may be refused.
    async fn content(
        self,
        given: Vec<Content>,
        handover: &Handover,
        cancel: &CancellationToken,
    ) -> Result<Vec<Content>, NotSaid> {
        match self {
            Self::Words => Ok(handover.with_mentions(given).await),
            Self::Command(command, arguments) => {
                let mut content = handover.render(&command, &arguments).await?;
                // The first part only names it.
                content.extend(given.into_iter().skip(1));
                Ok(content)
            }
            Self::Server { server, prompt, words } => {
                let mut content = handover.server_prompt(&server, &prompt, &words, cancel).await?;
                content.extend(given.into_iter().skip(1));
                Ok(content)
            }
        }
    }
}
