//! Commands that go on while the model does something else.

use serde_json::{Value, json};
use toolwright_testkit::{
    Answer, Captured, Folder, ModelServer, Reply, Wire, eventually, processes_with,
};

use crate::{folder, results};

const RUN: &[&str] = &["run", "--auto", "-m", "anthropic/m", "go"];

fn marker(n: u32) -> String {
    format!("sleep 7{n}654.{}", std::process::id())
}

/// The id of the first job that a result told of.
fn job(request: &Captured) -> String {
    let all = results(request).join("\n");
    let at = all.find("job_").unwrap_or_else(|| panic!("no job in {all}"));
    all[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

/// What jobs have said in all looks together.
fn said(request: &Captured) -> String {
    let all = results(request).join("\n");
    let ours = |line: &&str| !line.contains("running for") && !line.contains("goes on as a job");
    all.lines().filter(ours).map(|line| format!("{line}\n")).collect()
}

/// A model that answers by what it has seen: the number of results so far, and the request.
fn model(answer: impl Fn(usize, &Captured) -> Answer + Send + Sync + 'static) -> ModelServer {
    ModelServer::answering(move |request| answer(results(request).len(), request))
}

#[test]
fn a_job_is_started_looked_at_and_killed() {
    let server = model(|seen, request| match seen {
        0 => {
            let command = format!(
                "echo started; while [ ! -e go ]; do sleep 0.02; done; echo went; {}",
                marker(1)
            );
            Answer::call("bash", json!({"command": command, "run_in_background": true}))
        }
        1 => Answer::call("write", json!({"filePath": "go", "content": ""})),
        _ if !said(request).contains("went\n") => {
            Answer::call("bash_output", json!({"id": job(request), "wait": 30}))
        }
        _ if !said(request).contains("signal") => {
            Answer::call("bash_kill", json!({"id": job(request)}))
        }
        _ => Answer::text("done"),
    });
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run =
        folder.tw(&["run", "--auto", "--format", "json", "-m", "anthropic/m", "go"]).expect(0);
    let request = server.last_request();
    assert!(results(&request)[0].contains("goes on as a job"), "{}", results(&request)[0]);
    let said = said(&request);
    assert_eq!(
        (said.matches("started\n").count(), said.matches("went\n").count()),
        (1, 1),
        "{said}"
    );
    assert!(said.contains("ended by signal 15"), "{said}");
    assert_eq!(processes_with(&marker(1)), Vec::<String>::new());
    // People and programs see which job a call was about.
    let id = job(&server.last_request());
    let named = |line: &Value| line.to_string().contains(&format!("\"job\":\"{id}\""));
    assert!(run.lines().iter().any(named), "{}", run.stdout);
    assert!(!run.stderr.contains("still running"), "{}", run.stderr);
}

#[test]
fn a_program_on_a_terminal_is_answered() {
    let server = model(|seen, request| match seen {
        0 => {
            let command = "read -p 'Name? ' name; echo \"Hello, $name.\"; cat";
            Answer::call("bash", json!({"command": command, "pty": true, "yield": 0}))
        }
        _ => {
            let said = said(request);
            let input = |arguments: Value| {
                let mut call = json!({"id": job(request), "wait": 30});
                call.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
                Answer::call("bash_input", call)
            };
            match () {
                () if said.contains("exit code") => Answer::text("done"),
                // What is typed is shown, and said again by the program.
                () if said.matches("more\n").count() == 2 => input(json!({"keys": ["ctrl-d"]})),
                () if said.contains("Hello") && !said.contains("more") => {
                    input(json!({"text": "more"}))
                }
                () if said.contains("Name?") && !said.contains("Ada") => {
                    input(json!({"text": "Ada"}))
                }
                () => Answer::call("bash_output", json!({"id": job(request), "wait": 30})),
            }
        }
    });
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(RUN).expect(0);
    let said = said(&server.last_request());
    assert!(said.contains("Hello, Ada.\n") && said.contains("exit code 0"), "{said}");
}

#[test]
fn jobs_that_still_run_end_with_the_run_and_are_named() {
    let server = model(|seen, _| match seen {
        0 => {
            let command = format!("(setsid {0} &); {0}", marker(2));
            Answer::call("bash", json!({"command": command, "run_in_background": true}))
        }
        _ => Answer::text("done"),
    });
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(RUN).expect(0);
    let id = job(&server.last_request());
    let wanted = format!("tw: ended 1 job(s) that were still running: {id} ((setsid sleep");
    assert!(run.stderr.lines().any(|line| line.starts_with(&wanted)), "{}", run.stderr);
    assert_eq!(processes_with(&marker(2)), Vec::<String>::new());
}

#[test]
fn jobs_end_with_us_whatever_ends_us_and_are_known_as_dead_afterwards() {
    for (n, (signal, code)) in
        [("INT", Some(130)), ("TERM", Some(130)), ("KILL", None)].into_iter().enumerate()
    {
        let marker = marker(30 + u32::try_from(n).unwrap());
        let command = format!("(setsid {marker} &); {marker} & {marker}");
        let server = ModelServer::start([
            Answer::call("bash", json!({"command": command, "run_in_background": true})),
            Reply::default().say("Thinking").hold_after_text().into(),
        ]);
        let folder = folder().with_model(&server, Wire::Anthropic);
        let child = folder.start(RUN);
        child.wait_for("Thinking");
        eventually("the job", || (processes_with(&marker).len() >= 3).then_some(()));
        let id = job(&server.last_request());
        child.signal(signal);
        assert_eq!(child.wait().code, code, "{signal}");
        eventually("no process left", || processes_with(&marker).is_empty().then_some(()));

        server.then(Answer::call("bash_output", json!({"id": id})));
        server.then(Answer::text("I see."));
        folder.tw(&["run", "--auto", "-c", "-m", "anthropic/m", "And now?"]).expect(0);
        let told = results(&server.last_request()).pop().unwrap();
        assert!(told.contains(&id) && told.contains("died with the process that ran it"), "{told}");
    }
}

#[test]
fn typing_into_a_job_is_judged_like_a_command_and_looking_at_it_is_not() {
    let server = model(|seen, request| match seen {
        0 => {
            Answer::call("bash", json!({"command": "sh", "stdin": true, "run_in_background": true}))
        }
        1 => {
            Answer::call("bash_input", json!({"id": job(request), "text": "echo fine", "wait": 30}))
        }
        2 => Answer::call("bash_input", json!({"id": job(request), "text": "true; rm -rf x"})),
        3 => Answer::call("bash_output", json!({"id": job(request)})),
        4 => Answer::call("bash_kill", json!({"id": job(request)})),
        _ => Answer::text("done"),
    });
    let rules = r#"{"permission":{"bash":{"*":"allow","rm *":"deny"}}}"#;
    let folder = folder().user_config(rules).with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]);
    let all = results(&server.last_request());
    assert!(all[1].contains("fine"), "{}", all[1]);
    assert!(all[2].contains("denied"), "{}", all[2]);
    assert!(all[3].contains("running for") && all[4].contains("[job"), "{all:?}");
}

