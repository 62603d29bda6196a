#!/usr/bin/env python3
"""tw import against real session files: OpenCode, Codex and pi work with a scripted model, and what
they leave in their homes is imported, checked, and gone on with. What tw exports is given to OpenCode.

    import_sessions.py TW [PEERS_BIN]

PEERS_BIN is a folder with `opencode`, `codex` and `pi` (else they are looked for on PATH); one that is
not there is left out. Standard library only.
"""

import glob
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

PROMPT = "Look around, then say what you saw."
AGAIN = "Go on from there."
# Text, and commands for the shell. The last one only speaks.
STEPS = [
    ("Let me look.", ["echo first; ls", "cat fish.txt"]),
    ("Something will fail.", ["echo broken >&2; exit 3"]),
    ("I saw **one** fish.", []),
]
CALLS = sum(len(commands) for _, commands in STEPS)
SHELLS = ("bash", "exec_command", "shell", "shell_command")


def sse(*events):
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def shell_call(tools, command):
    """The shell tool that a request offers, and its arguments for this command."""
    name = next(n for n in SHELLS if n in tools)
    known = tools[name].get("properties") or {}
    key = "command" if "command" in known else "cmd"
    arguments = {key: ["bash", "-c", command] if known[key].get("type") == "array" else command}
    if "description" in known:
        arguments["description"] = "look"
    return name, arguments


class Model(http.server.BaseHTTPRequestHandler):
    """Answers by how many results of calls a request holds, and checks that none is missing."""

    protocol_version = "HTTP/1.1"
    problems = []

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.again = json.dumps(body).count(AGAIN) > 0
        answer = self.anthropic if self.path.endswith("/messages") else self.openai
        out = answer(body)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def step(self, tools, calls, results):
        if sorted(calls) != sorted(results):
            self.problems.append(f"calls {calls} have the results {results}")
        if not any(n in tools for n in SHELLS):
            return "A name", []  # a title
        if self.again:
            return "Went on.", []
        done = 0
        for text, commands in STEPS:
            if len(results) <= done:
                return text, commands
            done += len(commands)
        return "Nothing is left.", []

    def anthropic(self, body):
        tools = {t["name"]: t.get("input_schema", {}) for t in body.get("tools") or []}
        parts = [p for m in body["messages"] if isinstance(m["content"], list) for p in m["content"]]
        calls = [p["id"] for p in parts if p["type"] == "tool_use"]
        results = [p["tool_use_id"] for p in parts if p["type"] == "tool_result"]
        text, commands = self.step(tools, calls, results)
        events = [{"type": "message_start", "message": {
            "id": f"msg_{len(results)}", "type": "message", "role": "assistant", "model": "scripted",
            "content": [], "stop_reason": None, "usage": {"input_tokens": 50, "output_tokens": 1}}}]
        blocks = [({"type": "text", "text": ""}, {"type": "text_delta", "text": text})]
        for n, command in enumerate(commands):
            name, arguments = shell_call(tools, command)
            blocks.append(({"type": "tool_use", "id": f"toolu_{len(results)}_{n}", "name": name, "input": {}},
                           {"type": "input_json_delta", "partial_json": json.dumps(arguments)}))
        for n, (start, delta) in enumerate(blocks):
            events += [{"type": "content_block_start", "index": n, "content_block": start},
                       {"type": "content_block_delta", "index": n, "delta": delta},
                       {"type": "content_block_stop", "index": n}]
        stop = "tool_use" if commands else "end_turn"
        events += [{"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}},
                   {"type": "message_stop"}]
        return sse(*events)

    def openai(self, body):
        tools = {t["name"]: t.get("parameters") or {} for t in body.get("tools") or [] if "name" in t}
        items = body["input"]
        calls = [i["call_id"] for i in items if i.get("type", "").endswith("_call")]
        results = [i["call_id"] for i in items if i.get("type", "").endswith("_call_output")]
        text, commands = self.step(tools, calls, results)
        said = {"type": "message", "id": f"msg_{len(results)}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}
        output = [said]
        for n, command in enumerate(commands):
            name, arguments = shell_call(tools, command)
            output.append({"type": "function_call", "id": f"fc_{len(results)}_{n}", "status": "completed",
                           "call_id": f"call_{len(results)}_{n}", "name": name,
                           "arguments": json.dumps(arguments)})
        events = [{"type": "response.created", "response": {"id": "resp_1"}}]
        for n, item in enumerate(output):
            events += [{"type": "response.output_item.added", "output_index": n, "item": item},
                       {"type": "response.output_item.done", "output_index": n, "item": item}]
        usage = {"input_tokens": 50, "input_tokens_details": {"cached_tokens": 10}, "output_tokens": 7,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 57}
        events.append({"type": "response.completed", "response": {
            "id": "resp_1", "status": "completed", "output": output, "usage": usage}})
        return sse(*events)


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))


