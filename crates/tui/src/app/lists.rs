//! The lists: what is in each, and what becomes of what was chosen.

use toolwright::llm::Effort;
use toolwright::permission::Mode;

use super::dialog::mode_means;
use super::{App, Effect, Going, Kind, LineFor, Order, Overlay, Picker, Row};
use crate::blocks::{Block, Level};
use crate::editor::Editor;
use crate::key::{Code, Key};
use crate::keymap::Action;
use crate::theme::Theme;

/// Letters from which on it is worth looking into what was said.
const SEARCH_FROM: usize = 3;

impl App {
    pub(super) fn pick(&mut self, kind: Kind) {
        let pairs = |all: &[(String, String)]| Some(all.iter().map(pair).collect());
        let rows = match kind {
            Kind::Models
            | Kind::Sessions
            | Kind::Jobs
            | Kind::Providers
            | Kind::Servers
            | Kind::Permissions => {
                self.order(Order::List(kind));
                None
            }
            Kind::Agents => pairs(&self.facts.agents),
            Kind::Skills => pairs(&self.facts.skills),
            Kind::Themes => Some(self.theme_rows()),
            Kind::Commands => Some(self.command_rows()),
            Kind::Messages => Some(self.message_rows()),
            Kind::Keys => Some(self.key_rows()),
            Kind::Modes => Some(self.mode_rows()),
            Kind::Efforts => Some(effort_rows()),
            Kind::Children => Some(self.child_rows()),
        };
        let mut picker = Picker::new(kind, rows);
        if kind == Kind::Themes {
            picker.before = Some(self.theme.clone());
        }
        picker.used = match kind {
            Kind::Models => Some(self.facts.model.clone()),
            Kind::Agents => Some(self.facts.agent.clone()),
            Kind::Modes => Some(self.facts.mode.to_string()),
            Kind::Themes => Some(self.theme.name.clone()),
            _ => None,
        };
        picker.go_to_used();
        self.menu = None;
        if kind != Kind::Keys {
            self.hint = None;
        }
        self.overlay = Some(Overlay::Picker(picker));
        self.look();
    }

    /// What a list was waiting for. Favourite and recent models come first.
    pub(super) fn listed(&mut self, kind: Kind, mut rows: Vec<Row>) {
        if kind == Kind::Models {
            self.by_favour(&mut rows);
        }
        if let Some(Overlay::Picker(picker)) = &mut self.overlay
            && picker.kind == kind
        {
            picker.fill(rows);
            picker.go_to_used();
            self.look();
        }
    }

    fn by_favour(&self, rows: &mut [Row]) {
        let (favourites, recent) = (&self.prefs.favourites, &self.prefs.recent);
        for row in rows.iter_mut() {
            let plain = row.label.trim_start_matches("★ ");
            row.label = match favourites.contains(&row.value) {
                true => format!("★ {plain}"),
                false => plain.to_owned(),
            };
        }
        let rank = |row: &Row| match recent.iter().position(|own| *own == row.value) {
            _ if favourites.contains(&row.value) => 0,
            Some(n) => n + 1,
            None => usize::MAX,
        };
        rows.sort_by_key(rank);
    }

    /// Sessions in which something was said, behind those that are called so.
    pub(super) fn searched(&mut self, query: &str, rows: Vec<Row>) {
        if let Some(Overlay::Picker(picker)) = &mut self.overlay
            && picker.kind == Kind::Sessions
            && picker.query.text() == query
        {
            picker.add(rows);
            self.look();
        }
    }

    fn theme_rows(&self) -> Vec<Row> {
        let own = self.prefs.themes.keys().map(|name| (name.clone(), "your own"));
        let built_in = Theme::names().into_iter().map(|name| (name.to_owned(), ""));
        own.chain(built_in)
            .map(|(name, about)| Row { label: name.clone(), about: about.to_owned(), value: name })
            .collect()
    }

    fn key_rows(&self) -> Vec<Row> {
        let row = |action: Action| Row {
            label: action.about().to_owned(),
            about: {
                let keys = Some(self.keymap.keys_of(action)).filter(|keys| !keys.is_empty());
                let own = self.prefs.keys.contains_key(action.name());
                let own = if own { ", your own" } else { "" };
                format!("{}  ({}{own})", keys.as_deref().unwrap_or("no key"), action.name())
            },
            value: action.name().to_owned(),
        };
        Action::all().map(row).collect()
    }

    fn mode_rows(&self) -> Vec<Row> {
        let row = |mode: Mode| Row {
            label: mode.to_string(),
            about: mode_means(mode).to_owned(),
            value: mode.to_string(),
        };
        Mode::ALL.into_iter().map(row).collect()
    }

