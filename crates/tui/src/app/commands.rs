//! What can be typed behind `/`.

use super::{App, Effect, Kind, Order, Overlay, Row};
use crate::blocks::{Block, Level};
use crate::keymap::Action;

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
    Act(Action),
    Mode,
    Effort,
    Diff,
    Rename,
    Export,
    Share,
    Help,
    Exit,
    Fork,
}

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
    command!("mode", [], "how much is asked (/mode NAME)", Does::Mode),
    command!("effort", ["variants"], "how much the model thinks", Does::Effort),
    command!("themes", ["theme"], "choose the colours", Does::Pick(Kind::Themes)),
    command!("connect", ["login"], "keep a key for a provider", Does::Pick(Kind::Providers)),
    command!("compact", ["summarize"], "shorten the conversation", Does::Order(|| Order::Compact)),
    command!("undo", [], "take the last message back", Does::Order(|| Order::Undo)),
    command!("redo", [], "put it back", Does::Order(|| Order::Redo)),
    command!("timeline", ["back"], "go back to an earlier message", Does::Pick(Kind::Messages)),
    command!("fork", [], "go on in a copy of this session", Does::Fork),
    command!("rename", [], "another name for this session", Does::Rename),
    command!(
        "transcript",
        [],
        "the whole conversation, full screen",
        Does::Act(Action::Transcript)
    ),
    command!(
        "subagents",
        ["tasks"],
        "look at agents that work for this one",
        Does::Act(Action::Children)
    ),
    command!("diff", ["changes"], "what was changed in this conversation", Does::Diff),
    command!("copy", [], "copy the last answer", Does::Act(Action::Copy)),
    command!("export", [], "to a file: /export NAME.md, .html or .json", Does::Export),
    command!("share", [], "to a page that can be sent", Does::Share),
    command!("jobs", [], "commands in the background", Does::Pick(Kind::Jobs)),
    command!(
        "cost",
        ["status", "usage"],
        "what is set and what was spent",
        Does::Order(|| Order::Status)
    ),
    command!("editor", [], "write in $EDITOR", Does::Act(Action::Editor)),
    command!("details", [], "show whole outputs, or short ones", Does::Act(Action::Details)),
    command!(
        "thinking",
        ["toggle-thinking"],
        "show or fold reasoning",
        Does::Act(Action::Thinking)
    ),
    command!(
        "timestamps",
        ["toggle-timestamps"],
        "show when each message was said, or not",
        Does::Act(Action::Stamps)
    ),
    command!("vim", [], "vim keys, or none", Does::Act(Action::VimKeys)),
    command!("doctor", ["debug"], "what was found here", Does::Order(|| Order::Doctor)),
    command!(
        "permissions",
        ["permission"],
        "the rules, and what was agreed to",
        Does::Pick(Kind::Permissions)
    ),
    command!("mcp", ["mcps"], "MCP servers: connect, sign in", Does::Pick(Kind::Servers)),
    command!("skills", [], "use a skill", Does::Pick(Kind::Skills)),
    command!("keys", ["keybinds"], "see and change keys", Does::Pick(Kind::Keys)),
    command!("help", [], "keys and commands", Does::Help),
    command!("exit", ["quit", "q"], "leave", Does::Exit),
];

/// What people know from elsewhere and will not find here.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["unshare"], "/share writes a file and sends nothing, so there is nothing to take back."),
    (&["org", "orgs", "switch-org"], "there are no accounts here; /connect keeps keys."),
    (
        &["workspaces", "workspace", "warp", "move"],
        "a session belongs to its folder; start tw there, or with --dir.",
    ),
];

/// Other names that begin like this, with what the command is called.
pub(super) fn other_names(query: &str) -> impl Iterator<Item = (&'static str, String)> {
    let all = COMMANDS.iter().flat_map(|c| c.aliases.iter().map(move |alias| (*alias, c)));
    // Where the name itself begins like that, it is enough.
    let fits = move |alias: &str, name: &str| {
        !query.is_empty() && alias.starts_with(query) && !name.starts_with(query)
    };
    all.filter(move |(alias, command)| fits(alias, command.name))
        .map(|(alias, command)| (alias, format!("{} (/{})", command.about, command.name)))
}

