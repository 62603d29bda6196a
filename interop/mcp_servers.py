#!/usr/bin/env python3
"""tw with real MCP servers from npm, and the protocol's own conformance suite for clients.

    mcp_servers.py TW CONFORMANCE_CLIENT CACHE

Installs pinned versions into CACHE. Then a scripted model (over real HTTP, in this file) lets tw call every
tool of the reference server over each of its transports, and tools of two others; and the suite drives our
client through every scenario that can apply. What cannot be installed here is skipped with a line.
Standard library only.
"""

import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

PACKAGES = {
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
    "@modelcontextprotocol/conformance": "0.1.16",
    # The suite needs Node.js 22; this is the same program as a package.
    "node": "22.23.3",
}

SCENARIOS = [
    "initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry",
    "auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3",
    "auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined",
    "auth/scope-step-up", "auth/scope-retry-limit", "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none", "auth/pre-registration",
    "auth/2025-03-26-oauth-endpoint-fallback", "auth/resource-mismatch", "auth/offline-access-scope",
    "auth/offline-access-not-supported",
]

# Scenarios of the suite that are not run, with the reason.
NOT_RUN = {
    "auth/basic-cimd": "needs a page of ours on the public web that describes the client",
    "auth/client-credentials-jwt": "an extension for programs without a person; tw signs people in",
    "auth/client-credentials-basic": "as above",
    "auth/cross-app-access-complete-flow": "an extension for a company's own identity provider",
    "auth/2025-03-26-oauth-metadata-backcompat":
        "metadata whose issuer is not the address it was found at: the SDK refuses it, as RFC 8414 demands",
}

# One try more where a busy machine missed a moment that the suite measures.
TRIES = 3


def run(command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=600, **options)


def install(cache):
    if not shutil.which("npm") or not shutil.which("node"):
        return "no Node.js with npm"
    folder = os.path.join(cache, "npm")
    wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
    mark = os.path.join(folder, "installed")
    if os.path.exists(mark) and open(mark).read() == "\n".join(wanted):
        return None
    done = run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *wanted])
    if done.returncode:
        return f"npm: {done.stdout.strip()[-300:]}"
    with open(mark, "w") as f:
        f.write("\n".join(wanted))
    return None


