//! The `tw` command: arguments and wiring. All agent logic is in the library.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod auth;
mod compact;
mod debug;
mod doctor;
mod exit;
mod models;
mod permission;
mod run;
mod sessions;
mod stats;
mod terminal;
mod tools;
mod tui;

use clap::{CommandFactory, Parser};

use crate::args::{Arguments, Command};
use crate::exit::Exit;

fn main() {
    let status = match Arguments::try_parse() {
        Ok(arguments) => start(arguments),
        Err(error) => {
            // Help and version are answers, not errors.
            let wanted = !error.use_stderr();
            error.print().ok();
            if wanted { Exit::Done } else { Exit::BadUsage }
        }
    };
    // Not `return`: threads that wait for a terminal's input would hold the process.
    std::process::exit(status.code());
}

fn start(arguments: Arguments) -> Exit {
    // One thread is enough for a person's work, starts fastest, and outlives every child, whose
    // death signal is tied to it. File work goes to the blocking pool.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::note(&format!("tw: cannot start: {error}"));
            return Exit::Failed;
        }
    };
    let status = runtime.block_on(dispatch(arguments));
    toolwright::end_everything();
    // Reading a huge file cannot be interrupted; the exit must not wait for it.
    runtime.shutdown_background();
    status
}

async fn dispatch(arguments: Arguments) -> Exit {
    let Arguments { command, interface, shared } = arguments;
    let result = match command {
        Some(Command::Run(options)) => run::run(&shared, *options).await,
        Some(Command::Sessions(options)) => sessions::list(&shared, &options),
        Some(Command::Show(options)) => sessions::show(&shared, &options),
        Some(Command::Compact(options)) => compact::compact(&shared, options).await,
        Some(Command::Stats(options)) => stats::stats(&shared, &options),
        Some(Command::Auth(options)) => auth::auth(&shared, &options).await,
        Some(Command::Models(options)) => models::models(&shared, &options).await,
        Some(Command::Tools(options)) => tools::tools(&shared, options).await,
        Some(Command::Permission(options)) => permission::permission(&shared, options),
        Some(Command::Debug(options)) => debug::debug(&options),
        Some(Command::Doctor) => doctor::doctor(&shared).await,
        Some(Command::Completions { shell }) => {
            let mut command = Arguments::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "tw", &mut script);
            terminal::print(&String::from_utf8_lossy(&script));
            Ok(Exit::Done)
        }
        None => tui::tui(&shared, interface).await,
    };
    result.unwrap_or_else(|problem| {
        terminal::note(&format!("tw: {}", problem.text));
        problem.exit
    })
}
