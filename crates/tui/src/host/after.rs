//! Going back: undo, redo, and an earlier message. The one place where the engine's own ways of doing
//! this are plugged in.

use toolwright::Engine;

pub(super) enum Step {
    Undo,
    Redo,
    /// To before the prompt with this number, counted from the session's first.
    BackTo(usize),
}

/// What was done, or why it was not.
pub(super) async fn step(engine: Option<&mut Engine>, step: Step) -> Result<String, String> {
    if engine.is_none() {
        return Err("There is nothing to take back yet".to_owned());
    }
    Err(match step {
        Step::Undo | Step::Redo => "Undo and redo are not available yet".to_owned(),
        Step::BackTo(number) => format!(
            "The text of message {} is in the prompt again. Going back in the conversation itself is \
             not available yet: what was said after it stays",
            number + 1
        ),
    })
}
