//! Keeps the secrets of our own configuration out of what tools hand over: a key that a command
//! happens to print must reach neither a model nor a file of ours.
//!
//! This guards against accidents. Somebody who may run commands can always spell a secret in a way
//! that no search finds.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Match, MatchKind};
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;
use toolwright_session::Outcome;

use crate::access::{Access, Plan};

/// Shorter values stand in ordinary text by chance, and masking them would only do harm.
const SHORTEST: usize = 8;

/// From this length on, half a secret is a secret too: tools cut long lines in the middle.
const SHORTEST_HALVED: usize = 32;

/// Values that must not be shown. Cheap to clone; the default holds none.
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<Table>>);

struct Table {
    /// Leftmost, then longest: of a secret that begins another, the longer is found.
    finder: AhoCorasick,
    patterns: Vec<String>,
    /// What stands in a pattern's place, by its number.
    marks: Vec<String>,
    names: Vec<String>,
    longest: usize,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.as_ref().map_or(&[][..], |table| &table.names);
        f.debug_tuple("Secrets").field(&names).finish()
    }
}

impl Secrets {
    /// From names and values. A value under two names is shown with the first.
    pub fn new<N: Into<String>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let (mut patterns, mut marks, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in pairs {
            let (name, value) = (name.into(), value.as_ref());
            if value.chars().count() < SHORTEST {
                continue;
            }
            let mark = format!("[masked: {name}]");
            names.push(name);
            for form in forms(value) {
                if form.len() >= SHORTEST && !patterns.contains(&form) {
                    patterns.push(form);
                    marks.push(mark.clone());
                }
            }
        }
        let longest = patterns.iter().map(String::len).max().unwrap_or(0);
        // The smallest automaton: a prefilter does the searching, and building a larger one would cost
        // milliseconds at every start.
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&patterns);
        match finder {
            Ok(finder) if longest > 0 => {
                Self(Some(Arc::new(Table { finder, patterns, marks, names, longest })))
            }
            // Building fails for gigabytes of patterns only; an environment holds no such thing.
            _ => Self(None),
        }
    }

    /// The text with `[masked: NAME]` in the place of each secret.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(table) = &self.0 else { return Cow::Borrowed(text) };
        let mut masked = String::new();
        let mut shown = 0;
        for found in table.finder.find_iter(text) {
            masked.push_str(&text[shown..found.start()]);
            masked.push_str(table.mark(&found));
            shown = found.end();
        }
        if shown == 0 {
            return Cow::Borrowed(text);
        }
        masked.push_str(&text[shown..]);
        Cow::Owned(masked)
    }

    pub fn mask_string(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.mask(text) {
            *text = masked;
        }
    }

    /// The same for every text in a value, the names of fields included.
    pub fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.mask_string(text),
            Value::Array(list) => list.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(fields) => {
                if fields.keys().any(|key| matches!(self.mask(key), Cow::Owned(_))) {
                    let renamed = std::mem::take(fields).into_iter();
                    *fields = renamed.map(|(k, v)| (self.mask(&k).into_owned(), v)).collect();
                }
                fields.values_mut().for_each(|field| self.mask_value(field));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub(crate) fn mask_outcome(&self, mut outcome: Outcome) -> Outcome {
        if self.0.is_some() {
            self.mask_string(&mut outcome.output);
            self.mask_string(&mut outcome.title);
            self.mask_value(&mut outcome.details);
        }
        outcome
    }

    /// Why a change must not be made: it would put a mark where the secret stands. A model that writes
    /// a file back as it was shown to it would do that.
    pub(crate) fn refuse_loss(&self, plan: &Plan) -> Option<String> {
        let diffs = plan.accesses.iter().filter_map(|access| match access {
            Access::Write { diff, .. } => Some(diff),
            _ => None,
        });
        let mark = diffs.into_iter().find_map(|diff| self.lost_in(diff))?;
        Some(format!(
            "Nothing was written: this would replace a secret by {mark}, which only stands for it in what you \
             are shown. Change the lines around it with edit and leave that line as it is."
        ))
    }

    fn lost_in(&self, diff: &str) -> Option<&str> {
        let table = self.0.as_ref()?;
        let lines = |sign| diff.lines().filter_map(move |line| line.strip_prefix(sign));
        let removed = |mark: &str| {
            let mut found = lines('-').flat_map(|line| table.finder.find_iter(line));
            found.any(|found| table.mark(&found) == mark)
        };
        let lost =
            |mark: &&String| lines('+').any(|line| line.contains(mark.as_str())) && removed(mark);
        table.marks.iter().find(lost).map(String::as_str)
    }
}

