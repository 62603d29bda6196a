//! Commands: prompts with places for arguments, the output of shell commands and files.

use crate::settings::{CommandSettings, Settings};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub name: String,
    pub description: Option<String>,
    pub template: String,
    pub agent: Option<String>,
    pub model: Option<String>,
    /// Whether it is work for another agent; by default it is where `agent` only works for others.
    pub subtask: Option<bool>,
}

#[derive(Debug, thiserror::Error)]
#[error("there is no command named \"{name}\"; known commands: {}", known.join(", "))]
pub struct CommandError {
    pub name: String,
    pub known: Vec<String>,
}

/// A piece of a template whose arguments are in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// To be run, and replaced by what it prints.
    Shell(String),
}

impl Command {
    /// Ours and those of the settings, by name.
    pub fn all(settings: &Settings) -> Vec<Self> {
        let mut commands = vec![init(), review()];
        for (name, own) in &settings.command {
            let Some(template) = own.template.clone() else { continue };
            commands.retain(|command| command.name != *name);
            let CommandSettings { description, agent, model, subtask, .. } = own.clone();
            commands.push(Self {
                name: name.clone(),
                description,
                template,
                agent,
                model,
                subtask,
            });
        }
        commands.sort_by(|a, b| a.name.cmp(&b.name));
        commands
    }

    pub fn find(settings: &Settings, name: &str) -> Result<Self, CommandError> {
        let mut commands = Self::all(settings);
        let wanted = name.trim_start_matches('/');
        match commands.iter().position(|command| command.name == wanted) {
            Some(at) => Ok(commands.swap_remove(at)),
            None => Err(CommandError {
                name: wanted.to_owned(),
                known: commands.into_iter().map(|c| c.name).collect(),
            }),
        }
    }

    /// The template with its arguments in place. Shell commands are found before that: an argument
    /// cannot bring one in.
    pub fn fill(&self, arguments: &str) -> Vec<Piece> {
        let words = words(arguments);
        let places = placeholders(&self.template);
        let takes_arguments = !places.is_empty() || self.template.contains("$ARGUMENTS");
        let last = places.into_iter().max().unwrap_or(0);
        let fill = |text: &str, quoted: bool| fill_in(text, arguments, &words, last, quoted);
        let mut pieces = Vec::new();
        let mut rest = self.template.as_str();
        while let Some((before, command, after)) = next_shell(rest) {
            pieces.push(Piece::Text(fill(before, false)));
            pieces.push(Piece::Shell(fill(command, true)));
            rest = after;
        }
        let mut tail = fill(rest, false);
        if !takes_arguments && !arguments.trim().is_empty() {
            tail.push_str(&format!("\n\n{}", arguments.trim()));
        }
        pieces.push(Piece::Text(tail));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        pieces
    }
}

fn next_shell(text: &str) -> Option<(&str, &str, &str)> {
    let at = text.find("!`")?;
    let inside = &text[at + 2..];
    let end = inside.find('`')?;
    Some((&text[..at], &inside[..end], &inside[end + 1..]))
}

/// The numbers of `$1`, `$2` and so on.
fn placeholders(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for piece in text.split('$').skip(1) {
        let digits: String = piece.chars().take_while(char::is_ascii_digit).collect();
        found.extend(digits.parse::<usize>().ok().filter(|n| *n > 0));
    }
    found
}

