//! Resources of servers as tools: what there is, and what it holds.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwright_tool::{
    Access, AnyTool, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::content;
use crate::hub::CallDesk;
use crate::live::{CallError, Listing, Waiting};
use crate::roster::{All, Roster};
use crate::server::{Phase, Server};

pub(crate) const READ: &str = "read_mcp_resource";
const LIST: &str = "list_mcp_resources";
const TEMPLATES: &str = "list_mcp_resource_templates";

/// The key of rules for all three.
const PERMISSION: &str = "read";

pub(crate) fn tools(servers: &Arc<Roster>) -> [Arc<dyn AnyTool>; 3] {
    let list = |name, listing, description| ListResources {
        servers: Arc::clone(servers),
        name,
        listing,
        description,
    };
    [
        Arc::new(list(
            LIST,
            Listing::Resources,
            "Lists the resources that MCP servers offer, as JSON.",
        )),
        Arc::new(list(
            TEMPLATES,
            Listing::ResourceTemplates,
            "Lists the templates of resource URIs that MCP servers offer, as JSON. Fill in the braces and read the result.",
        )),
        Arc::new(ReadResource { servers: Arc::clone(servers) }),
    ]
}

/// What reading a resource would touch.
pub fn access(server: &str, pattern: &str) -> Access {
    Access::Mcp {
        server: server.to_owned(),
        permission: PERMISSION.to_owned(),
        pattern: format!("mcp:{server}:{pattern}"),
        preview: String::new(),
        read_only: true,
    }
}

/// Connected, and with something to read.
fn offering(servers: &All) -> Vec<Arc<Server>> {
    let ready = |s: &&Arc<Server>| s.has_resources() && matches!(s.phase(), Phase::Ready(_));
    servers.iter().filter(ready).cloned().collect()
}

fn find(servers: &All, name: &str) -> Result<Arc<Server>, ToolError> {
    let names = || {
        let names: Vec<_> = offering(servers).iter().map(|s| s.spec.name.clone()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let Some(server) = servers.iter().find(|server| server.spec.name == name) else {
        let text = format!("There is no MCP server {name:?}. Servers with resources: {}.", names());
        return Err(ToolError::for_model(text));
    };
    match server.phase() {
        Phase::Ready(_) if server.has_resources() => Ok(Arc::clone(server)),
        Phase::Ready(_) => Err(ToolError::for_model(format!(
            "The MCP server {name:?} has no resources. Servers with resources: {}.",
            names()
        ))),
        _ => Err(ToolError::for_model(format!("The MCP server {name:?} is not connected."))),
    }
}

struct ListResources {
    servers: Arc<Roster>,
    name: &'static str,
    listing: Listing,
    description: &'static str,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Only those of this server.
    server: Option<String>,
}

impl Tool for ListResources {
    type Arguments = Which;
    type Prepared = Vec<Arc<Server>>;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        self.description
    }

    fn permission(&self) -> &str {
        PERMISSION
    }

    async fn plan(&self, which: Which, _: &PlanContext) -> Planned<Vec<Arc<Server>>> {
        match which.server {
            Some(name) => {
                let plan = Plan::new(name.clone(), vec![access(&name, "*")]);
                Planned {
                    plan,
                    prepared: find(&self.servers.now(), &name).map(|server| vec![server]),
                }
            }
            None => {
                let servers = offering(&self.servers.now());
                let accesses = servers.iter().map(|s| access(&s.spec.name, "*")).collect();
                Planned::ready(Plan::new("", accesses), servers)
            }
        }
    }

    async fn run(
        &self,
        servers: Vec<Arc<Server>>,
        context: RunContext,
    ) -> Result<ToolOutput, ToolError> {
        let mut found = Vec::new();
        for server in servers {
            let items = list(&server, self.listing, &context.cancel).await;
            let items = items.map_err(ToolError::ForModel)?;
            found.extend(items.into_iter().map(|mut item| {
                if let Some(object) = item.as_object_mut() {
                    object.insert("server".to_owned(), server.spec.name.clone().into());
                }
                item
            }));
        }
        let key = |item: &Value| {
            let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
            (text("server"), text("name"), text("uri") + &text("uriTemplate"))
        };
        found.sort_by_key(key);
        let count = found.len();
        let what = match self.listing {
            Listing::Resources => json!({ "resources": found }),
            _ => json!({ "resourceTemplates": found }),
        };
        let text = serde_json::to_string_pretty(&what).unwrap_or_default();
        Ok(ToolOutput::text(text).titled(format!("{count} found")))
    }
}

/// A list of a server's, or why there is none.
pub(crate) async fn list(
    server: &Arc<Server>,
    listing: Listing,
    cancel: &CancellationToken,
) -> Result<Vec<Value>, String> {
    let unavailable = |why| format!("The MCP server {} is not available: {why}", server.spec.name);
    let live = server.live(cancel).await.map_err(unavailable)?;
    let known = server.hub.begin(None);
    let waiting = Waiting { known: &known, timeout: server.spec.timeout, cancel };
    match live.list(listing, &waiting).await {
        Ok(items) => Ok(items),
        Err(error) => Err(server.explain(error).await),
    }
}

/// What a resource holds, as the server says it.
pub(crate) async fn read(
    server: &Arc<Server>,
    uri: &str,
    desk: Option<CallDesk>,
    cancel: &CancellationToken,
) -> Result<Value, String> {
    let unavailable = |why| format!("The MCP server {} is not available: {why}", server.spec.name);
    let live = server.live(cancel).await.map_err(unavailable)?;
    let known = server.hub.begin(desk);
    let waiting = Waiting { known: &known, timeout: server.spec.timeout, cancel };
    match live.read_resource(uri, &waiting).await {
        Ok(result) => Ok(result),
        Err(CallError::Interrupted) => Err("Interrupted.".to_owned()),
        Err(error) => Err(server.explain(error).await),
    }
}

struct ReadResource {
    servers: Arc<Roster>,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The server that has it.
    server: String,
    /// Its URI, as list_mcp_resources shows it.
    uri: String,
}

impl Tool for ReadResource {
    type Arguments = Place;
    type Prepared = (Arc<Server>, String);

    fn name(&self) -> &str {
        READ
    }

    fn description(&self) -> &str {
        "Reads a resource of an MCP server."
    }

    fn permission(&self) -> &str {
        PERMISSION
    }

    async fn plan(&self, place: Place, _: &PlanContext) -> Planned<(Arc<Server>, String)> {
        let Place { server, uri } = place;
        let plan = Plan::new(format!("{server}:{uri}"), vec![access(&server, &uri)]);
        Planned { plan, prepared: find(&self.servers.now(), &server).map(|server| (server, uri)) }
    }

    async fn run(
        &self,
        (server, uri): (Arc<Server>, String),
        context: RunContext,
    ) -> Result<ToolOutput, ToolError> {
        let (door, progress) = (context.door.clone(), context.progress.clone());
        let desk = CallDesk { door, progress, sampler: None };
        let result = read(&server, &uri, Some(desk), &context.cancel).await;
        let result = result.map_err(ToolError::ForModel)?;
        content::resource(&result, &context.outputs).ok_or_else(|| {
            ToolError::for_model(format!(
                "The MCP server {} has nothing at {uri}.",
                server.spec.name
            ))
        })
    }
}
