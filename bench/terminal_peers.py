#!/usr/bin/env python3
"""Terminal interfaces side by side: the same scripted session through a pseudo-terminal.

    cargo build --release -p toolwright-cli
    TW_BIN=target/release/tw PEERS_BIN=~/peers/node_modules/.bin bench/terminal_peers.py [-n 3] [NAME ...]

Each interface is started in an empty home and a small folder, typed into, and answered by a model that
is a script in this file: it reads, runs a command, edits, and gives a long answer in Markdown, with a
pause between the pieces as real models have it. Counted are the bytes written to the terminal and the
processor time of all its processes, from the Enter key to half a second after the last byte; and the
same from the start. The other end of the pseudo-terminal answers what terminals are asked.

`tw` is $TW_BIN or on PATH; opencode, codex and pi are looked for in $PEERS_BIN and on PATH; what is
missing is skipped with a word. Python 3.11, standard library only, Linux. Nothing leaves this machine.
"""

import argparse
import ctypes
import fcntl
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROWS, COLUMNS = 40, 120
LIMIT_S = 90
QUIET_S = 0.5
PIECE, PAUSE_S = 20, 0.001
BIG = 100_000_000
RARE = "þðøæßñåö"
PARAGRAPH = """\
## A part of the answer

The quick brown fox jumps over the lazy dog, and `some_function()` returns what it was
given. This paragraph is **as long** as those that models write.

- a first point, with a path: `src/counter.py`
- a second point, somewhat longer than the first one was

```python
def some_function(value):
    for n in range(10):
        value = value + n  # a comment
    return value
```

"""
STEPS = [
    ("I look at it first.", ("read", "cat src/counter.py")),
    ("Now the tests.", ("shell", "for n in $(seq 1 400); do echo \"test number $n ... ok\"; done")),
    ("Now the change.", ("edit", None)),
    (PARAGRAPH * 60, ("shell", "true")),
    ("All done.", None),
]
OLD, NEW = "counter = 0", "counter = 1"


# ------------------------------------------------------------ the scripted model


def call_for(action, tools, folder):
    """-> the tool that the request offers for it, and its arguments."""
    what, command = action
    path = os.path.join(folder, "src/counter.py")
    if what == "read" and "read" in tools:
        fields = tools["read"].get("properties", {})
        return "read", {"filePath" if "filePath" in fields else "path": path}
    if what == "edit" and "edit" in tools:
        fields = tools["edit"].get("properties", {})
        where = "filePath" if "filePath" in fields else "path"
        if "edits" in fields and "oldString" not in fields:
            return "edit", {where: path, "edits": [{"oldText": OLD, "newText": NEW}]}
        names = ("oldString", "newString") if "oldString" in fields else ("oldText", "newText")
        return "edit", {where: path, names[0]: OLD, names[1]: NEW}
    if what == "edit" and "apply_patch" in tools:
        text = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{OLD}\n+{NEW}\n*** End Patch"
        return "apply_patch", text if tools["apply_patch"].get("free") else {"input": text}
    if what == "edit":
        command = f"sed -i 's/{OLD}/{NEW}/' src/counter.py"
    name = next(n for n in ("bash", "exec_command", "shell_command", "shell") if n in tools)
    fields = tools[name].get("properties", {})
    key = "cmd" if "cmd" in fields else "command"
    listed = fields.get(key, {}).get("type") == "array"
    arguments = {key: ["bash", "-lc", command] if listed else command}
    if "description" in fields:
        arguments["description"] = "scripted command"
    if "yield_time_ms" in fields:
        arguments["yield_time_ms"] = 30000
    return name, arguments


def event(data):
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def pieces(text):
    return [text[n:n + PIECE] for n in range(0, len(text), PIECE)]


def messages_stream(text, call, number):
    message = {"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [],
               "stop_reason": None, "usage": {"input_tokens": 100, "output_tokens": 1}}
    yield event({"type": "message_start", "message": message})
    yield event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for piece in pieces(text):
        yield event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
    yield event({"type": "content_block_stop", "index": 0})
    if call:
        block = {"type": "tool_use", "id": f"call_s{number}_", "name": call[0], "input": {}}
        yield event({"type": "content_block_start", "index": 1, "content_block": block})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        yield event({"type": "content_block_delta", "index": 1, "delta": delta})
        yield event({"type": "content_block_stop", "index": 1})
    yield event({"type": "message_delta", "delta": {"stop_reason": "tool_use" if call else "end_turn"},
                 "usage": {"output_tokens": 20}})
    yield event({"type": "message_stop"})


