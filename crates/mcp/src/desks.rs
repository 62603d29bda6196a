//! The registries that servers bring their tools to: one for each session and sub-agent.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use toolwright_tool::{Registry, Source, WeakRegistry};

use crate::name::Names;
use crate::resources;
use crate::roster::Roster;
use crate::sampling::Sampler;
use crate::server::Server;
use crate::tool::McpTool;

#[derive(Default)]
pub(crate) struct Desks {
    names: Names,
    open: Mutex<Vec<Desk>>,
}

struct Desk {
    registry: WeakRegistry,
    sampler: Option<Arc<dyn Sampler>>,
    servers: Arc<Roster>,
    /// What was brought, by server.
    brought: BTreeSet<(String, String)>,
}

impl Desks {
    /// A new desk gets what is there; what comes later comes to it too.
    pub(crate) fn open(
        &self,
        registry: &Registry,
        sampler: Option<Arc<dyn Sampler>>,
        servers: &Arc<Roster>,
    ) {
        let (registry, brought) = (registry.downgrade(), BTreeSet::new());
        let mut desk = Desk { registry, sampler, servers: Arc::clone(servers), brought };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|desk| desk.registry.upgrade().is_some());
        for server in servers.now().iter() {
            desk.take(server, &server.tools(), &self.names);
        }
        open.push(desk);
    }

    /// The tools of a server as they are now.
    pub(crate) fn bring(&self, server: &Server, tools: &[Value]) {
        let Some(server) = server.me() else { return };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|desk| desk.registry.upgrade().is_some());
        for desk in open.iter_mut() {
            desk.take(&server, tools, &self.names);
        }
    }

    pub(crate) fn name_of(&self, server: &str, tool: &str) -> String {
        self.names.of(server, tool)
    }
}

impl Desk {
    fn take(&mut self, server: &Arc<Server>, tools: &[Value], names: &Names) {
        let Some(registry) = self.registry.upgrade() else { return };
        let own = server.spec.name.clone();
        let mut now = BTreeSet::new();
        let definitions = registry.definitions();
        for value in tools {
            let held = |name: &str| registry.source_of(name).is_some_and(|s| s != Source::Mcp);
            let named = |server: &str, tool: &str| names.beside(server, tool, &held);
            let Some(tool) = McpTool::read(value, server, named, self.sampler.clone()) else {
                continue;
            };
            let key = (own.clone(), tool.name().to_owned());
            let known = definitions.iter().find(|d| d.name == tool.name());
            // What is as it was stays as it is: a registration moves the list.
            let same = known.is_some_and(|known| tool.is_as(known));
            if !(same && self.brought.contains(&key)) {
                registry.register_from(Source::Mcp, Arc::new(tool));
            }
            now.insert(key);
        }
        let of_server = |(name, _): &&(String, String)| *name == own;
        let gone: Vec<_> =
            self.brought.iter().filter(of_server).filter(|k| !now.contains(*k)).cloned().collect();
        for key in gone {
            registry.unregister(&key.1);
            self.brought.remove(&key);
        }
        self.brought.extend(now);
        if server.has_resources() && !registry.contains(resources::READ) {
            for tool in resources::tools(&self.servers) {
                registry.register_from(Source::Mcp, tool);
            }
        }
    }
}
