//! What the tests of the terminal interface share.

use toolwright_testkit::{Folder, ModelServer, Terminal, Wire};

use crate::folder;

pub(crate) const MODEL: [&str; 2] = ["-m", "anthropic/m"];

/// A folder whose model is the scripted one.
pub(crate) fn place(server: &ModelServer) -> Folder {
    folder().with_model(server, Wire::Anthropic)
}

/// Leaves once nothing is at work any more.
pub(crate) fn leave(terminal: &mut Terminal) {
    terminal.wait_for("Ask anything");
    terminal.keys("\x04");
    assert_eq!(terminal.wait(), Some(0));
}

/// What the model was told last by the person.
pub(crate) fn last_words(server: &ModelServer) -> String {
    let request = server.last_request();
    request.messages().last().map(|m| m["content"].to_string()).unwrap_or_default()
}