def responses_stream(text, call, number):
    response = {"id": "resp", "object": "response", "created_at": 0, "model": "m", "output": []}
    yield event({"type": "response.created", "response": {**response, "status": "in_progress"}})
    where = {"item_id": "msg", "output_index": 0, "content_index": 0}
    item = {"id": "msg", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    yield event({"type": "response.output_item.added", "output_index": 0, "item": item})
    yield event({"type": "response.content_part.added", "part": part, **where})
    for piece in pieces(text):
        yield event({"type": "response.output_text.delta", "delta": piece, **where})
    part = {**part, "text": text}
    yield event({"type": "response.output_text.done", "text": text, **where})
    yield event({"type": "response.content_part.done", "part": part, **where})
    item = {**item, "status": "completed", "content": [part]}
    yield event({"type": "response.output_item.done", "output_index": 0, "item": item})
    output = [item]
    if call:
        free = isinstance(call[1], str)
        field, kind = ("input", "custom_tool_call") if free else ("arguments", "function_call")
        item = {"id": f"fc_{number}", "type": kind, "call_id": f"call_s{number}_", "name": call[0],
                field: "", "status": "in_progress"}
        yield event({"type": "response.output_item.added", "output_index": 1, "item": item})
        item = {**item, "status": "completed", field: call[1] if free else json.dumps(call[1])}
        yield event({"type": "response.output_item.done", "output_index": 1, "item": item})
        output.append(item)
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
             "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    yield event({"type": "response.completed",
                 "response": {**response, "status": "completed", "output": output, "usage": usage}})


class Model(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.steps_done, self.asked = folder, 0, False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A client that hangs up is no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.whole({"object": "list", "data": [{"id": "m", "object": "model", "type": "model"}]})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        is_messages = path.endswith("/messages")
        if not (is_messages or path.endswith("/responses")):
            return self.whole({"input_tokens": 100})
        body = json.loads(body)
        tools = {}
        for tool in body.get("tools") or []:
            schema = tool.get("input_schema") or tool.get("parameters") or {}
            tools[tool.get("name")] = {"free": True} if tool.get("type") == "custom" else schema
        # The step is one more than the last whose result is in the request; ids carry its number.
        said = json.dumps(body.get("messages") or body.get("input") or [])
        results = r'"(?:tool_use_id|call_id)": "(?:call|toolu)_s(\d+)_'
        number = max((int(n) + 1 for n in re.findall(results, said)), default=0)
        if {"bash", "exec_command", "shell_command", "shell"} & set(tools):
            text, action = STEPS[min(number, len(STEPS) - 1)]
            self.server.asked = True
        else:  # a title, a summary
            text, action, number = "Scripted session", None, -1
        call = action and call_for(action, tools, self.server.folder)
        writer = messages_stream if is_messages else responses_stream
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for data in writer(text, call, number):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            time.sleep(PAUSE_S)
        self.wfile.write(b"0\r\n\r\n")
        self.server.steps_done = max(self.server.steps_done, number + 1)

    def whole(self, data):
        raw = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


# ------------------------------------------------------------------- the peers


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text if isinstance(text, str) else json.dumps(text))


def find(name):
    place = os.environ.get("PEERS_BIN")
    return (place and shutil.which(name, path=place)) or shutil.which(name)


def tw(home, url, folder):
    binary = os.environ.get("TW_BIN") or shutil.which("tw")
    env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x", "TOOLWRIGHT_LOCAL_SERVERS": "off"}
    return binary and [os.path.abspath(binary), "--auto", "-m", "anthropic/m"], env


def opencode(home, url, folder):
    config = f"{home}/.config/opencode"
    model = {"name": "m", "tool_call": True, "limit": {"context": BIG, "output": 32000}}
    provider = {"name": "fake", "npm": "@ai-sdk/anthropic", "models": {"m": model},
                "options": {"baseURL": f"{url}/v1", "apiKey": "x"}}
    put(f"{config}/opencode.json", {"autoupdate": False, "share": "disabled", "model": "fake/m",
                                    "small_model": "fake/m", "permission": "allow",
                                    "provider": {"fake": provider}})
    # What a later start finds; at the first one it would install this beside its configuration.
    wanted = {"@opencode-ai/plugin": "*"}
    os.makedirs(f"{config}/node_modules", exist_ok=True)
    put(f"{config}/package.json", {"dependencies": wanted})
    put(f"{config}/package-lock.json", {"lockfileVersion": 3, "packages": {"": {"dependencies": wanted}}})
    env = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
           "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "npm_config_registry": "http://127.0.0.1:9"}
    return find("opencode") and [find("opencode"), "--model", "fake/m"], env


