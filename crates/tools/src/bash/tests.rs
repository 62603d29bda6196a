//! Jobs and hostile commands, through the whole pipeline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwright_permission::Request;
use toolwright_session::{Ending, Outcome};
use toolwright_tool::{Decision, Gate, Pipeline, PipelineOptions, Question, Registry, Workspace};

use super::{BashOptions, JOBS_CAP, Jobs};
use crate::kit::one_call;
use crate::{Feedback, register_all};

/// Allows everything, after doing something.
struct Open(Box<dyn Fn() + Send + Sync>);

impl Gate for Open {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        (self.0)();
        std::future::ready(Decision::Allow { why: "test".into() }).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

/// A session: calls share their jobs.
struct Place {
    folder: tempfile::TempDir,
    pipeline: Pipeline,
    jobs: Jobs,
}

impl Place {
    fn new() -> Self {
        Self::with(tempfile::tempdir().unwrap(), BashOptions::default(), || {})
    }

    fn with(
        folder: tempfile::TempDir,
        options: BashOptions,
        before: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let jobs = options.jobs.clone();
        let registry = Registry::default();
        register_all(&registry, options, &Feedback::default());
        let work = folder.path().join("w");
        std::fs::create_dir_all(&work).unwrap();
        let workspace = Arc::new(Workspace::new(&work).unwrap());
        let outputs = PipelineOptions::new(folder.path().join("outputs"));
        let pipeline =
            Pipeline::new(registry, workspace, Arc::new(Open(Box::new(before))), outputs);
        Self { folder, pipeline, jobs }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.call_until(tool, arguments, CancellationToken::new()).await
    }

    async fn call_until(&self, tool: &str, arguments: Value, cancel: CancellationToken) -> Outcome {
        one_call(&self.pipeline, tool, arguments, cancel).await
    }

    async fn ok(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert_eq!(outcome.ending, Ending::Completed, "{}", outcome.output);
        outcome.output
    }

    async fn error(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert_eq!(outcome.ending, Ending::Failed, "{}", outcome.output);
        outcome.output
    }

    /// Starts a job and gives its id and what it had said.
    async fn start(&self, mut arguments: Value) -> (String, String) {
        arguments["run_in_background"] = json!(true);
        let outcome = self.call("bash", arguments).await;
        let id = outcome.details["job"].as_str().unwrap_or_else(|| panic!("{}", outcome.output));
        assert!(outcome.output.contains(&format!("[job {id}: running for ")));
        (id.to_owned(), outcome.output)
    }

    /// As [`Self::start`], and waits until it has said `wanted`.
    async fn start_saying(&self, arguments: Value, wanted: &str) -> (String, String) {
        let (id, mut said) = self.start(arguments).await;
        if !said.contains(wanted) {
            said.push_str(&self.look_until(&id, wanted).await);
        }
        (id, said)
    }

