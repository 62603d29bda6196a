//! Instructions that lie on the network. What was fetched once is kept: a session begins with that and
//! fetches for the next one beside it, so that only the first waits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use toolwright_config::{Instruction, is_address};

use crate::workbench::Workbench;

/// How long the first session waits for all of them together.
const PATIENCE: Duration = Duration::from_secs(5);

/// Of one address; the part of it that reaches the model is cut like a file's.
const CAP_BYTES: usize = 256 << 10;

/// Characters of one address that reach the model.
const CAP_CHARS: usize = 32_000;

/// Addresses of one setting.
const MOST: usize = 20;

const REDIRECTS: usize = 5;

impl Workbench {
    fn addresses(&self) -> Vec<String> {
        let all = self.config.settings.instructions.iter().filter(|text| is_address(text));
        all.take(MOST).cloned().collect()
    }

    /// Fetches what is not there yet, and the others again for the next session. Gives what could not be had.
    pub(crate) async fn fetch_instructions(&self) -> Vec<String> {
        let folder = self.address_folder();
        let mut problems = Vec::new();
        let (known, new): (Vec<_>, Vec<_>) =
            self.addresses().into_iter().partition(|address| kept(&folder, address).is_some());
        if known.is_empty() && new.is_empty() {
            return problems;
        }
        let client = match client() {
            Ok(client) => client,
            Err(problem) => return vec![format!("instructions: {problem}")],
        };
        let fetched = new.iter().map(|address| keep(&client, &folder, address));
        for (address, result) in new.iter().zip(join_all(fetched).await) {
            if let Err(problem) = result {
                problems.push(format!(
                    "instructions: {address} cannot be had ({problem}); the session goes on without it"
                ));
            }
        }
        if !known.is_empty() {
            // Whoever is faster than this has the older ones once more.
            tokio::spawn(async move {
                join_all(known.iter().map(|address| keep(&client, &folder, address))).await;
            });
        }
        problems
    }

    /// What is there of them.
    pub(crate) fn fetched_instructions(&self) -> Vec<Instruction> {
        let folder = self.address_folder();
        let of = |address: String| {
            let text = kept(&folder, &address)?;
            Some(Instruction { path: PathBuf::from(address), text })
        };
        self.addresses().into_iter().filter_map(of).collect()
    }

    fn address_folder(&self) -> PathBuf {
        self.paths.data.join("instructions")
    }
}

fn file_of(folder: &Path, address: &str) -> PathBuf {
    folder.join(blake3::hash(address.as_bytes()).to_hex().as_str())
}

fn kept(folder: &Path, address: &str) -> Option<String> {
    std::fs::read_to_string(file_of(folder, address)).ok()
}

fn client() -> Result<reqwest::Client, String> {
    // Fails only when a provider is installed already, which serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = reqwest::Client::builder()
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::limited(REDIRECTS))
        .user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")));
    builder.build().map_err(|e| e.to_string())
}

async fn keep(client: &reqwest::Client, folder: &Path, address: &str) -> Result<(), String> {
    let text = tokio::time::timeout(PATIENCE, fetch(client, address))
        .await
        .map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))??;
    let text = match text.char_indices().nth(CAP_CHARS) {
        Some((at, _)) => format!("{}\n(cut: the page is longer)", &text[..at]),
        None => text,
    };
    let file = file_of(folder, address);
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&beside, text))
        .and_then(|()| std::fs::rename(&beside, &file));
    written.map_err(|e| format!("it cannot be kept in {}: {e}", folder.display()))
}

async fn fetch(client: &reqwest::Client, address: &str) -> Result<String, String> {
    let mut response = client.get(address).send().await.map_err(|e| cause(&e))?;
    if !response.status().is_success() {
        return Err(format!("the server says {}", response.status()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| cause(&e))? {
        let room = CAP_BYTES.saturating_sub(body.len()).min(chunk.len());
        body.extend_from_slice(&chunk[..room]);
        if room < chunk.len() {
            break;
        }
    }
    if body.contains(&0) {
        return Err("it is no text".to_owned());
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// The innermost words say what happened.
fn cause(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(deeper) = inner.source() {
        inner = deeper;
    }
    if error.is_timeout() {
        return format!("no answer within {} s", PATIENCE.as_secs());
    }
    inner.to_string()
}
