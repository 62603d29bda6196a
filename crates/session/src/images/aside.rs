//! What is changed beside calls, by those who look in: hooks of plugins. It is told with the next thing
//! that the log is told of files, and belongs to the newest message by then.

use std::sync::PoisonError;

use super::change::Changed;
use super::keeper::{Keeper, Reach, Ticket};

impl Keeper {
    /// Before such a change. Its before-images are kept when this returns.
    pub async fn before_aside(&self, reach: Reach) -> Ticket {
        let (ticket, log) = self.before(reach).await;
        self.aside.lock().unwrap_or_else(PoisonError::into_inner).extend(log);
        ticket
    }

    pub async fn after_aside(&self, ticket: Ticket) {
        let changed = self.after(ticket, false).await;
        self.aside.lock().unwrap_or_else(PoisonError::into_inner).extend(changed);
    }

    /// What is to be told by now.
    pub fn take_aside(&self) -> Vec<Changed> {
        let waiting =
            std::mem::take(&mut *self.aside.lock().unwrap_or_else(PoisonError::into_inner));
        let turn = self.turn();
        waiting.into_iter().map(|changed| Changed { turn, ..changed }).collect()
    }
}