class Model(http.server.BaseHTTPRequestHandler):
    """Answers each request of a run with the next of a list of calls, then with a word."""

    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        sampled = "Resource" in json.dumps(body.get("system", "")) and not body.get("tools")
        server = self.server
        text = json.dumps(body)
        is_sampling = "helpful test server" in text and not body.get("tools")
        answered = sum(1 for m in body["messages"] for part in m["content"]
                       if isinstance(part, dict) and part.get("type") == "tool_result")
        server.requests.append(body)
        if is_sampling or sampled:
            blocks, reason = [{"type": "text", "text": "sampled words"}], "end_turn"
        elif answered < len(server.calls):
            name, arguments = server.calls[answered]
            blocks = [{"type": "tool_use", "id": f"call_{answered}", "name": name, "input": arguments}]
            reason = "tool_use"
        else:
            blocks, reason = [{"type": "text", "text": "Done."}], "end_turn"
        out = []

        def event(kind, **data):
            out.append(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n")

        event("message_start", message={"id": "m", "model": "m", "role": "assistant", "usage": {"input_tokens": 10}})
        for n, block in enumerate(blocks):
            if block["type"] == "text":
                event("content_block_start", index=n, content_block={"type": "text", "text": ""})
                event("content_block_delta", index=n, delta={"type": "text_delta", "text": block["text"]})
            else:
                event("content_block_start", index=n, content_block={**block, "input": {}})
                event("content_block_delta", index=n,
                      delta={"type": "input_json_delta", "partial_json": json.dumps(block["input"])})
            event("content_block_stop", index=n)
        event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 5})
        event("message_stop")
        data = "".join(out).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Bench:
    def __init__(self, tw, root):
        self.tw, self.root = tw, os.path.realpath(root)
        self.home, self.work = os.path.join(self.root, "home"), os.path.join(self.root, "work")
        os.makedirs(os.path.join(self.home, ".config/toolwright"))
        os.makedirs(self.work)

    def configure(self, servers):
        with open(os.path.join(self.home, ".config/toolwright/toolwright.json"), "w") as f:
            json.dump({"mcp": {name: {**entry, "required": True} for name, entry in servers.items()}}, f)

    def environment(self, url=None):
        env = {"PATH": os.environ["PATH"], "HOME": self.home, "TOOLWRIGHT_LOCAL_SERVERS": "off",
               "TOOLWRIGHT_SHELL_LOGIN": "off"}
        if url:
            env.update(ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="test-key")
        return env

    def drive(self, calls, prompt="go", replies=()):
        """One run of the agent loop in which the model makes these calls; their results, as text."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
        server.calls, server.requests = calls, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [self.tw, "run", "--auto", "--format", "json", "--commands", "-m", "anthropic/m", prompt]
        child = subprocess.Popen(command, cwd=self.work, env=self.environment(f"http://127.0.0.1:{server.server_port}"),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        waiting = list(replies)
        lines = []
        for line in child.stdout:
            line = json.loads(line)
            lines.append(line)
            if line["type"] == "inquiry":
                answers = waiting.pop(0)(line["questions"])
                child.stdin.write(json.dumps({"type": "reply", "id": line["id"], "answers": answers}) + "\n")
                child.stdin.flush()
        errors = child.stderr.read()
        if child.wait(timeout=60) != 0:
            sys.exit(f"tw ended with {child.returncode}: {errors}")
        server.shutdown()
        found = {}
        for message in server.requests[-1]["messages"]:
            for part in message["content"]:
                if isinstance(part, dict) and part.get("type") == "tool_result":
                    content = part["content"] if isinstance(part["content"], list) else [part]
                    text = "\n".join(p.get("text", f"({p.get('type')})") for p in content)
                    found[int(part["tool_use_id"].split("_")[1])] = text
        return [found[n] for n in range(len(calls))], server.requests, lines

    def check(self, what, calls, expected, **more):
        results, requests, lines = self.drive(calls, **more)
        for (name, _), result, parts in zip(calls, results, expected):
            for part in parts if isinstance(parts, (list, tuple)) else [parts]:
                if part not in result:
                    sys.exit(f"{what}: {name}: {part!r} not in {result[:600]!r}")
        print(f"  {what}: {len(calls)} calls ok")
        return results, requests, lines


def default_answers(questions):
    """The first option where there are some, a word otherwise."""
    def answer(q):
        if q["options"]:
            return [q["options"][0]["label"]]
        text = q["question"].lower()
        number = any(word in text for word in ("integer", "number", "age", "count"))
        email, url = "mail" in text, "uri" in text or "url" in text or "homepage" in text
        date = "date" in text or "birth" in text
        return ["42" if number else "a@example.com" if email else "https://example.com" if url
                else "2026-01-01" if date else "Ann"]
    return [answer(q) for q in questions]


def everything(bench, what, entry, stdio):
    bench.configure({"every": entry})
    e = "every_"
    calls = [
        (e + "echo", {"message": "hello"}),
        (e + "get-sum", {"a": 2, "b": 40}),
        (e + "get-tiny-image", {}),
        (e + "get-annotated-message", {"messageType": "error", "includeImage": True}),
        (e + "get-structured-content", {"location": "New York"}),
        (e + "get-resource-links", {"count": 2}),
        (e + "get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
        (e + "get-env", {}),
        (e + "trigger-long-running-operation", {"duration": 1, "steps": 4}),
        (e + "trigger-sampling-request", {"prompt": "say something", "maxTokens": 50}),
        (e + "toggle-simulated-logging", {}),
        (e + "toggle-subscriber-updates", {}),
        (e + "gzip-file-as-resource", {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
        ("list_mcp_resources", {}),
        ("list_mcp_resource_templates", {}),
        ("read_mcp_resource", {"server": "every", "uri": "demo://resource/dynamic/text/1"}),
        (e + "simulate-research-query", {"topic": "tea", "ambiguous": False}),
        (e + "get-roots-list", {}),
    ]
    expected = ["hello", "42", "", "", "temperature", "demo://resource", "demo://resource", "PATH" if stdio else "",
                "completed", "sampled words", "", "", "", "demo://resource/static", "uriTemplate", "Resource:", "tea", ""]
    if stdio:
        expected[-1] = "file://"
    _, requests, _ = bench.check(f"{what}, tools", calls, expected,
                                 prompt="See @every:demo://resource/static/document/features.md")
    first = json.dumps(requests[0]["messages"][0])
    if '<resource server=' not in first:
        sys.exit(f"{what}: the mentioned resource is not in the prompt: {first[:400]}")
    bench.check(f"{what}, elicitation", [(e + "trigger-elicitation-request", {}), (e + "trigger-url-elicitation", {
        "url": "https://example.com", "message": "Please look"})], ["", ""],
        replies=[default_answers, lambda q: [["I have opened it"]]])
    shown = run([bench.tw, "mcp", "prompt", "every:args-prompt", "city=Rome"], cwd=bench.work, env=bench.environment())
    if "Rome" not in shown.stdout:
        sys.exit(f"{what}: prompt: {shown.stdout}")
    debug = run([bench.tw, "mcp", "debug", "every"], cwd=bench.work, env=bench.environment())
    if "connected" not in debug.stdout or "every:simple-prompt" not in debug.stdout:
        sys.exit(f"{what}: debug: {debug.stdout}")
    print(f"  {what}, prompts and resources: ok")


def over_http(program, mode, path):
    """The reference server at a port of its own; its address and its process."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    child = subprocess.Popen([program, mode], env={**os.environ, "PORT": str(port)}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return f"http://127.0.0.1:{port}{path}", child
        except OSError:
            time.sleep(0.05)
    child.kill()
    sys.exit(f"the reference server does not listen ({mode})")


