//! What opens while something is written: commands behind `/`; files, agents and resources of servers
//! behind `@`.

use super::{App, Effect, Order};
use crate::fuzzy;
use crate::key::{Code, Key};

/// Rows of it.
pub(super) const ROWS: usize = 8;

pub(crate) struct Menu {
    pub(super) items: Vec<Item>,
    pub(super) selected: usize,
    /// Where in the text the word begins that is completed.
    from: usize,
    kind: Opened,
    token: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Opened {
    Commands,
    Files,
}

pub(crate) struct Item {
    pub(super) label: String,
    pub(super) about: String,
    insert: String,
}

impl App {
    /// Opens, narrows or closes the menu by what stands before the cursor.
    pub(super) fn look_for_menu(&mut self) {
        let before = self.editor.before_cursor();
        if let Some(query) = before.strip_prefix('/')
            && !query.contains(char::is_whitespace)
        {
            let query = query.to_owned();
            self.ask_servers();
            let all = self.command_items(&query);
            let items = fuzzy::best(
                &query,
                all.iter().map(|item| (item.label.trim_start_matches('/'), item)),
                100,
            );
            let items: Vec<Item> = items
                .into_iter()
                .map(|i| Item {
                    label: i.label.clone(),
                    about: i.about.clone(),
                    insert: i.insert.clone(),
                })
                .collect();
            self.open_menu(Opened::Commands, 0, items);
            return;
        }
        let word = before
            .rfind(char::is_whitespace)
            .map_or(0, |n| n + before[n..].chars().next().map_or(1, char::len_utf8));
        if let Some(query) = before[word..].strip_prefix('@') {
            let query = query.to_owned();
            self.ask_servers();
            self.token += 1;
            let token = self.token;
            let agents = self.facts.workers.iter();
            let agents = fuzzy::best(&query, agents.map(|a| (a.0.as_str(), a)), 3);
            let resources = self.facts.resources.iter();
            let resources = fuzzy::best(&query, resources.map(|r| (r.0.as_str(), r)), 5);
            let items: Vec<Item> = agents
                .into_iter()
                .chain(resources)
                .map(|(name, about)| Item {
                    label: format!("@{name}"),
                    about: about.clone(),
                    insert: format!("@{name} "),
                })
                .collect();
            // Files found before stay until the new ones are there: a list that blinks is no help.
            let before = match self.menu.take() {
                Some(menu) if menu.kind == Opened::Files && menu.from == word => {
                    let old = menu.items.into_iter().filter(|item| !item.label.starts_with('@'));
                    old.collect()
                }
                _ => Vec::new(),
            };
            let items = items.into_iter().chain(before).collect();
            self.menu = Some(Menu { items, selected: 0, from: word, kind: Opened::Files, token });
            self.effect(Effect::Find { token, query });
            return;
        }
        self.menu = None;
    }

    fn open_menu(&mut self, kind: Opened, from: usize, items: Vec<Item>) {
        self.menu =
            (!items.is_empty()).then_some(Menu { items, selected: 0, from, kind, token: 0 });
    }

    fn command_items(&self, query: &str) -> Vec<Item> {
        let item = |name: &str, about: String| Item {
            label: format!("/{name}"),
            about,
            insert: format!("/{name} "),
        };
        let rows = self.command_rows().into_iter().map(|row| item(&row.value, row.about));
        // By their other names too, once somebody has begun to write one.
        let others = super::commands::other_names(query).map(|(name, about)| item(name, about));
        let rows = rows.chain(others);
        let skills =
            self.facts.skills.iter().map(|(name, about)| (name, format!("skill: {about}")));
        let prompts = self.facts.prompts.iter().map(|(name, about)| (name, about.clone()));
        rows.chain(skills.chain(prompts).map(|(name, about)| item(name, about))).collect()
    }

    /// What servers offer is asked for when it is first looked for.
    fn ask_servers(&mut self) {
        if self.facts.servers && !std::mem::replace(&mut self.asked_servers, true) {
            self.order(Order::Offered);
        }
    }

    pub(super) fn offered(
        &mut self,
        resources: Vec<(String, String)>,
        prompts: Vec<(String, String)>,
    ) {
        (self.facts.resources, self.facts.prompts) = (resources, prompts);
        if self.menu.is_some() {
            self.look_for_menu();
        }
    }

    pub(super) fn found(&mut self, token: u64, paths: Vec<String>) {
        let Some(menu) = self.menu.as_mut().filter(|menu| menu.token == token) else { return };
        menu.items.retain(|item| item.label.starts_with('@'));
        menu.items.extend(paths.into_iter().map(|path| Item {
            insert: format!("@{path} "),
            label: path,
            about: String::new(),
        }));
        menu.selected = menu.selected.min(menu.items.len().saturating_sub(1));
    }

    /// Whether the menu took the key.
    pub(super) fn menu_key(&mut self, key: Key) -> bool {
        let Some(menu) = &mut self.menu else { return false };
        if menu.items.is_empty() {
            return false;
        }
        let count = menu.items.len();
        let plain = !key.ctrl && !key.alt && !key.shift;
        match key.code {
            Code::Up if plain => menu.selected = menu.selected.checked_sub(1).unwrap_or(count - 1),
            Code::Char('p') if key.ctrl => {
                menu.selected = menu.selected.checked_sub(1).unwrap_or(count - 1);
            }
            Code::Down if plain => menu.selected = (menu.selected + 1) % count,
            Code::Char('n') if key.ctrl => menu.selected = (menu.selected + 1) % count,
            Code::PageUp => menu.selected = menu.selected.saturating_sub(ROWS),
            Code::PageDown => menu.selected = (menu.selected + ROWS).min(count - 1),
            Code::Escape => self.menu = None,
            Code::Tab if plain => self.take_from_menu(),
            Code::Enter if plain => {
                let commands = menu.kind == Opened::Commands;
                self.take_from_menu();
                // A command that was chosen is meant.
                if commands && !self.wants_more() {
                    self.submit(false);
                }
            }
            _ => return false,
        }
        true
    }

    fn take_from_menu(&mut self) {
        let Some(menu) = self.menu.take() else { return };
        if let Some(item) = menu.items.get(menu.selected) {
            self.editor.complete(menu.from, &item.insert);
        }
    }

    /// Whether what stands there is a command that something has to follow.
    fn wants_more(&self) -> bool {
        let text = self.editor.text().trim();
        let name = text.strip_prefix('/').unwrap_or(text);
        let facts = &self.facts;
        facts.commands.iter().any(|own| own.name == name && own.takes_words)
            || facts.skills.iter().chain(&facts.prompts).any(|(known, _)| known == name)
    }
}
