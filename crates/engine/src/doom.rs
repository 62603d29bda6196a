//! Notices when a model goes round in circles: the same tool, the same arguments and the same result
//! again and again, across steps, with nothing new done in between.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use toolwright_session::{Ending, Outcome};
use toolwright_tool::canonical;

/// From here on it is a circle.
const TELL_AT: u32 = 3;
/// The model was told and went on.
const ASK_AT: u32 = 4;
/// Somebody let it go on, and it is still the same.
const STOP_AT: u32 = 7;

/// What to do about a call that has come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Circle {
    Tell { tool: String, times: u32 },
    Ask { tool: String, times: u32 },
    Stop { tool: String, times: u32 },
}

#[derive(Default)]
pub(crate) struct DoomGuard {
    seen: HashMap<u64, u32>,
    /// Everything that was done in this turn.
    ever: HashSet<u64>,
    /// The same call twice in one message is one round.
    this_step: HashSet<u64>,
}

impl DoomGuard {
    pub(crate) fn begin_step(&mut self) {
        self.this_step.clear();
    }

    /// Takes in one settled call.
    pub(crate) fn saw(
        &mut self,
        arguments: &str,
        outcome: &Outcome,
        effects: bool,
    ) -> Option<Circle> {
        // What never ran says nothing about the model.
        if matches!(outcome.ending, Ending::Skipped | Ending::Interrupted) {
            return None;
        }
        let key = signature(arguments, outcome);
        let is_new = self.ever.insert(key);
        if effects && outcome.ending == Ending::Completed && is_new {
            // Something new was done: what looks the same may now mean something else.
            self.seen.clear();
        }
        if !self.this_step.insert(key) {
            return None;
        }
        let times = self.seen.entry(key).or_insert(0);
        *times += 1;
        let (tool, times) = (outcome.tool.clone(), *times);
        match times {
            TELL_AT => Some(Circle::Tell { tool, times }),
            ASK_AT => Some(Circle::Ask { tool, times }),
            STOP_AT.. => Some(Circle::Stop { tool, times }),
            _ => None,
        }
    }
}

fn signature(arguments: &str, outcome: &Outcome) -> u64 {
    let mut hasher = DefaultHasher::new();
    outcome.tool.hash(&mut hasher);
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) => canonical(&value).hash(&mut hasher),
        Err(_) => arguments.hash(&mut hasher),
    }
    outcome.output.hash(&mut hasher);
    hasher.finish()
}

impl Circle {
    pub(crate) fn times(&self) -> u32 {
        let (Self::Tell { times, .. } | Self::Ask { times, .. } | Self::Stop { times, .. }) = self;
        *times
    }

    /// What the model is told.
    pub(crate) fn note(&self) -> String {
        let (Self::Tell { tool, times } | Self::Ask { tool, times } | Self::Stop { tool, times }) =
            self;
        format!(
            "You have made the same {tool} call {times} times with the same result. Doing it again will \
             not change anything: use what you know, try another way, or say what stands in the way."
        )
    }
}
