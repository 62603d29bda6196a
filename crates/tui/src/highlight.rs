//! Colours for code, by a table of languages and one small reader of words. It knows comments,
//! strings, numbers, keywords, types and calls: what the eye looks for. It needs nothing loaded and
//! goes line by line, so that code is coloured while it arrives.

use crate::style::{Color, Line, Style};
use crate::theme::Theme;

struct Language {
    names: &'static [&'static str],
    line: &'static [&'static str],
    block: Option<(&'static str, &'static str)>,
    quotes: &'static [&'static str],
    keywords: &'static str,
}

const C_WORDS: &str = "auto bool break case char class const const_cast constexpr continue default delete do double dynamic_cast else enum explicit extern false float for friend goto if inline int long mutable namespace new noexcept nullptr operator override private protected public register return short signed sizeof static static_cast struct switch template this throw true try typedef typename union unsigned using virtual void volatile while #include #define #if #ifdef #ifndef #endif";
const JS_WORDS: &str = "abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface keyof let module namespace never new null number object of package private protected public readonly return satisfies set static string super switch this throw true try type typeof undefined unknown var void while with yield";
const SHELL_WORDS: &str = "if then else elif fi for while until do done case esac in function select time return exit break continue local export readonly declare set unset shift source alias trap eval exec";

const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        line: &["//"],
        block: Some(("/*", "*/")),
        quotes: &["\""],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
    },
    Language {
        names: &["python", "py"],
        line: &["#"],
        block: None,
        quotes: &["\"\"\"", "'''", "\"", "'"],
        keywords: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match case None nonlocal not or pass raise return True try while with yield self",
    },
    Language {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx", "mjs"],
        line: &["//"],
        block: Some(("/*", "*/")),
        quotes: &["\"", "'", "`"],
        keywords: JS_WORDS,
    },
    Language {
        names: &["c", "h", "cpp", "c++", "cc", "hpp", "cxx", "objc"],
        line: &["//"],
        block: Some(("/*", "*/")),
        quotes: &["\"", "'"],
        keywords: C_WORDS,
    },
    Language {
        names: &["go"],
        line: &["//"],
        block: Some(("/*", "*/")),
        quotes: &["\"", "'", "`"],
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false string int int64 bool byte rune error any",
    },
    Language {
        names: &["java", "kotlin", "kt", "scala", "csharp", "cs", "c#", "swift", "dart"],
        line: &["//"],
        block: Some(("/*", "*/")),
        quotes: &["\"\"\"", "\"", "'"],
        keywords: "abstract as async await boolean break byte case catch char class const continue data default def do double else enum extends extension final finally float for fun func guard if implements import in init instanceof int interface internal is lateinit let long namespace native new nil null object open operator override package private protected public return sealed self short static string struct super switch synchronized this throw throws trait true false try typealias using val var virtual void volatile when where while with yield",
    },
    Language {
        names: &["bash", "sh", "shell", "zsh", "fish", "console"],
        line: &["#"],
        block: None,
        quotes: &["\"", "'"],
        keywords: SHELL_WORDS,
    },
    Language {
        names: &["ruby", "rb", "elixir", "ex", "exs", "crystal"],
        line: &["#"],
        block: None,
        quotes: &["\"", "'"],
        keywords: "alias and begin break case class def defmodule defp do else elsif end ensure false fn for if in module next nil not or raise redo rescue retry return self super then true undef unless until use when while with yield require include",
    },
    Language {
        names: &["php"],
        line: &["//", "#"],
        block: Some(("/*", "*/")),
        quotes: &["\"", "'"],
        keywords: "abstract and array as break case catch class clone const continue declare default do echo else elseif extends final finally fn for foreach function global if implements include instanceof interface match namespace new null or print private protected public readonly require return static switch throw trait true false try use var while yield",
    },
    Language {
        names: &["sql", "postgres", "mysql", "sqlite"],
        line: &["--"],
        block: Some(("/*", "*/")),
        quotes: &["'"],
        keywords: "SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX VIEW DROP ALTER ADD COLUMN JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT OFFSET AS AND OR NOT NULL IS IN EXISTS BETWEEN LIKE UNION ALL DISTINCT PRIMARY KEY FOREIGN REFERENCES DEFAULT CASE WHEN THEN ELSE END WITH BEGIN COMMIT ROLLBACK select from where insert into values update set delete create table index view drop alter add column join left right inner outer on group by order having limit offset as and or not null is in exists between like union all distinct primary key foreign references default case when then else end with begin commit rollback",
    },
    Language {
        names: &["json", "jsonc", "json5"],
        line: &["//"],
        block: Some(("/*", "*/")),
        quotes: &["\""],
        keywords: "true false null",
    },
    Language {
        names: &[
            "yaml",
            "yml",
            "toml",
            "ini",
            "conf",
            "dockerfile",
            "docker",
            "makefile",
            "make",
            "nix",
            "hcl",
            "terraform",
            "properties",
        ],
        line: &["#", ";"],
        block: None,
        quotes: &["\"\"\"", "\"", "'"],
        keywords: "true false null yes no on off FROM RUN CMD COPY ADD ENV ARG WORKDIR EXPOSE ENTRYPOINT USER VOLUME LABEL let in rec with inherit import resource variable output module provider",
    },
    Language {
        names: &["lua"],
        line: &["--"],
        block: Some(("--[[", "]]")),
        quotes: &["\"", "'"],
        keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while",
    },
    Language {
        names: &["haskell", "hs", "elm", "ocaml", "ml", "fsharp"],
        line: &["--"],
        block: Some(("{-", "-}")),
        quotes: &["\""],
        keywords: "case class data deriving do else forall fun if import in infix instance let match module newtype of open rec then type val where with",
    },
    Language {
        names: &["zig"],
        line: &["//"],
        block: None,
        quotes: &["\"", "'"],
        keywords: "align allowzero and anytype asm async await break catch comptime const continue defer else enum errdefer error export extern fn for if inline noalias null or orelse packed pub resume return struct suspend switch test threadlocal true false try undefined union unreachable usingnamespace var volatile while",
    },
    Language {
        names: &["css", "scss", "less"],
        line: &[],
        block: Some(("/*", "*/")),
        quotes: &["\"", "'"],
        keywords: "import media supports keyframes from to important",
    },
    Language {
        names: &["html", "xml", "svg", "vue", "svelte"],
        line: &[],
        block: Some(("<!--", "-->")),
        quotes: &["\"", "'"],
        keywords: "",
    },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Code,
    Block,
    /// In a string that goes over lines, by its quote.
    Text(&'static str),
}

