//! One or several replacements in a file's content, all or none.

use toolwright_tool::ToolError;

use super::closest::{candidates, closest};
use super::matchers::{EXACT, Miss, find};
use super::view::{View, with_line_feeds};
use crate::rewrite::{Splice, pieces, splice_between};

/// Places that were left which an answer names.
pub(crate) const LEFT_SHOWN: usize = 10;

/// What to replace by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) all: bool,
}

/// What came of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    /// None for the first content of a new file.
    pub(crate) matcher: Option<&'static str>,
    pub(crate) count: usize,
    /// Of the first place, as the file was when it was this one's turn.
    pub(crate) line: usize,
    /// Lines of places like those replaced that were left because their blanks differ.
    pub(crate) left: Vec<usize>,
}

impl Replacement {
    /// What is wrong with it whatever the file holds.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        if self.old == self.new {
            let text = "oldString and newString are identical: nothing would change.";
            return Err(ToolError::for_model(text));
        }
        Ok(())
    }
}

/// The changes to `content` that the replacements make, each seeing what those before it did. Nothing
/// at all if one of them cannot be made.
pub(crate) fn apply_all(
    shown: &str,
    content: Option<&[u8]>,
    replacements: &[Replacement],
) -> Result<(Vec<Splice>, Vec<Applied>), ToolError> {
    if let [only] = replacements {
        let (splices, applied) = apply(shown, content, only)?;
        return Ok((splices, vec![applied]));
    }
    let mut now = content.map(<[u8]>::to_vec);
    let mut done = Vec::with_capacity(replacements.len());
    for (at, replacement) in replacements.iter().enumerate() {
        let (splices, applied) = apply(shown, now.as_deref(), replacement).map_err(|error| {
            let (number, count) = (at + 1, replacements.len());
            let text = format!("Edit {number} of {count} failed and none was applied. {error}");
            ToolError::for_model(text)
        })?;
        now =
            Some(pieces(now.as_deref().unwrap_or_default(), &splices).collect::<Vec<_>>().concat());
        done.push(applied);
    }
    let splices = splice_between(content.unwrap_or_default(), now.as_deref().unwrap_or_default());
    Ok((splices, done))
}

fn apply(
    shown: &str,
    content: Option<&[u8]>,
    replacement: &Replacement,
) -> Result<(Vec<Splice>, Applied), ToolError> {
    replacement.check()?;
    let Replacement { old, new, all } = replacement;
    let content = match (content, old.is_empty()) {
        (None, true) => {
            let splice = Splice { range: 0..0, new: new.clone().into_bytes() };
            return Ok((
                vec![splice],
                Applied { matcher: None, count: 0, line: 1, left: Vec::new() },
            ));
        }
        (None, false) => {
            return Err(ToolError::for_model(format!(
                "File {shown} not found. To create it, pass an empty oldString."
            )));
        }
        (Some(_), true) => {
            return Err(ToolError::for_model(format!(
                "oldString cannot be empty: {shown} exists. Give the text to replace, or use write to replace the \
                 whole file."
            )));
        }
        (Some(content), false) => content,
    };
    if let Some(quick) = apply_plain(content, replacement) {
        return Ok(quick);
    }
    let is_text = check_encoding(shown, content, replacement)?;
    let view = View::of(content);
    let (old, new) = (own_text(old, view.has_mark()), own_text(new, view.has_mark()));
    let hit =
        find(&view.bytes, &old, *all).map_err(|miss| explain(shown, &view, &old, is_text, miss))?;
    let splice = |part| {
        let new = view.ends_for(part).put_into(&new).into_bytes();
        Splice { range: view.in_file(part), new }
    };
    let line = hit.parts.first().map_or(1, |part| view.line_of(part.start));
    let left = hit.left.iter().take(LEFT_SHOWN).map(|part| view.line_of(part.start)).collect();
    let applied = Applied { matcher: Some(hit.matcher), count: hit.parts.len(), line, left };
    Ok((hit.parts.iter().map(splice).collect(), applied))
}

