//! What a decision costs: a command line of 1 KB is taken apart and each of its commands judged by the
//! shipped rules and fifty of a user's. The goal is 200 µs. What is hostile is measured beside it, at the
//! longest that is looked at.
//!
//!     cargo bench -p toolwright-permission --bench decide

use std::hint::black_box;
use std::time::{Duration, Instant};

use toolwright_permission::{
    Action, Layer, LayerKind, Policy, Request, Rule, analyse, shipped_defaults,
};

/// Rounds of each measurement; the best counts.
const ROUNDS: usize = 200;

const GOAL: Duration = Duration::from_micros(200);

fn lines() -> Vec<(&'static str, String)> {
    let fill = |piece: &str, between: &str, bytes: usize| {
        let count = bytes / (piece.len() + between.len());
        vec![piece; count.max(1)].join(between)
    };
    vec![
        ("words", format!("grep -rn pattern {}", fill("src/some/file.rs", " ", 1_000))),
        ("list", fill("git log --oneline -5 -- src/main.rs", " && ", 1_024)),
        ("pipes", fill("sort -n | uniq -c", " | ", 1_024)),
        ("quotes", format!("echo '{}'", "it is long and it is quoted ".repeat(35))),
        ("script", fill("for f in *.txt; do sed -i 's/a/b/' \"$f\"; done", "\n", 1_024)),
        ("writes", fill("cp build/one.txt /tmp/two.txt", "; ", 1_024)),
        ("substitutions", fill("echo $(cat $(ls x))", "; ", 1_024)),
        (
            "mixed",
            fill(
                "cd src && grep -n 'a b' lib.rs | head -20; if make test; then git add -A; else cat log > ../log 2>&1; fi",
                "\n",
                1_024,
            ),
        ),
        ("heredoc", format!("cat > x.txt <<'EOF'\n{}EOF\n", "some text of a file\n".repeat(49))),
    ]
}

/// What scripts are made of, a KB of nothing but that.
fn scripts() -> Vec<(&'static str, String)> {
    let fill = |piece: &str| vec![piece; 1_024 / (piece.len() + 1)].join("\n");
    vec![
        ("case", fill("case \"$1\" in a) ls;; *) rm y;; esac")),
        ("functions", fill("f() { local x=$1; rm \"$x\"; }")),
        ("assignments", fill("name=value; echo \"$name\"")),
        ("nothing but values", fill("name_of_it=\"a value\"")),
        ("tests", fill("[[ -f a ]] && rm a")),
        ("old tests", fill("[ \"$x\" = y ] || rm a")),
        ("if", fill("if grep -q x y; then echo a; else rm b; fi")),
        ("while", fill("while IFS= read -r l; do echo \"$l\"; done < in.txt")),
        ("for with numbers", fill("for ((i=0; i<10; i++)); do echo $i; done")),
        ("select", fill("select x in a b c; do echo \"$x\"; break; done")),
        ("arithmetic", fill("echo $((a + 1)) $((b * 2))")),
        ("arrays", fill("files=(a.txt \"b c.txt\"); wc -l \"${files[@]}\"")),
        ("defaults", fill("echo \"${x:-none}\" ${y%.txt}")),
        ("exports", fill("export NAME=value OTHER=\"$HOME/x\"")),
        ("process substitution", fill("diff <(sort a.txt) <(sort b.txt)")),
        ("here strings", fill("grep -c x <<< \"some text\"")),
        ("groups", fill("{ echo a; echo b; } >> log.txt 2>&1")),
        ("braces", fill("mkdir -p src/{a,b,c}/{d,e}")),
        ("joined writes", fill("make test > out.log 2>&1 && cp a b || rm -f c")),
        ("comments", fill("# what follows lists the files\nls -la src")),
        ("continued lines", fill("cargo build \\\n  --release \\\n  --all-features")),
    ]
}

