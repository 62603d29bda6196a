//! A command of the person's own, behind `!`.

use std::sync::{Arc, PoisonError};

use tokio::sync::mpsc;
use toolwright::permission::{Mode, Stance};
use toolwright::tool::{CallRequest, Update};
use toolwright::{CancellationToken, PermissionGate};

use super::Host;
use crate::app::{Input, News};
use crate::blocks::{Done, Level};

impl Host {
    /// A command that the person typed: through the same tool, without asking them again. What is
    /// denied stays denied.
    pub(super) fn shell(&self, command: String) {
        let Ok(agent) = self.bench.agent(self.agent.as_deref()) else { return };
        let gate = Arc::new(PermissionGate::new(
            self.bench.policy(&agent, &Stance::from(Mode::Auto)),
            None,
        ));
        let outputs = self.bench.paths.sessions().join("without-session/calls.outputs");
        let registry = self.bench.registry();
        let pipeline = self.bench.pipeline(registry, &gate, &Arc::default(), outputs, None);
        let arguments = serde_json::json!({ "command": command }).to_string();
        let name = "bash".to_owned();
        let request = CallRequest { id: "shell".to_owned(), name, arguments, cut: false };
        let (ui, aside) = (self.ui.clone(), Arc::clone(&self.aside));
        self.spawn(async move {
            let tell = |news: News| {
                let ui = ui.clone();
                async move { ui.send(Input::News(Box::new(news))).await.ok() }
            };
            tell(News::ShellStarted(command.clone())).await;
            let (sender, mut updates) = mpsc::channel(16);
            let running = pipeline.run_calls(vec![request], CancellationToken::new(), sender);
            let watching = async {
                while let Some(update) = updates.recv().await {
                    match update {
                        Update::Starting { go, .. } => {
                            go.send(()).ok();
                        }
                        Update::Changed(_) => {}
                        Update::Progress { text, .. } => {
                            tell(News::ShellSaid(text)).await;
                        }
                        Update::Settled { outcome, .. } => {
                            let told = format!(
                                "The user ran this command themselves: {command}\n<output>\n{}\n</output>",
                                outcome.output
                            );
                            aside.lock().unwrap_or_else(PoisonError::into_inner).push(told);
                            tell(News::ShellDone(Box::new(Done::from(&outcome)))).await;
                        }
                        Update::Fatal { message } => {
                            let level = Level::Problem;
                            tell(News::Say { level, text: message, advice: None }).await;
                        }
                    }
                }
            };
            tokio::join!(running, watching);
        });
    }
}
