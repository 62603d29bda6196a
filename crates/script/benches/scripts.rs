//! What scripts cost: to learn what twenty files offer, cold and warm, to call one, and in memory.
//! Run with `cargo bench -p toolwright-script`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwright_script::{CallTerms, Host, HostOptions, Kind, Script};
use toolwright_tool::Workspace;

const FILES: usize = 20;
const CALLS: usize = 500;

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
    let memory = folder.path().join("memory");
    let host = Host::new(HostOptions {
        workspace: Arc::new(Workspace::new(folder.path()).unwrap()),
        environment: std::env::vars().collect(),
        withheld: Vec::new(),
        passed: Vec::new(),
        sandbox: None,
        own_folders: Vec::new(),
        client: None,
    });
    let describe = async |scripts: &[Script]| {
        let start = Instant::now();
        let all = join_all(scripts.iter().map(|script| async {
            let described = script.describe(Some(&memory), None).await.unwrap();
            script.rest();
            described
        }));
        assert!(all.await.iter().all(|d| d.tools.len() == 1));
        start.elapsed()
    };
    let cold = describe(&scripts(folder.path(), &host)).await;
    let warm = describe(&scripts(folder.path(), &host)).await;
    println!("{FILES} TypeScript tools, cold: {:.1} ms (goal 60)", cold.as_secs_f64() * 1e3);
    println!("{FILES} TypeScript tools, warm: {:.2} ms (goal 10)", warm.as_secs_f64() * 1e3);

    let loaded = scripts(folder.path(), &host);
    let call = async |script: &Script, id: usize| {
        let terms = CallTerms {
            guard: None,
            deadline: Duration::from_secs(30),
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
    println!("memory for each loaded file: {:.2} MiB (goal 1)", each / 1024.0);

    let start = Instant::now();
    for _ in 0..CALLS {
        call(&loaded[0], 0).await;
    }
    println!("one call: {:.3} ms (goal 2)", start.elapsed().as_secs_f64() * 1e3 / CALLS as f64);
}
