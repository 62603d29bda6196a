//! How a turn begins: with what the person said, a command that they wrote, or a prompt of a server.

use tokio::sync::mpsc::Sender;
use toolwright::Handover;
use toolwright::config::Command;
use toolwright::llm::Content;
use toolwright::{CancellationToken, Event};

use super::Host;
use crate::app::News;
use crate::blocks::Level;

pub(super) enum Opening {
    /// With the person's own words, which may mention resources of servers.
    Said(Vec<Content>, String),
    Own(Box<Command>, String),
    Server {
        server: String,
        prompt: String,
        words: Vec<String>,
    },
}

impl Opening {
    /// What the model is told. What a command needs may be asked about, and refused.
    pub(super) async fn content(
        self,
        handover: &Handover,
        cancel: &CancellationToken,
        events: &Sender<Event>,
    ) -> Result<Vec<Content>, String> {
        let said = match self {
            Self::Said(mut content, words) => {
                let (resources, problems) = handover.resources(&words, cancel).await;
                content.extend(resources);
                for text in problems {
                    events.send(Event::Notice { text }).await.ok();
                }
                Ok(content)
            }
            Self::Own(command, arguments) => handover.render(&command, &arguments).await,
            Self::Server { server, prompt, words } => {
                handover.server_prompt(&server, &prompt, &words, cancel).await
            }
        };
        said.map_err(|problem| problem.to_string())
    }
}

impl Host {
    /// A command that somebody wrote. It may name an agent and a model: for this turn, those work.
    pub(super) async fn command(&mut self, name: &str, arguments: String) {
        self.renew().await;
        let before = (self.agent.clone(), self.model.clone());
        let opening = match Command::find(&self.bench.config.settings, name) {
            Ok(command) => {
                let can_be = |name: &String| self.bench.agent(Some(name)).is_ok();
                let agent = command.agent.clone().filter(can_be);
                let other = agent.as_ref().is_some_and(|agent| self.agent.as_ref() != Some(agent))
                    || command.model.as_ref().is_some_and(|m| self.model.as_ref() != Some(m));
                if other {
                    self.close().await;
                    self.agent = agent.or(self.agent.take());
                    self.model = command.model.clone().or(self.model.take());
                }
                Opening::Own(Box::new(command), arguments)
            }
            Err(problem) => match self.bench.mcp.prompt_named(name) {
                Some((server, prompt)) => {
                    let words = arguments.split_whitespace().map(str::to_owned).collect();
                    Opening::Server { server, prompt, words }
                }
                None => {
                    self.say(Level::Problem, problem.to_string(), Some("/help lists them.")).await;
                    return self.tell(News::Idle).await;
                }
            },
        };
        let asked = (self.agent.clone(), self.model.clone());
        if let Err(problem) = self.open().await {
            self.say(Level::Problem, problem.to_string(), Some("/models and /connect help.")).await;
            return self.tell(News::Idle).await;
        }
        self.turns(Some(opening)).await;
        if asked != before {
            self.close().await;
            (self.agent, self.model) = before;
            if let Ok(agent) = self.bench.agent(self.agent.as_deref()) {
                self.tell(News::Agent(agent.name)).await;
            }
            self.tell_model().await;
        }
    }
}
