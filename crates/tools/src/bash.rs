//! Runs shell commands.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::Instant;
use toolwright_proc::{Child, Ended, Spec};
use toolwright_tool::{
    Access, Capture, OUTPUT_CAP_BYTES, Plan, PlanContext, Planned, RunContext, Tool, ToolError,
    ToolOutput,
};

/// What a command may take when the model does not say.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);

/// How long ending a command may take once its time is up: it is asked first.
const END_GRACE: Duration = Duration::from_secs(10);

/// How long output is waited for after the command itself has ended: something that it left in the
/// background may hold the pipe open for ever.
const DRAIN_GRACE: Duration = Duration::from_millis(200);

/// Room for what is said about an output that was cut.
const NOTICE_BYTES: usize = 2 << 10;

/// Between two looks at a running command.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
const PROGRESS_BYTES: usize = 2_000;

/// What makes programs behave without a terminal.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
];

pub struct Bash {
    shell: PathBuf,
    options: BashOptions,
}

#[derive(Debug, Clone, Default)]
pub struct BashOptions {
    /// The configured shell; else `$SHELL` where it is POSIX-like, else bash, else sh.
    pub shell: Option<String>,
    /// Variables that commands must not see: our own keys.
    pub withheld: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// The command.
    command: String,
    /// Milliseconds after which it is ended.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// The folder to run it in; the working directory unless given.
    #[serde(default)]
    workdir: Option<String>,
}

pub struct Prepared {
    command: String,
    directory: PathBuf,
    timeout: Duration,
}

impl Bash {
    pub fn new(options: BashOptions) -> Self {
        Self { shell: choose_shell(options.shell.as_deref()), options }
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
        let Arguments { command, timeout, workdir } = arguments;
        let directory = context.workspace.resolve(workdir.as_deref().unwrap_or("."));
        let access = Access::Execute { command: command.clone(), directory: directory.clone() };
        let asked = timeout.map(Duration::from_millis).unwrap_or(context.deadline);
        let timeout = asked.min(LONGEST_TIMEOUT);
        let plan = Plan::new(command.clone(), vec![access]).within(timeout + END_GRACE);
        let problem = if command.trim().is_empty() {
            Some("The command is empty.".to_owned())
        } else if command.contains('\0') {
            Some("The command holds a NUL character, which no shell takes.".to_owned())
        } else if !directory.is_dir() {
            Some(format!("There is no folder {} to run the command in.", directory.display()))
        } else {
            None
        };
        if let Some(text) = problem {
            return Planned::failed(plan, ToolError::for_model(text));
        }
        Planned::ready(plan, Prepared { command, directory, timeout })
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let Prepared { command, directory, timeout } = call;
        let mut spec = Spec::new(&self.shell, &directory).arg("-c").arg(&command);
        for (name, value) in ENVIRONMENT {
            spec = spec.env(name, value);
        }
        if std::env::var_os("LANG").is_none() && std::env::var_os("LC_ALL").is_none() {
            spec = spec.env("LANG", "C.UTF-8");
        }
        spec.withheld.clone_from(&self.options.withheld);
        let mut child = spec.spawn().map_err(|e| ToolError::for_model(e.to_string()))?;
        let mut capture = Capture::new(context.outputs.clone());
        let end = watch(&mut child, &mut capture, timeout, &context).await;
        let captured = capture.finish();
        let mut text = captured.text;
        if text.is_empty() {
            text.push_str("(no output)");
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{}]", describe(&end, timeout)));
        let details = json!({
            "exit": end.exit_code(), "truncated": captured.cut, "outputPath": captured.path,
            "bytes": captured.total_bytes,
        });
        Ok(ToolOutput {
            // Bytes that are no text grow when they are shown.
            fitted: text.len() <= OUTPUT_CAP_BYTES + NOTICE_BYTES,
            interrupted: matches!(end, End::Aborted),
            ..ToolOutput::text(text).titled(command).with_details(details)
        })
    }
}

enum End {
    Ended { how: Ended, left_running: bool },
    TimedOut,
    Aborted,
}

impl End {
    fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Ended { how: Ended::Exit(code), .. } => Some(*code),
            // What a shell would report.
            Self::Ended { how: Ended::Signal(signal), .. } => Some(128 + signal),
            Self::TimedOut | Self::Aborted => None,
        }
    }
}

fn describe(end: &End, timeout: Duration) -> String {
    match end {
        End::Ended { how, left_running } => {
            let how = match how {
                Ended::Exit(code) => format!("exit code {code}"),
                Ended::Signal(signal) => format!("ended by signal {signal}"),
            };
            let left =
                "; it left something running in the background, which ends with this session";
            if *left_running { format!("{how}{left}") } else { how }
        }
        End::TimedOut => format!(
            "ended after exceeding timeout {} ms; if it needs longer, retry with a larger timeout value in milliseconds",
            timeout.as_millis()
        ),
        End::Aborted => "User aborted the command".to_owned(),
    }
}

/// Takes in the output until the command has ended, one way or another.
async fn watch(
    child: &mut Child,
    capture: &mut Capture,
    timeout: Duration,
    context: &RunContext,
) -> End {
    let deadline = Instant::now() + timeout;
    let Some(mut output) = child.output() else {
        return End::Ended { how: child.wait().await, left_running: false };
    };
    let mut buffer = vec![0; 64 << 10];
    let mut tick = tokio::time::interval_at(Instant::now() + PROGRESS_EVERY, PROGRESS_EVERY);
    let mut open = true;
    let mut reported = 0;
    let mut total = 0;
    loop {
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                child.kill().await;
                drain(&mut output, capture, &mut buffer).await;
                return End::Aborted;
            }
            () = tokio::time::sleep_until(deadline) => {
                child.end().await;
                drain(&mut output, capture, &mut buffer).await;
                return End::TimedOut;
            }
            got = output.read(&mut buffer), if open => match got {
                Ok(0) | Err(_) => open = false,
                Ok(count) => {
                    total += count;
                    capture.push(&buffer[..count]);
                }
            },
            how = child.wait() => {
                let ended = !open || drain(&mut output, capture, &mut buffer).await;
                if !ended {
                    child.keep_reading(output);
                }
                return End::Ended { how, left_running: child.left_something() };
            }
            _ = tick.tick() => {
                if total > reported {
                    reported = total;
                    context.progress.update(capture.recent(PROGRESS_BYTES));
                }
            }
        }
    }
}

/// Reads what is left in the pipe. Says whether it came to its end.
async fn drain(output: &mut pipe::Receiver, capture: &mut Capture, buffer: &mut [u8]) -> bool {
    let until = Instant::now() + DRAIN_GRACE;
    loop {
        match tokio::time::timeout_at(until, output.read(buffer)).await {
            Ok(Ok(0) | Err(_)) => return true,
            Ok(Ok(count)) => capture.push(&buffer[..count]),
            Err(_) => return false,
        }
    }
}

fn choose_shell(configured: Option<&str>) -> PathBuf {
    let own = std::env::var("SHELL").ok();
    let wanted = configured.map(str::to_owned).or(own);
    let posix = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        matches!(name.as_ref(), "bash" | "zsh" | "sh" | "dash" | "ksh") && path.is_file()
    };
    wanted
        .map(PathBuf::from)
        .filter(posix)
        .or_else(|| find_on_path("bash"))
        .unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