    fn message_rows(&self) -> Vec<Row> {
        let said = self.blocks.iter().filter_map(|block| match block {
            Block::User { text, .. } => Some(text),
            _ => None,
        });
        let row = |(n, text): (usize, &String)| Row {
            label: text.trim().lines().next().unwrap_or_default().to_owned(),
            about: String::new(),
            value: n.to_string(),
        };
        // Numbered from the last: what is not here any more came before.
        said.rev().enumerate().map(row).collect()
    }

    pub(super) fn picker_key(&mut self, key: Key) {
        let Some(Overlay::Picker(picker)) = &mut self.overlay else { return };
        let doomed = picker.doomed.take();
        match (key.code, key.ctrl) {
            (Code::Escape, _) | (Code::Char('c'), true) => {
                if let Some(before) = picker.before.take() {
                    self.theme = before;
                }
                self.overlay = None;
                return;
            }
            (Code::Enter, _) => return self.picked(),
            (Code::Char(' '), false) if picker.kind == Kind::Servers && picker.query.is_empty() => {
                return self.picked();
            }
            (Code::Char(c), true) if self.picker_command(c, doomed) => {}
            _ => {
                let Some(Overlay::Picker(picker)) = &mut self.overlay else { return };
                if !picker.moved(key) {
                    picker.write(key);
                    let query = picker.query.text();
                    if picker.kind == Kind::Sessions && query.chars().count() >= SEARCH_FROM {
                        let query = query.to_owned();
                        self.order(Order::Search(query));
                    }
                }
            }
        }
        self.look();
    }

    /// Keys that do something with what is under the cursor; whether this was one.
    fn picker_command(&mut self, c: char, doomed: Option<String>) -> bool {
        let Some(Overlay::Picker(picker)) = &mut self.overlay else { return false };
        let current = picker.current().map(|row| (row.value.clone(), row.label.clone()));
        match (picker.kind, c) {
            (Kind::Models, 'f') => self.favour(),
            (Kind::Jobs, 'k') => {
                self.overlay = None;
                self.order(Order::EndJobs);
            }
            (Kind::Sessions, 'o') => {
                if let Some((id, _)) = current {
                    self.overlay = None;
                    self.order(Order::Open { id, fork: true });
                }
            }
            (Kind::Messages, 'u' | 'o') => {
                let going = if c == 'u' { Going::WithFiles } else { Going::InACopy };
                if let Some((value, _)) = current {
                    self.overlay = None;
                    self.go_back_to(&value, going);
                }
            }
            (Kind::Sessions, 'r') => {
                if let Some((id, title)) = current {
                    let mut editor = Editor::default();
                    editor.set(&title);
                    let (what, purpose) = ("New name".to_owned(), LineFor::Rename(Some(id)));
                    self.overlay = Some(Overlay::Line { what, purpose, editor });
                }
            }
            (Kind::Sessions, 'd') => {
                if let Some((id, title)) = current {
                    self.delete_session(id, &title, doomed);
                }
            }
            (Kind::Servers, 's') => self.with_server(current, Order::SignIn),
            (Kind::Servers, 'o') => self.with_server(current, Order::SignOut),
            (Kind::Permissions, 'd') => match current {
                Some((value, _)) if value != "rule" => self.order(Order::Forget(value)),
                _ => self.hint("rules are taken back in the file that they stand in"),
            },
            (Kind::Keys, 'd') => {
                if let Some(action) = current.and_then(|(name, _)| Action::named(&name)) {
                    self.unbind(action);
                    self.pick(Kind::Keys);
                }
            }
            _ => return false,
        }
        true
    }

    fn with_server(&mut self, current: Option<(String, String)>, order: fn(String) -> Order) {
        if let Some((value, _)) = current {
            self.order(order(server_of(&value)));
        }
    }

    /// What is gone is gone: the same key a second time.
    fn delete_session(&mut self, id: String, title: &str, doomed: Option<String>) {
        if self.session.as_ref().is_some_and(|(own, _)| *own == id) {
            return self.hint("this session is open: /new first");
        }
        let Some(Overlay::Picker(picker)) = &mut self.overlay else { return };
        if doomed.as_deref() != Some(id.as_str()) {
            picker.doomed = Some(id);
            let text =
                format!("ctrl+d again deletes \"{}\" for good", crate::width::cut(title, 40));
            return self.hint(&text);
        }
        let rows = picker.rows.iter().filter(|row| row.value != id).cloned().collect();
        picker.fill(rows);
        self.hint = None;
        self.order(Order::Delete(id));
    }

    /// What is under the cursor is looked at.
    fn look(&mut self) {
        let Some(Overlay::Picker(picker)) = &self.overlay else { return };
        let Some(row) = picker.current() else { return };
        let value = row.value.clone();
        match picker.kind {
            Kind::Sessions | Kind::Servers => self.order(Order::Preview(value)),
            Kind::Themes => {
                if let Some(theme) = self.prefs.theme_named(&value) {
                    self.theme = theme;
                }
            }
            _ => {}
        }
    }

