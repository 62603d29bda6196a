//! One budget for what any tool hands to a model; the whole goes to a file that the notice names.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use toolwright_session::held::{PRIVATE_FILE, private_folder};

use crate::mask::Secrets;

/// Lines that reach the model. What people scroll through at most; more is searched, not read.
pub const OUTPUT_CAP_LINES: usize = 2_000;

/// Bytes that reach the model: about 12,000 tokens.
pub const OUTPUT_CAP_BYTES: usize = 50 << 10;

/// What reaches the model of one output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputCaps {
    pub lines: usize,
    pub bytes: usize,
}

impl Default for OutputCaps {
    fn default() -> Self {
        Self { lines: OUTPUT_CAP_LINES, bytes: OUTPUT_CAP_BYTES }
    }
}

impl OutputCaps {
    /// As people set them, within what makes sense: a notice needs some room, and an output of more than
    /// a mebibyte is nothing that a model reads.
    pub fn of(lines: Option<u64>, bytes: Option<u64>) -> Self {
        let within = |value: Option<u64>, usual: usize, least: usize, most: usize| {
            let value = value.map_or(usual, |v| usize::try_from(v).unwrap_or(usize::MAX));
            value.clamp(least, most)
        };
        Self {
            lines: within(lines, OUTPUT_CAP_LINES, 10, 100_000),
            bytes: within(bytes, OUTPUT_CAP_BYTES, 1 << 10, 1 << 20),
        }
    }
}

/// Where a session keeps what was too large for its log, and what must not stand in it.
#[derive(Debug, Clone)]
pub struct Outputs {
    folder: PathBuf,
    secrets: Secrets,
    caps: OutputCaps,
}

impl Outputs {
    /// The folder is made when the first output needs it.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), secrets: Secrets::default(), caps: OutputCaps::default() }
    }

    pub fn masking(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    pub fn within(self, caps: OutputCaps) -> Self {
        Self { caps, ..self }
    }

    pub fn caps(&self) -> OutputCaps {
        self.caps
    }

    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new file of its own.
    pub(crate) fn create(&self) -> io::Result<(File, PathBuf)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        private_folder(&self.folder)?;
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("tool_{millis:x}_{number}.txt"));
        let mut how = fs::OpenOptions::new();
        let file = how.write(true).create_new(true).mode(PRIVATE_FILE).open(&path)?;
        Ok((file, path))
    }
}

pub(crate) struct Fitted {
    pub(crate) text: String,
    /// Where the whole is, if it was cut.
    pub(crate) path: Option<PathBuf>,
}

/// Masks, then cuts `output` to the budget from its beginning: a secret that is cut in two would not
/// be found any more.
pub(crate) fn fit(mut output: String, outputs: &Outputs) -> Fitted {
    outputs.secrets.mask_string(&mut output);
    let OutputCaps { lines, bytes } = outputs.caps;
    if output.len() <= bytes && lines_within(&output, lines) {
        return Fitted { text: output, path: None };
    }
    let saved = outputs.create().and_then(|(mut file, path)| {
        io::Write::write_all(&mut file, output.as_bytes())?;
        Ok(path)
    });
    let total = output.lines().count();
    let (shown, count) = head(&output, lines, bytes);
    let rest = match &saved {
        Ok(path) => whole_is_in(path),
        // The cut stands; where the rest would have been is said instead of kept quiet.
        Err(error) => format!("The rest could not be kept: {error}."),
    };
    let notice = format!(
        "(Output cut: lines 1-{count} of {total} are shown, {} bytes in all. {rest})",
        output.len()
    );
    Fitted { text: format!("{}\n\n{notice}", shown.trim_end_matches('\n')), path: saved.ok() }
}

pub(crate) fn whole_is_in(path: &Path) -> String {
    format!(
        "The whole output is in {}: use grep on it, or read with offset and limit.",
        path.display()
    )
}

fn lines_within(text: &str, cap: usize) -> bool {
    text.bytes().filter(|b| *b == b'\n').nth(cap).is_none()
}

/// Whole lines from the start within both caps; at least the beginning of the first line.
pub(crate) fn head(text: &str, lines: usize, bytes: usize) -> (&str, usize) {
    let mut end = 0;
    let mut count = 0;
    for line in text.split_inclusive('\n').take(lines) {
        if end + line.len() > bytes {
            break;
        }
        end += line.len();
        count += 1;
    }
    if count == 0 {
        return (&text[..floor_boundary(text, bytes)], 1);
    }
    (&text[..end], count)
}

/// Whole lines from the end within both caps; at least the end of the last line.
pub(crate) fn tail(text: &str, lines: usize, bytes: usize) -> (&str, usize) {
    let mut start = text.len();
    let mut count = 0;
    for line in text.split_inclusive('\n').rev().take(lines) {
        if text.len() - (start - line.len()) > bytes {
            break;
        }
        start -= line.len();
        count += 1;
    }
    if count == 0 {
        let mut at = text.len().saturating_sub(bytes);
        while !text.is_char_boundary(at) {
            at += 1;
        }
        return (&text[at..], 1);
    }
    (&text[start..], count)
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_may_set_the_budget_within_reason() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(folder.path()).within(OutputCaps::of(Some(20), None));
        let fitted = fit("a\n".repeat(30), &outputs);
        assert!(fitted.text.contains("lines 1-20 of 30"), "{}", fitted.text);
        let caps = OutputCaps::of(Some(0), Some(u64::MAX));
        assert_eq!(caps, OutputCaps { lines: 10, bytes: 1 << 20 });
        assert_eq!(OutputCaps::of(None, None), OutputCaps::default());
    }

    #[test]
    fn what_fits_is_left_alone_and_writes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(folder.path().join("o"));
        let fitted = fit("a\n".repeat(2_000), &outputs);
        assert_eq!(fitted.path, None);
        assert!(!outputs.folder().exists());
    }

    #[test]
    fn too_many_lines_are_cut_and_the_whole_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let whole: String = (1..=3_000).map(|n| format!("{n}\n")).collect();
        let fitted = fit(whole.clone(), &Outputs::new(folder.path()));
        assert!(
            fitted.text.contains("\n2000\n\n(Output cut: lines 1-2000 of 3000"),
            "{}",
            fitted.text
        );
        assert_eq!(fs::read_to_string(fitted.path.unwrap()).unwrap(), whole);
    }

    #[test]
    fn one_huge_line_is_cut_between_characters() {
        let folder = tempfile::tempdir().unwrap();
        let fitted = fit("ü".repeat(60_000), &Outputs::new(folder.path()));
        assert!(fitted.text.starts_with('ü'));
        assert!(fitted.text.len() < OUTPUT_CAP_BYTES + 400);
    }

    #[test]
    fn an_output_that_cannot_be_kept_is_still_given_and_says_so() {
        let fitted = fit("x\n".repeat(5_000), &Outputs::new("/proc/nowhere"));
        assert!(fitted.text.contains("could not be kept"));
        assert_eq!(fitted.path, None);
    }
}
