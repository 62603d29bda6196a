//! A folder that nobody has said anything about: asked once, before anything of it is used.

use toolwright::config::TrustState;
use toolwright::{SetupError, Workbench};

use super::Host;
use crate::app::{News, Order, Trust};
use crate::blocks::Level;

impl Host {
    /// Waits for the answer where there is something to ask. What was ordered meanwhile is given back.
    pub(super) async fn ask_for_trust(&mut self) -> Result<Vec<Order>, SetupError> {
        let mut later = Vec::new();
        let Some(trust) = question(&self.bench) else { return Ok(later) };
        self.tell(News::Trust(trust)).await;
        while let Some(order) = self.orders.recv().await {
            match order {
                Order::Trust(answer) => {
                    self.trust(answer).await?;
                    break;
                }
                other => later.push(other),
            }
        }
        Ok(later)
    }

    async fn trust(&mut self, answer: Option<bool>) -> Result<(), SetupError> {
        let Some(agreed) = answer else { return Ok(()) };
        let workspace = &self.bench.workspace;
        let (directory, worktree) = (workspace.directory(), workspace.worktree());
        let kept = self.bench.trust_store().decide(directory, worktree, agreed);
        if let Err(problem) = kept {
            self.say(Level::Problem, format!("The answer cannot be kept: {problem}"), None).await;
        }
        if agreed {
            self.bench = Workbench::open(&self.start.directory, true)?;
        }
        Ok(())
    }
}

fn question(bench: &Workbench) -> Option<Trust> {
    let left_out = &bench.config.left_out;
    if bench.is_trusted || left_out.is_empty() || bench.trust == TrustState::Refused {
        return None;
    }
    let worktree = bench.workspace.worktree();
    let wants = left_out.iter().map(|left| {
        let shown = left.path.strip_prefix(worktree).unwrap_or(&left.path);
        (shown.display().to_string(), left.what.join(", "))
    });
    let changed = match &bench.trust {
        TrustState::Changed { files, was_trusted: true } => files.clone(),
        _ => Vec::new(),
    };
    Some(Trust { folder: worktree.display().to_string(), changed, wants: wants.collect() })
}
