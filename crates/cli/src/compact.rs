//! `tw compact`: makes a session shorter for the model, on demand.

use tokio::sync::mpsc;
use toolwright::{CancellationToken, Desk, DeskOptions, Event, SessionChoice, Workbench};

use crate::args::{Compact, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{note, print};

pub async fn compact(shared: &Shared, options: Compact) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let session = options.id.map_or(SessionChoice::Latest, SessionChoice::Id);
    let desk = DeskOptions { model: options.model, session, ..DeskOptions::default() };
    let Desk { mut engine, .. } = workbench.desk(desk).await?;
    let cancel = CancellationToken::new();
    let (sender, mut events) = mpsc::channel(16);
    let stop = cancel.clone();
    let work = engine.compact(&cancel, &sender);
    tokio::pin!(work);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    let made = loop {
        tokio::select! {
            made = &mut work => break made,
            _ = &mut interrupted, if !stop.is_cancelled() => stop.cancel(),
            Some(event) = events.recv() => tell(&event),
        }
    };
    while let Ok(event) = events.try_recv() {
        tell(&event);
    }
    match made {
        Ok(true) => Ok(Exit::Done),
        Ok(false) => {
            note("tw: there is nothing to shorten");
            Ok(Exit::Done)
        }
        Err(end) => {
            let problem = end.problem.unwrap_or_else(|| "interrupted".to_owned());
            note(&format!("tw: {problem}"));
            Ok(Exit::from(end.status))
        }
    }
}

fn tell(event: &Event) {
    match event {
        Event::Compacted { before, after } => {
            print(&format!("shortened from about {before} to {after} tokens\n"));
        }
        Event::Notice { text } => note(&format!("! {text}")),
        _ => {}
    }
}
