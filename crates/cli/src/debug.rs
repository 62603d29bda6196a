//! `tw debug`: for people who debug a provider.

use std::io::Read;
use std::path::Path;

use toolwright::llm::describe;
use toolwright::llm::wire::Wire;

use crate::args::{Debug, DebugAction};
use crate::exit::{Exit, Problem};
use crate::terminal::print;

/// Bytes of a body that are worth looking at.
const BODY_CAP_BYTES: u64 = 256 << 20;

pub fn debug(options: &Debug) -> Result<Exit, Problem> {
    let DebugAction::Decode { wire, status, file } = &options.action;
    let known = || Wire::ALL.map(Wire::name).join(", ");
    let wire = Wire::ALL.into_iter().find(|w| w.name() == wire).ok_or_else(|| {
        Problem::usage(format!("there is no wire format {wire:?}; known: {}", known()))
    })?;
    let body = read(file)?;
    print(&format!("{}\n", describe(wire, *status, &body, body.len())));
    Ok(Exit::Done)
}

fn read(file: &Path) -> Result<Vec<u8>, Problem> {
    let failed = |e| Problem::usage(format!("cannot read {}: {e}", file.display()));
    let mut body = Vec::new();
    if file == Path::new("-") {
        let stdin = std::io::stdin().lock();
        stdin.take(BODY_CAP_BYTES).read_to_end(&mut body).map_err(failed)?;
    } else {
        let opened = std::fs::File::open(file).map_err(failed)?;
        opened.take(BODY_CAP_BYTES).read_to_end(&mut body).map_err(failed)?;
    }
    Ok(body)
}