#[test]
fn a_flood_adds_next_to_nothing_to_our_memory() {
    // A shell's parent is us. Writing 5 to clear_refs makes the peak begin anew.
    let before = "echo 5 > /proc/$PPID/clear_refs; grep VmRSS /proc/$PPID/status";
    let flood = "head -c 64000000 /dev/zero | tr '\\0' x; echo; grep VmHWM /proc/$PPID/status";
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "seq 1 100000"})),
        Answer::call("bash", json!({"command": before})),
        Answer::call("bash", json!({"command": flood})),
        Answer::text("done"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(RUN).expect(0);
    let all = results(&server.last_request());
    let kibibytes = |text: &str| -> i64 {
        let line =
            text.lines().find(|line| line.starts_with("Vm")).unwrap_or_else(|| panic!("{text}"));
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let grown = kibibytes(&all[2]) - kibibytes(&all[1]);
    assert!(grown <= 8 << 10, "{grown} KiB");
}

#[test]
fn commands_find_what_a_login_shell_sets_unless_that_is_turned_off() {
    let profile = |folder: &Folder| {
        let text = "echo Welcome\nexport PATH=/usr/bin:$HOME/tools FROM_PROFILE=yes LANG=other\n";
        std::fs::write(folder.root().join("home/.profile"), text).unwrap();
    };
    const COMMAND: &str =
        "echo \"<$FROM_PROFILE $LANG>\"; case $PATH in *:$HOME/tools) echo last;; esac";
    for (config, wanted, calls) in
        [("{}", "<yes C.UTF-8>\nlast\n", 60), (r#"{"shell_login": false}"#, "< C.UTF-8>\n[exit", 3)]
    {
        // The first may not wait for a slow one; one of the next finds it.
        let server = model(move |seen, request| match results(request).last() {
            Some(last) if seen == calls || last.starts_with("<yes") => Answer::text("done"),
            _ => Answer::call("bash", json!({"command": format!("{COMMAND}; sleep 0.{seen:02}")})),
        });
        let folder = folder()
            .user_config(config)
            .env("TOOLWRIGHT_SHELL_LOGIN", "on")
            .env("SHELL", "/bin/bash")
            .with_model(&server, Wire::Anthropic);
        profile(&folder);
        folder.tw(RUN).expect(0);
        let last = results(&server.last_request()).pop().unwrap();
        assert!(last.starts_with(wanted), "{config}: {last:?}");
    }
}

#[test]
fn a_login_shell_that_hangs_holds_up_nothing() {
    let marker = marker(5);
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "echo first"})),
        Answer::text("done"),
    ]);
    let folder = folder()
        .env("TOOLWRIGHT_SHELL_LOGIN", "on")
        .env("SHELL", "/bin/bash")
        .with_model(&server, Wire::Anthropic);
    std::fs::write(folder.root().join("home/.profile"), format!("{marker}\n")).unwrap();
    folder.tw(RUN).expect(0);
    assert_eq!(results(&server.last_request()), ["first\n[exit code 0]"]);
    assert_eq!(processes_with(&marker), Vec::<String>::new());
}

