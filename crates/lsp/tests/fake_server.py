#!/usr/bin/env python3
"""A language server for tests. It finds an error at each word ERROR and a warning at each WARN; other
words in a file, or in its arguments, make it misbehave. Standard library only."""

import json
import os
import re
import sys
import time
from urllib.parse import quote, unquote

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
documents, root = {}, None


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    sys.stdout.buffer.flush()


def receive():
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if not line.strip():
            return json.loads(sys.stdin.buffer.read(length))
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)


def units(text):
    return len(text.encode("utf-16-le")) // 2


def places(text, pattern):
    for number, line in enumerate(text.split("\n")):
        for match in re.finditer(pattern, line):
            start, end = units(line[:match.start()]), units(line[:match.end()])
            yield {"start": {"line": number, "character": start}, "end": {"line": number, "character": end}}


def findings(text):
    found = [{"range": place, "severity": 1, "message": "an error\n  of two lines", "source": "fake"}
             for place in places(text, r"\bERROR\b")]
    found += [{"range": place, "severity": 2, "message": "a warning", "source": "fake"}
              for place in places(text, r"\bWARN\b")]
    return found


def publish(uri, version, found):
    send({"method": "textDocument/publishDiagnostics",
          "params": {"uri": uri, "version": version, "diagnostics": found}})


def look(uri, version, text):
    documents[uri] = text
    if "CRASH" in text:
        sys.stderr.write("boom goes the server\n")
        sys.stderr.flush()
        os._exit(3)
    if "HANG" in text:
        time.sleep(3600)
    if "SILENT" in text or MODE == "pull":
        return
    if "GARBAGE" in text:
        sys.stdout.buffer.write(b"debug: \xff\xfe Content-Length: what?\r\n\r\nnoise\nmore")
        sys.stdout.buffer.flush()
    if "HUGE" in text:
        sys.stdout.buffer.write(b"Content-Length: 99999999999\r\n\r\n{")
        sys.stdout.buffer.flush()
        time.sleep(3600)
    if "LARGE" in text:
        send({"method": "window/logMessage", "params": {"type": 4, "message": "x" * (20 << 20)}})
    if "OTHERS" in text:
        for number in range(8):
            publish(f"{root}/other{number}.fake", None, findings("ERROR"))
    if "LATE" in text:
        publish(uri, version - 1, findings("ERROR"))
    publish(uri, version, findings(text))


def word_at(text, position):
    line = text.split("\n")[position["line"]]
    for match in re.finditer(r"\w+", line):
        if units(line[:match.start()]) <= position["character"] <= units(line[:match.end()]):
            return match.group()
    return None


def project():
    folder = unquote(root[len("file://"):])
    for name in sorted(os.listdir(folder)):
        if name.endswith(".fake"):
            uri = f"{root}/{quote(name)}"
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                yield uri, documents.get(uri, file.read().removeprefix("\ufeff"))


def answer(method, params):
    uri = params.get("textDocument", {}).get("uri")
    text = documents.get(uri, "")
    word = word_at(text, params["position"]) if "position" in params and text else None
    first = {"uri": uri, "range": next(places(text, rf"\b{word}\b"), None)} if word else None
    item = {"name": word, "kind": 12, "uri": uri, "range": first and first["range"],
            "selectionRange": first and first["range"]}
    if method == "textDocument/diagnostic":
        return {"kind": "full", "items": findings(text)}
    if method == "textDocument/hover":
        return word and {"contents": {"kind": "markdown", "value": f"the word {word}"}}
    if method in ("textDocument/definition", "textDocument/implementation"):
        return first
    if method == "textDocument/references":
        return [{"uri": u, "range": place} for u, t in project() for place in places(t, rf"\b{word}\b")]
    if method == "textDocument/documentSymbol":
        return [{"name": m, "kind": 12} for m in re.findall(r"\w+", text)]
    if method == "workspace/symbol":
        return [{"name": f"{params['query']}{n}", "kind": 12 if n % 2 else 1} for n in range(40)]
    if method == "textDocument/prepareCallHierarchy":
        return [item] if word else None
    if method == "callHierarchy/incomingCalls":
        return [{"from": params["item"], "fromRanges": []}]
    if method == "textDocument/rename":
        return {"changes": {u: [{"range": place, "newText": params["newName"]}
                                for place in places(t, rf"\b{word}\b")] for u, t in project()}}
    return LookupError


def main():
    global root
    if MODE == "die":
        sys.exit("cannot work like this")
    if MODE == "deaf":
        time.sleep(3600)
    while True:
        message = receive()
        method, params, number = message.get("method"), message.get("params") or {}, message.get("id")
        if method == "initialize":
            root = params["rootUri"]
            with open(os.path.join(unquote(root[len("file://"):]), ".starts"), "a") as file:
                file.write("started\n")
            capabilities = {"textDocumentSync": {"openClose": True, "change": 2, "save": True}, "hoverProvider": True}
            if MODE == "pull":
                capabilities["diagnosticProvider"] = {"identifier": "fake"}
            send({"id": number, "result": {"capabilities": capabilities}})
        elif method == "initialized":
            # More at once than fits any queue.
            for n in range(100):
                send({"id": f"ask-{n}", "method": "workspace/configuration", "params": {"items": [{"section": "x"}]}})
        elif method == "textDocument/didOpen":
            document = params["textDocument"]
            look(document["uri"], document["version"], document["text"])
        elif method == "textDocument/didChange":
            document, change = params["textDocument"], params["contentChanges"][0]
            if "range" in change:
                lines = documents[document["uri"]].split("\n")
                end = {"line": len(lines) - 1, "character": units(lines[-1])}
                assert change["range"]["end"] == end, f"{change['range']} is not the whole ({end})"
            look(document["uri"], document["version"], change["text"])
        elif method and number is not None:
            result = answer(method, params)
            if result is LookupError:
                send({"id": number, "error": {"code": -32601, "message": f"no {method}"}})
            else:
                send({"id": number, "result": result})


main()
