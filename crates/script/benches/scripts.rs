//! What scripts cost: to learn what twenty files offer, cold and warm, to call one, and in memory.
//! Run with `cargo bench -p toolwright-script`. Times are the least of several rounds, on the clock and of the processor:
//! the second does not depend on what else a machine does. With `-- first` only the first round is run, for those who
//! measure a new process from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwright_script::{CallTerms, Host, HostOptions, Kind, Limit, Script};
use toolwright_tool::Workspace;

const FILES: usize = 20;
const CALLS: usize = 500;
const ROUNDS: usize = 7;

fn tool(n: usize) -> String {
    format!(
        r#"import {{ tool }} from "@opencode-ai/plugin"
import path from "node:path"
interface Row {{ id: number; name: string }}
enum Mode {{ Plain = "plain", Loud = "loud" }}
const rows: Row[] = [{{ id: {n}, name: "row" }}]
export default tool({{
  description: "Tool number {n}: looks up a row",
  args: {{
    id: tool.schema.number().int().min(0).describe("which"),
    mode: tool.schema.enum(["plain", "loud"]).default("plain"),
    tags: tool.schema.array(tool.schema.string()).optional(),
  }},
  async execute(args, context): Promise<string> {{
    const row = rows.find((r) => r.id === args.id)
    const said = row ? `${{row.name}} in ${{path.basename(context.directory ?? "")}}` : "nothing"
    return args.mode === Mode.Loud ? said.toUpperCase() : said
  }},
}})
"#
    )
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn scripts(folder: &std::path::Path, host: &Arc<Host>) -> Vec<Script> {
    let path = |n: usize| folder.join(format!("tool{n}.ts"));
    (0..FILES).map(|n| Script::new(&path(n), Kind::Tools, Arc::clone(host))).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..FILES {
        std::fs::write(folder.path().join(format!("tool{n}.ts")), tool(n)).unwrap();
    }
    let host = Host::new(HostOptions {
        workspace: Arc::new(Workspace::new(folder.path()).unwrap()),
        environment: std::env::vars().collect(),
        withheld: Vec::new(),
        passed: Vec::new(),
        sandbox: None,
        own_folders: Vec::new(),
        client: None,
    });
    let mut cold = Cost::MOST;
    let mut warm = Cost::MOST;
    for round in 0..ROUNDS {
        let memory = folder.path().join(format!("memory{round}"));
        let describe = async || {
            let scripts = scripts(folder.path(), &host);
            let cost = Cost::begin();
            let all = join_all(scripts.iter().map(|script| script.describe(Some(&memory), None)));
            assert!(all.await.into_iter().all(|d| d.unwrap().tools.len() == 1));
            // Engines are taken apart afterwards, when nobody waits.
            cost.end()
        };
        let cost = describe().await;
        if round == 0 {
            say(&format!("{FILES} TypeScript tools, the first time in a new process"), cost, 60.0);
            if std::env::args().any(|argument| argument == "first") {
                return;
            }
        }
        cold = cold.least(cost);
        warm = warm.least(describe().await);
    }
    say(&format!("{FILES} TypeScript tools, the first time"), cold, 60.0);
    say(&format!("{FILES} TypeScript tools, afterwards"), warm, 10.0);

    let loaded = scripts(folder.path(), &host);
    let call = async |script: &Script, id: usize| {
        let terms = CallTerms {
            guard: None,
            limit: Limit::Whole(Duration::from_secs(30)),
            cancel: CancellationToken::new(),
        };
        let name = script.path().file_stem().unwrap().to_string_lossy().into_owned();
        let result: Value = script
            .call_tool(&name, json!({ "id": id }), json!({ "directory": "/x/y" }), terms)
            .await
            .unwrap();
        assert!(result["output"].is_string());
    };
    call(&loaded[0], 0).await;
    let before = resident_kib();
    for (n, script) in loaded.iter().enumerate().skip(1) {
        call(script, n).await;
    }
    let each = (resident_kib() - before) as f64 / (FILES - 1) as f64;
    let verdict = if each <= 1024.0 { "holds" } else { "DOES NOT HOLD" };
    println!("memory for each loaded file: {:.2} MiB; goal 1 MiB: {verdict}", each / 1024.0);

    let mut best = Cost::MOST;
    for _ in 0..ROUNDS {
        let cost = Cost::begin();
        for _ in 0..CALLS {
            call(&loaded[0], 0).await;
        }
        best = best.least(cost.end());
    }
    let each = Cost { clock: best.clock / CALLS as f64, processor: best.processor / CALLS as f64 };
    say("one call", each, 2.0);
}

/// Milliseconds.
#[derive(Clone, Copy)]
struct Cost {
    clock: f64,
    processor: f64,
}

struct Begun(Instant, f64);

impl Cost {
    const MOST: Self = Self { clock: f64::MAX, processor: f64::MAX };

    fn begin() -> Begun {
        Begun(Instant::now(), processor_ms())
    }

    fn least(self, other: Self) -> Self {
        Self { clock: self.clock.min(other.clock), processor: self.processor.min(other.processor) }
    }
}

impl Begun {
    fn end(self) -> Cost {
        Cost { clock: self.0.elapsed().as_secs_f64() * 1e3, processor: processor_ms() - self.1 }
    }
}

/// What this process has used of the processors, threads that have ended included: in steps of ten milliseconds,
/// which is why each round does many things.
fn processor_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) * 10.0
}

fn say(what: &str, cost: Cost, goal_ms: f64) {
    let verdict = if cost.clock.min(cost.processor) <= goal_ms { "holds" } else { "DOES NOT HOLD" };
    println!(
        "{what}: {:.2} ms on the clock, {:.2} ms of the processor; goal {goal_ms} ms: {verdict}",
        cost.clock, cost.processor
    );
}
