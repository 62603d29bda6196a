//! What lies over the prompt: lists, pages, a line that is asked for, a key that is to be pressed.

use toolwright::permission::Mode;

use super::{App, Kind, Order, Picker};
use crate::blocks::Level;
use crate::editor::Editor;
use crate::key::{Code, Key};
use crate::keymap::{Action, Keymap};
use crate::style::{Line, Style};
use crate::width;

pub(crate) enum Overlay {
    Picker(Picker),
    Page {
        title: String,
        lines: Vec<String>,
        top: usize,
    },
    Line {
        what: String,
        purpose: LineFor,
        editor: Editor,
    },
    /// The next key is the one for this action.
    Press {
        action: Action,
        led: bool,
    },
}

/// What a line is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineFor {
    /// The key of this provider; not to be seen.
    Key(String),
    /// The name of a session; of the one at work without an id.
    Rename(Option<String>),
}

type Drawing = (Vec<Line>, Option<(usize, usize)>);

impl App {
    pub(super) fn overlay_key(&mut self, key: Key) {
        let closes = key.code == Code::Escape || key == Key::ctrl('c');
        let columns = self.width();
        match &mut self.overlay {
            Some(Overlay::Picker(_)) => self.picker_key(key),
            Some(Overlay::Page { lines, top, .. }) => {
                let page = self.rows.saturating_sub(4).max(1);
                let most = page_rows(lines, columns).len().saturating_sub(page);
                match key.code {
                    _ if closes => self.overlay = None,
                    Code::Up | Code::Char('k') => *top = top.saturating_sub(1),
                    Code::Down | Code::Char('j') => *top = (*top + 1).min(most),
                    Code::PageUp => *top = top.saturating_sub(page),
                    Code::PageDown | Code::Char(' ') => *top = (*top + page).min(most),
                    Code::Home => *top = 0,
                    Code::End => *top = most,
                    Code::Enter | Code::Char('q') => self.overlay = None,
                    _ => {}
                }
            }
            Some(Overlay::Line { purpose, editor, .. }) => match key.code {
                _ if closes => self.close_line(),
                Code::Enter => {
                    let (purpose, text) = (purpose.clone(), editor.take().trim().to_owned());
                    self.line_given(purpose, text);
                }
                _ => super::ask::edit(editor, key),
            },
            Some(Overlay::Press { .. }) if closes => self.pick(Kind::Keys),
            Some(Overlay::Press { action, led }) => {
                let action = *action;
                if key == self.keymap.leader && !*led {
                    *led = true;
                    return;
                }
                let led = *led;
                self.bind(action, led, key);
                self.pick(Kind::Keys);
            }
            None => {}
        }
    }

    fn close_line(&mut self) {
        match self.overlay.take() {
            Some(Overlay::Line { purpose: LineFor::Rename(Some(_)), .. }) => {
                self.pick(Kind::Sessions);
            }
            _ => self.overlay = None,
        }
    }

    fn line_given(&mut self, purpose: LineFor, text: String) {
        self.overlay = None;
        if text.is_empty() {
            return;
        }
        match purpose {
            LineFor::Key(provider) => self.order(Order::Key { provider, key: text }),
            LineFor::Rename(id) => {
                let from_list = id.is_some();
                self.order(Order::Rename { id, title: text });
                if from_list {
                    self.pick(Kind::Sessions);
                }
            }
        }
    }

    /// A key of the person's own for an action, from now on.
    fn bind(&mut self, action: Action, led: bool, key: Key) {
        let text = if led { format!("<leader>{key}") } else { key.to_string() };
        let taken = self.keymap.action(led, key).filter(|own| *own != action);
        self.prefs.keys.insert(action.name().to_owned(), text.clone());
        self.bind_all();
        self.save();
        match taken {
            Some(other) => {
                let text = format!("{text}: no longer \"{}\"", other.about());
                self.hint(&text);
            }
            None => self.hint(&format!("{text}: {}", action.about())),
        }
    }

    /// The usual keys of an action again.
    pub(super) fn unbind(&mut self, action: Action) {
        self.prefs.keys.remove(action.name());
        self.bind_all();
        self.save();
        self.hint("the usual keys again");
    }

    /// Keys as the settings say, and above them what was chosen here.
    pub(super) fn bind_all(&mut self) {
        let mut settings = self.keybinds.clone();
        if let Some(map) = settings.as_object_mut() {
            for (name, key) in &self.prefs.keys {
                map.insert(name.clone(), key.as_str().into());
            }
        }
        let (keymap, problems) = Keymap::with(&settings);
        self.keymap = keymap;
        for problem in problems {
            self.say(Level::Notice, &problem, None);
        }
    }

