//! What is said while a turn runs. Resources of servers that it mentions are fetched beside the turn, one message
//! after the other: they may be asked about, and a message must not overtake the one before it.

use std::collections::VecDeque;
use std::pin::Pin;

use toolwright::llm::Content;
use toolwright::session::QueueKind;
use toolwright::{CancellationToken, Handover, Inbox};

use super::Host;
use super::opening::Opening;
use crate::app::News;
use crate::blocks::Level;

/// A message with what came of the resources that it mentions.
pub(super) struct Message {
    pub kind: QueueKind,
    pub text: String,
    pub content: Vec<Content>,
    pub problems: Vec<String>,
}

type Fetching<'a> = Pin<Box<dyn Future<Output = Message> + 'a>>;

pub(super) struct Steering<'a> {
    handover: &'a Handover,
    cancel: &'a CancellationToken,
    waiting: VecDeque<Message>,
    /// The message that is at work, and its words, should nothing come of it any more.
    fetching: Option<(Fetching<'a>, QueueKind, String)>,
}

impl<'a> Steering<'a> {
    pub(super) fn new(handover: &'a Handover, cancel: &'a CancellationToken) -> Self {
        Self { handover, cancel, waiting: VecDeque::new(), fetching: None }
    }

    pub(super) fn push(&mut self, kind: QueueKind, text: String, content: Vec<Content>) {
        self.waiting.push_back(Message { kind, text, content, problems: Vec::new() });
        self.begin();
    }

    fn begin(&mut self) {
        if self.fetching.is_some() {
            return;
        }
        let Some(mut message) = self.waiting.pop_front() else { return };
        let (handover, cancel) = (self.handover, self.cancel);
        let (kind, text) = (message.kind, message.text.clone());
        let work = async move {
            let (found, problems) = handover.resources(&message.text, cancel).await;
            message.content.extend(found);
            message.problems = problems;
            message
        };
        self.fetching = Some((Box::pin(work), kind, text));
    }

    /// The next message that is whole; never, where none is on its way.
    pub(super) async fn next(&mut self) -> Message {
        match &mut self.fetching {
            Some((fetching, ..)) => {
                let message = fetching.await;
                self.fetching = None;
                self.begin();
                message
            }
            None => std::future::pending().await,
        }
    }

    /// What was not said in time.
    pub(super) fn left(self) -> Vec<(QueueKind, String)> {
        let now = self.fetching.map(|(_, kind, text)| (kind, text));
        now.into_iter().chain(self.waiting.into_iter().map(|m| (m.kind, m.text))).collect()
    }
}

impl Host {
    /// A message for the turn at work, with everything that belongs to it.
    pub(super) async fn deliver(&mut self, message: Message, inbox: &Inbox) {
        for problem in message.problems {
            self.say(Level::Notice, problem, None).await;
        }
        let id = match message.kind {
            QueueKind::Steer => inbox.steer(message.content),
            QueueKind::FollowUp => inbox.follow_up(message.content),
        };
        self.queued(id, message.kind, message.text).await;
    }

    /// The turn was over before all was fetched: what was meant for it begins the next one, or goes back to
    /// the person where they wanted an end.
    pub(super) async fn said_late(
        &mut self,
        late: Vec<(QueueKind, String)>,
        cancelled: bool,
    ) -> Option<Opening> {
        let texts: Vec<String> = late.into_iter().map(|(_, text)| text).collect();
        let text = texts.join("\n");
        if text.is_empty() {
            return None;
        }
        let (id, kind) = (u64::MAX, QueueKind::FollowUp);
        self.tell(News::Queued { id, kind, text: text.clone() }).await;
        if cancelled {
            // With everything else that waits.
            return None;
        }
        self.tell(News::Delivered(id)).await;
        Some(Opening::Said(self.expand(&text).await, text))
    }

    async fn queued(&mut self, id: Option<u64>, kind: QueueKind, text: String) {
        match id {
            Some(id) => {
                self.queue.push(id);
                self.tell(News::Queued { id, kind, text }).await;
            }
            None => self.say(Level::Problem, "Too many messages wait already", None).await,
        }
    }
}