pub struct Highlighter {
    language: Option<&'static Language>,
    state: State,
    is_diff: bool,
}

impl Highlighter {
    /// By the word behind the fence.
    pub fn new(name: &str) -> Self {
        let name = name.trim().split([' ', ',', '{', ':']).next().unwrap_or_default();
        let name = name.trim_start_matches('.').to_ascii_lowercase();
        let language = LANGUAGES.iter().find(|l| l.names.contains(&name.as_str()));
        Self { language, state: State::Code, is_diff: name == "diff" || name == "patch" }
    }

    /// Colours the next line.
    pub fn line(&mut self, text: &str, theme: &Theme) -> Line {
        if self.is_diff {
            let colour = match text.as_bytes().first() {
                Some(b'+') => theme.added,
                Some(b'-') => theme.removed,
                Some(b'@') => theme.info,
                _ => Color::Default,
            };
            return Line::styled(text, Style::fg(colour));
        }
        let Some(language) = self.language else { return Line::plain(text) };
        let mut line = Line::empty();
        let mut rest = text;
        while !rest.is_empty() {
            let (count, colour) = self.word(language, rest, theme);
            let count = count.clamp(1, rest.len());
            let count = (count..=rest.len()).find(|n| rest.is_char_boundary(*n));
            let (word, after) = rest.split_at(count.unwrap_or(rest.len()));
            line.push(word, Style::fg(colour));
            rest = after;
        }
        // Only these go on in the next line.
        if let State::Text(quote) = self.state
            && quote.len() == 1
            && quote != "`"
        {
            self.state = State::Code;
        }
        line
    }