    /// Looks until `wanted` was said; gives all that was.
    async fn look_until(&self, id: &str, wanted: &str) -> String {
        let mut all = String::new();
        while !all.contains(wanted) {
            let text = self.ok("bash_output", json!({"id": id, "wait": 20})).await;
            assert!(text.contains("running for") || text.contains(wanted), "{all}{text}");
            all.push_str(&text);
        }
        all
    }
}

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn eventually_gone(pid: &str) {
    let start = Instant::now();
    while alive(pid) {
        assert!(start.elapsed() < Duration::from_secs(20), "{pid} is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The first line that is a number.
fn number(text: &str) -> String {
    text.lines().find(|line| line.parse::<u32>().is_ok()).unwrap_or_else(|| panic!("{text}")).into()
}

#[tokio::test]
async fn a_job_is_looked_at_until_it_ends_and_tells_only_what_is_new() {
    let place = Place::new();
    let command = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 3";
    let arguments = json!({"command": command, "description": "waits"});
    let (id, first) = place.start_saying(arguments, "one\n").await;
    assert!(first.contains("It goes on as a job"), "{first}");
    let nothing = place.ok("bash_output", json!({"id": id})).await;
    assert!(nothing.starts_with("(no new output)\n[job "), "{nothing}");
    assert_eq!(place.jobs.running().len(), 1);
    std::fs::write(place.folder.path().join("w/go"), "").unwrap();
    let rest = place.look_until(&id, "exit code 3").await;
    assert!(rest.contains("two\n") && !rest.contains("one"), "{rest}");
    let again = place.call("bash_output", json!({"id": id})).await;
    assert_eq!(again.output, format!("(no new output)\n[job {id}: exit code 3]"));
    assert_eq!((&again.details["exit"], &again.details["running"]), (&json!(3), &json!(false)));
    let listed = &place.jobs.list()[0];
    assert_eq!((listed.exit, listed.command.as_str()), (Some(3), command));
    assert_eq!(std::fs::read_to_string(listed.output.clone().unwrap()).unwrap(), "one\ntwo\n");
}

#[tokio::test]
async fn only_what_still_runs_after_its_time_becomes_a_job() {
    let place = Place::new();
    let quick = place.call("bash", json!({"command": "echo done", "yield": 30})).await;
    assert_eq!(quick.output, "done\n[exit code 0]");
    assert_eq!(quick.details["job"], Value::Null);
    assert!(place.jobs.list().is_empty());
    let slow = place.call("bash", json!({"command": "echo a; sleep 4711", "yield": 0})).await;
    assert!(slow.output.contains("\n[job job_"), "{}", slow.output);
    assert!(slow.details["job"].is_string());
}

#[tokio::test]
async fn a_killed_job_is_gone_with_all_of_its_group() {
    let place = Place::new();
    let command = "trap '' TERM; sleep 4711 & echo $!; echo pid; wait; sleep 4711";
    let (id, first) = place.start_saying(json!({"command": command}), "pid\n").await;
    let child = number(&first);
    assert!(alive(&child));
    let text = place.ok("bash_kill", json!({"id": id})).await;
    assert!(text.contains("ended by signal 9"), "{text}");
    eventually_gone(&child).await;
    let again = place.ok("bash_kill", json!({"id": id})).await;
    assert!(again.contains("ended by signal 9"), "{again}");
}

#[tokio::test]
async fn a_killed_job_takes_its_daemons_along() {
    let place = Place::new();
    // Own session, no parent any more, deaf to SIGTERM; one of them forks another.
    let daemon = "trap \"\" TERM; echo $$; sleep 4711 & echo $!; echo pids; wait";
    let command = format!("(setsid sh -c '{daemon}' &); sleep 4711");
    let (id, first) = place.start_saying(json!({"command": command}), "pids\n").await;
    let pids: Vec<&str> = first.lines().filter(|line| line.parse::<u32>().is_ok()).collect();
    assert_eq!(pids.len(), 2, "{first}");
    assert!(pids.iter().all(|pid| alive(pid)));
    place.ok("bash_kill", json!({"id": id})).await;
    for pid in pids {
        eventually_gone(pid).await;
    }
}

#[tokio::test]
async fn what_an_ended_job_left_is_ended_by_killing_it() {
    let place = Place::new();
    let command = "(setsid sh -c 'echo $$; exec sleep 4711' >pid 2>&1 &); sleep 4711 & \
                   while [ ! -s pid ]; do sleep 0.02; done; cat pid; echo $!; echo end; \
                   while [ ! -e go ]; do sleep 0.02; done";
    let (id, first) = place.start_saying(json!({"command": command}), "end\n").await;
    std::fs::write(place.folder.path().join("w/go"), "").unwrap();
    let told = place.look_until(&id, "exit code 0").await;
    assert!(told.contains("it left something running"), "{told}");
    let all = format!("{first}{told}");
    let pids: Vec<&str> = all.lines().filter(|line| line.parse::<u32>().is_ok()).collect();
    assert_eq!(pids.len(), 2, "{all}");
    let text = place.ok("bash_kill", json!({"id": id})).await;
    assert!(text.contains("exit code 0") && !text.contains("left something"), "{text}");
    for pid in pids {
        eventually_gone(pid).await;
    }
}

#[tokio::test]
async fn jobs_end_with_their_session() {
    let place = Place::new();
    let command = json!({"command": "echo $$; echo pid; exec sleep 4711"});
    let (id, first) = place.start_saying(command, "pid\n").await;
    let pid = number(&first);
    // While one of the session's parts is left, so are its jobs.
    let Place { folder: _folder, pipeline, jobs } = place;
    drop(pipeline);
    assert!(alive(&pid) && jobs.list()[0].id == id);
    drop(jobs);
    eventually_gone(&pid).await;
}

#[tokio::test]
async fn an_abort_of_the_call_that_would_become_a_job_ends_the_command() {
    let place = Place::new();
    let cancel = CancellationToken::new();
    let file = place.folder.path().join("w/pid");
    let call = json!({"command": "echo $$ > pid.new; mv pid.new pid; echo had; exec sleep 4711", "yield": 60});
    let abort = async {
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(place.call_until("bash", call, cancel.clone()), abort);
    assert_eq!(outcome.ending, Ending::Interrupted);
    eventually_gone(std::fs::read_to_string(&file).unwrap().trim()).await;
    assert!(place.jobs.list().is_empty());
}

#[tokio::test]
async fn a_program_on_a_terminal_is_answered() {
    let place = Place::new();
    let command = "read -p 'Your name? ' name; printf '\\033[1mHello %s\\033[0m\\n' \"$name\"; tty";
    let arguments = json!({"command": command, "pty": true});
    let (id, _) = place.start_saying(arguments, "Your name?").await;
    let answer = place.ok("bash_input", json!({"id": id, "text": "Ada", "wait": 20})).await;
    let rest = match answer.contains("exit code 0") {
        true => String::new(),
        false => place.look_until(&id, "exit code 0").await,
    };
    // A look in between ends with a line of its own.
    let all: String = format!("{answer}\n{rest}");
    let all =
        all.lines().filter(|line| !line.contains("running for")).collect::<Vec<_>>().join("\n");
    assert!(all.contains("Hello Ada\n/dev/"), "{all}");
    assert!(!all.contains('\u{1b}') && !all.contains('\r'), "{all:?}");
}

#[tokio::test]
async fn keys_interrupt_on_a_terminal_and_end_the_input_of_a_pipe() {
    let place = Place::new();
    let (id, _) = place.start(json!({"command": "cat; echo \"end $?\"", "pty": true})).await;
    let echoed = place.ok("bash_input", json!({"id": id, "text": "hi", "wait": 20})).await;
    assert!(echoed.contains("hi\n"), "{echoed}");
    let text = place.ok("bash_input", json!({"id": id, "keys": ["ctrl-c"], "wait": 20})).await;
    let text = if text.contains("signal") {
        text
    } else {
        text + &place.look_until(&id, "signal 2").await
    };
    assert!(text.contains("ended by signal 2"), "{text}");

    let (id, _) = place.start(json!({"command": "cat; echo end", "stdin": true})).await;
    let text = place.ok("bash_input", json!({"id": id, "text": "line", "wait": 20})).await;
    assert!(text.contains("line\n"), "{text}");
    let error = place.error("bash_input", json!({"id": id, "keys": ["ctrl-c"]})).await;
    assert!(error.contains("pty: true"), "{error}");
    let text = place.ok("bash_input", json!({"id": id, "keys": ["ctrl-d"], "wait": 20})).await;
    let text = if text.contains("exit code") {
        text
    } else {
        text + &place.look_until(&id, "exit code").await
    };
    assert!(text.contains("end\n"), "{text}");
}

#[tokio::test]
async fn input_that_cannot_be_given_is_refused_with_a_reason() {
    let place = Place::new();
    let (id, _) = place.start(json!({"command": "sleep 4711"})).await;
    let cases = [
        (json!({"id": id, "text": "x"}), "has no input"),
        (json!({"id": id}), "nothing to write"),
        (json!({"id": id, "keys": ["hyper"]}), "There is no key \"hyper\""),
        (json!({"id": "job_1", "text": "x"}), "There is no job job_1."),
        (json!({"id": "job_zzzz_1", "text": "x"}), "that job died with the process that ran it"),
    ];
    for (arguments, wanted) in cases {
        let error = place.error("bash_input", arguments).await;
        assert!(error.contains(wanted), "{error}");
    }
    for tool in ["bash_output", "bash_kill"] {
        let error = place.error(tool, json!({"id": "job_zzzz_1"})).await;
        assert!(error.contains("died with the process") && error.contains(&id), "{error}");
    }
    place.ok("bash_kill", json!({"id": id})).await;
    let error = place.error("bash_input", json!({"id": id, "text": "x"})).await;
    assert!(error.contains("has ended"), "{error}");
}

#[tokio::test]
async fn a_job_that_does_not_read_does_not_hang_the_call() {
    let place = Place::new();
    let (id, _) = place.start(json!({"command": "sleep 4711", "stdin": true})).await;
    let text = "x".repeat(200_000);
    let error = place.error("bash_input", json!({"id": id, "text": text})).await;
    assert!(error.contains("does not read"), "{error}");
}

#[tokio::test]
async fn no_more_than_32_jobs_run_at_once() {
    let place = Place::new();
    let started =
        join_all((0..JOBS_CAP).map(|_| place.start(json!({"command": "sleep 4711"})))).await;
    let another = json!({"command": "sleep 4711", "yield": 1});
    let error = place.error("bash", another.clone()).await;
    let (first, _) = &started[0];
    assert!(error.contains("32 jobs are running already") && error.contains(first), "{error}");
    // What is waited for needs no place.
    assert_eq!(place.ok("bash", json!({"command": "true"})).await, "(no output)\n[exit code 0]");
    place.ok("bash_kill", json!({"id": first})).await;
    assert!(place.call("bash", another).await.details["job"].is_string());
}

#[tokio::test]
async fn the_output_of_a_job_that_floods_is_cut_and_kept() {
    let place = Place::new();
    let (id, first) = place.start(json!({"command": "seq 1 300000; sleep 4711"})).await;
    let mut texts = vec![first];
    while !texts.concat().contains("\n300000\n") {
        texts.push(place.ok("bash_output", json!({"id": id, "wait": 20})).await);
    }
    assert!(texts.iter().all(|text| text.len() < 55 << 10));
    let whole = std::fs::read_to_string(place.jobs.list()[0].output.clone().unwrap()).unwrap();
    assert_eq!(whole.lines().count(), 300_000);
}

#[tokio::test]
async fn hostile_commands_have_a_bounded_clear_outcome() {
    let place = Place::new();
    let cases = [
        // Forks, and leaves somebody who holds the pipe.
        ("sleep 4711 & sleep 4711 & echo hi", "hi\n[exit code 0; it left something running"),
        // Daemonises: own session, no parent, holding the pipe or not.
        ("(setsid sleep 4711 &); echo hi", "hi\n[exit code 0"),
        ("(setsid sh -c 'sleep 4711 &' >/dev/null 2>&1 &); echo hi", "hi\n[exit code 0"),
        ("nohup sleep 4711 >/dev/null 2>&1 & echo hi", "hi\n[exit code 0; it left"),
        // Closes its output and goes on.
        ("exec >&- 2>&-; sleep 0.1; exit 3", "(no output)\n[exit code 3]"),
        // Reads.
        ("cat; read -r word; echo \"read: $?\"", "read: 1\n[exit code 0]"),
        ("read -r word </dev/tty || echo no terminal", "no terminal\n[exit code 0]"),
        // Junk.
        (
            "printf '\\033[31mred\\033[0m \\033]0;title\\007a\\377b'",
            "red a\u{fffd}b\n[exit code 0]",
        ),
        ("printf '\\033]0;never ended'; echo; echo next", "\nnext\n[exit code 0]"),
        // Takes the ground from under its own feet.
        ("mkdir d && cd d && rmdir ../d && echo still", "still\n[exit code 0]"),
        ("kill -SEGV $$", "(no output)\n[ended by signal 11]"),
    ];
    for (command, wanted) in cases {
        let start = Instant::now();
        let text = place.ok("bash", json!({"command": command, "timeout": 20_000})).await;
        let text = text.replace("/bin/bash: ", "");
        assert!(text.contains(wanted), "{command}: {text:?}");
        assert!(start.elapsed() < Duration::from_secs(10), "{command}: {:?}", start.elapsed());
    }
    let stubborn = json!({"command": "trap '' TERM HUP INT; echo before; while :; do sleep 0.1; done", "timeout": 200});
    let start = Instant::now();
    let outcome = place.call("bash", stubborn).await;
    assert!(outcome.output.starts_with("before\n[ended after exceeding timeout 200 ms"));
    assert_eq!(outcome.details["exit"], Value::Null);
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_folder_that_vanishes_after_the_plan_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("w/gone");
    std::fs::create_dir_all(&gone).unwrap();
    let path = gone.clone();
    let remove = move || drop(std::fs::remove_dir(&path));
    let place = Place::with(folder, BashOptions::default(), remove);
    let error = place.error("bash", json!({"command": "pwd", "workdir": "gone"})).await;
    assert!(error.contains("gone") && error.contains("No such file"), "{error}");
}

#[tokio::test]
async fn a_shell_that_vanishes_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("bash");
    std::fs::write(&shell, "#!/bin/sh\n").unwrap();
    let options =
        BashOptions { shell: Some(shell.display().to_string()), ..BashOptions::default() };
    let place = Place::with(folder, options, || {});
    std::fs::remove_file(&shell).unwrap();
    let error = place.error("bash", json!({"command": "true"})).await;
    assert!(error.contains(&shell.display().to_string()), "{error}");
}

#[tokio::test]
async fn the_environment_suits_programs_that_nobody_watches() {
    let place = Place::new();
    let command =
        "echo $TERM $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $NO_COLOR $GIT_EDITOR; locale charmap";
    let text = place.ok("bash", json!({"command": command})).await;
    assert!(text.starts_with("dumb cat cat 0 1 true\n"), "{text}");
    assert!(text.contains("UTF-8") || text.contains("not found"), "{text}");
}

#[tokio::test]
async fn each_session_has_ids_of_its_own() {
    let (one, other) = (Place::new(), Place::new());
    let (id, _) = one.start(json!({"command": "sleep 4711"})).await;
    let error = other.error("bash_output", json!({"id": id})).await;
    assert!(error.contains("died with the process"), "{error}");
}

#[tokio::test]
async fn the_oldest_of_many_ended_jobs_are_forgotten() {
    let place = Place::new();
    let mut ids = Vec::new();
    for go in ["first", "second"] {
        let command = format!("while [ ! -e {go} ]; do sleep 0.05; done");
        let started = (0..20).map(|_| place.start(json!({ "command": command })));
        let started = join_all(started).await;
        std::fs::write(place.folder.path().join("w").join(go), "").unwrap();
        for (id, _) in started {
            place.look_until(&id, "exit code 0").await;
            ids.push(id);
        }
    }
    place.start(json!({"command": "sleep 4711"})).await;
    assert_eq!(place.jobs.list().len(), 32 + 1);
    let error = place.error("bash_output", json!({"id": ids[0]})).await;
    assert!(error.contains("has ended and is no longer kept"), "{error}");
}
