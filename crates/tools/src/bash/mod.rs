//! Runs shell commands, and lets them go on as jobs.

mod job_tools;
mod jobs;
mod keys;
mod login;
mod plain;
mod running;
mod sandboxed;
mod shell;

pub use job_tools::{BashInput, BashKill, BashOutput};
pub use jobs::{JOBS_CAP, JobInfo, Jobs};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_proc::sandbox::{Find, PutBack, Sandbox};
use toolwright_proc::{Spec, TerminalSize};
use toolwright_tool::{
    Access, Capture, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::question::PATIENCE;
use jobs::{Job, Place, details, how_it_ended, with_line};
use plain::Manner;
use running::{Finish, Running};

/// What a command may take when the model does not say.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);

/// How long ending a command may take once its time is up: it is asked first.
const END_GRACE: Duration = Duration::from_secs(10);

/// How long a command in the background is looked at before it is left to itself: a mistake in it
/// shows at once.
const FIRST_LOOK: Duration = Duration::from_millis(100);

/// How long a command with an input is waited for when nobody says: it will sooner or later wait
/// for us.
const INPUT_LOOK: Duration = Duration::from_secs(2);

/// Between two looks at a running command.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
const PROGRESS_BYTES: usize = 2_000;

pub struct Bash {
    shell: PathBuf,
    options: BashOptions,
}

#[derive(Clone, Default)]
pub struct BashOptions {
    /// The configured shell; else `$SHELL` where it is POSIX-like, else bash, else sh.
    pub shell: Option<String>,
    /// Variables that commands must not see: our own keys.
    pub withheld: Vec<String>,
    /// Variables that commands see although their names say that they are secret.
    pub passed: Vec<String>,
    /// What commands run in.
    pub sandbox: Option<Find>,
    /// Commands also see what a login shell of the user's sets.
    pub login_environment: bool,
    /// Where commands go on that are not waited for.
    pub jobs: Jobs,
    /// Further variables of a command in a folder, asked for before it starts.
    pub variables: Option<AskVariables>,
    /// Looks at what a command left in the workspace, and says what there is to say.
    pub after: Option<AfterCommand>,
}

pub type AfterCommand = Arc<dyn Fn(Ran) -> String + Send + Sync>;

/// Where a command ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    InSandbox,
    /// There is none, or a person let it out.
    Outside,
}

pub type AskVariables = Arc<dyn Fn(PathBuf) -> Variables + Send + Sync>;

type Variables = Pin<Box<dyn Future<Output = BTreeMap<String, String>> + Send>>;

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// The command.
    command: String,
    /// Milliseconds after which it is ended; not for jobs.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// The folder to run it in; the working directory unless given.
    #[serde(default)]
    workdir: Option<String>,
    /// What it does, in a few words.
    #[serde(default)]
    description: Option<String>,
    /// Make it a job at once.
    #[serde(default)]
    run_in_background: Option<bool>,
    /// Seconds after which it becomes a job if it still runs.
    #[serde(default, rename = "yield")]
    yield_after: Option<u32>,
    /// Give it a terminal, for programs that ask for one.
    #[serde(default)]
    pty: Option<bool>,
    /// Leave its input open for bash_input.
    #[serde(default)]
    stdin: Option<bool>,
    /// Run it without the sandbox; a person is asked.
    #[serde(default)]
    outside: Option<bool>,
}

pub struct Prepared {
    command: String,
    /// For people; the command itself says more.
    description: Option<String>,
    directory: PathBuf,
    patience: Patience,
    input: Input,
    /// What it runs in, unless it is to run outside.
    sandbox: Option<Arc<Sandbox>>,
}

/// How long a command is waited for, and what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    End(Duration),
    Job(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Empty,
    Open,
    Terminal,
}

impl Bash {
    pub fn new(options: BashOptions) -> Self {
        Self { shell: shell::choose(options.shell.as_deref()), options }
    }
}