impl Table {
    fn mark(&self, found: &Match) -> &str {
        &self.marks[found.pattern().as_usize()]
    }

    /// The first place from `from` on where the end of `bytes` may be the beginning of a secret.
    fn undecided(&self, bytes: &[u8], from: usize) -> usize {
        let first = from.max((bytes.len() + 1).saturating_sub(self.longest));
        let begins = |tail: &[u8]| {
            self.patterns.iter().any(|p| p.len() > tail.len() && p.as_bytes().starts_with(tail))
        };
        (first..bytes.len()).find(|at| begins(&bytes[*at..])).unwrap_or(bytes.len())
    }
}

/// The ways in which a value is usually written.
fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let quoted = Value::from(value).to_string();
    forms.push(quoted[1..quoted.len() - 1].to_owned());
    for kept in ["-._~", "-._~/"] {
        forms.extend(percent_encoded(value, kept));
    }
    for alignment in 0..3 {
        forms.push(inside_base64(&STANDARD, value, alignment));
        forms.push(inside_base64(&URL_SAFE, value, alignment));
    }
    if value.len() >= SHORTEST_HALVED {
        let mut middle = value.len() / 2;
        while !value.is_char_boundary(middle) {
            middle -= 1;
        }
        let (front, back) = value.split_at(middle);
        forms.extend([front.to_owned(), back.to_owned()]);
    }
    forms
}

/// With digits in capitals and in small letters.
fn percent_encoded(value: &str, kept: &str) -> [String; 2] {
    let (mut upper, mut lower) = (String::new(), String::new());
    for byte in value.bytes() {
        let letter = char::from(byte);
        if letter.is_ascii_alphanumeric() || kept.contains(letter) {
            upper.push(letter);
            lower.push(letter);
        } else {
            upper.push_str(&format!("%{byte:02X}"));
            lower.push_str(&format!("%{byte:02x}"));
        }
    }
    [upper, lower]
}

/// The letters that `value` alone decides when it stands `alignment` bytes after a group's start: so
/// it is also found in the middle of something longer, such as `user:key`.
fn inside_base64(engine: &impl base64::Engine, value: &str, alignment: usize) -> String {
    let mut bytes = vec![0; alignment];
    bytes.extend_from_slice(value.as_bytes());
    let encoded = engine.encode(&bytes);
    // A letter stands for six bits.
    encoded[(alignment * 8).div_ceil(6)..bytes.len() * 8 / 6].to_owned()
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;

/// Masks a stream of bytes. A secret that is cut between two pieces is found: what may be the
/// beginning of one is held back until it is decided.
pub(crate) struct MaskStream {
    secrets: Secrets,
    held: Vec<u8>,
}

impl MaskStream {
    pub(crate) fn new(secrets: Secrets) -> Self {
        Self { secrets, held: Vec::new() }
    }

    /// What may be shown now.
    pub(crate) fn push<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let Some(table) = &self.secrets.0 else { return Cow::Borrowed(bytes) };
        let mut whole = Cow::Borrowed(bytes);
        if !self.held.is_empty() {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(bytes);
            whole = Cow::Owned(joined);
        }
        let mut masked = Vec::new();
        let mut shown = 0;
        let mut undecided = table.undecided(&whole, 0);
        while let Some(found) = table.finder.find(&whole[shown..])
            && shown + found.start() < undecided
        {
            masked.extend_from_slice(&whole[shown..shown + found.start()]);
            masked.extend_from_slice(table.mark(&found).as_bytes());
            shown += found.end();
            if undecided < shown {
                undecided = table.undecided(&whole, shown);
            }
        }
        whole[undecided..].clone_into(&mut self.held);
        match whole {
            Cow::Borrowed(bytes) if shown == 0 => Cow::Borrowed(&bytes[..undecided]),
            whole => {
                masked.extend_from_slice(&whole[shown..undecided]);
                Cow::Owned(masked)
            }
        }
    }

    /// What was held back and will not become more.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let Some(table) = &self.secrets.0 else { return held };
        table.finder.replace_all_bytes(&held, &table.marks)
    }
}
