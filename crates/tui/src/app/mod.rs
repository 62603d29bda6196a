//! The interface as a state machine: inputs go in, effects come out, and what is to be seen is a pure
//! function of the state. It knows no terminal, no clock and no engine.

mod act;
mod ask;
mod child;
mod commands;
mod dialog;
mod history;
mod lists;
mod menu;
mod picker;
mod prompt;
mod transcript;
mod turn;
mod view;
mod vim_keys;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use toolwright::llm::Effort;
use toolwright::permission::Mode;
use toolwright::session::QueueKind;
use toolwright::tool::Replies;
use toolwright::{Answer, Event};

use crate::blocks::{Block, Call, Level, View};
use crate::editor::Editor;
use crate::flow::Flow;
use crate::key::Key;
use crate::keymap::Keymap;
use crate::picture::{Means, Picture};
use crate::prefs::Prefs;
use crate::style::Line;
use crate::theme::Theme;
use crate::vim::Vim;
pub(crate) use ask::{Ask, Trust};
pub(crate) use dialog::{LineFor, Overlay};
pub(crate) use history::History;
pub(crate) use menu::Menu;
pub(crate) use picker::{Kind, Picker, Row};
pub(crate) use transcript::Transcript;

/// Blocks that are kept for looking back; the session's log has all of them.
const BLOCKS_CAP: usize = 20_000;

/// Finished rows that wait for a terminal which takes none, or is too small for any.
const FINISHED_CAP: usize = 10_000;

pub(crate) enum Input {
    Key(Key),
    Paste(String),
    Focus(bool),
    Resize {
        columns: usize,
        rows: usize,
    },
    /// Time has passed.
    Tick,
    Engine(Box<Event>),
    News(Box<News>),
    /// Files that fit what was asked for with this token.
    Found {
        token: u64,
        paths: Vec<String>,
    },
    /// What the person made of the text in an editor of their own.
    Edited(Result<String, String>),
}

/// What whoever drives the engine has to tell.
pub(crate) enum News {
    Ready(Facts),
    /// A session was opened or begun; with what was said in it before.
    Session {
        id: String,
        title: String,
        blocks: Vec<Block>,
        /// Earlier blocks that are not here.
        left_out: usize,
    },
    Model {
        model: String,
        window: Option<u64>,
    },
    Agent(String),
    Branch(Option<String>),
    Spent(crate::host::lists::Spent),
    Queued {
        id: u64,
        kind: QueueKind,
        text: String,
    },
    Delivered(u64),
    /// An answer was not taken; its question still waits.
    NotTaken {
        id: u64,
        problem: String,
    },
    /// This folder's own files want more than they may.
    Trust(Trust),
    Mode(Mode),
    /// What MCP servers offer: `server:uri` and `server:prompt`, with what they are.
    Offered {
        resources: Vec<(String, String)>,
        prompts: Vec<(String, String)>,
    },
    /// What is left of the conversation, or back again.
    Rewound(Vec<Block>),
    /// The session has another name.
    Renamed(String),
    /// Sessions in which this was said.
    Searched {
        query: String,
        rows: Vec<Row>,
    },
    /// What an agent that works for this one has done so far.
    Child {
        id: String,
        title: String,
        blocks: Vec<Block>,
    },
    /// A turn begins that nobody typed a prompt for.
    Working,
    Idle,
    Rows {
        kind: Kind,
        rows: Vec<Row>,
    },
    Preview {
        value: String,
        text: String,
    },
    Say {
        level: Level,
        text: String,
        advice: Option<String>,
    },
    /// A page of text to look at.
    Page {
        title: String,
        text: String,
    },
    ShellStarted(String),
    ShellSaid(String),
    ShellDone(Box<crate::blocks::Done>),
    /// What the outcome of a call shows, before it is told.
    Pictures {
        call: String,
        pictures: Vec<Picture>,
    },
    /// Text for the prompt.
    Draft(String),
    /// What was in the clipboard: an image as a file, or text.
    Clipboard(Result<Clip, String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Clip {
    Image(String),
    Text(String),
}

/// What is known about where we are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub model: String,
    pub agent: String,
    /// Those that can be chosen, and those that others give work to: name and description.
    pub agents: Vec<(String, String)>,
    pub workers: Vec<(String, String)>,
    pub skills: Vec<(String, String)>,
    /// Commands that people wrote.
    pub commands: Vec<OwnCommand>,
    pub resources: Vec<(String, String)>,
    pub prompts: Vec<(String, String)>,
    /// There are MCP servers to ask.
    pub servers: bool,
    pub directory: String,
    pub branch: Option<String>,
    pub window: Option<u64>,
    pub demo: bool,
    /// The server on this machine that answers, where nobody named a model.
    pub local: Option<String>,
    pub sandbox: Option<String>,
    pub mode: Mode,
    pub warnings: Vec<String>,
}

/// How one goes back to an earlier message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Going {
    /// Files stay as they are.
    WordsOnly,
    WithFiles,
    /// This session stays as it is, and a copy goes on from there.
    InACopy,
}