impl Tool for Bash {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "bash"
    }

    fn description(&self) -> &str {
        include_str!("bash.md")
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let patience = arguments.patience(context.deadline);
        let input = arguments.input();
        let sandbox = self.options.sandbox.as_ref().map_or(Ok(None), Find::find);
        let Arguments { command, workdir, description, outside, .. } = arguments;
        let directory = context.workspace.resolve(workdir.as_deref().unwrap_or("."));
        let access = Access::Execute { command: command.clone(), directory: directory.clone() };
        let (Patience::End(limit) | Patience::Job(limit)) = patience;
        let mut plan = Plan::new(command.clone(), vec![access]).within(limit + END_GRACE);
        let (sandbox, refused) = match sandbox {
            Ok(sandbox) => (sandbox, None),
            Err(problem) => (None, Some(format!("Commands cannot run: {problem}."))),
        };
        // Where there is no sandbox, every command runs outside, and is asked about as such.
        let sandbox = match sandbox {
            Some(_) if outside == Some(true) => {
                plan = plan.outside_sandbox();
                None
            }
            sandbox => sandbox,
        };
        if sandbox.is_some() {
            // It may run twice, with a person who thinks about it in between.
            plan = plan.within((limit + END_GRACE) * 2 + PATIENCE);
        }
        // What cannot be put back afterwards is not held.
        let leaks = |sandbox: &Arc<Sandbox>| !sandbox.unwatched().is_ok_and(|all| all.is_empty());
        if sandbox.as_ref().is_some_and(leaks) {
            plan = plan.leaking();
        }
        let problem = if command.trim().is_empty() {
            Some("The command is empty.".to_owned())
        } else if command.contains('\0') {
            Some("The command holds a NUL character, which no shell takes.".to_owned())
        } else if !directory.is_dir() {
            Some(format!("There is no folder {} to run the command in.", directory.display()))
        } else {
            refused
        };
        if let Some(text) = problem {
            return Planned::failed(plan, ToolError::for_model(text));
        }
        let prepared = Prepared { command, description, directory, patience, input, sandbox };
        Planned::ready(plan, prepared)
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let place = match call.patience {
            Patience::End(_) => None,
            Patience::Job(_) => Some(self.options.jobs.reserve()?),
        };
        let (mut spec, problem) = self.spec(&call).await;
        if let Some(sandbox) = &call.sandbox {
            spec = spec.fenced(Arc::clone(sandbox));
        }
        let started = Instant::now();
        let ran = if call.sandbox.is_some() { Ran::InSandbox } else { Ran::Outside };
        let after = |ran: Ran| self.options.after.clone().map(|after| (after, ran));
        let (mut running, mut end) = attempt(&spec, &call, &context, after(ran)).await?;
        let mut left_sandbox = false;
        let mut put_back = PutBack::default();
        if let Some(stopped) = sandboxed::stopped(&call, &end, &running) {
            put_back.add(running.take_put_back());
            let asked = sandboxed::ask(&call, &stopped, &running, &end, &context).await;
            asked.map_err(|error| sandboxed::told_with(error, &put_back))?;
            left_sandbox = true;
            (running, end) =
                attempt(&spec.unfenced(), &call, &context, after(Ran::Outside)).await?;
        }
        put_back.add(running.take_put_back());
        let noted = running.noted();
        let mut output = match (end, place) {
            (End::StillRunning, Some(place)) => begin_job(place, call.command, running, started),
            (end, _) => told(&end, &running, call.patience).titled(call.command),
        };
        if left_sandbox {
            output.output.push_str(sandboxed::LEFT);
        }
        sandboxed::tell(&mut output, &put_back);
        output.output.push_str(&noted);
        sandboxed::tell_late(&mut output);
        output.details["sandbox"] = match &call.sandbox {
            Some(sandbox) if !left_sandbox => json!(sandbox.layer.name()),
            _ => json!(null),
        };
        if let Some(description) = call.description {
            output.details["description"] = json!(description);
        }
        if let Some(problem) = problem {
            output.details["loginEnvironment"] = json!(problem);
        }
        Ok(output)
    }
}

impl Bash {
    /// What to start, and why the login environment is missing from it, if it is.
    async fn spec(&self, call: &Prepared) -> (Spec, Option<String>) {
        let answer = match self.options.login_environment {
            true => login::environment(&self.shell, &self.options.withheld).await,
            false => None,
        };
        let (found, problem) = match answer {
            Some(Ok(found)) => (Some(found), None),
            Some(Err(problem)) => (None, Some(problem)),
            None => (None, None),
        };
        let mut spec = Spec::new(&self.shell, &call.directory).arg("-c").arg(&call.command);
        spec.environment = shell::environment(found.as_deref(), &self.options.passed);
        if let Some(variables) = &self.options.variables {
            spec.environment.extend(variables(call.directory.clone()).await);
        }
        spec.withheld.clone_from(&self.options.withheld);
        spec.passed.clone_from(&self.options.passed);
        let spec = match call.input {
            Input::Empty => spec,
            Input::Open => spec.open_input(),
            Input::Terminal => spec.terminal(TerminalSize::default()),
        };
        (spec, problem)
    }
}

