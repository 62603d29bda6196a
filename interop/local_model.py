#!/usr/bin/env python3
"""tw against a real model: llama.cpp's own server with a small model, over three wire formats.

    local_model.py TW START_SCRIPT

For each wire: a streamed answer, a tool call with its result, and an abort. The model is too small
to be clever, so only what does not depend on cleverness is checked: that tokens stream, that a call
arrives whole and its result goes back, that an abort hangs up. Standard library only.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

WIRES = {
    "openai-chat": ("openai-chat", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "openai-responses": ("openai", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "anthropic-messages": ("anthropic", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
}
# A real agent's prompt would take this model a minute to read: one tool, one sentence.
CONFIG = {
    "agent": {
        "talk": {"prompt": "You answer briefly.", "permission": {"*": "deny"}, "temperature": 0},
        "look": {"prompt": "You call tools.", "temperature": 0, "steps": 2,
                 "permission": {"*": "deny", "read": "allow"}},
    },
    "provider": {name: {"models": {"smollm2-135m": {"limit": {"output": 300}}}}
                 for name in ("openai-chat", "openai", "anthropic")},
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until_healthy(port, server):
    deadline = time.monotonic() + 600  # the first run installs the server and the model
    while time.monotonic() < deadline:
        if server.poll() is not None:
            sys.exit(f"the model server ended with {server.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    sys.exit("the model server did not come up")


class Bench:
    def __init__(self, tw, port, root):
        self.tw, self.port, self.root = tw, port, root
        self.work = os.path.join(root, "work")
        os.makedirs(self.work)
        with open(os.path.join(self.work, "hello.txt"), "w") as f:
            f.write("the file says hello\n")
        config = os.path.join(root, "home/.config/toolwright")
        os.makedirs(config)
        with open(os.path.join(config, "toolwright.json"), "w") as f:
            json.dump(CONFIG, f)

    def start(self, wire, agent, prompt):
        provider, url, key = WIRES[wire]
        env = {"PATH": os.environ["PATH"], "HOME": os.path.join(self.root, "home"),
               url: f"http://127.0.0.1:{self.port}", key: "none"}
        command = [self.tw, "run", "--format", "json", "-a", agent,
                   "-m", f"{provider}/smollm2-135m", prompt]
        return subprocess.Popen(command, cwd=self.work, env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, wire, agent, prompt):
        process = self.start(wire, agent, prompt)
        out, err = process.communicate(timeout=300)
        return process.returncode, [json.loads(line) for line in out.splitlines()], err


def check(condition, what, *details):
    if not condition:
        sys.exit("FAILED: " + what + "\n" + "\n".join(str(d) for d in details))


def streamed_answer(bench, wire):
    code, lines, err = bench.run(wire, "talk", "Say hello to a friend.")
    deltas = [line for line in lines if line["type"] == "text_delta"]
    check(len(deltas) >= 3, f"{wire}: tokens should stream", lines, err)
    result = lines[-1]
    # Cut at the output limit is an honest ending for a model that does not know when to stop.
    check(code in (0, 1) and result["type"] == "result", f"{wire}: a result should close", lines, err)
    check(result["tokens"]["output"] > 0, f"{wire}: usage should be told", result)


def tool_call(bench, wire):
    _, lines, err = bench.run(wire, "look", "Call read with filePath=hello.txt")
    calls = [line["part"] for line in lines if line["type"] == "tool_use"]
    check(calls, f"{wire}: the model should have called the tool", lines, err)
    check("the file says hello" in json.dumps(calls[0]["state"]),
          f"{wire}: the call should have read the file", calls[0])
    steps = [line for line in lines if line["type"] == "step_start"]
    check(len(steps) >= 2, f"{wire}: the result should have gone back", lines, err)


def abort(bench, wire):
    process = bench.start(wire, "talk", "Count from one to one thousand in words.")
    for line in process.stdout:
        if json.loads(line)["type"] == "text_delta":
            break
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    check(process.returncode == 130, f"{wire}: an abort should end with 130", out, err)
    return time.monotonic() - asked


def main():
    tw, start = os.path.abspath(sys.argv[1]), sys.argv[2]
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="tw-interop-") as root:
        server = subprocess.Popen([start, str(port), "--ctx", "4096"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until_healthy(port, server)
            bench = Bench(tw, port, root)
            for wire in WIRES:
                streamed_answer(bench, wire)
                tool_call(bench, wire)
                took = abort(bench, wire)
                print(f"{wire}: streamed, called a tool, aborted in {took * 1000:.0f} ms", flush=True)
        finally:
            server.terminate()
            server.wait(timeout=30)
    print(f"{3 * len(WIRES)} passed, 0 failed")


if __name__ == "__main__":
    main()