def codex(home, url, folder):
    wrapper = find("codex")
    native = wrapper and glob.glob(os.path.join(
        os.path.dirname(os.path.realpath(wrapper)), "../../codex-*/vendor/*/bin/codex"))
    put(f"{home}/.codex/config.toml", f"""\
model = "gpt-5.5"
model_provider = "fake"
model_context_window = {BIG}
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
[projects."{folder}"]
trust_level = "trusted"
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
""")
    argv = [os.path.realpath(native[0]) if native else wrapper, "--dangerously-bypass-approvals-and-sandbox"]
    return wrapper and argv, {"OPENAI_API_KEY": "x"}


def pi(home, url, folder):
    model = {"id": "m", "contextWindow": BIG, "maxTokens": 32000}
    put(f"{home}/.pi/agent/models.json", {"providers": {"fake": {
        "baseUrl": url, "api": "anthropic-messages", "apiKey": "x", "models": [model]}}})
    return find("pi") and [find("pi"), "--model", "fake/m"], {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}


PEERS = {"tw": tw, "opencode": opencode, "codex": codex, "pi": pi}


# ---------------------------------------------------------------- the terminal

ESCAPES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P_^X].*?(?:\x07|\x1b\\)|\x1b.", re.S)


def mode_answer(found):
    # Known and off: synchronised output. Others are not known here.
    return b"\x1b[?%s;%s$y" % (found[1], b"2" if found[1] in (b"2026", b"2004", b"1004") else b"0")


