//! One answer arrives: shown and logged as it comes, and its calls that only read are begun.

use futures_util::StreamExt;
use toolwright_llm::{
    Event as ModelEvent, Failure, FailureKind, Reply, ReplyBuilder, ReplyKind, Request,
};
use toolwright_session::{DeltaKind, Entry, StepBlock};
use toolwright_tool::{CallRequest, EarlyCalls};

use crate::agent_loop::{Over, Turn};
use crate::answer::size_of_delta;
use crate::event::Event;

/// Bytes of one answer. A model that repeats itself for ever must not fill memory and disk.
const REPLY_CAP_BYTES: usize = 32 << 20;

/// How an answer is taken in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Shown and logged as it comes.
    Aloud,
    /// Nobody sees it before it is whole: a summary.
    Quietly,
}

impl Turn<'_> {
    /// Takes in one answer, with those of its calls that were begun meanwhile. Nothing if the time
    /// ran out before it was whole.
    pub(crate) async fn listen(
        &mut self,
        request: Request,
        may_start_early: bool,
    ) -> Result<Option<(Reply, EarlyCalls)>, Over> {
        let mut builder = ReplyBuilder::default();
        let mut early = may_start_early.then(EarlyCalls::default);
        let heard = self.hear(request, &mut builder, &mut early, Manner::Aloud).await;
        match heard {
            Ok(true) => Ok(Some((builder.build(), early.unwrap_or_default()))),
            unfinished => {
                if early.take().is_some_and(|early| !early.is_empty()) {
                    // What they had given never reached the model.
                    self.world.pipeline.forget_answers();
                }
                self.keep_partial(builder);
                unfinished.map(|_| None)
            }
        }
    }

    /// As [`Self::listen`], without a word to anybody.
    pub(crate) async fn listen_quietly(&mut self, request: Request) -> Result<Option<Reply>, Over> {
        let mut builder = ReplyBuilder::default();
        let heard = self.hear(request, &mut builder, &mut None, Manner::Quietly).await?;
        Ok(heard.then(|| builder.build()))
    }

    /// What was shown of an answer that never became whole.
    fn keep_partial(&mut self, builder: ReplyBuilder) {
        for block in builder.build().blocks {
            let (kind, text) = match block.kind {
                ReplyKind::Text(text) | ReplyKind::Refusal(text) => (DeltaKind::Text, text),
                ReplyKind::Reasoning(text) => (DeltaKind::Reasoning, text),
                ReplyKind::Call { .. } | ReplyKind::ServerTool { .. } => continue,
            };
            if !text.is_empty() {
                self.world.record.fold_only(Entry::Delta { kind, text });
            }
        }
    }

    /// Whether the answer became whole; not, if the time ran out.
    async fn hear(
        &mut self,
        request: Request,
        builder: &mut ReplyBuilder,
        early: &mut Option<EarlyCalls>,
        manner: Manner,
    ) -> Result<bool, Over> {
        let mut stream = self.world.model.stream(request);
        let mut heard = 0;
        loop {
            let event = tokio::select! {
                biased;
                () = self.world.cancel.cancelled() => return Err(Over::Interrupted),
                () = self.time_is_up.cancelled() => return Ok(false),
                () = self.world.inbox.arrived() => {
                    self.take_in().await?;
                    continue;
                }
                event = stream.next() => event,
            };
            let Some(event) = event else {
                // Against the contract; treated as what it looks like.
                let text = "the model's stream stopped without an end";
                return Err(Over::Failed(Failure::new(FailureKind::Truncated, text)));
            };
            builder.apply(&event);
            heard += size_of_delta(&event);
            if heard > REPLY_CAP_BYTES {
                let text = format!("the answer grew beyond {} MiB", REPLY_CAP_BYTES >> 20);
                let failure = Failure::new(FailureKind::Protocol, text);
                return self.failed(failure, builder, manner);
            }
            match event {
                ModelEvent::Failed(failure) => return self.failed(failure, builder, manner),
                ModelEvent::Finish(_) => return Ok(true),
                ModelEvent::BlockEnd { block, .. } => {
                    if let Some(early) = early {
                        self.begin_early(block, builder, early);
                    }
                }
                ModelEvent::Notice(text) => self.emit(Event::Notice { text }).await,
                ModelEvent::Retrying { attempt, delay, cause } => {
                    self.emit(Event::Retrying { attempt, delay, cause }).await;
                }
                shown if manner == Manner::Aloud => self.show(shown).await?,
                _ => {}
            }
        }
    }

    fn failed(
        &mut self,
        failure: Failure,
        builder: &ReplyBuilder,
        manner: Manner,
    ) -> Result<bool, Over> {
        if manner == Manner::Aloud {
            let usage = builder.usage();
            self.world.record.add(Entry::StepFailed { failure: failure.clone(), usage })?;
        }
        Err(Over::Failed(failure))
    }

    async fn show(&mut self, event: ModelEvent) -> Result<(), Over> {
        match event {
            ModelEvent::Text { delta, .. } if delta.is_empty() => {}
            ModelEvent::Text { delta, .. } | ModelEvent::Refusal { delta, .. } => {
                self.delta(DeltaKind::Text, delta).await?;
            }
            ModelEvent::Reasoning { delta, .. } => self.delta(DeltaKind::Reasoning, delta).await?,
            ModelEvent::CallStart { name, .. } => self.emit(Event::CallAnnounced { name }).await,
            _ => {}
        }
        Ok(())
    }

    /// The answer's calls in order, each as soon as it is whole.
    fn begin_early(&mut self, block: u32, builder: &ReplyBuilder, early: &mut EarlyCalls) {
        let Some((id, name, arguments)) = builder.whole_call(block, early.len()) else { return };
        let (id, name, arguments) = (id.to_owned(), name.to_owned(), arguments.to_owned());
        let request = CallRequest { id, name, arguments, cut: false };
        let step = self.world.record.session().step_count();
        early.begin(self.world.pipeline, request, step, self.world.cancel);
    }

    async fn delta(&mut self, kind: DeltaKind, text: String) -> Result<(), Over> {
        let entry = Entry::Delta { kind, text };
        self.world.record.log_only(&entry)?;
        let Entry::Delta { text, .. } = entry else { return Ok(()) };
        self.emit(match kind {
            DeltaKind::Text => Event::Text { delta: text },
            DeltaKind::Reasoning => Event::Reasoning { delta: text },
        })
        .await;
        Ok(())
    }

    /// The texts of the newest answer, whole, from where they are kept.
    pub(crate) async fn emit_blocks(&self) {
        let blocks = self.world.record.session().last_step().map_or(0, |step| step.blocks.len());
        for at in 0..blocks {
            let event = match self.world.record.session().last_step().map(|s| &s.blocks[at]) {
                Some(StepBlock::Text { text, .. }) => Event::TextDone { text: text.clone() },
                Some(StepBlock::Reasoning { text, .. }) if !text.is_empty() => {
                    Event::ReasoningDone { text: text.clone() }
                }
                _ => continue,
            };
            self.emit(event).await;
        }
    }
}
