//! What a person chooses while a session goes on: model, key, mode, name.

use toolwright::permission::Mode;

use super::{Host, Table, past};
use crate::app::{Input, Kind, News, Row};
use crate::blocks::Level;
use crate::mailbox::Message;

/// Who plans, and in which mode that is done.
const PLAN_AGENT: &str = "plan";

impl Host {
    pub(super) async fn change_model(&mut self, model: String) {
        let Ok(agent) = self.bench.agent(self.agent.as_deref()) else { return };
        match self.bench.choose_model(Some(&model), &agent, None).await {
            Ok(chosen) => {
                let model = chosen.model.origin().to_string();
                let window = chosen.window.map(u64::from);
                self.close().await;
                self.model = Some(model.clone());
                self.tell(News::Model { model, window }).await;
            }
            Err(problem) => self.say(Level::Problem, problem.to_string(), None).await,
        }
    }

    pub(super) async fn keep_key(&mut self, provider: &str, key: &str) {
        let variable = |name: &str| std::env::var(name).ok();
        let keyring = toolwright::Keyring::find(&variable);
        let kept = self.bench.credentials().keep(provider, key, keyring.as_ref()).await;
        match kept {
            Ok(_) => {
                self.say(Level::Quiet, format!("The key for {provider} is kept"), None).await;
                (self.model, self.desk) = (None, None);
                let Ok(agent) = self.bench.agent(self.agent.as_deref()) else { return };
                if let Ok(chosen) = self.bench.choose_model(None, &agent, None).await {
                    let model = chosen.model.origin().to_string();
                    let window = chosen.window.map(u64::from);
                    self.tell(News::Model { model, window }).await;
                }
            }
            Err(problem) => {
                self.say(Level::Problem, format!("The key cannot be kept: {problem}"), None).await;
            }
        }
    }

    /// How much is done without a question. Between turns, who plans works while planning is the mode,
    /// where there is such an agent.
    pub(super) async fn change_mode(&mut self, mode: Mode) {
        self.mode = Some(mode);
        if let Some(table) = &self.desk {
            table.gate.set_mode(mode);
        }
        self.tell(News::Mode(mode)).await;
        // Another agent would end what runs in the background.
        if self.desk.as_ref().is_some_and(|table| !table.jobs.running().is_empty()) {
            return;
        }
        let is_planning = self.agent.as_deref() == Some(PLAN_AGENT);
        let next = match (mode == Mode::Plan, is_planning) {
            (true, false) if self.bench.agent(Some(PLAN_AGENT)).is_ok() => {
                self.before_plan = Some(self.agent.take());
                Some(PLAN_AGENT.to_owned())
            }
            (false, true) => match self.before_plan.take() {
                Some(before) => before.or_else(|| self.bench.agent(None).ok().map(|a| a.name)),
                None => None,
            },
            _ => None,
        };
        if let Some(agent) = next {
            self.close().await;
            self.agent = Some(agent.clone());
            self.tell(News::Agent(agent)).await;
        }
    }

    pub(super) async fn rename(&mut self, id: Option<String>, title: String) {
        let open = self.desk.as_ref().map(|table| table.engine.session().header.session.clone());
        let current = id.is_none() || id == open;
        let done = match (&mut self.desk, id) {
            (Some(Table { engine, .. }), _) if current => {
                engine.rename(&title).map_err(|error| error.to_string())
            }
            (_, Some(id)) => {
                self.bench.store().rename(&id, &title).map(drop).map_err(|error| error.to_string())
            }
            (_, None) => match &self.session {
                toolwright::SessionChoice::Id(id) => self
                    .bench
                    .store()
                    .rename(id, &title)
                    .map(drop)
                    .map_err(|error| error.to_string()),
                _ => Err("there is nothing to name yet".to_owned()),
            },
        };
        match done {
            Ok(()) => {
                if current {
                    self.tell(News::Renamed(title.clone())).await;
                }
                self.say(Level::Quiet, format!("Named: {title}"), None).await;
            }
            Err(problem) => self.say(Level::Problem, problem, None).await,
        }
    }

    pub(super) async fn delete(&mut self, id: &str) {
        match self.bench.store().delete(id) {
            Ok(_) => self.say(Level::Quiet, "The session is deleted", None).await,
            Err(problem) => self.say(Level::Problem, problem.to_string(), None).await,
        }
    }

    /// Sessions in which something was said; looking takes a moment, and nobody waits for it.
    pub(super) fn search(&self, query: String) {
        let (store, ui) = (self.bench.store(), self.ui.clone());
        let directory = Some(self.bench.workspace.directory().display().to_string());
        tokio::task::spawn_blocking(move || {
            use toolwright::session::{FOUND_END, FOUND_START, Index, Wanted};
            let wanted = Wanted {
                directory,
                search: Some(query.clone()),
                limit: Some(20),
                ..Wanted::default()
            };
            let Ok(found) = Index::open(&store).and_then(|mut index| index.list(&wanted)) else {
                return;
            };
            let row = |found: toolwright::session::Listed| Row {
                label: found.title,
                about: found.snippet.unwrap_or_default().replace([FOUND_START, FOUND_END], ""),
                value: found.id,
            };
            let rows = found.into_iter().map(row).collect();
            ui.leave(Message::Input(Input::News(Box::new(News::Searched { query, rows }))));
        });
    }

    /// From the index, which knows names and numbers; brought up to date beside everything else.
    fn list_sessions(&self) {
        let (store, ui) = (self.bench.store(), self.ui.clone());
        let folder = self.bench.workspace.directory().to_owned();
        tokio::task::spawn_blocking(move || {
            let rows = super::lists::sessions(&store, &folder);
            let news = News::Rows { kind: Kind::Sessions, rows };
            ui.leave(Message::Input(Input::News(Box::new(news))));
        });
    }

    /// What an agent that works for this one has done so far.
    pub(super) async fn child(&self, id: String) {
        match self.bench.store().peek(&id) {
            Ok(session) => {
                let (blocks, _) = past::blocks(&session);
                let title = session.title();
                self.tell(News::Child { id, title, blocks }).await;
            }
            Err(problem) => self.say(Level::Problem, problem.to_string(), None).await,
        }
    }

    pub(super) async fn list(&self, kind: Kind, table: Option<super::Around<'_>>) {
        let rows = match kind {
            Kind::Servers => return self.list_servers().await,
            Kind::Sessions => return self.list_sessions(),
            Kind::Permissions => {
                super::rules::rows(&self.bench, self.agent.as_deref(), table.map(|t| t.gate))
            }
            Kind::Models => super::lists::models(&self.bench).await,
            _ => super::lists::rows(kind, table.map(|t| t.jobs)),
        };
        self.tell(News::Rows { kind, rows }).await;
    }

    pub(super) async fn forget(&self, value: &str, table: Option<super::Around<'_>>) {
        match super::rules::forget(&self.bench, table.map(|t| t.gate), value) {
            Ok(()) => self.list(Kind::Permissions, table).await,
            Err(problem) => self.say(Level::Notice, problem, None).await,
        }
    }

    /// What was found on this machine, as `tw doctor` tells it.
    pub(super) fn doctor(&self) {
        let (bench, ui, look) = (self.bench.clone(), self.ui.clone(), self.start.doctor);
        self.spawn(async move {
            let text = (look.0)(bench).await;
            let page = News::Page { title: "Doctor".to_owned(), text };
            ui.send(Input::News(Box::new(page))).await.ok();
        });
    }
}