/// A command that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OwnCommand {
    pub name: String,
    pub about: String,
    /// Words behind it go into it.
    pub takes_words: bool,
}

/// What the engine's driver is to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Order {
    Prompt(String),
    Steer(String),
    FollowUp(String),
    Withdraw(u64),
    Abort,
    Answer(u64, Answer),
    Reply(u64, Option<Replies>),
    New,
    Open {
        id: String,
        fork: bool,
    },
    Model(String),
    Agent(String),
    Compact,
    Shell(String),
    List(Kind),
    Preview(String),
    EndJobs,
    Status,
    Export(Option<String>),
    /// To a page that can be sent.
    Share(Option<String>),
    Undo,
    Redo,
    /// Back to before the prompt with this number, counted from the last.
    Back(usize, Going),
    Key {
        provider: String,
        key: String,
    },
    /// Whether this folder is trusted; nothing asks again the next time.
    Trust(Option<bool>),
    OpenAddress(String),
    Mode(Mode),
    /// How much the model thinks; nothing is as usual.
    Effort(Option<Effort>),
    /// A command that somebody wrote, or a prompt of a server.
    Command {
        name: String,
        arguments: String,
    },
    /// Another name for a session; the one at work without an id.
    Rename {
        id: Option<String>,
        title: String,
    },
    Delete(String),
    Search(String),
    Connect(String),
    SignIn(String),
    SignOut(String),
    /// Takes back something that was agreed to.
    Forget(String),
    Doctor,
    /// What servers offer.
    Offered,
    Child(String),
    /// What is in the clipboard.
    Clipboard,
}

/// What only the outside can do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Order(Order),
    Quit,
    OpenEditor(String),
    Suspend,
    Redraw,
    /// A person is needed.
    Attention(String),
    Title(String),
    Find {
        token: u64,
        query: String,
    },
    Remember(String),
    Copy(String),
    Save(Prefs),
}

/// Something that is not finished yet.
enum Live {
    Text { flow: Flow, whole: String, done: bool },
    Thought { text: String, since: Duration, done: bool },
    Call { position: usize, call: Call, shell: bool },
}

struct Waiting {
    id: u64,
    kind: QueueKind,
    text: String,
}

/// A key that counts when it is pressed a second time soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Armed {
    Exit,
    Back,
}

