//! The session's model, for servers that ask it something.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use toolwright_engine::Purse;
use toolwright_llm::{
    Block, Event, FinishReason, Model, Price, ReplyBuilder, ReplyKind, Request, Sampling,
    ToolChoice, Turn,
};
use toolwright_mcp::{Sampled, Sampler, SamplingRequest, SamplingTurn};

use crate::choose::Chosen;

pub(crate) struct SessionModel {
    model: Arc<dyn Model>,
    price: Option<Price>,
    max_output_tokens: Option<u32>,
    purse: Arc<Purse>,
}

impl SessionModel {
    pub(crate) fn new(chosen: &Chosen, purse: &Arc<Purse>) -> Arc<Self> {
        Arc::new(Self {
            model: Arc::clone(&chosen.model),
            price: chosen.price.clone(),
            max_output_tokens: chosen.max_output_tokens,
            purse: Arc::clone(purse),
        })
    }

    fn turn(&self, turn: SamplingTurn) -> Arc<Turn> {
        if !turn.by_model {
            return Arc::new(Turn::User(turn.content));
        }
        let said = turn.content.into_iter().filter_map(|content| match content {
            toolwright_llm::Content::Text { text } => Some(Block::Text { text, opaque: None }),
            toolwright_llm::Content::Media(_) => None,
        });
        Arc::new(Turn::Assistant { origin: self.model.origin().clone(), blocks: said.collect() })
    }
}

/// What was said so far costs, also where nobody waits for the rest.
struct Tally {
    builder: ReplyBuilder,
    price: Option<Price>,
    purse: Arc<Purse>,
}

impl Tally {
    fn cost(&self) -> Option<f64> {
        self.price.as_ref().map(|price| price.of(&self.builder.usage()))
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        // An answer that came to its end was taken out, and nothing is left.
        self.purse.spend(self.cost().unwrap_or_default());
    }
}

impl Sampler for SessionModel {
    fn sample(&self, request: SamplingRequest) -> BoxFuture<'static, Result<Sampled, String>> {
        if self.purse.is_empty() {
            return async { Err("the budget of this run is spent".to_owned()) }.boxed();
        }
        let cap = self.max_output_tokens.unwrap_or(u32::MAX);
        let wanted = Request {
            system: request.system.unwrap_or_default().into(),
            turns: request.turns.into_iter().map(|turn| self.turn(turn)).collect(),
            tools: Arc::new([]),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: Some(request.max_tokens.min(cap)),
            sampling: Sampling {
                temperature: request.temperature,
                stop: request.stop,
                ..Sampling::default()
            },
            effort: None,
            output_schema: None,
            headers: Vec::new(),
        };
        let mut stream = self.model.stream(wanted);
        let model = self.model.origin().to_string();
        let (price, purse) = (self.price.clone(), Arc::clone(&self.purse));
        async move {
            let mut tally = Tally { builder: ReplyBuilder::default(), price, purse };
            while let Some(event) = stream.next().await {
                tally.builder.apply(&event);
                if let Event::Failed(failure) = &event {
                    return Err(failure.to_string());
                }
            }
            let cost = tally.cost();
            let reply = std::mem::take(&mut tally.builder).build();
            tally.purse.spend(cost.unwrap_or_default());
            let text: Vec<String> = reply
                .blocks
                .into_iter()
                .filter_map(|block| match block.kind {
                    ReplyKind::Text(text) | ReplyKind::Refusal(text) => Some(text),
                    _ => None,
                })
                .collect();
            let was_cut = reply.finish.is_some_and(|finish| finish.reason == FinishReason::Length);
            Ok(Sampled { model, text: text.join(""), was_cut, cost })
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::{self, BoxStream};
    use toolwright_llm::{Origin, Usage};

    use super::*;

    /// Counts what it was given, says half of it and never ends.
    struct Endless(Origin);

    impl Model for Endless {
        fn origin(&self) -> &Origin {
            &self.0
        }

        fn stream(&self, _: Request) -> BoxStream<'static, Event> {
            let usage = Usage { input: 1_000_000, ..Usage::default() };
            stream::iter([Event::Usage { usage, raw: serde_json::Value::Null }])
                .chain(stream::pending())
                .boxed()
        }
    }

    #[tokio::test]
    async fn what_was_used_is_paid_for_although_nobody_waits_for_the_answer() {
        let purse = Purse::new(Some(1.0));
        let model = Arc::new(Endless(Origin { provider: "p".to_owned(), model: "m".to_owned() }));
        let price = Some(Price { input: 2.0, ..Price::default() });
        let own = SessionModel { model, price, max_output_tokens: None, purse: Arc::clone(&purse) };
        let request = SamplingRequest {
            system: None,
            turns: Vec::new(),
            max_tokens: 10,
            temperature: None,
            stop: Vec::new(),
        };
        let mut asked = own.sample(request);
        assert!((&mut asked).now_or_never().is_none());
        assert!(!purse.is_empty());
        drop(asked);
        assert!(purse.is_empty());
    }
}