#[test]
fn a_session_that_is_shown_names_its_jobs_and_how_they_stand() {
    let server = model(|seen, request| match seen {
        0 => Answer::call("bash", json!({"command": marker(8), "run_in_background": true})),
        1 => {
            let command = "while [ ! -e go ]; do sleep 0.02; done; exit 3";
            Answer::call("bash", json!({"command": command, "run_in_background": true}))
        }
        2 => Answer::call("bash", json!({"command": "\"$TW_PROGRAM\" show"})),
        3 => Answer::call("write", json!({"filePath": "go", "content": ""})),
        _ if !results(request).join("\n").contains("exit code 3") => {
            let all = results(request)[1].clone();
            let at = all.find("job_").unwrap();
            let id: String =
                all[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            Answer::call("bash_output", json!({"id": id, "wait": 30}))
        }
        _ => Answer::text("done"),
    });
    let folder =
        folder().env("TW_PROGRAM", env!("CARGO_BIN_EXE_tw")).with_model(&server, Wire::Anthropic);
    folder.tw(RUN).expect(0);
    let meanwhile = results(&server.last_request())[2].clone();
    assert_eq!(meanwhile.matches("  running  ").count(), 2, "{meanwhile}");
    let shown = folder.tw(&["show"]).expect(0).stdout;
    let jobs = shown.split_once("\nJobs:\n").unwrap_or_else(|| panic!("{shown}")).1;
    let lines: Vec<&str> = jobs.lines().collect();
    assert_eq!(lines.len(), 2, "{jobs}");
    assert!(lines[0].contains("ended with its session") && lines[0].contains(&marker(8)), "{jobs}");
    assert!(lines[1].contains("ended, exit code 3"), "{jobs}");
    assert_eq!(processes_with(&marker(8)), Vec::<String>::new());
}
