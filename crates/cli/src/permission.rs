//! `tw permission`: explains decisions, lists the rules, forgets what was agreed to.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright::config::{Agent, rule_line};
use toolwright::permission::{Action, Judgement, Policy, Request, Rule, Stance, suggestions};
use toolwright::tool::{Access, CallRequest, Plan};
use toolwright::{KeptApproval, PermissionGate, Workbench};

use crate::args::{Permission, PermissionAction, PermissionCheck, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{harmless, print};

pub async fn permission(shared: &Shared, options: Permission) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    match options.action {
        PermissionAction::Check(check) => explain(&workbench, check).await,
        PermissionAction::List { json, agent } => list(&workbench, agent.as_deref(), json),
        PermissionAction::Forget { ids, all } => forget(&workbench, &ids, all),
    }
}

/// The rules of an agent, and how to find them again.
struct Rules<'a> {
    workbench: &'a Workbench,
    agent: Agent,
    policy: Policy,
}

impl<'a> Rules<'a> {
    fn new(workbench: &'a Workbench, agent: Option<&str>, stance: Stance) -> Result<Self, Problem> {
        let agent = workbench.agent(agent).map_err(toolwright::SetupError::from)?;
        let policy = workbench.policy(&agent, &stance);
        Ok(Self { workbench, agent, policy })
    }

    /// The file of a rule, where it stands in one, and its line.
    fn place(&self, rule: &Rule, from: &str) -> (String, Option<usize>) {
        let home = self.workbench.paths.home.display().to_string();
        if from != format!("agent {}", self.agent.name) {
            return (from.to_owned(), rule_line(Path::new(from), None, rule, &home));
        }
        // The innermost file that has it; an agent of ours may have it from nowhere else.
        let found = self.workbench.config.sources.iter().rev().find_map(|source| {
            let line = rule_line(&source.path, Some(&self.agent.name), rule, &home)?;
            Some((source.path.display().to_string(), Some(line)))
        });
        found.unwrap_or_else(|| (from.to_owned(), None))
    }

    fn told(&self, judgement: &Judgement) -> Told {
        let (from, line) = match &judgement.rule {
            Some(rule) => self.place(rule, &judgement.from),
            None => (judgement.from.clone(), None),
        };
        Told { judgement: judgement.clone(), from, line }
    }
}

struct Told {
    judgement: Judgement,
    from: String,
    line: Option<usize>,
}

impl Told {
    fn place(&self) -> String {
        self.line.map_or_else(|| self.from.clone(), |line| format!("{}:{line}", self.from))
    }
}

async fn explain(workbench: &Workbench, check: PermissionCheck) -> Result<Exit, Problem> {
    let mode = check.mode.map(Into::into).or(workbench.config.settings.permission_mode);
    let mode = mode.unwrap_or_default();
    let rules = Rules::new(workbench, check.agent.as_deref(), Stance::from(mode))?;
    let plan = match &check.tool {
        Some(tool) => plan_of(workbench, &rules, tool, &check.subject).await?,
        None => {
            let directory = workbench.workspace.directory().to_owned();
            let command = check.subject.clone();
            Plan::new(command.clone(), vec![Access::Execute { command, directory }])
        }
    };
    let requests = plan.requests(&workbench.workspace);
    // Of another spelling there is something to say only where a rule is against it.
    let counts = |(request, told): &(&Request, Told)| {
        !request.respelled || told.judgement.action != Action::Allow
    };
    let judged: Vec<(&Request, Told)> =
        requests.iter().map(|r| (r, rules.told(&rules.policy.judge(r)))).filter(counts).collect();
    // The first of the strictest that is about the call itself, as it is told to the model.
    let strictest =
        judged.iter().rev().max_by_key(|(r, told)| (told.judgement.action, !r.advisory));
    let strictest = strictest.map(|(_, told)| told);
    let nothing = Told {
        judgement: Judgement {
            action: Action::Allow,
            rule: None,
            from: "the plan".to_owned(),
            why: "it does nothing that rules could be about".to_owned(),
        },
        from: "the plan".to_owned(),
        line: None,
    };
    let whole = strictest.unwrap_or(&nothing);
    if check.json {
        let accesses: Vec<Value> = judged.iter().map(|(r, told)| as_json(r, told)).collect();
        let object = json!({
            "decision": whole.judgement.action, "rule": whole.judgement.rule, "from": whole.from,
            "line": whole.line, "accesses": accesses, "why": whole.judgement.why,
            "mode": mode, "agent": rules.agent.name, "summary": plan.summary,
        });
        print(&format!("{object}\n"));
        return Ok(Exit::Done);
    }
    let verb = match whole.judgement.action {
        Action::Allow => "would be allowed",
        Action::Ask => "would be asked about",
        Action::Deny => "would be denied",
    };
    let mut out = format!(
        "{}\n    {verb}: {}\n    from: {}\n",
        harmless(&plan.summary),
        whole.judgement.why,
        whole.place()
    );
    for (request, told) in &judged {
        out.push_str(&format!(
            "    · {} {}: {} – {}\n",
            request.permission,
            harmless(&request.pattern),
            told.judgement.action,
            told.judgement.why
        ));
    }
    print(&out);
    Ok(Exit::Done)
}

