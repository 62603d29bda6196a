//! From text to simple commands, and to the folders that each may run in: what readers give, and which of
//! them reads a line.

use super::word::Word;
use super::{Folder, Touch};

/// What is said of a line that a reader cannot make sense of.
pub(super) const UNREAD: &str = "it could not be parsed as a whole";

pub(super) const TOO_DEEP: &str = "it is nested too deeply to be judged";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) to: Word,
    pub(crate) writes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Raw {
    pub(crate) text: String,
    pub(crate) words: Vec<Word>,
    /// Names of variables that are set for it.
    pub(crate) assigned: Vec<String>,
    pub(crate) redirects: Vec<Redirect>,
    /// More words come from elsewhere (`xargs`, `find`).
    pub(crate) open_ended: bool,
    /// Where the line has gone before it.
    pub(crate) folders: Vec<Folder>,
    /// What it reads, where the line itself says so.
    pub(crate) input: Input,
    /// It reads what another command writes, and somebody is sure of it.
    pub(crate) piped: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Input {
    #[default]
    Elsewhere,
    Text(String),
    /// A text that the shell computes.
    Computed,
}

impl Raw {
    /// The program's name without its folder; nothing if it is not known.
    pub(crate) fn program(&self) -> Option<&str> {
        let first = self.words.first()?;
        let text = first.text.as_deref().filter(|_| !first.pattern)?;
        Some(text.rsplit('/').next().unwrap_or(text))
    }

    /// Whether the program is named by a path, and so may be anything under a known name.
    pub(crate) fn is_path(&self) -> bool {
        let text = self.words.first().map(Word::text).unwrap_or_default();
        text.contains('/')
    }

    /// What a person would see, of a command that was found inside another.
    pub(crate) fn inside(&self, words: &[Word]) -> Self {
        let text = words.iter().map(|w| w.source.as_str()).collect::<Vec<_>>().join(" ");
        let folders = self.folders.clone();
        let open_ended = self.open_ended;
        Self { text, words: words.to_vec(), open_ended, folders, ..Self::default() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) commands: Vec<Raw>,
    pub(crate) problems: Vec<String>,
    pub(crate) floor: Option<String>,
    /// A variable or a definition changes what other commands of the line do.
    pub(crate) tainted: bool,
    /// What it may destroy, of a line that could not be taken apart.
    pub(crate) rough: Vec<Touch>,
}

impl Parsed {
    pub(super) fn problem(&mut self, problem: &str) {
        if !self.problems.iter().any(|known| known == problem) {
            self.problems.push(problem.to_owned());
        }
    }

    /// Looks through a line that nobody takes apart, or not all of it.
    pub(super) fn look_roughly(&mut self, line: &str, folders: &[Folder]) {
        let rough = super::rough::look(line, folders);
        self.floor = self.floor.take().or(rough.floor);
        self.rough.extend(rough.touches);
    }
}

/// Variables that change what other programs do.
const POWERFUL: &[&str] = &[
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "SHELL",
    "HOME",
    "PWD",
    "CDPATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "GLOBIGNORE",
    "TMPDIR",
    "LESSOPEN",
    "LESSCLOSE",
];

pub(super) fn is_powerful(name: &str) -> bool {
    POWERFUL.contains(&name)
        || ["LD_", "DYLD_", "GIT_", "BASH_", "XDG_", "RIPGREP_"].iter().any(|p| name.starts_with(p))
}

/// Bytes of a line that is looked at. A longer one is a file in disguise.
pub(super) const LINE_CAP_BYTES: usize = 64 << 10;

/// Brackets of all kinds that may stand open at once. The grammar tries several readings of each, and
/// the time for that grows with the square of their number.
const OPEN_CAP: usize = 400;

/// Texts that may stand in one line. The grammar looks for the end of each in all that follows.
const DOCUMENTS_CAP: usize = 40;

/// Who reads a line. Both must find the same, so only tests choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The direct one, and the grammar for what that does not know.
    First,
    Grammar,
}

pub(crate) fn parse(line: &str, folders: &[Folder], reader: Reader) -> Parsed {
    let mut parsed = Parsed::default();
    let cap = |what: &str| {
        let text = line.chars().take(80).collect::<String>();
        let commands = vec![Raw { text, folders: folders.to_vec(), ..Raw::default() }];
        let mut parsed = Parsed { commands, problems: vec![what.to_owned()], ..Parsed::default() };
        parsed.look_roughly(line, folders);
        parsed
    };
    if line.len() > LINE_CAP_BYTES {
        return cap("it is too long to be judged");
    }
    let opened = line.bytes().filter(|b| matches!(b, b'(' | b'{' | b'`' | b'<')).count();
    if opened > OPEN_CAP || line.matches("<<").count() > DOCUMENTS_CAP {
        return cap(TOO_DEEP);
    }
    // Characters that a terminal shows as nothing, or as something else, are not for shells.
    if has_unseen(line) {
        parsed.problem("it holds characters that cannot be seen");
    } else if reader == Reader::First
        && let Some(read) = super::direct::parse(line, folders)
    {
        return read;
    }
    super::walk::walk(line, folders, parsed)
}

/// Whether something in it is not what it looks like on a screen.
pub(crate) fn has_unseen(line: &str) -> bool {
    let control = |b: u8| b.is_ascii_control() && !matches!(b, b'\n' | b'\t');
    if line.is_ascii() {
        return line.bytes().any(control);
    }
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || is_unseen(c);
    line.chars().any(odd)
}

/// Blanks that are none to a shell, and what has no shape of its own.
fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    ) || !c.is_ascii() && c.is_whitespace()
}