pub(crate) struct App {
    pub columns: usize,
    pub rows: usize,
    pub now: Duration,
    /// The time of day when `now` was nothing.
    pub begun_at: Option<u64>,
    pub theme: Theme,
    pub keymap: Keymap,
    pub prefs: Prefs,
    /// Keys as the settings say.
    keybinds: serde_json::Value,
    facts: Facts,
    ready: bool,
    session: Option<(String, String)>,
    editor: Editor,
    history: History,
    menu: Option<Menu>,
    overlay: Option<Overlay>,
    asks: VecDeque<Ask>,
    /// Those that were answered last: an answer may turn out not to be taken.
    answered: VecDeque<Ask>,
    /// The person is in the middle of a word: keys go on to the text.
    held: bool,
    /// When a key was pressed last.
    keyed: Duration,
    vim: Vim,
    transcript: Option<Transcript>,
    blocks: Vec<Block>,
    /// Rows that are finished and not written yet.
    finished: Vec<Line>,
    live: VecDeque<Live>,
    queue: Vec<Waiting>,
    busy: bool,
    since: Duration,
    activity: String,
    /// Pieces of reasoning of this step that were seen to come.
    thoughts: usize,
    /// The person wanted the turn to end: what is queued goes back to them.
    aborted: bool,
    leader: bool,
    armed: Option<(Armed, Duration)>,
    hint: Option<(String, Duration)>,
    used: u64,
    cost: f64,
    cost_known: bool,
    todos: Vec<(String, String)>,
    pictures: HashMap<String, Vec<Picture>>,
    focused: bool,
    /// There was a menu below the prompt when it was drawn last.
    had_menu: bool,
    token: u64,
    /// Servers were asked what they offer.
    asked_servers: bool,
    effects: Vec<Effect>,
    /// Nothing has been written yet.
    spaced: bool,
    /// The last block is one row of a call: others like it stand close to it.
    close: bool,
}

impl App {
    pub fn new(columns: usize, rows: usize) -> Self {
        Self {
            columns: columns.clamp(4, 1_000),
            rows: rows.clamp(2, 1_000),
            now: Duration::ZERO,
            begun_at: None,
            theme: Theme::default(),
            keymap: Keymap::default(),
            prefs: Prefs::default(),
            keybinds: serde_json::json!({}),
            facts: Facts::default(),
            ready: false,
            session: None,
            editor: Editor::default(),
            history: History::new(Vec::new()),
            menu: None,
            overlay: None,
            asks: VecDeque::new(),
            answered: VecDeque::new(),
            held: false,
            keyed: Duration::ZERO,
            vim: Vim::default(),
            transcript: None,
            blocks: Vec::new(),
            finished: Vec::new(),
            live: VecDeque::new(),
            queue: Vec::new(),
            busy: false,
            since: Duration::ZERO,
            activity: String::new(),
            thoughts: 0,
            aborted: false,
            leader: false,
            armed: None,
            hint: None,
            used: 0,
            cost: 0.0,
            cost_known: true,
            todos: Vec::new(),
            pictures: HashMap::new(),
            focused: true,
            had_menu: false,
            token: 0,
            asked_servers: false,
            effects: Vec::new(),
            spaced: true,
            close: false,
        }
    }

    /// With what people set and wrote before.
    pub fn settle_in(&mut self, loaded: crate::prefs::Loaded) {
        self.keybinds = loaded.keybinds;
        self.theme = loaded.theme;
        self.prefs = loaded.prefs;
        self.history = History::new(loaded.history);
        self.vim = Vim::new(self.prefs.vim.unwrap_or(self.prefs.vim_usual));
        for warning in &loaded.warnings {
            self.say(Level::Notice, warning, None);
        }
        self.bind_all();
    }

    /// Takes something in; `now` never goes back.
    pub fn update(&mut self, now: Duration, input: Input) -> Vec<Effect> {
        self.now = self.now.max(now);
        self.forget_old();
        match input {
            Input::Key(key) => {
                self.key(key);
                self.keyed = self.now;
            }
            Input::Paste(text) => self.paste(&text),
            Input::Focus(focused) => self.focused = focused,
            Input::Resize { columns, rows } => {
                self.columns = columns.clamp(4, 1_000);
                self.rows = rows.clamp(2, 1_000);
            }
            Input::Tick => {}
            Input::Engine(event) => self.event(*event),
            Input::News(news) => self.news(*news),
            Input::Found { token, paths } => self.found(token, paths),
            Input::Edited(Ok(text)) => {
                self.menu = None;
                self.editor.set(text.trim_end());
            }
            Input::Edited(Err(problem)) => self.say(Level::Problem, &problem, None),
        }
        self.settle();
        std::mem::take(&mut self.effects)
    }