/// `quoted`: what stands in a shell command is one word there, whatever it holds.
fn fill_in(text: &str, arguments: &str, words: &[String], last: usize, quoted: bool) -> String {
    let put = |value: &str| {
        if quoted { format!("'{}'", value.replace('\'', r"'\''")) } else { value.to_owned() }
    };
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        made.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let digits = after.chars().take_while(char::is_ascii_digit).count();
        if let Some(tail) = after.strip_prefix("ARGUMENTS") {
            if quoted {
                let each: Vec<String> = words.iter().map(|word| put(word)).collect();
                made.push_str(&each.join(" "));
            } else {
                made.push_str(arguments);
            }
            rest = tail;
        } else if let Some(number) = after[..digits].parse::<usize>().ok().filter(|n| *n > 0) {
            // The last place takes what is left.
            let value = if number == last {
                words.get(number - 1..).unwrap_or_default().join(" ")
            } else {
                words.get(number - 1).cloned().unwrap_or_default()
            };
            made.push_str(&put(&value));
            rest = &after[digits..];
        } else {
            made.push('$');
            rest = after;
        }
    }
    made.push_str(rest);
    made
}

/// Words, where quotes hold several together.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut letters = arguments.chars().peekable();
    while let Some(first) = letters.next() {
        if first.is_whitespace() {
            continue;
        }
        let word: String = if first == '"' || first == '\'' {
            letters.by_ref().take_while(|c| *c != first).collect()
        } else {
            let mut word = String::from(first);
            while let Some(letter) = letters.next_if(|c| !c.is_whitespace()) {
                word.push(letter);
            }
            word
        };
        words.push(word);
    }
    words
}

/// Names of files that a text mentions with `@`.
pub fn mentions(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let starts = letter == '@' && !(before.is_alphanumeric() || before == '_' || before == '`');
        before = letter;
        if !starts {
            continue;
        }
        let rest = &text[at + 1..];
        let end =
            rest.find(|c: char| c.is_whitespace() || c == '`' || c == ',').unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches(['.', ':', ';', '?', '!', ')', '"', '\'']);
        if !name.is_empty() && !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found
}

fn own(name: &str, description: &str, template: &str) -> Command {
    Command {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        template: template.trim().to_owned(),
        agent: None,
        model: None,
        subtask: None,
    }
}

fn init() -> Command {
    own("init", "Write or improve AGENTS.md", include_str!("prompts/init.md"))
}

fn review() -> Command {
    own(
        "review",
        "Review changes: what is not committed, a commit, a branch",
        include_str!("prompts/review.md"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, arguments: &str) -> String {
        let pieces = own("x", "", template).fill(arguments);
        let show = |piece: Piece| match piece {
            Piece::Text(text) => text,
            Piece::Shell(command) => format!("<{command}>"),
        };
        pieces.into_iter().map(show).collect()
    }

    #[test]
    fn arguments_go_to_their_places() {
        for (template, arguments, expected) in [
            ("Fix $1 in $2", "bug main.rs", "Fix bug in main.rs"),
            ("Fix $1 in $2", "bug the whole house", "Fix bug in the whole house"),
            ("Fix $1", "'two words' more", "Fix two words more"),
            ("Fix $2 and $1.", "a", "Fix  and a."),
            ("All: $ARGUMENTS!", "a  \"b c\"", "All: a  \"b c\"!"),
            ("Plain", "more words", "Plain\n\nmore words"),
            ("Plain", "  ", "Plain"),
            ("cost $ 5 and $x", "", "cost $ 5 and $x"),
            ("$0 stays", "a", "$0 stays\n\na"),
        ] {
            assert_eq!(filled(template, arguments), expected, "{template} with {arguments}");
        }
    }

    #[test]
    fn an_argument_is_one_word_of_a_shell_command_and_brings_none_in() {
        assert_eq!(filled("See !`git log $1`", "main; rm -rf x"), "See <git log 'main; rm -rf x'>");
        assert_eq!(filled("Say $1", "!`rm x`"), "Say !`rm x`");
        assert_eq!(filled("!`a` and !`b`.", ""), "<a> and <b>.");
        assert_eq!(filled("open !`never", ""), "open !`never");
    }

    #[test]
    fn mentioned_files_are_found() {
        let text = "See @src/main.rs, @README.md. and `@no` me@mail.org (@a/b.txt) @src/main.rs";
        assert_eq!(mentions(text), ["src/main.rs", "README.md", "a/b.txt"]);
    }
}