impl App {
    pub(super) fn command_rows(&self) -> Vec<Row> {
        let row = |command: &Command| Row {
            label: format!("/{}", command.name),
            about: command.about.to_owned(),
            value: command.name.to_owned(),
        };
        let own = self.facts.commands.iter().map(|own| Row {
            label: format!("/{}", own.name),
            about: own.about.clone(),
            value: own.name.clone(),
        });
        let mut rows: Vec<Row> = own.collect();
        let hidden = |name: &str| self.facts.commands.iter().any(|own| own.name == name);
        rows.splice(0..0, COMMANDS.iter().filter(|c| !hidden(c.name)).map(row));
        rows
    }

    /// A line behind `/`; not taken where it names nothing (it may be a path).
    pub(super) fn slash(&mut self, line: &str) -> bool {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let facts = &self.facts;
        let offered = facts.prompts.iter().any(|(prompt, _)| prompt == name);
        let of_server = offered || (facts.servers && name.contains(':') && !name.contains('/'));
        // What people wrote themselves goes before what we have.
        if of_server || facts.commands.iter().any(|own| own.name == name) {
            self.own_command(name, rest);
            return true;
        }
        let known = |command: &&Command| command.name == name || command.aliases.contains(&name);
        if let Some(command) = COMMANDS.iter().find(known) {
            self.run_command(command.name, rest);
            return true;
        }
        if self.facts.skills.iter().any(|(skill, _)| skill == name) {
            let what = if rest.is_empty() { "Do what it says." } else { rest };
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
        if let Some((_, why)) = ELSEWHERE.iter().find(|(names, _)| names.contains(&name)) {
            self.say(Level::Notice, &format!("There is no /{name}: {why}"), None);
            return true;
        }
        let own = self.facts.commands.iter().map(|own| own.name.as_str());
        let all: Vec<&str> = COMMANDS.iter().map(|c| c.name).chain(own).collect();
        let near = crate::fuzzy::best(name, all.iter().map(|name| (*name, *name)), 1);
        let near = near.first().map(|n| format!("; did you mean /{n}?")).unwrap_or_default();
        let problem = format!("There is no command /{name}{near}");
        self.say(Level::Problem, &problem, Some("/help lists them."));
        true
    }

    /// A command that somebody wrote: what it says is the prompt.
    fn own_command(&mut self, name: &str, arguments: &str) {
        if self.busy {
            return self.hint("when this turn is over (esc interrupts it)");
        }
        let said = format!("/{name} {arguments}");
        self.finish(Block::user(said.trim_end(), self.clock()));
        self.working();
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        self.order(Order::Command { name, arguments });
    }

    pub(super) fn run_command(&mut self, name: &str, rest: &str) {
        if self.facts.commands.iter().any(|own| own.name == name) {
            return self.own_command(name, rest);
        }
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else { return };
        let waits = matches!(command.does, Does::New | Does::Fork);
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
            Does::Act(action) => self.act(action),
            Does::Mode if rest.is_empty() => self.pick(Kind::Modes),
            Does::Mode => self.change_mode(Some(rest)),
            Does::Effort if rest.is_empty() => self.pick(Kind::Efforts),
            Does::Effort => self.change_effort(rest),
            Does::Diff => self.show_changes(),
            Does::Rename => self.rename(rest),
            Does::Export => {
                let name = (!rest.is_empty()).then(|| rest.to_owned());
                self.order(Order::Export(name));
            }
            Does::Share => {
                let name = (!rest.is_empty()).then(|| rest.to_owned());
                self.order(Order::Share(name));
            }
            Does::Help => self.help(),
            Does::Exit => self.effect(Effect::Quit),
            Does::Fork => match self.session.clone() {
                Some((id, _)) => self.order(Order::Open { id, fork: true }),
                None => self.hint("there is nothing to copy yet"),
            },
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
        // Half of the room, where there is little.
        let wide = (self.width() / 2).clamp(8, 36);
        let keys = self.keymap.all();
        let bound = keys.iter().filter(|(keys, _)| !keys.is_empty());
        lines.extend(bound.map(|(keys, about)| format!("  {keys:<wide$}  {about}")));
        lines.push(String::new());
        lines.push("Commands".to_owned());
        lines.extend(COMMANDS.iter().map(|c| {
            let aliases: String = c.aliases.iter().map(|a| format!(", /{a}")).collect();
            format!("  {:<wide$}  {}", format!("/{}{aliases}", c.name), c.about)
        }));
        let own = self.facts.commands.iter();
        lines.extend(own.map(|c| format!("  {:<wide$}  {}", format!("/{}", c.name), c.about)));
        self.overlay = Some(Overlay::Page { title: "Help".to_owned(), lines, top: 0 });
    }
}
