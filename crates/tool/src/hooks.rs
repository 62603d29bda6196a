//! Where others may look at a call, before it is planned and after it has run.

use futures_util::future::BoxFuture;
use serde_json::Value;
use toolwright_session::Outcome;

/// Which call it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookedCall {
    /// The id that the model gave it.
    pub id: String,
    /// The tool's registered name.
    pub tool: String,
    /// What was said before it ran and belongs to its result.
    pub context: Vec<String>,
}

/// What a look before a call came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Before {
    /// Goes on, perhaps with other arguments. They are validated again.
    Go { arguments: Value, hint: Hint, context: Vec<String> },
    /// Does not run; the model is told why.
    Block { reason: String },
}

/// What a hook says about permission. It never lifts a *deny*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Hint {
    #[default]
    Nothing,
    /// Stands in for a person's yes.
    Allow,
    /// A guard failed: what the rules allow is asked about, as if they asked.
    Failed,
    /// A person should see it, even if the rules do not ask.
    Ask,
}

/// Must not fail: what goes wrong in a hook is decided by its own setting.
pub trait CallHooks: Send + Sync {
    fn before<'a>(&'a self, call: &'a HookedCall, arguments: Value) -> BoxFuture<'a, Before>;
    fn after<'a>(
        &'a self,
        call: &'a HookedCall,
        arguments: &'a Value,
        outcome: Outcome,
    ) -> BoxFuture<'a, Outcome>;
}