    pub(super) fn rename(&mut self, title: &str) {
        match (&self.session, title) {
            (None, _) => self.hint("there is nothing to name yet"),
            (Some((_, old)), "") => {
                let mut editor = Editor::default();
                editor.set(old);
                let what = "New name".to_owned();
                let purpose = LineFor::Rename(None);
                self.overlay = Some(Overlay::Line { what, purpose, editor });
            }
            (Some(_), title) => {
                self.order(Order::Rename { id: None, title: title.to_owned() });
            }
        }
    }

    pub(super) fn renamed(&mut self, title: &str) {
        let title = width::flat(title);
        self.effect(super::Effect::Title(format!("tw · {title}")));
        if let Some((_, own)) = &mut self.session {
            *own = title;
        }
    }

    /// The next mode, or the one that is named.
    pub(super) fn change_mode(&mut self, name: Option<&str>) {
        let mode = match name.map(str::parse::<Mode>) {
            None => {
                let at = Mode::ALL.iter().position(|mode| *mode == self.facts.mode);
                Mode::ALL[at.map_or(0, |n| (n + 1) % Mode::ALL.len())]
            }
            Some(Ok(mode)) => mode,
            Some(Err(problem)) => return self.say(Level::Problem, &problem, None),
        };
        self.facts.mode = mode;
        self.hint(&format!("{mode}: {}", mode_means(mode)));
        self.order(Order::Mode(mode));
    }

    pub(super) fn draw_overlay(&self, open: &Overlay, columns: usize, height: usize) -> Drawing {
        let theme = &self.theme;
        let heading = Style::fg(theme.primary).bold();
        match open {
            Overlay::Picker(picker) => picker.draw(columns, height.min(16), theme),
            Overlay::Page { title, lines, top } => {
                let page = height.saturating_sub(2).max(1);
                let mut head = Line::styled(format!("{title} "), heading);
                let lines = page_rows(lines, columns);
                let more = lines.len() > page;
                head.push(
                    if more { "up and down · esc closes" } else { "esc closes" },
                    theme.muted(),
                );
                let rows = lines.into_iter().skip(*top).take(page);
                let all = std::iter::once(width::cut_line(&head, columns)).chain(rows);
                (all.collect(), None)
            }
            Overlay::Line { what, purpose, editor } => {
                let (shown, at) = match purpose {
                    LineFor::Key(_) => {
                        let count = editor.text().chars().count().min(40);
                        ("•".repeat(count), count)
                    }
                    LineFor::Rename(_) => (
                        width::flat(editor.text()),
                        width::of(&width::flat(editor.before_cursor())),
                    ),
                };
                let head = format!("{what} ");
                let at = width::of(&head) + at;
                let line = Line::styled(head, heading).with(shown, Style::default());
                let line = line.with("  enter keeps it · esc does not", theme.muted());
                (vec![width::cut_line(&line, columns)], Some((0, at.min(columns))))
            }
            Overlay::Press { action, led } => {
                let after = if *led { format!("{} ", self.keymap.leader) } else { String::new() };
                let line = Line::styled(format!("Key for \"{}\" ", action.about()), heading)
                    .with(after, Style::default())
                    .with("press it · esc leaves it as it is", theme.muted());
                (vec![width::cut_line(&line, columns)], None)
            }
        }
    }
}

/// Long lines go on below what they begin with: a name in a first column stays alone.
fn page_rows(lines: &[String], columns: usize) -> Vec<Line> {
    let wrapped = |line: &String| {
        let inside = line.trim_start();
        let indent = line.len() - inside.len();
        let column = inside.find("  ").map_or(0, |gap| {
            let rest = &inside[gap..];
            gap + (rest.len() - rest.trim_start().len())
        });
        let hang = if column > 0 && indent + column <= columns * 2 / 3 { column } else { 2 };
        width::wrap(&Line::plain(line.as_str()), columns, indent + hang)
    };
    lines.iter().flat_map(wrapped).collect()
}

pub(super) fn mode_means(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "as the rules say",
        Mode::AcceptEdits => "files here are changed without a question",
        Mode::Plan => "nothing is changed; only looking is allowed",
        Mode::Auto => "nothing is asked; what is denied stays denied",
    }
}
