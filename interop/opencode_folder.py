#!/usr/bin/env python3
"""The same project folder for opencode and tw: what they tell the model about it must be the same.

    opencode_folder.py TW CACHE

Installs opencode into CACHE from npm (or takes the one in $OPENCODE_BIN), gives both programs a folder
with settings, agents, commands, skills, rules and custom tools, lets each run it against a scripted
model on loopback, and compares the first requests: the same custom tools with the same parameters, the
agent's prompt and temperature, the rules, the skills, the command's words. Texts of our own may differ.
Skipped with a line where opencode cannot be had. Standard library only.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = "1.18.33"

FILES = {
    "opencode.json": json.dumps({
        "$schema": "https://opencode.ai/config.json",
        "instructions": ["docs/house-*.md"],
        "agent": {"counter": {"description": "Counts", "mode": "primary", "prompt": "You count things.", "temperature": 0.4}},
        "command": {"greet": {"template": "Say hello to $1 and then to $2.", "description": "Greets"}},
    }),
    "AGENTS.md": "# Rules\nAlways whisper in this repository.\n",
    "docs/house-style.md": "Rule seventeen: no semicolons.\n",
    ".opencode/agent/reviewer.md": "---\ndescription: Reviews\nmode: primary\ntemperature: 0.2\n---\nYou review and nothing else.\n",
    ".opencode/command/explain.md": "---\ndescription: Explains\nagent: reviewer\n---\nExplain $1 to $2.\n\nTouch nothing.\n",
    ".opencode/skills/baking/SKILL.md": "---\nname: baking\ndescription: How bread is baked here\n---\nUse rye.\n",
    ".opencode/tool/weather.ts": """
type City = { city: string }
const parameters = { city: { type: "string", description: "Its name" } }
export default {
  description: "The weather in a city",
  args: parameters,
  async execute(args: City) { return `sunny in ${args.city}` },
}
export const tides = { description: "The tides", args: { place: { type: "string" } }, async execute() { return "low" } }
""",
    ".opencode/tools/plain.js": "export default { description: 'Plain', args: {}, async execute() { return 'ok' } }\n",
}


class Model(BaseHTTPRequestHandler):
    """Anthropic's form: one short answer to everything, and each request written down."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            request = json.loads(body)
        except ValueError:
            request = {}
        self.server.requests.append(request)
        events = [
            {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "fake", "content": [],
                                                  "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ]
        answer = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def install(cache):
    given = os.environ.get("OPENCODE_BIN")
    if given and os.path.exists(given):
        return given, None
    program = os.path.join(cache, "node_modules/.bin/opencode")
    if not os.path.exists(program):
        if not shutil.which("npm"):
            return None, "no Node.js with npm"
        os.makedirs(cache, exist_ok=True)
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", cache, f"opencode-ai@{VERSION}"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
        if done.returncode:
            return None, f"npm: {done.stdout.strip()[-300:]}"
    return program, None


def first_request(command, port, requests, folder):
    """Runs it in a fresh home and gives the first request that offers tools."""
    del requests[:]
    with tempfile.TemporaryDirectory() as home:
        config = os.path.join(home, ".config/opencode")
        os.makedirs(os.path.join(config, "node_modules"))
        with open(os.path.join(config, "opencode.json"), "w", encoding="utf-8") as file:
            json.dump({
                "autoupdate": False, "share": "disabled", "model": "fake/fake-model", "small_model": "fake/fake-model",
                "provider": {"fake": {"name": "fake", "npm": "@ai-sdk/anthropic",
                                      "options": {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "x"},
                                      "models": {"fake-model": {"name": "fake-model", "tool_call": True, "temperature": True,
                                                                "limit": {"context": 200000, "output": 8000}}}}},
            }, file)
        for place in (config, os.path.join(folder, ".opencode")):
            os.makedirs(os.path.join(place, "node_modules"), exist_ok=True)
            wanted = {"@opencode-ai/plugin": "*"}
            for name, value in (("package.json", {"dependencies": wanted}),
                                ("package-lock.json", {"lockfileVersion": 3, "packages": {"": {"dependencies": wanted}}})):
                with open(os.path.join(place, name), "w", encoding="utf-8") as file:
                    json.dump(value, file)
        environment = {"PATH": os.environ["PATH"], "HOME": home, "OPENCODE_DISABLE_MODELS_FETCH": "1",
                       "OPENCODE_DISABLE_AUTOUPDATE": "1", "npm_config_registry": "http://127.0.0.1:9", "SHELL": "/bin/sh"}
        done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=180)
    main = [r for r in requests if r.get("tools")]
    if not main:
        raise SystemExit(f"no request came from {command[0]} (status {done.returncode}):\n{done.stdout[-2000:]}")
    return main[0]


def texts(value):
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(texts(v) for v in value)
    if isinstance(value, dict):
        return texts(value.get("text", value.get("content", "")))
    return ""


def facts(request):
    """What both must have told the model."""
    tools = {tool["name"]: tool for tool in request["tools"]}
    system, said = texts(request.get("system", "")), texts(request["messages"])
    everything = json.dumps(request["tools"]) + system + said
    own = {name: sorted(tools[name]["input_schema"].get("properties", {})) for name in ("weather", "weather_tides", "plain") if name in tools}
    return {
        "custom tools": own,
        "temperature": request.get("temperature"),
        "agent prompt": [p for p in ("You review and nothing else.", "You count things.") if p in system],
        "rules": [r for r in ("Always whisper", "Rule seventeen") if r in system],
        "skill": "baking" in everything and "How bread is baked here" in everything,
        "command": [c for c in ("Explain the parser to me and you.", "Touch nothing.", "Say hello to Ada and then to Bo and Cy.") if c in said],
    }


CASES = {
    "an agent of a Markdown file": ["--agent", "reviewer", "go"],
    "an agent of the settings": ["--agent", "counter", "go"],
    "a command of a Markdown file": ["--command", "explain", "the parser", "me and you"],
    "a command of the settings": ["--command", "greet", "Ada", "Bo and Cy"],
}


def main():
    tw, cache = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    opencode, problem = install(cache)
    if not opencode:
        print(f"skipped: {problem}")
        return 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.requests = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port, failed = server.server_address[1], 0
    for name, arguments in CASES.items():
        told = {}
        for program, command in (("opencode", [opencode, "run", "--model", "fake/fake-model"]),
                                 ("tw", [tw, "run", "--trust", "--model", "fake/fake-model"])):
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run(["git", "init", "-q", folder], check=True)
                for path, text in FILES.items():
                    whole = os.path.join(folder, path)
                    os.makedirs(os.path.dirname(whole), exist_ok=True)
                    with open(whole, "w", encoding="utf-8") as file:
                        file.write(text)
                told[program] = facts(first_request(command + arguments, port, server.requests, folder))
        differing = [key for key in told["opencode"] if told["opencode"][key] != told["tw"][key]]
        print(f"{'ok  ' if not differing else 'FAIL'} {name}")
        for key in differing:
            failed += 1
            print(f"     {key}: opencode {told['opencode'][key]!r}, tw {told['tw'][key]!r}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
