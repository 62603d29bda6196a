//! What people change in their files counts from the next prompt on.

use toolwright::permission::Mode;

use super::Host;
use crate::blocks::Level;

impl Host {
    pub(super) async fn renew(&mut self) {
        let renewed = match &mut self.desk {
            Some(table) => table.handover.refresh(&mut table.engine).await,
            None => match self.bench.renewed() {
                Ok(Some(mut next)) => {
                    let told = next.prepare(self.start.auto.then_some(Mode::Auto)).await;
                    next.take_servers(&self.bench).await;
                    self.bench = next;
                    Ok(Some(told))
                }
                Ok(None) => Ok(None),
                Err(problem) => Err(problem),
            },
        };
        match renewed {
            Ok(None) => {}
            Ok(Some(notices)) => {
                if let Some(table) = &self.desk {
                    self.bench = table.handover.bench().clone();
                }
                let text = "Your files have changed: what they say now counts from here on";
                self.say(Level::Quiet, text, None).await;
                for notice in notices {
                    self.say(Level::Notice, notice, None).await;
                }
            }
            Err(problem) => {
                let text = format!("Your files have changed and are not used: {problem}");
                let advice = "What counted before still does.";
                self.say(Level::Problem, text, Some(advice)).await;
            }
        }
    }
}
