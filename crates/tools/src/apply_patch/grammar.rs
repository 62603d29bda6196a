//! The text of a patch: read into sections and written again.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: path          then "+text" lines
//! *** Delete File: path
//! *** Update File: path       then optionally "*** Move to: path", then hunks:
//! @@ [a line to start after]
//!  kept, -removed, +added lines
//! *** End of File             optionally: the hunk is at the end
//! *** End Patch
//! ```
//!
//! Markers may be padded with blanks, and the whole may stand in a here-document.

use std::fmt::{self, Display, Formatter};
use std::iter::Peekable;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) sections: Vec<Section>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Section {
    Add { path: String, lines: Vec<String> },
    Delete { path: String },
    Update { path: String, move_to: Option<String>, hunks: Vec<Hunk> },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hunk {
    /// Lines that come before it, each after the one before.
    pub(crate) headers: Vec<String>,
    pub(crate) lines: Vec<HunkLine>,
    pub(crate) is_at_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HunkLine {
    Keep(String),
    Remove(String),
    Add(String),
}

/// Why a text is no patch, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoPatch {
    /// The two markers and nothing between them.
    Empty,
    Envelope,
    Line {
        number: usize,
        problem: String,
    },
}

impl Display for NoPatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("patch rejected: empty patch"),
            Self::Envelope => write!(
                f,
                "apply_patch verification failed: Invalid patch format: the first line must be '{BEGIN}' and the last \
                 '{END}', with nothing around them."
            ),
            Self::Line { number, problem } => write!(
                f,
                "apply_patch verification failed: Invalid patch format: line {number}: {problem}"
            ),
        }
    }
}

struct Numbered<'a> {
    number: usize,
    text: &'a str,
}

impl Numbered<'_> {
    fn wrong(&self, problem: impl Into<String>) -> NoPatch {
        NoPatch::Line { number: self.number, problem: problem.into() }
    }
}

impl Patch {
    pub(crate) fn parse(text: &str) -> Result<Self, NoPatch> {
        let mut lines: Vec<Numbered<'_>> =
            text.lines().enumerate().map(|(at, text)| Numbered { number: at + 1, text }).collect();
        let blank = |line: Option<&Numbered<'_>>| line.is_some_and(|l| l.text.trim().is_empty());
        while blank(lines.last()) {
            lines.pop();
        }
        let first = lines.iter().take_while(|l| l.text.trim().is_empty()).count();
        lines.drain(..first);
        unwrap_heredoc(&mut lines);
        let is =
            |line: Option<&Numbered<'_>>, marker| line.is_some_and(|l| l.text.trim() == marker);
        if lines.len() < 2 || !is(lines.first(), BEGIN) || !is(lines.last(), END) {
            return Err(NoPatch::Envelope);
        }
        lines.pop();
        let mut lines = lines.into_iter().skip(1).peekable();
        let mut sections = Vec::new();
        while let Some(line) = lines.next() {
            if !line.text.trim().is_empty() {
                sections.push(section(&line, &mut lines)?);
            }
        }
        if sections.is_empty() { Err(NoPatch::Empty) } else { Ok(Self { sections }) }
    }
}

/// `<<'EOF'` or `cat <<EOF` before the patch and `EOF` after it.
fn unwrap_heredoc(lines: &mut Vec<Numbered<'_>>) {
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
    let opening = first.text.trim();
    let opening = ["cat", "apply_patch"]
        .iter()
        .find_map(|word| opening.strip_prefix(word))
        .map_or(opening, str::trim_start);
    let Some(tag) = opening.strip_prefix("<<") else { return };
    let tag = tag.strip_prefix('-').unwrap_or(tag).trim();
    let quoted = |quote| tag.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
    let tag = quoted('\'').or_else(|| quoted('"')).unwrap_or(tag);
    if !tag.is_empty() && last.text.trim() == tag && lines.len() > 1 {
        lines.pop();
        lines.remove(0);
    }
}

