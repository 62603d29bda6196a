//! The `tw` command: arguments and wiring. All agent logic is in the library.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent;
mod args;
mod auth;
mod compact;
mod config;
mod debug;
mod doctor;
mod exit;
mod export;
mod import;
mod jobs;
mod mcp;
mod models;
mod permission;
mod plugin;
mod run;
mod sessions;
mod stats;
mod terminal;
mod tools;
mod tree;
mod trust;
mod tui;
mod undo;

use clap::{CommandFactory, Parser};

use crate::args::{Arguments, Command};
use crate::exit::Exit;

fn main() {
    // Inside a sandbox, before the command: nothing else of this program is wanted there.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == toolwright::BRIDGE_COMMAND) {
        let error = toolwright::run_bridge(words);
        terminal::note(&format!("tw: cannot start the command in the sandbox: {error}"));
        std::process::exit(Exit::Failed.code());
    }
    toolwright::harden();
    if let Ok(program) = std::env::current_exe() {
        toolwright::set_helper(program);
    }
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
    for path in toolwright::put_back_late().failed {
        let path = path.display();
        terminal::note(&format!("tw: a command changed {path}, and it could NOT be put back"));
    }
    // Reading a huge file cannot be interrupted; the exit must not wait for it.
    runtime.shutdown_background();
    status
}

async fn dispatch(arguments: Arguments) -> Exit {
    let Arguments { command, interface, shared } = arguments;
    if let Some(sandbox) = shared.sandbox {
        toolwright::prefer_sandbox(sandbox.into());
    }
    let result = match command {
        Some(Command::Run(options)) => run::run(&shared, *options).await,
        Some(Command::Sessions(options)) => sessions::sessions(&shared, &options),
        Some(Command::Export(options)) => export::export(&shared, &options),
        Some(Command::Import(options)) => import::import(&shared, &options),
        Some(Command::Show(options)) => sessions::show(&shared, &options),
        Some(Command::Tree(options)) => tree::tree(&shared, &options),
        Some(Command::Compact(options)) => compact::compact(&shared, options).await,
        Some(Command::Undo(options)) => undo::undo(&shared, &options).await,
        Some(Command::Redo(options)) => undo::redo(&shared, &options).await,
        Some(Command::Stats(options)) => stats::stats(&shared, &options),
        Some(Command::Auth(options)) => auth::auth(&shared, &options).await,
        Some(Command::Models(options)) => models::models(&shared, &options).await,
        Some(Command::Tools(options)) => tools::tools(&shared, options).await,
        Some(Command::Mcp(options)) => mcp::mcp(&shared, options).await,
        Some(Command::Permission(options)) => permission::permission(&shared, options).await,
        Some(Command::Trust(options)) => trust::trust(&shared, &options),
        Some(Command::Agent(options)) => agent::agent(&shared, options),
        Some(Command::Config(options)) => config::config(&shared, &options),
        Some(Command::Plugin(options)) => plugin::plugin(&shared, options).await,
        Some(Command::Init(options)) => run::init(&shared, options).await,
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
