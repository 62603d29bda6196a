//! What a turn may cost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a turn may cost. Running out of it ends with a summary, not with a cut.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Requests to the model.
    pub steps: usize,
    pub time: Option<Duration>,
    /// Money, together with everybody who shares it.
    pub purse: Arc<Purse>,
}

impl Default for Budget {
    fn default() -> Self {
        // Enough for the longest honest work; a model in a circle is noticed long before.
        Self { steps: 2_000, time: None, purse: Arc::default() }
    }
}

/// US dollars that an agent and those who work for it may spend on a turn. Counts only where the
/// price is known.
#[derive(Debug, Default)]
pub struct Purse {
    limit: Option<f64>,
    spent: Mutex<f64>,
}

impl Purse {
    pub fn new(limit: Option<f64>) -> Arc<Self> {
        Arc::new(Self { limit, spent: Mutex::default() })
    }

    /// For models that are asked beside the turn's own.
    pub fn spend(&self, dollars: f64) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += dollars;
    }

    pub fn is_empty(&self) -> bool {
        let spent = *self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        self.limit.is_some_and(|limit| spent >= limit)
    }

    /// A new turn has the whole amount again.
    pub(crate) fn refill(&self) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) = 0.0;
    }
}