QUESTIONS = [(re.compile(question, re.S), answer) for question, answer in (
    (rb"\x1b\[0?c", b"\x1b[?62;22c"),
    (rb"\x1b\[>0?c", b"\x1b[>1;10;0c"),
    (rb"\x1b\[=0?c", b"\x1bP!|00000000\x1b\\"),
    (rb"\x1b\[>0?q", b"\x1bP>|bench 1\x1b\\"),
    (rb"\x1b\[5n", b"\x1b[0n"),
    (rb"\x1b\[6n", b"\x1b[1;1R"),
    (rb"\x1b\[\?6n", b"\x1b[?1;1R"),
    (rb"\x1b\[\?996n", b"\x1b[?997;1n"),
    (rb"\x1b\[\?u", b"\x1b[?0u"),
    (rb"\x1b\[\?(\d+)\$p", mode_answer),
    (rb"\x1b\]10;\?(?:\x07|\x1b\\)", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
    (rb"\x1b\]11;\?(?:\x07|\x1b\\)", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
    (rb"\x1b\]12;\?(?:\x07|\x1b\\)", b"\x1b]12;rgb:ffff/ffff/ffff\x1b\\"),
    (rb"\x1b\]4;(\d+);\?(?:\x07|\x1b\\)", lambda f: b"\x1b]4;%s;rgb:8080/8080/8080\x1b\\" % f[1]),
    (rb"\x1bP\+q[^\x1b]*\x1b\\", b"\x1bP0+r\x1b\\"),
    (rb"\x1b\[14t", b"\x1b[4;800;1200t"),
    (rb"\x1b\[16t", b"\x1b[6;20;10t"),
    (rb"\x1b\[18t", b"\x1b[8;%d;%dt" % (ROWS, COLUMNS)),
)]


def children(pid):
    found = []
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            found += [int(n) for n in open(task).read().split()]
        except OSError:
            pass
    return found


def tree(pid):
    return [pid] + [n for child in children(pid) for n in tree(child)]


class Terminal:
    def __init__(self, argv, env, folder, record):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 1200, 800))
        mode = termios.tcgetattr(slave)
        mode[3] &= ~termios.ECHO  # else the kernel echoes what is typed too early
        termios.tcsetattr(slave, termios.TCSANOW, mode)
        before = set(children(os.getpid()))
        self.process = subprocess.Popen(
            argv, env=env, cwd=folder, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.strangers = before
        self.bytes, self.last, self.unanswered = 0, time.monotonic(), b""
        self.record = open(record, "wb") if record else None

    def pump(self, seconds, until=None):
        """Takes output for a while; -> whether `until` appeared in it."""
        end, seen = time.monotonic() + seconds, b""
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                return False
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:
                return False
            self.bytes += len(data)
            self.last = time.monotonic()
            if self.record:
                self.record.write(data)
            self.unanswered = (self.unanswered + data)[-4096:]
            for question, answer in QUESTIONS:
                for found in question.finditer(self.unanswered):
                    os.write(self.master, answer(found) if callable(answer) else answer)
                self.unanswered = question.sub(b"", self.unanswered)
            seen += data
            if until and until.encode() in ESCAPES.sub(b"", seen):
                return True
        return False

    def pids(self):
        ours = [n for n in children(os.getpid()) if n not in self.strangers]
        return [n for child in ours for n in tree(child)]

    def cpu_s(self):
        """Of all its processes, those that ended and were waited for included."""
        ticks = 0
        for pid in self.pids():
            try:
                ticks += sum(int(n) for n in open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[11:15])
            except OSError:
                pass
        return ticks / os.sysconf("SC_CLK_TCK")

    def close(self):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.process.wait()
        os.close(self.master)


def session(name, scratch, record):
    home, folder = f"{scratch}/home", f"{scratch}/work"
    put(f"{folder}/src/counter.py", OLD + "\n")
    os.makedirs(home, exist_ok=True)
    model = Model(folder)
    url = f"http://127.0.0.1:{model.server_port}"
    argv, env = PEERS[name](home, url, folder)
    if not argv:
        return None
    env = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": scratch, "LANG": "C.UTF-8",
           "TERM": "xterm-256color", "COLORTERM": "truecolor", **env}
    terminal = Terminal(argv, env, folder, record)
    try:
        for n in range(LIMIT_S * 5):
            if terminal.pump(0.2) or terminal.process.poll() is not None:
                break
            os.write(terminal.master, RARE[n % len(RARE)].encode())
            if terminal.pump(0.2, until=RARE[n % len(RARE)]):
                break
        else:
            return {"problem": "no typed key came back"}
        if terminal.process.poll() is not None:
            return {"problem": f"ended with {terminal.process.returncode}"}
        terminal.pump(2.0)
        # Some take letters and Enter in one breath for a paste.
        os.write(terminal.master, b" do the scripted work")
        terminal.pump(1.0)
        cpu, size, begun = terminal.cpu_s(), terminal.bytes, time.monotonic()
        os.write(terminal.master, b"\r")
        again = begun + 5
        while time.monotonic() - begun < LIMIT_S:
            terminal.pump(0.05)
            if not model.asked and time.monotonic() > again:
                os.write(terminal.master, b"\r")
                again += 5
            done = model.steps_done >= len(STEPS)
            if done and time.monotonic() - terminal.last > QUIET_S:
                break
            # One that never rests (a cursor that blinks) is given as long as the others.
            if done and not hasattr(terminal, "until"):
                terminal.until = time.monotonic() + 3 * QUIET_S
            if done and time.monotonic() > terminal.until:
                break
        if model.steps_done < len(STEPS):
            return {"problem": f"stopped after step {model.steps_done} of {len(STEPS)}"}
        if NEW not in open(f"{folder}/src/counter.py").read():
            return {"problem": "the edit was not made"}
        return {"bytes": terminal.bytes - size, "cpu": terminal.cpu_s() - cpu,
                "all_bytes": terminal.bytes, "all_cpu": terminal.cpu_s()}
    finally:
        terminal.close()
        model.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=3, help="sessions of each, in turn (default: 3)")
    parser.add_argument("--keep", metavar="DIR", help="keep what each wrote to its terminal there")
    parser.add_argument("names", nargs="*", choices=[*PEERS, []], help="those (default: all)")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # descendants that lose their parent become ours
    runs = {name: [] for name in options.names or PEERS}
    for turn in range(options.n):
        for name in list(runs):
            record = options.keep and os.path.join(options.keep, f"{name}-{turn}.out")
            # Not below the folder for temporary files, where some behave differently.
            with tempfile.TemporaryDirectory(dir=os.path.expanduser("~/.cache"), prefix="tw-bench-",
                                             ignore_cleanup_errors=True) as scratch:
                result = session(name, scratch, record)
            if result is None:
                print(f"{name}: not found, skipped", file=sys.stderr)
                del runs[name]
            elif "problem" in result:
                print(f"{name}: {result['problem']}", file=sys.stderr)
            else:
                runs[name].append(result)
    rows = {}
    for name, results in runs.items():
        if results:
            rows[name] = {key: statistics.median(r[key] for r in results) if "bytes" in key
                          else min(r[key] for r in results) for key in results[0]}
    others = {name: row for name, row in rows.items() if name != "tw"}
    print(f"{'':10}{'bytes':>12}{'cpu s':>9}{'with start: bytes':>20}{'cpu s':>9}   (median bytes, least cpu)")
    for name, row in rows.items():
        print(f"{name:10}{row['bytes']:>12,.0f}{row['cpu']:>9.2f}{row['all_bytes']:>20,.0f}{row['all_cpu']:>9.2f}")
    if "tw" in rows and others:
        for key in ("bytes", "cpu", "all_bytes", "all_cpu"):
            best = min(others, key=lambda name: others[name][key])
            print(f"tw / best of the others, {key}: {rows['tw'][key] / max(others[best][key], 1e-9):.2f} ({best})")


if __name__ == "__main__":
    main()
