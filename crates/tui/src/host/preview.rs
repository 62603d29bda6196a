//! A look at what is under the cursor of a list. A session may be long, and one who walks through a list wants the
//! last of them: on a thread of its own, one at a time, and those in between are left out.

use std::sync::{Arc, PoisonError};

use super::{Host, lists};
use crate::app::{Input, News};

#[derive(Debug, Default)]
pub(super) struct Wanted {
    next: Option<String>,
    at_work: bool,
}

impl Host {
    pub(super) fn preview(&self, value: String) {
        let wanted = Arc::clone(&self.wanted);
        {
            let mut wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
            wanted.next = Some(value);
            if std::mem::replace(&mut wanted.at_work, true) {
                return;
            }
        }
        let (bench, ui) = (self.bench.clone(), self.ui.clone());
        self.spawn(async move {
            loop {
                let next = {
                    let mut wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
                    let next = wanted.next.take();
                    wanted.at_work = next.is_some();
                    next
                };
                let Some(value) = next else { return };
                let (bench, of) = (bench.clone(), value.clone());
                let look = tokio::task::spawn_blocking(move || lists::preview(&bench, &of));
                // What cannot be looked at has no preview.
                let text = look.await.unwrap_or_default();
                ui.send(Input::News(Box::new(News::Preview { value, text }))).await.ok();
            }
        });
    }
}