    /// How long nothing has to be drawn if nothing happens; for ever, where nothing moves.
    pub fn pause(&self) -> Option<Duration> {
        let moving = self.busy || !self.live.is_empty();
        let fading = self.armed.is_some() || self.hint.is_some() || self.held;
        match (moving, fading) {
            (true, _) => Some(Duration::from_millis(100)),
            (false, true) => Some(Duration::from_millis(500)),
            (false, false) => None,
        }
    }

    pub fn is_focused(&self) -> bool {
        self.focused
    }

    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn order(&mut self, order: Order) {
        self.effects.push(Effect::Order(order));
    }

    /// Columns that are drawn on: the last stays free, since terminals differ about it.
    fn width(&self) -> usize {
        self.columns.saturating_sub(1).max(4)
    }

    fn view(&self) -> View<'_> {
        View {
            columns: self.width(),
            theme: &self.theme,
            details: self.prefs.details,
            thinking: self.prefs.thinking,
            pictures: self.prefs.pictures,
            now: self.now,
            clock: self.clock().filter(|_| self.prefs.stamps),
        }
    }

    /// For rows that may be written again: nothing in them is drawn by the terminal itself.
    fn passing_view(&self) -> View<'_> {
        let pictures = match self.prefs.pictures {
            Means::Off => Means::Off,
            Means::Blocks | Means::Kitty | Means::Sixel => Means::Blocks,
        };
        View { pictures, ..self.view() }
    }

    /// The time of day, in milliseconds since 1970, where somebody has said it.
    fn clock(&self) -> Option<u64> {
        let now = u64::try_from(self.now.as_millis()).unwrap_or(u64::MAX);
        self.begun_at.map(|begun| begun.saturating_add(now))
    }

    fn say(&mut self, level: Level, text: &str, advice: Option<&str>) {
        let advice = advice.map(str::to_owned);
        self.finish(Block::Note { level, text: text.to_owned(), advice });
    }

    fn hint(&mut self, text: &str) {
        self.hint = Some((text.to_owned(), self.now + Duration::from_secs(3)));
    }

    /// A block is finished: it is written once and kept for looking back.
    fn finish(&mut self, block: Block) {
        let lines = block.render(self.view());
        let close = matches!(block, Block::Note { .. })
            && matches!(self.blocks.last(), Some(Block::Note { .. }));
        self.write(lines, !close);
        self.keep(block);
    }

    fn keep(&mut self, mut block: Block) {
        if let Block::Call(Call { done: Some(done), .. }) = &mut block {
            done.pictures.iter_mut().for_each(Picture::without_art);
        }
        if self.blocks.len() >= BLOCKS_CAP {
            let gone = BLOCKS_CAP / 4;
            self.blocks.drain(..gone);
            if let Some(transcript) = &mut self.transcript {
                transcript.shift(gone);
            }
        }
        self.blocks.push(block);
    }

    fn write(&mut self, lines: Vec<Line>, apart: bool) {
        if lines.is_empty() {
            return;
        }
        self.close = false;
        if apart && !self.spaced {
            self.finished.push(Line::empty());
        }
        self.spaced = false;
        self.finished.extend(lines);
        if self.finished.len() > FINISHED_CAP {
            let count = self.finished.len() - FINISHED_CAP / 2;
            self.finished.drain(..count);
            let note = format!("… {count} rows were not shown: ctrl+t has them");
            self.finished.insert(0, Line::styled(note, self.theme.muted()));
        }
    }

    fn forget_old(&mut self) {
        if self.hint.as_ref().is_some_and(|(_, until)| *until <= self.now) {
            self.hint = None;
        }
        if self.armed.is_some_and(|(_, until)| until <= self.now) {
            self.armed = None;
        }
        self.still_writing();
    }

    /// Whether a key was pressed a second time; the first time it is remembered.
    fn twice(&mut self, what: Armed, within: Duration) -> bool {
        let again = self.armed.is_some_and(|(armed, _)| armed == what);
        self.armed = if again { None } else { Some((what, self.now + within)) };
        again
    }
}

#[cfg(test)]
mod tests;
