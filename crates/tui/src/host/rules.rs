//! The rules in force with where they stand, and what was agreed to.

use std::path::Path;

use toolwright::config::rule_line;
use toolwright::permission::{Approval, Scope, Stance};
use toolwright::{PermissionGate, Workbench};

use crate::app::Row;

/// What was agreed to first, since it can be taken back; then the rules, the innermost first, as they win.
pub(super) fn rows(
    bench: &Workbench,
    agent: Option<&str>,
    gate: Option<&PermissionGate>,
) -> Vec<Row> {
    let kept = bench.approvals().here().unwrap_or_default();
    let row = |approval: &Approval, value: String, when: &str| {
        let exact = if approval.exact { "just " } else { "" };
        Row {
            label: format!("agreed  {exact}{} {}", approval.permission, approval.pattern),
            about: when.to_owned(),
            value,
        }
    };
    let session = gate.map(PermissionGate::approvals).unwrap_or_default();
    let own = session.iter().enumerate().filter(|(_, approval)| approval.scope == Scope::Session);
    let mut rows: Vec<Row> =
        own.map(|(n, approval)| row(approval, format!("session:{n}"), "this session")).collect();
    rows.extend(kept.iter().map(|kept| {
        let when = if kept.project.is_some() { "this project" } else { "everywhere" };
        row(&kept.approval, format!("kept:{}", kept.id), when)
    }));
    let Ok(agent) = bench.agent(agent) else { return rows };
    let home = bench.paths.home.display().to_string();
    let policy = bench.policy(&agent, &Stance::default());
    for layer in policy.layers().iter().rev() {
        for rule in layer.rules.iter().rev() {
            let line = rule_line(Path::new(&layer.origin), None, rule, &home);
            let place = match line {
                Some(line) => format!("{}:{line}", shortened(&layer.origin, &home)),
                None => shortened(&layer.origin, &home),
            };
            rows.push(Row {
                label: format!(
                    "{:<6}  {} {}",
                    rule.action.to_string(),
                    rule.permission,
                    rule.pattern
                ),
                about: place,
                value: "rule".to_owned(),
            });
        }
    }
    rows
}

fn shortened(path: &str, home: &str) -> String {
    match path.strip_prefix(home).filter(|_| !home.is_empty()) {
        Some(rest) => format!("~{rest}"),
        None => path.to_owned(),
    }
}

/// Takes back what a row stands for.
pub(super) fn forget(
    bench: &Workbench,
    gate: Option<&PermissionGate>,
    value: &str,
) -> Result<(), String> {
    let gone = match value.split_once(':') {
        Some(("session", n)) => {
            let all = gate.map(PermissionGate::approvals).unwrap_or_default();
            n.parse::<usize>().ok().and_then(|n| all.get(n).cloned())
        }
        Some(("kept", id)) => {
            let kept = bench.approvals().all().map_err(|error| error.to_string())?;
            let own = kept.into_iter().find(|kept| kept.id == id);
            bench.approvals().forget(|kept| kept.id == id).map_err(|error| error.to_string())?;
            own.map(|kept| kept.approval)
        }
        _ => None,
    };
    let gone = gone.ok_or("it was taken back already")?;
    if let Some(gate) = gate {
        gate.forget(&gone);
    }
    Ok(())
}