    fn word(&mut self, language: &Language, rest: &str, theme: &Theme) -> (usize, Color) {
        match self.state {
            State::Block => {
                let end = language.block.and_then(|(_, end)| Some((rest.find(end)?, end.len())));
                return match end {
                    Some((at, length)) => {
                        self.state = State::Code;
                        (at + length, theme.comment)
                    }
                    None => (rest.len(), theme.comment),
                };
            }
            State::Text(quote) => {
                let (count, over) = string_end(rest, quote);
                if over {
                    self.state = State::Code;
                }
                return (count, theme.string);
            }
            State::Code => {}
        }
        if let Some((begin, _)) = language.block
            && rest.starts_with(begin)
        {
            self.state = State::Block;
            return (begin.len(), theme.comment);
        }
        if language.line.iter().any(|mark| rest.starts_with(mark)) {
            return (rest.len(), theme.comment);
        }
        if let Some(quote) = language.quotes.iter().find(|quote| rest.starts_with(**quote)) {
            self.state = State::Text(quote);
            return (quote.len(), theme.string);
        }
        let first = rest.chars().next().unwrap_or(' ');
        if first.is_ascii_digit() {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            return (rest.find(|c| !is_part(c)).unwrap_or(rest.len()), theme.number);
        }
        if first.is_alphabetic() || matches!(first, '_' | '#' | '@' | '$') {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let from = first.len_utf8();
            let count = rest[from..].find(|c| !is_part(c)).map_or(rest.len(), |n| n + from);
            let word = &rest[..count];
            let after = rest[count..].chars().next();
            let colour = if language.keywords.split(' ').any(|k| k == word) {
                theme.keyword
            } else if after == Some('(') || rest[count..].starts_with("!(") {
                theme.function
            } else if first.is_uppercase() {
                theme.kind
            } else {
                Color::Default
            };
            return (count, colour);
        }
        // In a shell most of these are parts of paths and options.
        let shell = language.keywords == SHELL_WORDS;
        let operators = if shell { "<>!&|" } else { "=+-*/<>!&|%^~?:" };
        let colour = if operators.contains(first) { theme.operator } else { Color::Default };
        (first.len_utf8(), colour)
    }
}

/// How far a string goes in this line, and whether it ends there.
fn string_end(rest: &str, quote: &str) -> (usize, bool) {
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(quote) {
            return (at + quote.len(), true);
        }
        let c = rest[at..].chars().next().map_or(1, char::len_utf8);
        at += c;
        if rest[at - c..].starts_with('\\') && at < rest.len() {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    (rest.len(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colours(language: &str, text: &str) -> Vec<(String, Color)> {
        let theme = Theme::default();
        let mut highlighter = Highlighter::new(language);
        let lines = text.lines().map(|line| highlighter.line(line, &theme));
        lines.flat_map(|line| line.spans).map(|s| (s.text, s.style.fg)).collect()
    }

    #[test]
    fn words_get_the_colour_of_what_they_are() {
        let theme = Theme::default();
        let found = colours("rust", "fn main() { let x = \"a\\\"b\"; } // end");
        let has = |text: &str, colour| found.contains(&(text.to_owned(), colour));
        assert!(has("fn", theme.keyword) && has("main", theme.function), "{found:?}");
        assert!(has("\"a\\\"b\"", theme.string) && has("// end", theme.comment), "{found:?}");
    }

    #[test]
    fn comments_and_strings_go_over_lines_where_the_language_says_so() {
        let theme = Theme::default();
        let found = colours("c", "/* one\ntwo */ int");
        assert_eq!(found[0].1, theme.comment);
        assert_eq!(found[1], ("two */".to_owned(), theme.comment));
        let found = colours("python", "\"\"\"a\nb\"\"\"\n'open\nx");
        assert_eq!(found.last().unwrap().1, Color::Default);
    }

    #[test]
    fn no_text_and_no_language_is_lost_on_it() {
        for language in ["rust", "nothing", "html", "sql", "diff", ""] {
            for text in ["", "漢字 = \"é\\", "\\", "/*", "'\\", "🦀!(x)", "0x1f_u8"] {
                let theme = Theme::default();
                assert_eq!(Highlighter::new(language).line(text, &theme).text(), text);
            }
        }
    }
}
