//! Looking at a job, answering it and ending it.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolwright_tool::{
    Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use super::jobs::{Job, Jobs};
use super::keys;
use super::plain::Manner;
use super::running::InputProblem;

/// The longest that a look may wait.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// What a call may take beside its waiting.
const SLACK: Duration = Duration::from_secs(20);

/// How long a job has to answer when nobody says.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Silence after which an answer is taken as whole.
const QUIET: Duration = Duration::from_millis(60);

/// After its first words it may say more for as long as this.
const SETTLE: Duration = Duration::from_millis(500);

pub struct BashOutput(pub Jobs);
pub struct BashInput(pub Jobs);
pub struct BashKill(pub Jobs);

#[derive(Deserialize, JsonSchema)]
pub struct OutputArguments {
    /// The job.
    id: String,
    /// Seconds to wait for something new or the end.
    #[serde(default)]
    wait: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
pub struct InputArguments {
    /// The job.
    id: String,
    /// What to write.
    #[serde(default)]
    text: Option<String>,
    /// End the text with the enter key; so it is unless this is false.
    #[serde(default)]
    enter: Option<bool>,
    /// Keys to press after that, such as ctrl-c, ctrl-d, up, tab.
    #[serde(default)]
    keys: Option<Vec<String>>,
    /// Seconds to wait for the answer, 1 unless given.
    #[serde(default)]
    wait: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
pub struct KillArguments {
    /// The job.
    id: String,
}

impl Tool for BashOutput {
    type Arguments = OutputArguments;
    type Prepared = (Arc<Job>, Duration);

    fn name(&self) -> &str {
        "bash_output"
    }

    fn description(&self) -> &str {
        include_str!("bash_output.md")
    }

    /// Where no command may be run, there are no jobs.
    fn permission(&self) -> &str {
        "bash"
    }

    async fn plan(&self, call: OutputArguments, _: &PlanContext) -> Planned<Self::Prepared> {
        let wait = wait(call.wait, Duration::ZERO);
        let plan = plan_of(&self.0, &call.id, own_job("bash_output", &call.id), wait);
        Planned { plan, prepared: self.0.find(&call.id).map(|job| (job, wait)) }
    }

    async fn run(
        &self,
        (job, wait): Self::Prepared,
        context: RunContext,
    ) -> Result<ToolOutput, ToolError> {
        Ok(look_after(&job, wait, &context.cancel).await)
    }
}

impl Tool for BashInput {
    type Arguments = InputArguments;
    type Prepared = (Arc<Job>, Vec<Stroke>, Duration);

    fn name(&self) -> &str {
        "bash_input"
    }

    fn description(&self) -> &str {
        include_str!("bash_input.md")
    }

    fn permission(&self) -> &str {
        "bash"
    }

    async fn plan(&self, call: InputArguments, _: &PlanContext) -> Planned<Self::Prepared> {
        let wait = wait(call.wait, ANSWER_WAIT);
        let prepared = self.0.find(&call.id).and_then(|job| {
            let strokes = strokes(&call, job.running.manner())?;
            Ok((job, strokes, wait))
        });
        // What cannot be typed is not asked for; why it cannot is no secret.
        let access = match &prepared {
            Ok(_) => Access::Type { job: call.id.clone(), text: shown(&call) },
            Err(_) => own_job("bash_output", &call.id),
        };
        Planned { plan: plan_of(&self.0, &call.id, access, wait), prepared }
    }

    async fn run(
        &self,
        (job, strokes, wait): Self::Prepared,
        context: RunContext,
    ) -> Result<ToolOutput, ToolError> {
        for stroke in &strokes {
            let written = match stroke {
                Stroke::Bytes(bytes) => tokio::select! {
                    written = job.running.write(bytes) => written,
                    () = context.cancel.cancelled() => break,
                },
                Stroke::Close => {
                    job.running.close_input().await;
                    Ok(())
                }
            };
            if let Err(problem) = written {
                return Err(ToolError::for_model(refusal(&job, problem)));
            }
        }
        Ok(look_after(&job, wait, &context.cancel).await)
    }
}

impl Tool for BashKill {
    type Arguments = KillArguments;
    type Prepared = Arc<Job>;

    fn name(&self) -> &str {
        "bash_kill"
    }

    fn description(&self) -> &str {
        include_str!("bash_kill.md")
    }

    fn permission(&self) -> &str {
        "bash"
    }

    async fn plan(&self, call: KillArguments, _: &PlanContext) -> Planned<Self::Prepared> {
        let access = own_job("bash_kill", &call.id);
        let plan = plan_of(&self.0, &call.id, access, Duration::ZERO);
        Planned { plan, prepared: self.0.find(&call.id) }
    }

