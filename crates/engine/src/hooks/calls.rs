//! The two looks at a call, in the pipeline's form.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolwright_session::{Ending, Outcome};
use toolwright_tool::{Before, CallHooks, HookedCall};

use super::{Hooks, Point};

impl CallHooks for Hooks {
    fn before<'a>(&'a self, call: &'a HookedCall, arguments: Value) -> BoxFuture<'a, Before> {
        async move {
            let input = json!({ "tool": call.tool, "callID": call.id });
            let mut ran = self.run(Point::ToolBefore, &input, json!({ "args": arguments })).await;
            match ran.block {
                Some(reason) => Before::Block { reason },
                None => Before::Go {
                    arguments: ran.output["args"].take(),
                    hint: ran.hint,
                    context: ran.context,
                },
            }
        }
        .boxed()
    }

    fn after<'a>(
        &'a self,
        call: &'a HookedCall,
        arguments: &'a Value,
        mut outcome: Outcome,
    ) -> BoxFuture<'a, Outcome> {
        async move {
            let mut said = call.context.clone();
            if !self.any(Point::ToolAfter) {
                return with_words(outcome, said);
            }
            let failed = outcome.ending != Ending::Completed;
            let input = json!({
                "tool": call.tool, "callID": call.id, "args": arguments, "failed": failed,
            });
            let output = json!({
                "title": outcome.title, "output": outcome.output, "metadata": outcome.details,
            });
            let mut ran = self.run(Point::ToolAfter, &input, output).await;
            let text = |value: &Value| value.as_str().map(str::to_owned);
            if let Some(title) = text(&ran.output["title"]) {
                outcome.title = title;
            }
            if let Some(output) = text(&ran.output["output"]) {
                outcome.output = output;
            }
            outcome.details = ran.output["metadata"].take();
            // The call has happened: all that a hook can still do is to say what it thinks of it.
            said.extend(ran.block.into_iter().chain(ran.context));
            with_words(outcome, said)
        }
        .boxed()
    }
}

fn with_words(mut outcome: Outcome, said: Vec<String>) -> Outcome {
    for words in said {
        outcome.output.push_str(&format!("\n\n(A hook says: {words})"));
    }
    outcome
}