fn as_json(request: &Request, told: &Told) -> Value {
    json!({
        "permission": request.permission, "pattern": request.pattern, "also": request.also,
        "decision": told.judgement.action, "rule": told.judgement.rule, "from": told.from,
        "line": told.line, "why": told.judgement.why, "doubt": request.doubt,
        "always": suggestions(request),
    })
}

async fn plan_of(
    workbench: &Workbench,
    rules: &Rules<'_>,
    tool: &str,
    arguments: &str,
) -> Result<Plan, Problem> {
    let gate = Arc::new(PermissionGate::new(rules.policy.clone(), None));
    // Nothing is run, so nothing is put there.
    let outputs = workbench.paths.sessions().join("without-session/calls.outputs");
    let pipeline = workbench.pipeline(workbench.registry(), &gate, &Arc::default(), outputs, None);
    let (name, arguments) = (tool.to_owned(), arguments.to_owned());
    let call = CallRequest { id: "check".to_owned(), name, arguments, cut: false };
    pipeline.look_at(&call).await.map_err(|outcome| Problem::usage(outcome.output))
}

fn list(workbench: &Workbench, agent: Option<&str>, as_json: bool) -> Result<Exit, Problem> {
    let rules = Rules::new(workbench, agent, Stance::default())?;
    let store = workbench.approvals();
    let kept = store.all().map_err(|error| Problem::failed(error.to_string()))?;
    let layers = rules.policy.layers();
    if as_json {
        let rule_json = |rule: &Rule, origin: &str| {
            let (from, line) = rules.place(rule, origin);
            json!({
                "permission": rule.permission, "pattern": rule.pattern, "action": rule.action,
                "from": from, "line": line,
            })
        };
        let layer = |layer: &toolwright::permission::Layer| {
            let own: Vec<Value> =
                layer.rules.iter().map(|rule| rule_json(rule, &layer.origin)).collect();
            json!({ "kind": layer.kind, "from": layer.origin, "rules": own })
        };
        let layers: Vec<Value> = layers.iter().map(layer).collect();
        let object = json!({
            "agent": rules.agent.name, "layers": layers, "approvals": kept,
            "approvalsFile": store.path(),
        });
        print(&format!("{object}\n"));
        return Ok(Exit::Done);
    }
    let mut out = String::new();
    for layer in layers {
        let kind = json!(layer.kind);
        out.push_str(&format!("{}: {}\n", kind.as_str().unwrap_or_default(), layer.origin));
        for rule in &layer.rules {
            let (from, line) = rules.place(rule, &layer.origin);
            let place = match line {
                Some(line) if from == layer.origin => format!("  (line {line})"),
                Some(line) => format!("  ({from}:{line})"),
                None => String::new(),
            };
            let (key, pattern) = (harmless(&rule.permission), harmless(&rule.pattern));
            out.push_str(&format!("    {:<5}  {key} {pattern}{place}\n", rule.action.to_string()));
        }
    }
    out.push_str(&format!("agreed to: {}\n", store.path().display()));
    if kept.is_empty() {
        out.push_str("    nothing\n");
    }
    kept.iter().for_each(|kept| out.push_str(&kept_line(kept)));
    out.push_str("The last rule that matches wins; a deny is final for all layers below it.\n");
    print(&out);
    Ok(Exit::Done)
}

fn kept_line(kept: &KeptApproval) -> String {
    let KeptApproval { id, approval, project, time } = kept;
    let place = project.as_ref().map_or("everywhere".to_owned(), |p| p.display().to_string());
    let day = i64::try_from(*time).ok().and_then(|time| jiff::Timestamp::from_second(time).ok());
    let day = day.map_or(String::new(), |day| day.strftime("%Y-%m-%d").to_string());
    let pattern = harmless(&approval.pattern);
    let about = match approval.command == approval.pattern {
        true => String::new(),
        false => format!(", when asked about {}", harmless(&approval.command)),
    };
    format!("    {id:<5}  {} {pattern}  ({place}, {day}{about})\n", approval.permission)
}

fn forget(workbench: &Workbench, ids: &[String], all: bool) -> Result<Exit, Problem> {
    let store = workbench.approvals();
    let failed = |error: std::io::Error| Problem::failed(error.to_string());
    let known = store.all().map_err(failed)?;
    if let Some(unknown) = ids.iter().find(|id| !known.iter().any(|kept| kept.id == **id)) {
        return Err(Problem::usage(format!(
            "nothing that was agreed to has the id {unknown}; see: tw permission list"
        )));
    }
    let count = store.forget(|kept| all || ids.contains(&kept.id)).map_err(failed)?;
    print(&format!("forgot {count}\n"));
    Ok(Exit::Done)
}
