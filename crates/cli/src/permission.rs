//! `tw permission check`: explains a decision.

use serde_json::json;
use toolwright::Workbench;
use toolwright::permission::{Action, Judgement};
use toolwright::tool::{Access, Plan};

use crate::args::{Permission, PermissionAction, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::print;

pub fn permission(shared: &Shared, options: Permission) -> Result<Exit, Problem> {
    let PermissionAction::Check { json, agent, command } = options.action;
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let agent = workbench.agent(agent.as_deref()).map_err(toolwright::SetupError::from)?;
    let policy = workbench.policy(&agent, false);
    let folder = workbench.workspace.directory().to_owned();
    let access = Access::Execute { command: command.clone(), directory: folder };
    let requests = Plan::new(command.clone(), vec![access]).requests(&workbench.workspace);
    let judged = requests.iter().map(|r| policy.judge(r)).max_by_key(|j| j.action);
    let judgement = judged.unwrap_or_else(|| Judgement {
        action: Action::Allow,
        rule: None,
        from: "the command".to_owned(),
        why: "it does nothing that rules could be about".to_owned(),
    });
    if json {
        let accesses: Vec<_> = requests
            .iter()
            .map(|r| json!({ "permission": r.permission, "pattern": r.pattern }))
            .collect();
        let object = json!({
            "decision": judgement.action, "rule": judgement.rule, "from": judgement.from,
            "accesses": accesses, "why": judgement.why,
        });
        print(&format!("{object}\n"));
    } else {
        let verb = match judgement.action {
            Action::Allow => "would be allowed",
            Action::Ask => "would be asked about",
            Action::Deny => "would be denied",
        };
        print(&format!("{command}\n    {verb}: {}\n    from: {}\n", judgement.why, judgement.from));
    }
    Ok(Exit::Done)
}