def others(bench, programs):
    with open(os.path.join(bench.work, "a.txt"), "w") as f:
        f.write("from a file\n")
    memory = {"type": "local", "command": [programs["memory"]],
              "environment": {"MEMORY_FILE_PATH": os.path.join(bench.root, "memory.json")}}
    bench.configure({"files": {"type": "local", "command": [programs["filesystem"], bench.work]}, "memory": memory})
    path = os.path.join(bench.work, "a.txt")
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    bench.check("filesystem and memory", [
        ("files_read_text_file", {"path": path}),
        ("files_write_file", {"path": os.path.join(bench.work, "b.txt"), "content": "written"}),
        ("files_list_directory", {"path": bench.work}),
        ("memory_create_entities", {"entities": [entity]}),
        ("memory_read_graph", {}),
    ], ["from a file", "", "b.txt", "Ann", "likes tea"])


def conformance(cache, client):
    node = os.path.join(cache, "npm/node_modules/node/bin/node")
    suite = os.path.join(cache, "npm/node_modules/@modelcontextprotocol/conformance/dist/index.js")
    env = {**os.environ, "PATH": os.path.dirname(node) + ":" + os.environ["PATH"]}
    listed = run([node, suite, "list"], env=env).stdout
    if "Client scenarios" not in listed:
        print(f"conformance: skipped: {listed.strip()[-200:]}")
        return
    there = re.findall(r"^  - (\S+)", listed.split("Client scenarios")[1], re.M)
    unknown = [s for s in there if s not in SCENARIOS and s not in NOT_RUN]
    if unknown:
        sys.exit(f"conformance: scenarios that nobody has decided about: {unknown}")
    with tempfile.TemporaryDirectory() as results:
        for scenario in SCENARIOS:
            for attempt in range(TRIES):
                done = run([node, suite, "client", "--command", client, "--scenario", scenario, "-o", results], env=env)
                if done.returncode == 0:
                    break
            else:
                sys.exit(f"conformance: {scenario} failed:\n{done.stdout[-1500:]}")
    print(f"conformance: {len(SCENARIOS)} scenarios passed; not run:")
    for scenario, reason in NOT_RUN.items():
        print(f"  {scenario}: {reason}")


def main():
    tw, client, cache = (os.path.abspath(path) for path in sys.argv[1:4])
    os.makedirs(cache, exist_ok=True)
    reason = install(cache)
    if reason:
        print(f"skipped: {reason}")
        return
    bin = os.path.join(cache, "npm/node_modules/.bin")
    programs = {name: os.path.join(bin, f"mcp-server-{name}") for name in ("everything", "filesystem", "memory")}
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(tw, root)
        everything(bench, "stdio", {"type": "local", "command": [programs["everything"]]}, stdio=True)
        for mode, path in (("streamableHttp", "/mcp"), ("sse", "/sse")):
            url, child = over_http(programs["everything"], mode, path)
            try:
                everything(bench, mode, {"type": "remote", "url": url}, stdio=False)
            finally:
                child.kill()
                child.wait()
        others(bench, programs)
    conformance(cache, client)


main()
