//! A name for a session, asked of a small model beside the work. Nothing waits for it for long, and where
//! none comes the session is called by its first prompt.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use tokio_util::task::AbortOnDropHandle;
use toolwright_llm::{
    Content, Model, Price, ReplyBuilder, ReplyKind, Request, Sampling, ToolChoice, Turn, Usage,
};
use toolwright_session::{Entry, LogError, Session, TitledBy, shortened};

use crate::engine::Engine;

/// The first request of the work goes out before this one is even thought of.
const HEAD_START: Duration = Duration::from_millis(50);

/// A small model that needs longer is not what it is called.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the end of a run waits for a name that is on its way.
const GRACE: Duration = Duration::from_millis(1500);

/// Enough of a prompt to know what it is about.
const PROMPT_CHARS: usize = 4_000;

/// A name needs few; models that think first need more.
const OUTPUT_TOKENS: u32 = 1_000;

/// Gives the model that makes names, once one is wanted: finding it may take a moment.
pub type FindNamer = Arc<dyn Fn() -> BoxFuture<'static, Option<Namer>> + Send + Sync>;

pub struct Namer {
    pub model: Arc<dyn Model>,
    pub price: Option<Price>,
}

/// Names a session once.
#[derive(Default)]
pub(crate) struct Titler {
    find: Option<FindNamer>,
    coming: Option<AbortOnDropHandle<Option<Entry>>>,
}

impl Titler {
    pub(crate) fn new(find: Option<FindNamer>) -> Self {
        Self { find, coming: None }
    }

    /// Begins with the first prompt of a session that has no name and is nobody else's.
    pub(crate) fn begin(&mut self, session: &Session) {
        let is_first = session.prompts().nth(1).is_none() && session.header.parent.is_none();
        if !is_first || session.given_title().is_some() {
            return;
        }
        let Some((prompt, _)) = session.prompts().next() else { return };
        let said = prompt.content.iter().filter_map(|part| match part {
            Content::Text { text } => Some(text.as_str()),
            Content::Media(_) => None,
        });
        let said: String = said.collect::<Vec<_>>().join("\n").chars().take(PROMPT_CHARS).collect();
        if said.trim().is_empty() {
            return;
        }
        if let Some(find) = self.find.take() {
            let asked = async move {
                tokio::time::sleep(HEAD_START).await;
                let namer = find().await?;
                tokio::time::timeout(PATIENCE, ask(namer, said)).await.ok().flatten()
            };
            self.coming = Some(AbortOnDropHandle::new(tokio::spawn(asked)));
        }
    }

    /// The name, if it is there already.
    pub(crate) async fn take_if_there(&mut self) -> Option<Entry> {
        match self.coming.take_if(|coming| coming.is_finished()) {
            Some(coming) => coming.await.ok().flatten(),
            None => None,
        }
    }

    /// The name, waited for a little.
    pub(crate) async fn take(&mut self) -> Option<Entry> {
        let coming = self.coming.take()?;
        tokio::time::timeout(GRACE, coming).await.ok()?.ok().flatten()
    }
}

impl Engine {
    /// Gives the session a name of the person's own; one that is on its way comes too late. Between
    /// turns only.
    pub fn rename(&mut self, title: &str) -> Result<(), LogError> {
        self.titler = Titler::default();
        let (title, usage, cost, model) = (shortened(title), Usage::default(), None, None);
        self.record.add(Entry::Titled { title, by: TitledBy::Person, usage, cost, model })
    }
}

async fn ask(namer: Namer, said: String) -> Option<Entry> {
    let Namer { model, price } = namer;
    let request = Request {
        system: include_str!("prompts/title.md").trim().into(),
        turns: vec![
            Turn::User(vec![Content::text(format!("<message>\n{said}\n</message>"))]).into(),
        ],
        tools: Vec::new().into(),
        tool_choice: ToolChoice::None,
        max_output_tokens: Some(OUTPUT_TOKENS),
        sampling: Sampling::default(),
        effort: None,
        output_schema: None,
        headers: Vec::new(),
    };
    let mut events = model.stream(request);
    let mut builder = ReplyBuilder::default();
    while let Some(event) = events.next().await {
        builder.apply(&event);
    }
    let reply = builder.build();
    let texts = reply.blocks.iter().filter_map(|block| match &block.kind {
        ReplyKind::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let title = cleaned(&texts.collect::<String>())?;
    let (usage, by) = (reply.usage, TitledBy::Model);
    let cost = price.map(|price| price.of(&usage));
    Some(Entry::Titled { title, by, usage, cost, model: Some(model.origin().clone()) })
}

/// What is left of an answer when everything that is no name is taken away.
fn cleaned(answer: &str) -> Option<String> {
    let said = match answer.rsplit_once("</think>") {
        Some((_, said)) => said,
        None => answer,
    };
    let line = said.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.trim_start_matches(['#', '*', '-', ' ']);
    let line = line.strip_prefix("Title:").unwrap_or(line).trim();
    let line = line.trim_matches(['"', '\'', '`', '*', '“', '”', ' ']).trim_end_matches('.');
    let title = shortened(line);
    title.chars().any(char::is_alphanumeric).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_clean_line() {
        for (answer, title) in [
            ("Fix the parser", Some("Fix the parser")),
            ("\n\n**\"Fix the parser.\"**\nAnd more", Some("Fix the parser")),
            ("<think>Hm, a title\nTitle: no</think>\n# Title: Fix it", Some("Fix it")),
            ("", None),
            ("…", None),
        ] {
            assert_eq!(cleaned(answer).as_deref(), title, "{answer}");
        }
        assert!(cleaned(&"long ".repeat(100)).unwrap().chars().count() <= 72);
    }

    #[test]
    fn the_prompt_is_short() {
        assert!(include_str!("prompts/title.md").len() / 4 < 250);
    }
}
