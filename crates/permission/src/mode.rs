//! How much is done without a question: a word for the whole run that people can change while it
//! goes on. A mode never lifts a *deny*, nor the floor.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};

use crate::rule::Rule;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As the rules say.
    #[default]
    Ask,
    /// Files inside the workspace are changed without a question.
    AcceptEdits,
    /// Nothing is changed and nothing is run but what only reads.
    Plan,
    /// Every *ask* becomes *allow*.
    Auto,
}

impl Mode {
    pub const ALL: [Self; 4] = [Self::Ask, Self::AcceptEdits, Self::Plan, Self::Auto];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Auto => "auto",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|mode| mode.as_str() == word);
        known.ok_or_else(|| format!("there is no mode {word:?}: ask, accept-edits, plan or auto"))
    }
}

/// The mode of a run, shared by an agent and all who work for it: whoever changes it changes it for
/// all of them at once.
#[derive(Debug, Clone, Default)]
pub struct ModeCell(Arc<AtomicU8>);

impl ModeCell {
    pub fn new(mode: Mode) -> Self {
        let cell = Self::default();
        cell.set(mode);
        cell
    }

    pub fn get(&self) -> Mode {
        Mode::ALL.get(usize::from(self.0.load(Ordering::Acquire))).copied().unwrap_or_default()
    }

    /// The mode before.
    pub fn set(&self, mode: Mode) -> Mode {
        let before = self.get();
        let place = Mode::ALL.iter().position(|m| *m == mode).unwrap_or_default();
        self.0.store(u8::try_from(place).unwrap_or_default(), Ordering::Release);
        before
    }
}

/// How strictly a run takes the rules, as whoever started it said.
#[derive(Debug, Clone, Default)]
pub struct Stance {
    pub mode: ModeCell,
    /// Not even the floor holds. For machines that can be thrown away.
    pub everything: bool,
    /// Rules for this run alone, inside all others.
    pub rules: Vec<Rule>,
}

impl From<Mode> for Stance {
    fn from(mode: Mode) -> Self {
        Self { mode: ModeCell::new(mode), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_known_by_one_word_everywhere() {
        for mode in Mode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
            assert_eq!(ModeCell::new(mode).get(), mode);
        }
        assert!("yolo".parse::<Mode>().is_err());
    }

    #[test]
    fn those_who_share_a_cell_share_the_mode() {
        let cell = ModeCell::new(Mode::Ask);
        let other = cell.clone();
        assert_eq!(cell.set(Mode::Plan), Mode::Ask);
        assert_eq!(other.get(), Mode::Plan);
    }
}