    fn picked(&mut self) {
        let Some(Overlay::Picker(picker)) = &self.overlay else { return };
        let Some(row) = picker.current() else {
            self.overlay = None;
            return;
        };
        let (kind, value, label) = (picker.kind, row.value.clone(), row.label.clone());
        // These stay open: what was done is seen in them.
        match kind {
            Kind::Servers => return self.order(Order::Connect(server_of(&value))),
            Kind::Permissions | Kind::Jobs => return,
            _ => self.overlay = None,
        }
        match kind {
            Kind::Models => {
                self.prefs.recent.retain(|model| *model != value);
                self.prefs.recent.insert(0, value.clone());
                self.prefs.recent.truncate(10);
                self.save();
                self.order(Order::Model(value));
            }
            Kind::Agents => self.order(Order::Agent(value)),
            Kind::Sessions => self.order(Order::Open { id: value, fork: false }),
            Kind::Themes => {
                self.prefs.theme = Some(value);
                self.save();
            }
            Kind::Commands => self.run_command(&value, ""),
            Kind::Messages => self.go_back_to(&value, Going::WordsOnly),
            Kind::Providers => {
                let what = format!("Key for {label}");
                let (purpose, editor) = (LineFor::Key(value), Editor::default());
                self.overlay = Some(Overlay::Line { what, purpose, editor });
            }
            Kind::Keys => {
                if let Some(action) = Action::named(&value) {
                    self.overlay = Some(Overlay::Press { action, led: false });
                }
            }
            Kind::Skills => self.editor.set(&format!("/{value} ")),
            Kind::Modes => self.change_mode(Some(&value)),
            Kind::Efforts => self.change_effort(&value),
            Kind::Children => self.order(Order::Child(value)),
            Kind::Servers | Kind::Permissions | Kind::Jobs => {}
        }
    }

    pub(super) fn change_effort(&mut self, name: &str) {
        let Some((_, about, effort)) = EFFORTS.iter().find(|(own, ..)| *own == name) else {
            let names: Vec<&str> = EFFORTS.iter().map(|(name, ..)| *name).collect();
            let text = format!("there is no effort \"{name}\": {}", names.join(", "));
            return self.say(Level::Problem, &text, None);
        };
        self.hint(&format!("{name}: {about}"));
        self.order(Order::Effort(*effort));
    }

    fn go_back_to(&mut self, value: &str, going: Going) {
        let Ok(n) = value.parse::<usize>() else { return };
        let mut said = self.blocks.iter().rev().filter_map(|block| match block {
            Block::User { text, .. } => Some(text.clone()),
            _ => None,
        });
        if let Some(text) = said.nth(n) {
            self.editor.set(&text);
            self.order(Order::Back(n, going));
        }
    }

    fn favour(&mut self) {
        let Some(Overlay::Picker(picker)) = &self.overlay else { return };
        let Some(value) = picker.current().map(|row| row.value.clone()) else { return };
        match self.prefs.favourites.iter().position(|model| *model == value) {
            Some(at) => {
                self.prefs.favourites.remove(at);
                self.hint("no favourite any more");
            }
            None => {
                self.prefs.favourites.push(value);
                self.hint("a favourite now: f2 goes from one to the next");
            }
        }
        let mut rows = match &mut self.overlay {
            Some(Overlay::Picker(picker)) => std::mem::take(&mut picker.rows),
            _ => return,
        };
        self.by_favour(&mut rows);
        if let Some(Overlay::Picker(picker)) = &mut self.overlay {
            picker.fill(rows);
        }
        self.save();
    }

    pub(super) fn save(&mut self) {
        let prefs = self.prefs.clone();
        self.effect(Effect::Save(prefs));
    }
}

/// How much a model may think, where it can be told.
const EFFORTS: &[(&str, &str, Option<Effort>)] = &[
    ("usual", "as the agent or the model has it", None),
    ("off", "answers at once", Some(Effort::Off)),
    ("minimal", "hardly thinks", Some(Effort::Minimal)),
    ("low", "thinks a little", Some(Effort::Low)),
    ("medium", "thinks", Some(Effort::Medium)),
    ("high", "thinks it over", Some(Effort::High)),
    ("max", "thinks as much as it can", Some(Effort::Max)),
];

fn effort_rows() -> Vec<Row> {
    let row = |(name, about, _): &(&str, &str, _)| Row {
        label: (*name).to_owned(),
        about: (*about).to_owned(),
        value: (*name).to_owned(),
    };
    EFFORTS.iter().map(row).collect()
}

fn pair((name, about): &(String, String)) -> Row {
    Row { label: name.clone(), about: about.clone(), value: name.clone() }
}

/// Rows of servers are named so that they are told from sessions.
fn server_of(value: &str) -> String {
    value.strip_prefix("mcp:").unwrap_or(value).to_owned()
}