impl Arguments {
    fn patience(&self, usual: Duration) -> Patience {
        if self.run_in_background == Some(true) {
            return Patience::Job(FIRST_LOOK);
        }
        if let Some(seconds) = self.yield_after {
            let seconds = Duration::from_secs(seconds.into());
            return Patience::Job(seconds.clamp(FIRST_LOOK, LONGEST_TIMEOUT));
        }
        if self.input() != Input::Empty {
            return Patience::Job(INPUT_LOOK);
        }
        let asked = self.timeout.map(Duration::from_millis).unwrap_or(usual);
        Patience::End(asked.min(LONGEST_TIMEOUT))
    }

    fn input(&self) -> Input {
        match (self.pty, self.stdin) {
            (Some(true), _) => Input::Terminal,
            (_, Some(true)) => Input::Open,
            _ => Input::Empty,
        }
    }
}

impl Input {
    fn manner(self) -> Manner {
        match self {
            Self::Terminal => Manner::Terminal,
            Self::Empty | Self::Open => Manner::Pipe,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Ended(Finish),
    TimedOut,
    Aborted,
    StillRunning,
}

/// Starts it and waits for as long as it should.
async fn attempt(
    spec: &Spec,
    call: &Prepared,
    context: &RunContext,
    after: Option<(AfterCommand, Ran)>,
) -> Result<(Running, End), ToolError> {
    let child = spec.spawn().map_err(|e| ToolError::for_model(e.to_string()))?;
    let capture = Capture::new(context.outputs.clone());
    let running = Running::new(child, capture, call.input.manner(), after);
    let end = watch(&running, call.patience, context).await;
    Ok((running, end))
}

/// Waits for as long as it should, and tells how things stand meanwhile.
async fn watch(running: &Running, patience: Patience, context: &RunContext) -> End {
    let (Patience::End(limit) | Patience::Job(limit)) = patience;
    let time = tokio::time::sleep(limit);
    tokio::pin!(time);
    let mut tick = tokio::time::interval(PROGRESS_EVERY);
    tick.reset();
    let mut reported = 0;
    loop {
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                running.kill().await;
                return End::Aborted;
            }
            // Without a word on how: its supervisor is gone, and so is the command.
            finish = running.finish() => return finish.map_or(End::Aborted, End::Ended),
            () = &mut time => match patience {
                Patience::Job(_) => return End::StillRunning,
                Patience::End(_) => {
                    running.end().await;
                    return End::TimedOut;
                }
            },
            _ = tick.tick() => {
                let bytes = running.news().bytes;
                if bytes > reported {
                    reported = bytes;
                    context.progress.update(running.capture().recent(PROGRESS_BYTES));
                }
            }
        }
    }
}

/// The answer to a call whose command is over.
fn told(end: &End, running: &Running, patience: Patience) -> ToolOutput {
    let captured = running.capture().text();
    let (line, exit) = match end {
        End::Ended(finish) => (how_it_ended(finish), Some(finish.exit_code())),
        End::TimedOut | End::StillRunning => (timed_out(patience), None),
        End::Aborted => ("User aborted the command".to_owned(), None),
    };
    let mut details = details(&captured, exit);
    if let End::Ended(Finish { left_running: true, .. }) = end {
        details["leftRunning"] = json!(true);
    }
    let text = with_line(captured.text, "(no output)", &line);
    let output = jobs::output(text).with_details(details);
    ToolOutput { interrupted: *end == End::Aborted, ..output }
}

fn timed_out(patience: Patience) -> String {
    let (Patience::End(limit) | Patience::Job(limit)) = patience;
    format!(
        "ended after exceeding timeout {} ms; if it needs longer, retry with a larger timeout value in milliseconds",
        limit.as_millis()
    )
}

fn begin_job(place: Place, command: String, running: Running, started: Instant) -> ToolOutput {
    let job = place.fill(command, running, started);
    let mut output = job.look();
    output.output.push_str(&advice(&job));
    output
}

fn advice(job: &Job) -> String {
    format!(
        "\nIt goes on as a job: bash_output {{\"id\": \"{0}\"}} tells what is new, bash_kill ends it. \
         It ends with this session.",
        job.id
    )
}

#[cfg(test)]
mod tests;
