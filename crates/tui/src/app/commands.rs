//! What can be typed behind `/`.

use super::{App, Effect, Kind, Order, Overlay, Row};
use crate::blocks::Level;

pub(super) struct Command {
    pub(super) name: &'static str,
    aliases: &'static [&'static str],
    pub(super) about: &'static str,
    does: Does,
}

#[derive(Clone, Copy)]
enum Does {
    New,
    Pick(Kind),
    Order(fn() -> Order),
    Prompt(&'static str),
    Export,
    Share,
    Help,
    Exit,
    Editor,
    Details,
    Thinking,
    Fork,
    Copy,
    Transcript,
    /// Another command of `tw` does it.
    Elsewhere(&'static str),
}

const INIT: &str = "Look at this project and write AGENTS.md for agents that will work in it: how to build, \
test and lint (one test too), how the code is laid out, and the conventions that are not obvious from the code. \
Improve the file if it is there already. Keep it short and leave out what everybody knows.";

const REVIEW: &str = "Review the changes in this working tree that are not committed (git diff and new files). \
Say what is wrong or risky, most important first, with file and line, and what you would do about it. Change nothing.";

macro_rules! command {
    ($name:literal, [$($alias:literal),*], $about:literal, $does:expr) => {
        Command { name: $name, aliases: &[$($alias),*], about: $about, does: $does }
    };
}

pub(super) const COMMANDS: &[Command] = &[
    command!("new", ["clear"], "begin a new session", Does::New),
    command!(
        "sessions",
        ["resume", "continue"],
        "open an earlier session",
        Does::Pick(Kind::Sessions)
    ),
    command!("models", ["model", "mo"], "choose the model", Does::Pick(Kind::Models)),
    command!("agents", ["agent"], "choose the agent", Does::Pick(Kind::Agents)),
    command!("themes", ["theme"], "choose the colours", Does::Pick(Kind::Themes)),
    command!("connect", ["login"], "keep a key for a provider", Does::Pick(Kind::Providers)),
    command!("compact", ["summarize"], "shorten the conversation", Does::Order(|| Order::Compact)),
    command!("undo", [], "take the last message back", Does::Order(|| Order::Undo)),
    command!("redo", [], "put it back", Does::Order(|| Order::Redo)),
    command!("timeline", ["back"], "go back to an earlier message", Does::Pick(Kind::Messages)),
    command!("fork", [], "go on in a copy of this session", Does::Fork),
    command!("transcript", [], "the whole conversation, full screen", Does::Transcript),
    command!("copy", [], "copy the last answer", Does::Copy),
    command!("export", [], "write the conversation to a file (/export NAME)", Does::Export),
    command!("share", [], "write the conversation to a file that can be sent", Does::Share),
    command!("jobs", [], "commands in the background", Does::Pick(Kind::Jobs)),
    command!(
        "cost",
        ["status", "usage"],
        "what is set and what was spent",
        Does::Order(|| Order::Status)
    ),
    command!("init", [], "write AGENTS.md for this project", Does::Prompt(INIT)),
    command!("review", [], "review what is not committed", Does::Prompt(REVIEW)),
    command!("editor", [], "write in $EDITOR", Does::Editor),
    command!("details", [], "show whole outputs, or short ones", Does::Details),
    command!("thinking", ["toggle-thinking"], "show or fold reasoning", Does::Thinking),
    command!("doctor", [], "what was found on this machine", Does::Elsewhere("doctor")),
    command!(
        "permissions",
        [],
        "what the rules decide",
        Does::Elsewhere("permission check 'COMMAND'")
    ),
    command!("help", [], "keys and commands", Does::Help),
    command!("exit", ["quit", "q"], "leave", Does::Exit),
];

impl App {
    pub(super) fn command_rows(&self) -> Vec<Row> {
        let row = |command: &Command| Row {
            label: format!("/{}", command.name),
            about: command.about.to_owned(),
            value: command.name.to_owned(),
        };
        COMMANDS.iter().map(row).collect()
    }

    /// A line behind `/`; not taken where it names nothing (it may be a path).
    pub(super) fn slash(&mut self, line: &str) -> bool {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let known = |command: &&Command| command.name == name || command.aliases.contains(&name);
        if let Some(command) = COMMANDS.iter().find(known) {
            self.run_command(command.name, rest.trim());
            return true;
        }
        if self.facts.skills.iter().any(|(skill, _)| skill == name) {
            let rest = rest.trim();
            let what =
                if rest.is_empty() { "Do what it says.".to_owned() } else { rest.to_owned() };
            let text = format!("Use the skill \"{name}\". {what}");
            match self.busy {
                true => self.order(Order::FollowUp(text)),
                false => self.prompt(text),
            }
            return true;
        }
        if name.contains('/') || name.is_empty() {
            return false;
        }
        let all: Vec<(&str, &str)> = COMMANDS.iter().map(|c| (c.name, c.name)).collect();
        let near = crate::fuzzy::best(name, all.into_iter(), 1);
        let near = near.first().map(|n| format!("; did you mean /{n}?")).unwrap_or_default();
        self.say(
            Level::Problem,
            &format!("There is no command /{name}{near}"),
            Some("/help lists them."),
        );
        true
    }

    pub(super) fn run_command(&mut self, name: &str, rest: &str) {
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else { return };
        let waits = matches!(command.does, Does::New | Does::Prompt(_) | Does::Fork);
        if self.busy && waits {
            return self.hint("when this turn is over (esc interrupts it)");
        }
        match command.does {
            Does::New => {
                self.blocks.clear();
                self.todos.clear();
                self.session = None;
                (self.used, self.cost, self.cost_known) = (0, 0.0, true);
                self.say(Level::Quiet, "A new session", None);
                self.order(Order::New);
            }
            Does::Pick(kind) => self.pick(kind),
            Does::Order(order) => self.order(order()),
            Does::Prompt(text) => {
                let more = if rest.is_empty() { String::new() } else { format!("\n\n{rest}") };
                self.prompt(format!("{text}{more}"));
            }
            Does::Export => {
                let name = (!rest.is_empty()).then(|| rest.to_owned());
                self.order(Order::Export(name));
            }
            Does::Share => self.order(Order::Export(None)),
            Does::Help => self.help(),
            Does::Exit => self.effect(Effect::Quit),
            Does::Editor => self.act(crate::keymap::Action::Editor),
            Does::Details => self.act(crate::keymap::Action::Details),
            Does::Thinking => self.act(crate::keymap::Action::Thinking),
            Does::Copy => self.act(crate::keymap::Action::Copy),
            Does::Transcript => self.act(crate::keymap::Action::Transcript),
            Does::Fork => match self.session.clone() {
                Some((id, _)) => self.order(Order::Open { id, fork: true }),
                None => self.hint("there is nothing to copy yet"),
            },
            Does::Elsewhere(command) => {
                let text = format!("In another terminal, in this folder: tw {command}");
                self.say(Level::Quiet, &text, None);
            }
        }
    }

    fn help(&mut self) {
        let mut lines = vec![
            "Write and press enter. While it works, enter steers it and alt+enter queues."
                .to_owned(),
            "@ names a file or an agent, / a command, ! runs a command of your own.".to_owned(),
            String::new(),
            "Keys".to_owned(),
        ];
        let keys = self.keymap.all();
        lines.extend(keys.iter().map(|(keys, about)| format!("  {keys:<36} {about}")));
        lines.push(String::new());
        lines.push("Commands".to_owned());
        lines.extend(COMMANDS.iter().map(|c| {
            let aliases: String = c.aliases.iter().map(|a| format!(", /{a}")).collect();
            format!("  {:<36} {}", format!("/{}{aliases}", c.name), c.about)
        }));
        self.overlay = Some(Overlay::Page { title: "Help".to_owned(), lines, top: 0 });
    }
}
