//! `tw` without a command: the terminal interface, where there is a terminal.

use std::io::IsTerminal;

use toolwright::SessionChoice;
use toolwright_tui::{Doctor, Ended, Start};

use crate::args::{Interface, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;

pub async fn tui(shared: &Shared, options: Interface) -> Result<Exit, Problem> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Problem::usage(
            "without a command, tw is a terminal interface, and this is no terminal\n    \
             One prompt:  tw run \"What is this project?\"\n    All commands:  tw --help",
        ));
    }
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Err(Problem::usage(
            "this terminal cannot be drawn on (TERM=dumb)\n    Use tw run \"…\"; it asks and answers line by line",
        ));
    }
    let session = match (options.session, options.resume) {
        (Some(id), _) => SessionChoice::Id(id),
        (None, true) => SessionChoice::Latest,
        (None, false) if options.fork => {
            return Err(Problem::usage("--fork needs a session to copy: add -c or -s ID"));
        }
        (None, false) => SessionChoice::New,
    };
    let start = Start {
        directory: directory(shared),
        trust: shared.trust,
        model: options.model,
        agent: options.agent,
        session,
        fork: options.fork,
        auto: options.auto,
        prompt: options.prompt,
        doctor: Doctor(|bench| Box::pin(crate::doctor::told(bench))),
    };
    match toolwright_tui::run(start).await {
        Ok(()) => Ok(Exit::Done),
        Err(Ended::Interrupted) => Ok(Exit::Interrupted),
        Err(Ended::Setup(problem)) => Err(problem.into()),
        Err(Ended::Terminal(problem)) => {
            Err(Problem::failed(format!("the terminal cannot be used: {problem}")))
        }
        Err(Ended::Crashed) => Ok(Exit::Failed),
    }
}
