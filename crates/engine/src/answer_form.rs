//! An answer in a form that was given as text, because the provider held the model to the form or
//! because the model did so by itself. It is taken for a call of the final-answer tool: validation,
//! errors that go back and the end of the turn are the tool's.

use toolwright_llm::Request;
use toolwright_session::ReplyPart;
use toolwright_tool::FinalAnswer;

/// Whether the turn must end with an answer in a form.
pub(crate) fn is_wanted(template: &Request) -> bool {
    template.output_schema.is_some()
        || template.tools.iter().any(|tool| tool.name == FinalAnswer::NAME)
}

/// The reply with its text as a call, if the text is an object and nothing else was called. `step`
/// makes the call's id one of its own.
pub(crate) fn adopt(parts: Vec<ReplyPart>, step: usize) -> Vec<ReplyPart> {
    let mut text = String::new();
    for part in &parts {
        match part {
            ReplyPart::Text { text: more, .. } => text.push_str(more),
            ReplyPart::Call { .. } => return parts,
            ReplyPart::Reasoning { .. } | ReplyPart::ServerTool { .. } => {}
        }
    }
    let arguments = without_fence(text.trim());
    let is_object = arguments.starts_with('{')
        && serde_json::from_str::<&serde_json::value::RawValue>(arguments).is_ok();
    if !is_object {
        return parts;
    }
    let call = ReplyPart::Call {
        id: format!("answer_{step}"),
        name: FinalAnswer::NAME.to_owned(),
        arguments: arguments.to_owned(),
        opaque: None,
    };
    let kept = parts.into_iter().filter(|part| !matches!(part, ReplyPart::Text { .. }));
    kept.chain([call]).collect()
}

/// What a model is told that answered in words.
pub(crate) fn reminder(template: &Request) -> String {
    match &template.output_schema {
        Some(schema) => format!(
            "Give your answer as JSON and nothing else, in the form of this JSON Schema: {schema}"
        ),
        None => format!(
            "Give your answer by calling the {} tool, with arguments that fit its schema.",
            FinalAnswer::NAME
        ),
    }
}

fn without_fence(text: &str) -> &str {
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|inner| inner.strip_suffix("```")).map_or(text, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> ReplyPart {
        ReplyPart::Text { text: text.to_owned(), opaque: None }
    }

    #[test]
    fn only_an_object_alone_is_taken_for_the_answer() {
        let thought = ReplyPart::Reasoning { text: "Hm.".to_owned(), opaque: None };
        let adopted = adopt(vec![thought, said("```json\n{\"a\": 1}\n```\n")], 3);
        assert!(matches!(
            adopted.as_slice(),
            [ReplyPart::Reasoning { .. }, ReplyPart::Call { arguments, .. }] if arguments == "{\"a\": 1}"
        ));
        for text in ["It is {\"a\": 1}", "{\"a\": ", "[1]", "", "{\"a\": 1} That is it."] {
            let parts = adopt(vec![said(text)], 0);
            assert!(matches!(parts.as_slice(), [ReplyPart::Text { .. }]), "{text:?}");
        }
    }
}