    async fn run(&self, job: Arc<Job>, context: RunContext) -> Result<ToolOutput, ToolError> {
        tokio::select! {
            _ = job.running.end() => {}
            // No time to ask it first.
            () = context.cancel.cancelled() => {
                job.running.kill().await;
            }
        }
        job.running.clear().await;
        Ok(job.look())
    }
}

/// The session's own job: looking at it or ending it harms nobody else. A look is not only reading:
/// what it has told is not new any more. So it must not be begun before the answer that asks for it
/// is on record, and two looks keep their order.
fn own_job(permission: &str, id: &str) -> Access {
    let (permission, pattern) = (permission.to_owned(), id.to_owned());
    Access::Custom { permission, pattern, read_only: false }
}

fn plan_of(jobs: &Jobs, id: &str, access: Access, wait: Duration) -> Plan {
    let summary = match jobs.find(id) {
        Ok(job) => format!("{id}: {}", job.command),
        Err(_) => id.to_owned(),
    };
    Plan::new(summary, vec![access]).within(wait + SLACK)
}

fn wait(asked: Option<u32>, usual: Duration) -> Duration {
    asked.map_or(usual, |seconds| Duration::from_secs(seconds.into())).min(LONGEST_WAIT)
}

/// Waits for something new, lets it come to rest, and tells it.
async fn look_after(job: &Job, wait: Duration, cancel: &CancellationToken) -> ToolOutput {
    let seen = job.seen();
    let patience = async {
        let Ok(mut news) = tokio::time::timeout(wait, job.running.more_than(seen)).await else {
            return;
        };
        let until = Instant::now() + SETTLE.min(wait);
        while news.finish.is_none() && Instant::now() < until {
            let more = job.running.more_than(news.bytes);
            match tokio::time::timeout(QUIET, more).await {
                Ok(newer) => news = newer,
                Err(_) => break,
            }
        }
    };
    let interrupted = tokio::select! {
        () = patience => false,
        () = cancel.cancelled() => true,
    };
    ToolOutput { interrupted, ..job.look() }
}

pub enum Stroke {
    Bytes(Vec<u8>),
    /// The end of an input that is no terminal.
    Close,
}

fn strokes(call: &InputArguments, manner: Manner) -> Result<Vec<Stroke>, ToolError> {
    let mut strokes = Vec::new();
    if let Some(text) = &call.text {
        let mut bytes = text.clone().into_bytes();
        if call.enter.unwrap_or(true) {
            bytes.push(if manner == Manner::Terminal { b'\r' } else { b'\n' });
        }
        strokes.push(Stroke::Bytes(bytes));
    } else if call.enter == Some(true) {
        strokes.push(Stroke::Bytes(vec![b'\n']));
    }
    for name in call.keys.iter().flatten() {
        let bytes = keys::bytes_of(name).ok_or_else(|| {
            ToolError::for_model(format!("There is no key {name:?}. Keys are: {}.", keys::NAMES))
        })?;
        strokes.push(match (manner, bytes.as_slice()) {
            (Manner::Terminal, _) => Stroke::Bytes(bytes),
            (Manner::Pipe, b"\x04") => Stroke::Close,
            (Manner::Pipe, b"\r") => Stroke::Bytes(vec![b'\n']),
            (Manner::Pipe, b"\t" | b" ") => Stroke::Bytes(bytes),
            (Manner::Pipe, _) => {
                return Err(ToolError::for_model(format!(
                    "The key {name} means something to a terminal only, and this job has none. \
                     Start the command again with `pty: true`; to end the job use bash_kill."
                )));
            }
        });
    }
    if strokes.is_empty() {
        return Err(ToolError::for_model("There is nothing to write: give `text` or `keys`."));
    }
    Ok(strokes)
}

/// What would be typed, for people and for rules.
fn shown(call: &InputArguments) -> String {
    let keys = call.keys.iter().flatten().map(|key| format!("<{key}>"));
    let words = call.text.iter().filter(|text| !text.is_empty()).cloned().chain(keys);
    let text = words.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "<enter>".to_owned() } else { text }
}

fn refusal(job: &Job, problem: InputProblem) -> String {
    let id = &job.id;
    match problem {
        InputProblem::None if !job.is_running() => {
            format!("The job {id} has ended. bash_output tells how.")
        }
        InputProblem::None => format!(
            "The job {id} has no input, or it was closed. Start the command again with `pty: true` \
             (a terminal) or `stdin: true` (a pipe)."
        ),
        InputProblem::Closed => {
            format!("The job {id} reads nothing any more. bash_output tells how it stands.")
        }
        InputProblem::Full => {
            format!(
                "The job {id} does not read: a part of the text may have been taken. Look at it with bash_output."
            )
        }
    }
}