/// ASCII within a line that stands exactly once needs neither line ends nor encoding to be known: a
/// large file is gone through once. Everything else is nothing here.
fn apply_plain(content: &[u8], replacement: &Replacement) -> Option<(Vec<Splice>, Applied)> {
    let Replacement { old, new, .. } = replacement;
    if !is_plain(old) || !is_plain(new) || is_wide(content) {
        return None;
    }
    let mut found = memchr::memmem::find_iter(content, old.as_bytes());
    let (Some(start), None) = (found.next(), found.next()) else { return None };
    let splice = Splice { range: start..start + old.len(), new: new.clone().into_bytes() };
    let line = 1 + memchr::memchr_iter(b'\n', &content[..start]).count();
    Some((vec![splice], Applied { matcher: Some(EXACT), count: 1, line, left: Vec::new() }))
}

/// ASCII within a line: the same in all encodings but the wide ones.
pub(crate) fn is_plain(text: &str) -> bool {
    text.is_ascii() && !text.contains(['\r', '\n', '\0'])
}

/// A text of the model's as it would stand in the view of a file.
pub(crate) fn own_text(text: &str, has_mark: bool) -> String {
    let text = if has_mark { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
    with_line_feeds(text).into_owned()
}

/// Whether it begins with the mark of UTF-16.
pub(crate) fn is_wide(content: &[u8]) -> bool {
    [&b"\xFF\xFE"[..], b"\xFE\xFF"].iter().any(|mark| content.starts_with(mark))
}

/// Text that is not UTF-8 is only changed where that cannot mix encodings: plain ASCII by plain ASCII.
/// Says whether the content is text.
fn check_encoding(
    shown: &str,
    content: &[u8],
    replacement: &Replacement,
) -> Result<bool, ToolError> {
    if is_wide(content) && content.contains(&0) {
        return Err(ToolError::for_model(format!(
            "{shown} is encoded as UTF-16. Only UTF-8 can be edited; convert it with a command first (iconv)."
        )));
    }
    if str::from_utf8(content).is_ok() {
        return Ok(true);
    }
    if replacement.old.is_ascii() && replacement.new.is_ascii() {
        return Ok(false);
    }
    Err(ToolError::for_model(format!(
        "{shown} is not encoded as UTF-8, and the edit has characters beyond ASCII: it would mix encodings. \
         Convert the file with a command first (iconv), or change it with one."
    )))
}

fn explain(shown: &str, view: &View<'_>, old: &str, is_text: bool, miss: Miss) -> ToolError {
    ToolError::for_model(match miss {
        Miss::Nowhere if !is_text => format!(
            "Could not find oldString in {shown}. The file is not encoded as UTF-8, so only the very same bytes match."
        ),
        Miss::Nowhere => {
            let near = closest(view, old, "your oldString")
                .map(|near| format!("\n\n{near}"))
                .unwrap_or_default();
            format!(
                "Could not find oldString in {shown}. It must match the file, with its indentation and line breaks; \
                 read the file and copy the text without the line numbers.{near}"
            )
        }
        Miss::Ambiguous(hit) => {
            let (lines, beginnings) = candidates(view, &hit.parts);
            let count = hit.parts.len();
            let how = if hit.matcher == EXACT {
                String::new()
            } else {
                format!(" (none exactly; by {})", hit.matcher)
            };
            format!(
                "Found multiple matches for oldString in {shown}: {count}, at lines {lines}{how}. Include more of the \
                 surrounding lines to make it unique, or set replaceAll.\n\n{beginnings}"
            )
        }
        Miss::Disproportionate(part) => {
            let (from, to) = (view.line_of(part.start), view.line_of(part.end));
            format!(
                "Refusing replacement because the matched span is disproportionately larger than oldString: lines \
                 {from}-{to} of {shown}. Read them and give oldString exactly."
            )
        }
    })
}
