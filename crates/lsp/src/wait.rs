//! Waiting for what a server finds in a file: told by itself or when asked, soon or not at all.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::client::{Client, Synced};
use crate::diagnostics::{Diagnostic, merge};
use crate::servers::Timing;
use crate::uri;

/// What came of waiting.
pub(crate) struct Waited {
    pub(crate) findings: Vec<Diagnostic>,
    /// The server had its say about this version of the file.
    pub(crate) answered: bool,
}

impl Client {
    /// Waits for the findings about the version that was sent. A new server has
    /// longer: many look at the project only once they are ready.
    pub(crate) async fn findings(&self, file: &Path, synced: Synced, timing: &Timing) -> Waited {
        let warming = timing.warm_up.saturating_sub(self.born.elapsed());
        let deadline = Instant::now() + warming + timing.findings;
        let pull = timing.pull + warming;
        let mut changed = self.hearing.watch();
        let mut until = deadline;
        let mut asked = None;
        let mut found: Option<Vec<Diagnostic>> = None;
        loop {
            changed.borrow_and_update();
            let (round, identifiers) = self.sources();
            if asked != Some(round) && !identifiers.is_empty() {
                asked = Some(round);
                let left = deadline.saturating_duration_since(Instant::now());
                found = self.ask_for_findings(file, identifiers, pull.min(left)).await;
                match &found {
                    // Whoever never tells of anything by itself has said all that it will.
                    Some(findings) if !findings.is_empty() || self.hearing.publications() == 0 => {
                        return self.with_told(file, synced, found);
                    }
                    // A clean answer; what such a server tells by itself comes at once or late.
                    Some(_) => until = deadline.min(Instant::now() + timing.debounce * 2),
                    None => {}
                }
                continue;
            }
            let now = Instant::now();
            let told = self.hearing.published(file).filter(|told| is_about(told, synced));
            if let Some(told) = told {
                let partial = told.times == 1 && self.server.first_push_is_partial();
                let quiet = if partial { deadline } else { told.at + timing.debounce };
                if now >= quiet.min(deadline) {
                    return self.with_told(file, synced, found);
                }
                tokio::select! {
                    _ = changed.changed() => {}
                    () = sleep_until(quiet.min(deadline)) => {}
                }
                continue;
            }
            if now >= until || self.ended().is_some() {
                let answered = found.is_some();
                return Waited { findings: found.unwrap_or_default(), answered };
            }
            tokio::select! {
                _ = changed.changed() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// The round, and the identifiers to ask with: what the server said at the beginning, and what it
    /// registered later.
    fn sources(&self) -> (u64, Vec<Option<String>>) {
        let (round, mut identifiers) = self.hearing.registrations();
        let provider = &self.capabilities["diagnosticProvider"];
        if !provider.is_null() {
            identifiers.push(provider["identifier"].as_str().map(str::to_owned));
        }
        identifiers.dedup();
        (round, identifiers)
    }

    /// All that answer in time; nothing if none does.
    async fn ask_for_findings(
        &self,
        file: &Path,
        identifiers: Vec<Option<String>>,
        limit: Duration,
    ) -> Option<Vec<Diagnostic>> {
        let answers = join_all(identifiers.into_iter().map(|identifier| {
            let mut parameters = json!({ "textDocument": { "uri": uri::of_path(file) } });
            if let Some(identifier) = identifier {
                parameters["identifier"] = json!(identifier);
            }
            self.request("textDocument/diagnostic", parameters, limit)
        }));
        let mut found = None;
        for answer in answers.await.into_iter().flatten() {
            if let Some(items) = answer["items"].as_array() {
                merge(found.get_or_insert_default(), items.iter().cloned().map(Diagnostic));
            }
        }
        found
    }

    fn with_told(&self, file: &Path, synced: Synced, found: Option<Vec<Diagnostic>>) -> Waited {
        let mut findings = found.unwrap_or_default();
        let told = self.hearing.published(file).filter(|told| is_about(told, synced));
        merge(&mut findings, told.into_iter().flat_map(|told| told.findings));
        Waited { findings, answered: true }
    }

    /// A question that any server answers quickly: whether it still lives.
    pub(crate) async fn is_alive(&self, file: &Path, limit: Duration) -> bool {
        let before = self.hearing.messages();
        let document = json!({ "uri": uri::of_path(file) });
        let position = json!({ "line": 0, "character": 0 });
        let parameters = json!({ "textDocument": document, "position": position });
        let has = |provider: &str| {
            !matches!(self.capabilities[provider], Value::Null | Value::Bool(false))
        };
        let method = match () {
            () if has("hoverProvider") => "textDocument/hover",
            () if has("definitionProvider") => "textDocument/definition",
            () => "textDocument/documentSymbol",
        };
        use crate::client::RequestError::TimedOut;
        let answer = self.request(method, parameters, limit).await;
        !matches!(answer, Err(TimedOut { .. })) || self.hearing.messages() > before
    }
}

/// Whether something that was told is about this version, by its time and by its own word.
fn is_about(told: &crate::hear::Published, synced: Synced) -> bool {
    told.publication > synced.publications && told.version.is_none_or(|v| v >= synced.version)
}