def opencode(binary, home, work, port):
    config = f"{home}/.config/opencode"
    write(f"{config}/opencode.json", {
        "autoupdate": False, "share": "disabled", "model": "fake/scripted", "small_model": "fake/scripted",
        "provider": {"fake": {"npm": "@ai-sdk/anthropic", "options": {
            "baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "x"},
            "models": {"scripted": {"tool_call": True, "limit": {"context": 1000000, "output": 8000}}}}}})
    wanted = {"@opencode-ai/plugin": "*"}  # else it installs that package first
    os.makedirs(f"{config}/node_modules", exist_ok=True)
    write(f"{config}/package.json", {"dependencies": wanted})
    write(f"{config}/package-lock.json", {"lockfileVersion": 3, "packages": {"": {"dependencies": wanted}}})
    env = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
           "npm_config_registry": "http://127.0.0.1:9"}
    run([binary, "run", "--auto", "-m", "fake/scripted", PROMPT], home, work, env)
    sessions = json.loads(run([binary, "session", "list", "--format", "json"], home, work, env))
    path = f"{home}/session.json"
    write(path, run([binary, "export", sessions[0]["id"]], home, work, env))
    return path, env


def codex(binary, home, work, port):
    write(f"{home}/.codex/config.toml", f"""
model = "gpt-5.5"
model_provider = "fake"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.fake]
name = "fake"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
[projects."{work}"]
trust_level = "trusted"
""")
    env = {"OPENAI_API_KEY": "x"}
    run([binary, "exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", PROMPT],
        home, work, env)
    return glob.glob(f"{home}/.codex/sessions/**/*.jsonl", recursive=True)[0], env


def pi(binary, home, work, port):
    write(f"{home}/.pi/agent/models.json", {"providers": {"fake": {
        "baseUrl": f"http://127.0.0.1:{port}", "api": "anthropic-messages", "apiKey": "x",
        "models": [{"id": "scripted", "contextWindow": 1000000, "maxTokens": 8000}]}}})
    env = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
    run([binary, "-p", "--model", "fake/scripted", PROMPT], home, work, env)
    return glob.glob(f"{home}/.pi/agent/sessions/**/*.jsonl", recursive=True)[0], env


def run(command, home, work, env):
    full = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", **env}
    done = subprocess.run(command, cwd=work, env=full, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got!r} instead of {wanted!r}")


def check(name, make, binary, tw, root, port):
    home, work = f"{root}/{name}/home", f"{root}/{name}/work"
    os.makedirs(home), os.makedirs(work)
    write(f"{work}/fish.txt", "one fish\n")
    path, env = make(binary, home, work, port)
    own = {"TOOLWRIGHT_LOCAL_SERVERS": "off", "TOOLWRIGHT_SHELL_LOGIN": "off",
           "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "x"}

    def mine(*arguments):
        return run([tw, *arguments], f"{root}/{name}", work, own)

    taken = json.loads(mine("import", "--json", path))[0]
    counts = {key: taken[key] for key in ("prompts", "answers", "calls")}
    expect(f"{name}: what is in {path}", counts, {"prompts": 1, "answers": len(STEPS), "calls": CALLS})
    form = json.loads(mine("export", taken["id"]))
    parts = [part for message in form["messages"] for part in message["parts"]]
    said = [part["text"] for part in parts if part["type"] == "text"]
    expect(f"{name}: texts", [text.strip('"') for text in said], [PROMPT] + [text for text, _ in STEPS])
    outputs = [part["state"].get("output") or part["state"]["error"] for part in parts if part["type"] == "tool"]
    for output, wanted in zip(outputs, ["first", "one fish", ""], strict=True):
        if wanted not in output:
            sys.exit(f"{name}: the result {output!r} does not hold {wanted!r}")
    tokens = form["info"]["tokens"]
    expect(f"{name}: tokens", tokens["input"] + tokens["cache"]["read"], 50 * len(STEPS))
    expect(f"{name}: gone on", mine("run", "-s", taken["id"], "-m", "anthropic/scripted", AGAIN).strip(), "Went on.")
    expect(f"{name}: found", len(json.loads(mine("sessions", "--json", "--search", "one fish"))), 1)
    if name == "opencode":
        write(f"{root}/back.json", mine("export", taken["id"]))
        run([binary, "import", f"{root}/back.json"], home, work, env)
        back = json.loads(run([binary, "export", taken["id"]], home, work, env))
        expect("opencode: given back", len(back["messages"]), len(form["messages"]) + 2)
    print(f"{name}: {counts}, notices: {taken['notices'] or 'none'}")


def main():
    tw = os.path.abspath(sys.argv[1])
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Codex wants no home below the temporary folder.
    base = os.path.expanduser("~/.cache")
    os.makedirs(base, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tw-interop-", dir=base, ignore_cleanup_errors=True) as root:
        for name, make in (("opencode", opencode), ("codex", codex), ("pi", pi)):
            binary = shutil.which(name, path=folder) or shutil.which(name)
            if binary is None:
                print(f"{name}: not installed, left out")
                continue
            check(name, make, binary, tw, root, server.server_address[1])
    if Model.problems:
        sys.exit("\n".join(Model.problems))
    print("all good")


if __name__ == "__main__":
    main()