/// Long words of other languages, and long texts.
fn texts() -> Vec<(&'static str, String)> {
    let python = "import json\nfor line in open(\"a.txt\"):\n    print(json.loads(line)[\"x\"])\n";
    vec![
        ("python -c", format!("python3 -c '{}'", python.repeat(13))),
        ("python here-doc", format!("python3 - <<'EOF'\n{}EOF", python.repeat(13))),
        (
            "open here-doc",
            format!(
                "cat > x.txt <<EOF\n{}EOF",
                "some lines of plain text\nthat name $USER once\n".repeat(21)
            ),
        ),
        ("sed", format!("sed -n '{}' a.txt", "s/some/other/g;/^#/d;".repeat(48))),
        ("awk", format!("awk '{{ {} }}' a.txt", "if ($1 == \"x\") print $2, $3; ".repeat(31))),
        (
            "commit message",
            format!(
                "git add -A && git commit -m \"A title\n\n{}\"",
                "- what was done, and why it was\n".repeat(30)
            ),
        ),
        (
            "commit by here-doc",
            format!(
                "git commit -m \"$(cat <<'EOF'\nA title\n\n{}EOF\n)\"",
                "- what was done, and why it was\n".repeat(29)
            ),
        ),
        ("jq", format!("jq '{}.' a.json", "select(.a.b[0].c == \"x\") | ".repeat(33))),
        (
            "curl",
            format!("curl -s -X POST -d '{{{}}}' http://x", "\"key\": \"value\", ".repeat(53)),
        ),
    ]
}

fn hostile() -> Vec<(&'static str, String)> {
    vec![
        ("open brackets", "(".repeat(400)),
        ("open substitutions", "$(".repeat(400)),
        ("open braces", "{ ".repeat(400)),
        ("backticks", "`".repeat(399)),
        ("heredocs", "<<E ".repeat(200)),
        ("64 KiB of words", "a ".repeat(32_700)),
        ("64 KiB of commands", "a;".repeat(32_700)),
        ("64 KiB of stars", "*".repeat(65_000)),
        ("64 KiB of quotes", "'\"".repeat(32_000)),
        ("64 KiB of dollars", "$".repeat(65_000)),
        ("64 KiB of equals", "a=".repeat(32_000)),
        ("braces in braces", format!("rm {}", "{a,b}".repeat(200))),
        ("shells in shells", format!("{} ls", "sh -c ".repeat(500))),
    ]
}

fn decide(policy: &Policy, line: &str) -> Action {
    let analysis = analyse(line);
    let doubt = analysis.unknown.first().cloned();
    let judged = analysis.commands.into_iter().map(|command| {
        let request = Request {
            permission: "bash".to_owned(),
            pattern: command.text.clone(),
            always: command.text,
            harmless: command.harmless,
            doubt: doubt.clone(),
            ..Request::default()
        };
        policy.judge(&request).action
    });
    judged.max().unwrap_or(Action::Allow)
}

fn best(policy: &Policy, line: &str, rounds: usize) -> Duration {
    let round = |_| {
        let start = Instant::now();
        black_box(decide(policy, black_box(line)));
        start.elapsed()
    };
    (0..rounds).map(round).min().unwrap_or_default()
}

fn main() {
    let rule = |at: usize| Rule::new("bash", &format!("tool{at} *"), Action::Allow, "/home/x");
    let user =
        Layer { kind: LayerKind::User, origin: "user".into(), rules: (0..50).map(rule).collect() };
    let policy = Policy::new(vec![shipped_defaults(), user]);
    println!("a decision about 1 KB (goal: {GOAL:?})");
    for (name, line) in lines().into_iter().chain(scripts()).chain(texts()) {
        let took = best(&policy, &line, ROUNDS);
        let ratio = took.as_secs_f64() / GOAL.as_secs_f64();
        println!("  {name:<22} {took:>10.1?}  {ratio:.2} of the goal  ({} bytes)", line.len());
    }
    println!("hostile lines");
    for (name, line) in hostile() {
        let took = best(&policy, &line, 3);
        println!("  {name:<22} {took:>10.1?}  ({} bytes)", line.len());
    }
}
