//! What a turn came to, read off its record.

use std::sync::Arc;

use toolwright_llm::Usage;
use toolwright_session::{Ending, Session, StepBlock, TurnStatus};
use toolwright_tool::FinalAnswer;

use crate::agent_loop::Over;
use crate::event::{Denial, TurnEnd};

pub(crate) fn turn_end(session: &Session, over: &Over) -> TurnEnd {
    let denials = denials(session);
    let mut usage = Usage::default();
    let mut steps = 0;
    let mut cost = Some(0.0);
    for step in session.steps_of_turn() {
        usage += step.usage;
        steps += 1;
        // A step that failed was not priced; one that was answered without a price makes the sum unknown.
        if step.finish.is_some() {
            cost = cost.zip(step.cost).map(|(sum, cost)| sum + cost);
        }
        cost = cost.map(|sum| sum + step.calls_cost());
    }
    let (notes, notes_cost) = session.spent_on_notes();
    usage += notes;
    cost = cost.map(|sum| sum + notes_cost);
    let (problem, advice) = match over {
        Over::Done | Over::Interrupted => (None, None),
        Over::Failed(failure) => (Some(failure.to_string()), Some(failure.advice())),
        Over::Broken(message) => (Some(message.clone()), None),
        Over::Circling(what) => {
            let problem = format!("the model goes round in circles ({what})");
            let advice = "Say more about what to do, or allow it with the permission doom_loop.";
            (Some(problem), Some(advice))
        }
        Over::OutOfBudget(what) => (Some(format!("the budget ran out ({what})")), None),
    };
    let status = match over.status() {
        TurnStatus::Done if gave_up_after_denial(session, &denials) => TurnStatus::Denied,
        status => status,
    };
    TurnEnd { status, problem, advice, answer: answer(session), usage, cost, steps, denials }
}

impl TurnEnd {
    /// For a turn that never began.
    pub(crate) fn before_it_began(over: &Over) -> Self {
        let problem = match over {
            Over::Broken(message) => Some(message.clone()),
            _ => None,
        };
        Self {
            status: over.status(),
            problem,
            advice: None,
            answer: "".into(),
            usage: Usage::default(),
            cost: None,
            steps: 0,
            denials: Vec::new(),
        }
    }
}

/// Those of this agent and of all who worked for it.
fn denials(session: &Session) -> Vec<Denial> {
    let outcomes =
        session.steps_of_turn().flat_map(|step| step.calls()).filter_map(|c| c.outcome());
    let below =
        outcomes.filter_map(|o| serde_json::from_value(o.details.get("denials")?.clone()).ok());
    let mut all = own_denials(session);
    all.extend(below.flat_map(|list: Vec<Denial>| list));
    all
}

fn own_denials(session: &Session) -> Vec<Denial> {
    let calls = session.steps_of_turn().flat_map(|step| step.calls());
    let denied = calls.filter_map(|call| call.outcome()).filter(|o| o.ending == Ending::Denied);
    denied
        .map(|outcome| Denial {
            tool: outcome.tool.clone(),
            summary: outcome.title.clone(),
            by: outcome.details["denied_by"].as_str().unwrap_or_default().to_owned(),
        })
        .collect()
}

/// Done, but not what was asked: something was denied because nobody could be asked, or the last
/// thing that the model tried was denied and it stopped there.
fn gave_up_after_denial(session: &Session, denials: &[Denial]) -> bool {
    let unasked = denials.iter().any(|d| d.by == "nobody");
    let last = session.steps_of_turn().filter(|s| s.calls().next().is_some()).last();
    let was_denied = |o: &toolwright_session::Outcome| o.ending == Ending::Denied;
    unasked || last.is_some_and(|s| s.calls().filter_map(|c| c.outcome()).any(was_denied))
}

pub(crate) fn answer(session: &Session) -> Arc<str> {
    let Some(step) = session.last_step() else { return "".into() };
    let outcomes = step.calls().filter_map(|call| call.outcome());
    if let Some(answer) = outcomes.into_iter().find_map(|o| FinalAnswer::captured(&o.details)) {
        return answer.to_string().into();
    }
    let texts = step.blocks.iter().filter_map(|block| match block {
        StepBlock::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let texts: Vec<&str> = texts.collect();
    match texts.as_slice() {
        // The usual case, and the one that may be large: one copy.
        [only] => Arc::from(*only),
        several => several.join("\n").into(),
    }
}