fn section<'a>(
    header: &Numbered<'_>,
    lines: &mut Peekable<impl Iterator<Item = Numbered<'a>>>,
) -> Result<Section, NoPatch> {
    let text = header.text.trim();
    let path = |name: &str| match name.trim() {
        "" => Err(header.wrong("the path is missing.")),
        path => Ok(path.to_owned()),
    };
    if let Some(name) = text.strip_prefix(ADD) {
        let mut content = Vec::new();
        while let Some(line) = lines.next_if(|line| line.text.starts_with('+')) {
            content.push(line.text[1..].to_owned());
        }
        return Ok(Section::Add { path: path(name)?, lines: content });
    }
    if let Some(name) = text.strip_prefix(DELETE) {
        return Ok(Section::Delete { path: path(name)? });
    }
    let Some(name) = text.strip_prefix(UPDATE) else {
        let problem = format!(
            "'{text}' is not a section header. Valid are '{ADD} path', '{DELETE} path' and '{UPDATE} path'."
        );
        return Err(header.wrong(problem));
    };
    let path = path(name)?;
    let moved = lines.next_if(|line| line.text.trim().starts_with(MOVE));
    let move_to = match &moved {
        None => None,
        Some(line) => match line.text.trim().trim_start_matches(MOVE).trim() {
            "" => return Err(line.wrong("the path is missing.")),
            target => Some(target.to_owned()),
        },
    };
    let hunks = hunks(lines)?;
    if hunks.is_empty() {
        return Err(
            header.wrong(format!("the update of {path} has no hunk: nothing would change."))
        );
    }
    Ok(Section::Update { path, move_to, hunks })
}

fn hunks<'a>(
    lines: &mut Peekable<impl Iterator<Item = Numbered<'a>>>,
) -> Result<Vec<Hunk>, NoPatch> {
    let mut hunks: Vec<Hunk> = Vec::new();
    loop {
        while lines.next_if(|line| line.text.trim().is_empty()).is_some() {}
        let Some(line) = lines.peek() else { return Ok(hunks) };
        if line.text.starts_with("***") && line.text.trim_end() != END_OF_FILE {
            return Ok(hunks);
        }
        let mut hunk = Hunk::default();
        let mut has_header = false;
        while let Some(line) = lines.next_if(|line| header_text(line.text).is_some()) {
            has_header = true;
            let header = header_text(line.text).unwrap_or_default();
            if !header.trim().is_empty() {
                hunk.headers.push(header.to_owned());
            }
        }
        let Some(first) = lines.peek() else {
            return Err(NoPatch::Line { number: 0, problem: "the last hunk is empty.".into() });
        };
        let (number, text) = (first.number, first.text.to_owned());
        let wrong = |problem: String| NoPatch::Line { number, problem };
        // Only the first hunk may do without.
        if !has_header && !hunks.is_empty() {
            let problem = format!("a hunk must start with '@@', this is '{text}'.");
            return Err(wrong(problem));
        }
        while let Some(line) = lines.next_if(|line| hunk_line(line.text).is_some()) {
            hunk.lines.extend(hunk_line(line.text));
        }
        if hunk.lines.is_empty() {
            let problem = format!(
                "the hunk has no line; each line must start with ' ' (kept), '-' (removed) or '+' (added), this is '{text}'."
            );
            return Err(wrong(problem));
        }
        hunk.is_at_end = lines.next_if(|line| line.text.trim_end() == END_OF_FILE).is_some();
        hunks.push(hunk);
    }
}

fn header_text(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("@@")?;
    if rest.trim().is_empty() { Some("") } else { rest.strip_prefix(' ') }
}

/// An empty line is a kept one that has lost its blank.
fn hunk_line(line: &str) -> Option<HunkLine> {
    let mut rest = line.chars();
    match rest.next() {
        None => Some(HunkLine::Keep(String::new())),
        Some(' ') => Some(HunkLine::Keep(rest.as_str().to_owned())),
        Some('-') => Some(HunkLine::Remove(rest.as_str().to_owned())),
        Some('+') => Some(HunkLine::Add(rest.as_str().to_owned())),
        Some(_) => None,
    }
}

impl Display for Patch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{BEGIN}")?;
        for section in &self.sections {
            write!(f, "{section}")?;
        }
        writeln!(f, "{END}")
    }
}

impl Display for Section {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add { path, lines } => {
                writeln!(f, "{ADD} {path}")?;
                lines.iter().try_for_each(|line| writeln!(f, "+{line}"))
            }
            Self::Delete { path } => writeln!(f, "{DELETE} {path}"),
            Self::Update { path, move_to, hunks } => {
                writeln!(f, "{UPDATE} {path}")?;
                if let Some(target) = move_to {
                    writeln!(f, "{MOVE} {target}")?;
                }
                hunks.iter().try_for_each(|hunk| write!(f, "{hunk}"))
            }
        }
    }
}

impl Display for Hunk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.headers.is_empty() {
            writeln!(f, "@@")?;
        }
        for header in &self.headers {
            writeln!(f, "@@ {header}")?;
        }
        for line in &self.lines {
            match line {
                HunkLine::Keep(text) => writeln!(f, " {text}")?,
                HunkLine::Remove(text) => writeln!(f, "-{text}")?,
                HunkLine::Add(text) => writeln!(f, "+{text}")?,
            }
        }
        if self.is_at_end { writeln!(f, "{END_OF_FILE}") } else { Ok(()) }
    }
}
