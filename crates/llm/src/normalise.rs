//! Makes a conversation one that the target takes, in one pass that says what it changed. What every
//! target takes (paired results, non-empty messages, allowed ids) is the codecs' matter.

use std::sync::Arc;

use crate::{Block, Content, ModelFacts, Request, Turn};

/// The request for a model with these abilities, and what had to be changed. An ability that is not
/// known is taken as there.
pub(crate) fn normalise(mut request: Request, facts: &ModelFacts) -> (Request, Vec<String>) {
    let mut changes = Vec::new();
    if facts.attachment == Some(false) {
        let mut left_out = 0;
        for turn in &mut request.turns {
            // Shared with the session: only a turn that holds media is copied.
            if media_in(turn) > 0 {
                left_out += media_in(turn);
                *turn = Arc::new(without_media(turn));
            }
        }
        if left_out > 0 {
            changes.push(format!(
                "{left_out} images or documents are left out: this model takes none"
            ));
        }
    }
    if facts.temperature == Some(false) && request.sampling.temperature.take().is_some() {
        changes.push("the temperature is left out: this model takes none".to_owned());
    }
    if facts.reasoning == Some(false) && request.effort.take().is_some() {
        changes.push("the effort is left out: this model does not reason".to_owned());
    }
    (request, changes)
}

fn contents(turn: &Turn) -> Box<dyn Iterator<Item = &Content> + '_> {
    match turn {
        Turn::User(content) => Box::new(content.iter()),
        Turn::Assistant { blocks, .. } => Box::new(blocks.iter().flat_map(|block| match block {
            Block::Call { result, .. } => result.content.as_slice(),
            _ => &[],
        })),
    }
}

fn media_in(turn: &Turn) -> usize {
    contents(turn).filter(|content| matches!(content, Content::Media(_))).count()
}

fn without_media(turn: &Turn) -> Turn {
    let mut turn = turn.clone();
    let replace = |content: &mut Vec<Content>| {
        for part in content {
            if let Content::Media(media) = part {
                let name = media.name.as_deref().unwrap_or("a file");
                *part = Content::text(format!("[{name} ({}) left out: not supported]", media.mime));
            }
        }
    };
    match &mut turn {
        Turn::User(content) => replace(content),
        Turn::Assistant { blocks, .. } => {
            for block in blocks {
                if let Block::Call { result, .. } = block {
                    replace(&mut result.content);
                }
            }
        }
    }
    turn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effort, Media, Sampling, ToolChoice};

    fn request() -> Request {
        let media =
            Media { mime: "image/png".into(), base64: "AA".into(), name: Some("x.png".into()) };
        let user = Turn::User(vec![Content::text("look"), Content::Media(media)]);
        Request {
            system: "".into(),
            turns: vec![Arc::new(user), Arc::new(Turn::User(vec![Content::text("hi")]))],
            tools: Vec::new().into(),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
            sampling: Sampling { temperature: Some(0.5), ..Sampling::default() },
            effort: Some(Effort::High),
            output_schema: None,
            headers: Vec::new(),
        }
    }

    #[test]
    fn what_a_model_does_not_take_is_left_out_and_said() {
        let facts = ModelFacts {
            attachment: Some(false),
            temperature: Some(false),
            reasoning: Some(false),
            ..ModelFacts::default()
        };
        let before = request();
        let (after, changes) = normalise(before.clone(), &facts);
        assert_eq!(changes.len(), 3, "{changes:?}");
        assert!(after.sampling.temperature.is_none() && after.effort.is_none());
        assert_eq!(media_in(&after.turns[0]), 0);
        assert!(Arc::ptr_eq(&after.turns[1], &before.turns[1]), "what fits is not copied");
    }

    #[test]
    fn what_is_not_known_is_taken_as_there() {
        let (after, changes) = normalise(request(), &ModelFacts::default());
        assert!(changes.is_empty());
        assert_eq!(media_in(&after.turns[0]), 1);
    }
}
