// Bun's helpers.
(({ H, host, hostSync, inspect, sleep, part }) => {
  const { path, fileURLToPath, pathToFileURL } = part("path");
  const { bytesOf } = part("text");
  const { promises, at } = part("files");
  const { $, runOptions, outcome, line } = part("run");
  const { util } = part("util");
  const process = part("process");
  const { env } = process;

  const bunFile = (file) => {
    const name = at(file);
    return {
      name,
      text: () => promises.readFile(name, "utf8"),
      json: async () => JSON.parse(await promises.readFile(name, "utf8")),
      bytes: () => promises.readFile(name),
      arrayBuffer: async () => (await promises.readFile(name)).slice().buffer,
      exists: async () => (await host("fs.stat", { path: name, quiet: true }))?.kind === "file",
      stat: () => promises.stat(name),
      delete: () => promises.unlink(name),
      unlink: () => promises.unlink(name),
      write: (data) => Bun.write(name, data),
      get size() {
        return hostSync("fs.stat", { path: name, quiet: true })?.size ?? 0;
      },
    };
  };
  // Patterns of names, as people write them: ** any folders, * and ? within one, {a,b} one of them.
  const patternOf = (glob) => {
    let made = "";
    let depth = 0;
    for (let i = 0; i < glob.length; i++) {
      const c = glob[i];
      if (c === "*" && glob[i + 1] === "*") {
        i += glob[i + 2] === "/" ? 2 : 1;
        made += glob[i] === "/" ? "(?:[^/]+/)*" : ".*";
      } else if (c === "*") made += "[^/]*";
      else if (c === "?") made += "[^/]";
      else if (c === "{") (depth++, (made += "(?:"));
      else if (c === "}" && depth) (depth--, (made += ")"));
      else if (c === "," && depth) made += "|";
      else made += /[\\^$.|+()[\]]/.test(c) ? `\\${c}` : c;
    }
    return new RegExp(`^${made}$`);
  };
  class Glob {
    constructor(pattern) {
      this.pattern = pattern.replace(/^\.\//, "");
      this.expression = patternOf(this.pattern);
    }
    match(name) {
      return this.expression.test(name);
    }
    #kept(found, { dot = false, onlyFiles = true } = {}) {
      const hidden = (name) => name.split("/").some((piece) => piece.startsWith("."));
      const kept = found.filter((f) => (!onlyFiles || f.kind !== "folder") && (dot || !hidden(f.name)) && this.match(f.name));
      return kept.map((f) => f.name);
    }
    async *scan(options = {}) {
      const given = typeof options === "string" ? { cwd: options } : options;
      const cwd = path.resolve(given.cwd ?? ".");
      const found = await host("fs.readdir", { path: cwd, recursive: true });
      for (const name of this.#kept(found, given)) yield given.absolute ? path.join(cwd, name) : name;
    }
    *scanSync(options = {}) {
      const given = typeof options === "string" ? { cwd: options } : options;
      const cwd = path.resolve(given.cwd ?? ".");
      const found = hostSync("fs.readdir", { path: cwd, recursive: true });
      for (const name of this.#kept(found, given)) yield given.absolute ? path.join(cwd, name) : name;
    }
  }
  const Bun = {
    $,
    Glob,
    env,
    version: "1.2.0",
    argv: process.argv,
    main: "",
    cwd: process.cwd(),
    file: bunFile,
    write: async (target, data) => {
      const name = typeof target === "object" && target.name ? target.name : at(target);
      const bytes = typeof data === "string" ? H.utf8(data) : data?.arrayBuffer ? new Uint8Array(await data.arrayBuffer()) : bytesOf(data);
      await promises.mkdir(path.dirname(name), { recursive: true });
      await promises.writeFile(name, bytes);
      return bytes.length;
    },
    sleep,
    which: (name) => hostSync("which", { name }),
    spawn: (first, more) => {
      const [command, options] = Array.isArray(first) ? [first, more] : [first.cmd, first];
      const given = options?.stdin && typeof options.stdin !== "string" ? { ...options, input: options.stdin } : options;
      const ended = host("run", runOptions(line(command[0], command.slice(1)), given)).then((raw) => outcome(raw));
      const stream = (name) => ({
        text: async () => (await ended)[name].toString(),
        async *[Symbol.asyncIterator]() {
          yield (await ended)[name];
        },
      });
      const child = { stdout: stream("stdout"), stderr: stream("stderr"), exitCode: null, kill() {} };
      child.exited = ended.then(({ code }) => (child.exitCode = code));
      return child;
    },
    spawnSync: (first, more) => {
      const [command, options] = Array.isArray(first) ? [first, more] : [first.cmd, first];
      const result = outcome(hostSync("run", runOptions(line(command[0], command.slice(1)), options)));
      return { ...result, exitCode: result.code, success: result.code === 0 };
    },
    hash: (data) => H.hash("sha256", bytesOf(data).slice(), undefined).slice(0, 6).reduce((sum, byte) => sum * 256 + byte, 0),
    inspect,
    nanoseconds: () => Math.round(part("text").performance.now() * 1e6),
    stripANSI: (text) => util.stripVTControlCharacters(text),
    stringWidth: (text) => [...util.stripVTControlCharacters(text)].length,
    randomUUIDv7: () => part("text").crypto.randomUUID(),
    escapeHTML: (s) => String(s).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`),
    readableStreamToText: async (stream) => (stream.text ? stream.text() : new (part("web").Response)(stream).text()),
    fileURLToPath,
    pathToFileURL,
  };
  return Bun;
})
