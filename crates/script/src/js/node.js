// Node's modules and Bun's helpers, as far as tools use them. Files, processes and the network go to
// the host, which asks for permission.
(({ H, host, hostSync, hostError, inspect, format, sleep, until, part, requireFrom }) => {
  const { bytesOf, latin, URL, URLSearchParams, TextEncoder, TextDecoder } = part("web");

  class Buffer extends Uint8Array {
    static from(value, encoding) {
      if (typeof value === "string") return Buffer.#of(decode(value, encoding));
      if (value instanceof ArrayBuffer) return new Buffer(value);
      if (value?.type === "Buffer" && Array.isArray(value.data)) value = value.data;
      const made = new Buffer(value.length);
      made.set(value);
      return made;
    }
    static #of(bytes) {
      return new Buffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    static alloc(size, fill) {
      const made = new Buffer(size);
      return fill === undefined ? made : made.fill(typeof fill === "string" ? fill.charCodeAt(0) : fill);
    }
    static allocUnsafe(size) {
      return new Buffer(size);
    }
    static concat(list, total) {
      const made = new Buffer(total ?? list.reduce((sum, b) => sum + b.length, 0));
      let at = 0;
      for (const bytes of list) {
        made.set(bytes.subarray(0, Math.max(0, made.length - at)), at);
        at += bytes.length;
      }
      return made;
    }
    static isBuffer(value) {
      return value instanceof Buffer;
    }
    static byteLength(value, encoding) {
      return typeof value === "string" ? decode(value, encoding).length : value.byteLength;
    }
    static compare(a, b) {
      return a.compare(b);
    }
    toString(encoding = "utf8", from = 0, to = this.length) {
      const bytes = this.subarray(from, to);
      switch (encoding.toLowerCase()) {
        case "hex":
          return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
        case "base64":
          return H.encodeBase64(new Uint8Array(bytes));
        case "base64url":
          return H.encodeBase64(new Uint8Array(bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
        case "latin1":
        case "binary":
        case "ascii":
          return latin(bytes);
        default:
          return H.text(new Uint8Array(bytes));
      }
    }
    toJSON() {
      return { type: "Buffer", data: [...this] };
    }
    equals(other) {
      return this.compare(other) === 0;
    }
    compare(other) {
      for (let i = 0; i < Math.min(this.length, other.length); i++) if (this[i] !== other[i]) return this[i] < other[i] ? -1 : 1;
      return Math.sign(this.length - other.length);
    }
    write(text, at = 0) {
      const bytes = decode(text);
      this.set(bytes.subarray(0, this.length - at), at);
      return Math.min(bytes.length, this.length - at);
    }
    slice(from, to) {
      return this.subarray(from, to);
    }
    copy(target, at = 0, from = 0, to = this.length) {
      target.set(this.subarray(from, to), at);
      return to - from;
    }
    indexOf(value, from = 0) {
      if (typeof value === "number") return super.indexOf(value, from);
      const wanted = typeof value === "string" ? decode(value) : value;
      outer: for (let i = from; i <= this.length - wanted.length; i++) {
        for (let j = 0; j < wanted.length; j++) if (this[i + j] !== wanted[j]) continue outer;
        return i;
      }
      return -1;
    }
    includes(value, from) {
      return this.indexOf(value, from) >= 0;
    }
    static isEncoding(name) {
      return ["utf8", "utf-8", "hex", "base64", "base64url", "latin1", "binary", "ascii"].includes(String(name).toLowerCase());
    }
    readUInt8(at = 0) {
      return this[at];
    }
    readUInt32BE(at = 0) {
      return new DataView(this.buffer, this.byteOffset).getUint32(at);
    }
    readUInt32LE(at = 0) {
      return new DataView(this.buffer, this.byteOffset).getUint32(at, true);
    }
  }
  const decode = (text, encoding = "utf8") => {
    switch (String(encoding).toLowerCase()) {
      case "hex":
        return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
      case "base64":
      case "base64url":
        return H.decodeBase64(text.replaceAll("-", "+").replaceAll("_", "/").replace(/\s|=+$/g, ""));
      case "latin1":
      case "binary":
      case "ascii":
        return Uint8Array.from(text, (c) => c.charCodeAt(0));
      default:
        return H.utf8(text);
    }
  };

  // Paths as on Unix.
  const normalizeParts = (parts, absolute) => {
    const kept = [];
    for (const piece of parts) {
      if (piece === "" || piece === ".") continue;
      if (piece !== "..") kept.push(piece);
      else if (kept.length && kept.at(-1) !== "..") kept.pop();
      else if (!absolute) kept.push("..");
    }
    return kept;
  };
  const path = {
    sep: "/",
    delimiter: ":",
    normalize(p) {
      const absolute = p.startsWith("/");
      const said = normalizeParts(p.split("/"), absolute).join("/");
      const tail = p.endsWith("/") && said ? "/" : "";
      return (absolute ? "/" : "") + said + tail || (absolute ? "/" : ".");
    },
    isAbsolute: (p) => p.startsWith("/"),
    join: (...pieces) => path.normalize(pieces.filter((p) => p !== "").join("/") || "."),
    resolve(...pieces) {
      let whole = "";
      for (const piece of [process.cwd(), ...pieces]) whole = piece.startsWith("/") ? piece : `${whole}/${piece}`;
      return `/${normalizeParts(whole.split("/"), true).join("/")}`;
    },
    relative(from, to) {
      const a = path.resolve(from).split("/").filter(Boolean);
      const b = path.resolve(to).split("/").filter(Boolean);
      let same = 0;
      while (same < a.length && same < b.length && a[same] === b[same]) same++;
      return [...a.slice(same).map(() => ".."), ...b.slice(same)].join("/");
    },
    dirname(p) {
      const clean = p.length > 1 ? p.replace(/\/+$/, "") : p;
      const cut = clean.lastIndexOf("/");
      return cut < 0 ? "." : clean.slice(0, cut) || "/";
    },
    basename(p, suffix = "") {
      const name = p.replace(/\/+$/, "").split("/").at(-1) ?? "";
      return suffix && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
    },
    extname(p) {
      const name = path.basename(p);
      const cut = name.lastIndexOf(".");
      return cut <= 0 ? "" : name.slice(cut);
    },
    parse(p) {
      const base = path.basename(p);
      const ext = path.extname(base);
      const root = p.startsWith("/") ? "/" : "";
      return { root, dir: p.includes("/") ? path.dirname(p) : "", base, ext, name: ext ? base.slice(0, -ext.length) : base };
    },
    format: ({ dir, root, base, name = "", ext = "" }) => {
      const last = base ?? name + (ext && !ext.startsWith(".") ? `.${ext}` : ext);
      return dir ? (dir.endsWith("/") ? dir + last : `${dir}/${last}`) : (root ?? "") + last;
    },
    toNamespacedPath: (p) => p,
  };
  path.posix = path;
  path.win32 = { ...path, sep: "\\", delimiter: ";" };

  const fileURLToPath = (url) => decodeURIComponent(new URL(String(url)).pathname);
  const pathToFileURL = (p) => new URL(`file://${path.resolve(p).split("/").map(encodeURIComponent).join("/")}`);

  const facts = JSON.parse(H.facts());
  class Emitter {
    #listeners = new Map();
    on(name, listener) {
      this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
      return this;
    }
    addListener(name, listener) {
      return this.on(name, listener);
    }
    prependListener(name, listener) {
      this.#listeners.set(name, [listener, ...(this.#listeners.get(name) ?? [])]);
      return this;
    }
    once(name, listener) {
      const first = (...given) => {
        this.off(name, first);
        listener.apply(this, given);
      };
      first.listener = listener;
      return this.on(name, first);
    }
    off(name, listener) {
      this.#listeners.set(name, (this.#listeners.get(name) ?? []).filter((l) => l !== listener && l.listener !== listener));
      return this;
    }
    removeListener(name, listener) {
      return this.off(name, listener);
    }
    removeAllListeners(name) {
      if (name === undefined) this.#listeners.clear();
      else this.#listeners.delete(name);
      return this;
    }
    emit(name, ...given) {
      const list = this.#listeners.get(name) ?? [];
      if (name === "error" && !list.length) throw given[0];
      for (const listener of list) listener.apply(this, given);
      return list.length > 0;
    }
    listeners(name) {
      return [...(this.#listeners.get(name) ?? [])];
    }
    listenerCount(name) {
      return this.listeners(name).length;
    }
    setMaxListeners() {
      return this;
    }
  }
  Emitter.EventEmitter = Emitter;
  Emitter.once = (emitter, name) => new Promise((resolve, reject) => {
    emitter.once(name, (...given) => resolve(given));
    if (name !== "error") emitter.once("error", reject);
  });

  const env = new Proxy({ ...facts.env }, {
    set: (own, name, value) => ((own[name] = String(value)), true),
  });
  const process = Object.assign(new Emitter(), {
    env,
    platform: facts.platform,
    arch: facts.arch,
    pid: facts.pid,
    argv: ["tw"],
    argv0: "tw",
    execPath: facts.program,
    execArgv: [],
    version: "v22.0.0",
    versions: { node: "22.0.0", toolwright: facts.version },
    release: { name: "node" },
    title: "toolwright",
    exitCode: undefined,
    cwd: () => facts.directory,
    chdir() {
      throw new Error("process.chdir is not available: use paths from context.directory");
    },
    exit(code = 0) {
      throw new Error(`The script called process.exit(${code})`);
    },
    uptime: () => part("web").performance.now() / 1000,
    hrtime: Object.assign(() => {
      const ms = part("web").performance.now();
      return [Math.floor(ms / 1000), (ms % 1000) * 1e6];
    }, { bigint: () => BigInt(Math.round(part("web").performance.now() * 1e6)) }),
    nextTick: (callback, ...given) => queueMicrotask(() => callback(...given)),
    memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0 }),
    stdout: { write: (said) => (H.say("log", String(said).replace(/\n$/, "")), true), isTTY: false, columns: 80 },
    stderr: { write: (said) => (H.say("error", String(said).replace(/\n$/, "")), true), isTTY: false, columns: 80 },
    stdin: { isTTY: false, on() {} },
    getuid: () => facts.uid,
    emitWarning: (said) => H.say("warn", String(said)),
  });

  // Files.
  const at = (file) => path.resolve(file instanceof URL || String(file).startsWith("file:") ? fileURLToPath(file) : String(file));
  const encodingOf = (options) => (typeof options === "string" ? options : options?.encoding);
  const dataOf = (data, options) => H.encodeBase64(typeof data === "string" ? decode(data, encodingOf(options)) : bytesOf(data).slice());
  const contentOf = (options) => (value) => {
    const bytes = Buffer.from(H.decodeBase64(value));
    const encoding = encodingOf(options);
    return encoding ? bytes.toString(encoding) : bytes;
  };
  class Stats {
    constructor(given) {
      Object.assign(this, given);
      for (const name of ["mtime", "atime", "ctime", "birthtime"]) this[name] = new Date(this[`${name}Ms`] ?? this.mtimeMs);
    }
    isFile() {
      return this.kind === "file";
    }
    isDirectory() {
      return this.kind === "folder";
    }
    isSymbolicLink() {
      return this.kind === "link";
    }
  }
  class Dirent {
    constructor(given, parent) {
      Object.assign(this, { name: given.name, kind: given.kind, parentPath: parent, path: parent });
    }
    isFile() {
      return this.kind === "file";
    }
    isDirectory() {
      return this.kind === "folder";
    }
    isSymbolicLink() {
      return this.kind === "link";
    }
  }
  const same = (value) => value;
  // Each operation: what is sent, and what is made of the answer. Both forms of `fs` come of it.
  const operations = {
    readFile: (file, options) => ["readFile", { path: at(file) }, contentOf(options)],
    writeFile: (file, data, options) => ["writeFile", { path: at(file), data: dataOf(data, options), append: options?.flag === "a", mode: options?.mode }, same],
    appendFile: (file, data, options) => ["writeFile", { path: at(file), data: dataOf(data, options), append: true }, same],
    readdir: (folder, options) => [
      "readdir",
      { path: at(folder), recursive: options?.recursive === true },
      (found) => (options?.withFileTypes ? found.map((f) => new Dirent(f, at(folder))) : found.map((f) => f.name)),
    ],
    stat: (file, options) => ["stat", { path: at(file), quiet: options?.throwIfNoEntry === false }, (s) => (s ? new Stats(s) : undefined)],
    lstat: (file) => ["stat", { path: at(file), link: true }, (s) => new Stats(s)],
    access: (file) => ["stat", { path: at(file) }, () => undefined],
    mkdir: (folder, options) => ["mkdir", { path: at(folder), recursive: options?.recursive === true }, same],
    rm: (file, options) => ["remove", { path: at(file), recursive: options?.recursive === true, force: options?.force === true }, same],
    rmdir: (file, options) => ["remove", { path: at(file), recursive: options?.recursive === true }, same],
    unlink: (file) => ["remove", { path: at(file) }, same],
    rename: (from, to) => ["rename", { path: at(from), to: at(to) }, same],
    copyFile: (from, to) => ["copy", { path: at(from), to: at(to) }, same],
    realpath: (file) => ["realpath", { path: at(file) }, same],
    readlink: (file) => ["readlink", { path: at(file) }, same],
    symlink: (target, file) => ["symlink", { target: String(target), path: at(file) }, same],
    chmod: (file, mode) => ["chmod", { path: at(file), mode }, same],
    mkdtemp: (prefix) => ["mkdtemp", { path: at(prefix) }, same],
  };
  const promises = {};
  const fs = { promises, constants: { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 }, Stats, Dirent };
  for (const [name, operation] of Object.entries(operations)) {
    promises[name] = async (...given) => {
      const [op, payload, make] = operation(...given);
      return make(await host(`fs.${op}`, payload));
    };
    fs[`${name}Sync`] = (...given) => {
      const [op, payload, make] = operation(...given);
      return make(hostSync(`fs.${op}`, payload));
    };
    fs[name] = (...given) => {
      const callback = given.pop();
      promises[name](...given).then((value) => callback(null, value), callback);
    };
  }
  promises.cp = async (from, to, options) => host("fs.copy", { path: at(from), to: at(to), recursive: options?.recursive === true });
  fs.cpSync = (from, to, options) => hostSync("fs.copy", { path: at(from), to: at(to), recursive: options?.recursive === true });
  promises.constants = fs.constants;
  fs.existsSync = (file) => {
    try {
      return hostSync("fs.stat", { path: at(file), quiet: true }) !== null;
    } catch {
      return false;
    }
  };
  promises.exists = async (file) => (await host("fs.stat", { path: at(file), quiet: true }).catch(() => null)) !== null;
  fs.exists = (file, callback) => promises.exists(file).then(callback);

  // Streams of files: written when they end, read in one piece.
  fs.createWriteStream = (file, options) => {
    const pieces = [];
    const stream = new Emitter();
    return Object.assign(stream, {
      path: file,
      write: (data) => (pieces.push(typeof data === "string" ? decode(data) : bytesOf(data)), true),
      end: (data) => {
        if (data !== undefined && typeof data !== "function") pieces.push(typeof data === "string" ? decode(data) : bytesOf(data));
        const flag = options?.flags === "a" ? "a" : "w";
        promises.writeFile(file, Buffer.concat(pieces), { flag }).then(() => (stream.emit("finish"), stream.emit("close")), (error) => stream.emit("error", error));
      },
      close: (done) => done?.(),
    });
  };
  fs.createReadStream = (file, options) => {
    const stream = Object.assign(new Emitter(), { path: file, setEncoding() {}, close() {} });
    const encoding = encodingOf(options);
    promises.readFile(file, encoding).then((data) => (stream.emit("open"), stream.emit("data", data), stream.emit("end"), stream.emit("close")), (error) => stream.emit("error", error));
    stream.pipe = (target) => (promises.readFile(file).then((data) => (target.write(data), target.end()), (error) => stream.emit("error", error)), target);
    return stream;
  };
  // Nothing is watched: what is asked for each time is always new.
  for (const name of ["watch", "watchFile"]) fs[name] = () => Object.assign(new Emitter(), { close() {}, ref() {}, unref() {} });
  fs.unwatchFile = () => {};
  for (const name of ["open", "openSync", "close", "closeSync", "read", "readSync", "write", "writeSync", "utimes", "utimesSync", "opendir", "opendirSync", "truncateSync", "fsyncSync", "linkSync"]) {
    fs[name] = () => {
      throw new Error(`fs.${name} is not available in Toolwright's script engine`);
    };
  }
  promises.watch = async function* () {};
  promises.open = fs.open;

  // Processes.
  const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replaceAll("'", `'\\''`)}'`);
  const runOptions = (command, options = {}) => ({
    command,
    cwd: options.cwd ? at(options.cwd) : undefined,
    env: options.env ? { ...options.env } : undefined,
    input: options.input === undefined ? undefined : dataOf(options.input),
    timeout: options.timeout,
  });
  const outcome = ({ stdout, stderr, code, signal }, encoding) => {
    const form = (value) => (encoding && encoding !== "buffer" ? Buffer.from(H.decodeBase64(value)).toString(encoding) : Buffer.from(H.decodeBase64(value)));
    return { stdout: form(stdout), stderr: form(stderr), code, signal };
  };
  const failure = (command, result) =>
    Object.assign(new Error(`Command failed: ${command}\n${result.stderr}`), { ...result, status: result.code, cmd: command });
  const exec = (command, options, callback) => {
    if (typeof options === "function") [options, callback] = [{}, options];
    const child = new Emitter();
    const done = until(options?.signal, host("run", runOptions(command, options))).then((raw) => {
      const result = outcome(raw, encodingOf(options) ?? "utf8");
      callback?.(result.code === 0 ? null : failure(command, result), result.stdout, result.stderr);
      child.emit("exit", result.code, result.signal);
      child.emit("close", result.code, result.signal);
    }, (error) => (callback ? callback(error, "", "") : child.emit("error", error)));
    return Object.assign(child, { pid: undefined, done, kill: () => false });
  };
  const execPromise = async (command, options) => {
    const result = outcome(await until(options?.signal, host("run", runOptions(command, options))), encodingOf(options) ?? "utf8");
    if (result.code !== 0) throw failure(command, result);
    return { stdout: result.stdout, stderr: result.stderr };
  };
  const line = (file, args = []) => [file, ...args].map((word) => quote(String(word))).join(" ");
  const split = (args, options) => (Array.isArray(args) ? [args, options] : [[], args]);
  const CUSTOM = Symbol.for("nodejs.util.promisify.custom");
  exec[CUSTOM] = execPromise;
  const execFile = (file, args, options, callback) => {
    if (typeof args === "function") [args, callback] = [[], args];
    if (typeof options === "function") [options, callback] = [{}, options];
    const [list, more] = split(args, options);
    return exec(line(file, list), more ?? {}, callback);
  };
  execFile[CUSTOM] = (file, args, options) => execPromise(line(file, split(args, options)[0]), split(args, options)[1]);
  const execSync = (command, options) => {
    const result = outcome(hostSync("run", runOptions(command, options)), encodingOf(options));
    if (result.code !== 0) throw failure(command, result);
    return result.stdout;
  };
  const spawnSync = (file, args, options) => {
    const [list, more] = split(args, options);
    try {
      const result = outcome(hostSync("run", runOptions(line(file, list), more)), encodingOf(more));
      return { ...result, status: result.code, output: [null, result.stdout, result.stderr] };
    } catch (error) {
      return { error, status: null, signal: null, stdout: "", stderr: "" };
    }
  };
  // Its output comes in one piece, when it has ended.
  const spawn = (file, args, options) => {
    const [list, more] = split(args, options);
    const child = new Emitter();
    const input = [];
    Object.assign(child, {
      stdout: Object.assign(new Emitter(), { setEncoding() {} }),
      stderr: Object.assign(new Emitter(), { setEncoding() {} }),
      stdin: { write: (data) => void input.push(bytesOf(data)), end: (data) => data !== undefined && input.push(bytesOf(data)), on() {} },
      kill: () => false,
      unref() {},
      ref() {},
    });
    const command = more?.shell ? [file, ...list].join(" ") : line(file, list);
    queueMicrotask(async () => {
      try {
        const given = input.length ? { ...more, input: Buffer.concat(input) } : more;
        const result = outcome(await until(more?.signal, host("run", runOptions(command, given))));
        for (const name of ["stdout", "stderr"]) {
          if (result[name].length) child[name].emit("data", result[name]);
          child[name].emit("end");
          child[name].emit("close");
        }
        child.exitCode = result.code;
        child.emit("exit", result.code, result.signal);
        child.emit("close", result.code, result.signal);
      } catch (error) {
        child.emit("error", error);
      }
    });
    return child;
  };
  const child_process = { exec, execFile, execSync, execFileSync: (file, args, options) => execSync(line(file, split(args, options)[0]), split(args, options)[1]), spawn, spawnSync };

  // The shell of templates.
  class ShellError extends Error {
    constructor(command, result) {
      super(`Failed with exit code ${result.exitCode}`);
      this.name = "ShellError";
      Object.assign(this, result, { command });
    }
    text() {
      return this.stdout.toString();
    }
  }
  const word = (value) => {
    if (Array.isArray(value)) return value.map(word).join(" ");
    if (value !== null && typeof value === "object" && typeof value.raw === "string") return value.raw;
    return quote(String(value));
  };
  class ShellPromise {
    #started;
    #options;
    constructor(command, options) {
      this.command = command;
      this.#options = options;
    }
    #change(more) {
      this.#options = { ...this.#options, ...more };
      return this;
    }
    quiet() {
      return this;
    }
    nothrow() {
      return this.#change({ nothrow: true });
    }
    throws(should = true) {
      return this.#change({ nothrow: !should });
    }
    cwd(folder) {
      return this.#change({ cwd: folder });
    }
    env(variables) {
      return this.#change({ env: variables });
    }
    run() {
      this.#started ??= host("run", runOptions(this.command, this.#options)).then((raw) => {
        const { stdout, stderr, code } = outcome(raw);
        const result = {
          stdout, stderr, exitCode: code,
          text: (encoding) => stdout.toString(encoding), json: () => JSON.parse(stdout.toString()),
          bytes: () => stdout, arrayBuffer: () => stdout.slice().buffer, blob: () => new (part("web").Blob)([stdout]),
        };
        if (code !== 0 && !this.#options.nothrow) throw new ShellError(this.command, result);
        return result;
      });
      return this.#started;
    }
    then(good, wrong) {
      return this.run().then(good, wrong);
    }
    catch(wrong) {
      return this.run().catch(wrong);
    }
    finally(last) {
      return this.run().finally(last);
    }
    async text(encoding) {
      return (await this.run()).text(encoding);
    }
    async json() {
      return (await this.run()).json();
    }
    async arrayBuffer() {
      return (await this.run()).arrayBuffer();
    }
    async bytes() {
      return (await this.run()).stdout;
    }
    async blob() {
      return (await this.run()).blob();
    }
    async *lines() {
      const said = await this.text();
      yield* (said.endsWith("\n") ? said.slice(0, -1) : said).split("\n");
    }
  }
  const shell = (defaults) => {
    const $ = (strings, ...values) => {
      const raw = strings.raw ?? [strings];
      const command = raw.map((piece, i) => piece + (i < values.length ? word(values[i]) : "")).join("");
      return new ShellPromise(command, { ...defaults });
    };
    const change = (more) => (Object.assign(defaults, more), $);
    return Object.assign($, {
      cwd: (folder) => change({ cwd: folder }),
      env: (variables) => change({ env: variables }),
      nothrow: () => change({ nothrow: true }),
      throws: (should) => change({ nothrow: !should }),
      escape: (text) => quote(text),
      braces: (text) => [text],
      ShellError,
    });
  };
  const $ = shell({});
  Object.assign($, { Shell: () => shell({}) });

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
    nanoseconds: () => Math.round(part("web").performance.now() * 1e6),
    stripANSI: (text) => util.stripVTControlCharacters(text),
    stringWidth: (text) => [...util.stripVTControlCharacters(text)].length,
    randomUUIDv7: () => part("web").crypto.randomUUID(),
    escapeHTML: (s) => String(s).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`),
    readableStreamToText: async (stream) => (stream.text ? stream.text() : new (part("web").Response)(stream).text()),
    fileURLToPath,
    pathToFileURL,
  };

  const hashOf = (algorithm, key) => {
    const pieces = [];
    const made = {
      update(data, encoding) {
        pieces.push(typeof data === "string" ? decode(data, encoding) : bytesOf(data));
        return made;
      },
      digest(encoding) {
        const bytes = Buffer.from(H.hash(String(algorithm).toLowerCase().replace("-", ""), new Uint8Array(Buffer.concat(pieces)), key));
        return encoding ? bytes.toString(encoding) : bytes;
      },
    };
    return made;
  };
  const webCrypto = part("web").crypto;
  const crypto = {
    createHash: (algorithm) => hashOf(algorithm, undefined),
    createHmac: (algorithm, key) => hashOf(algorithm, typeof key === "string" ? H.utf8(key) : bytesOf(key).slice()),
    randomBytes: (size) => Buffer.from(H.random(size)),
    randomUUID: webCrypto.randomUUID,
    randomInt: (low, high) => {
      const [from, to] = high === undefined ? [0, low] : [low, high];
      return from + (Buffer.from(H.random(4)).readUInt32BE() % (to - from));
    },
    getRandomValues: webCrypto.getRandomValues,
    randomFillSync: (array) => (webCrypto.getRandomValues(array), array),
    randomFill: (array, done) => (webCrypto.getRandomValues(array), queueMicrotask(() => done(null, array))),
    getHashes: () => ["md5", "sha1", "sha256", "sha384", "sha512"],
    hash: (algorithm, data, encoding = "hex") => hashOf(algorithm, undefined).update(data).digest(encoding),
    timingSafeEqual: (a, b) => Buffer.from(a).equals(Buffer.from(b)),
    subtle: webCrypto.subtle,
    webcrypto: webCrypto,
  };
  const promisify = (call) =>
    call[CUSTOM] ?? ((...given) => new Promise((resolve, reject) => call(...given, (error, value) => (error ? reject(error) : resolve(value)))));
  promisify.custom = CUSTOM;
  const isDeepEqual = (a, b) => {
    if (Object.is(a, b)) return true;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    const [x, y] = [Object.keys(a), Object.keys(b)];
    return Array.isArray(a) === Array.isArray(b) && x.length === y.length && x.every((key) => isDeepEqual(a[key], b[key]));
  };
  const parseArgs = ({ args = [], options = {}, allowPositionals = true } = {}) => {
    const values = {};
    const positionals = [];
    for (const [name, { default: usual }] of Object.entries(options)) if (usual !== undefined) values[name] = usual;
    for (let i = 0; i < args.length; i++) {
      const [, long, short, given] = /^(?:--([^=]+)|-(\w))(?:=(.*))?$/s.exec(args[i]) ?? [];
      const name = long ?? Object.keys(options).find((key) => options[key].short === short);
      if (!name || !options[name]) {
        if (!allowPositionals || args[i].startsWith("-")) throw new TypeError(`Unknown option '${args[i]}'`);
        positionals.push(args[i]);
        continue;
      }
      const value = options[name].type === "boolean" ? true : (given ?? args[++i]);
      values[name] = options[name].multiple ? [...(values[name] ?? []), value] : value;
    }
    return { values, positionals };
  };
  const util = {
    promisify, inspect: Object.assign((value) => inspect(value), { custom: Symbol.for("nodejs.util.inspect.custom") }), format,
    callbackify: (call) => (...given) => call(...given.slice(0, -1)).then((v) => given.at(-1)(null, v), given.at(-1)),
    inherits: (child, parent) => Object.setPrototypeOf(child.prototype, parent.prototype),
    deprecate: same, isDeepStrictEqual: isDeepEqual, TextEncoder, TextDecoder, debuglog: () => () => {},
    stripVTControlCharacters: (s) => s.replace(/\u001b\[[0-9;]*[A-Za-z]/g, ""),
    styleText: (_style, text) => text, parseArgs, types: { isPromise: (v) => typeof v?.then === "function", isDate: (v) => v instanceof Date, isRegExp: (v) => v instanceof RegExp },
  };
  const assert = (good, message) => {
    if (!good) throw message instanceof Error ? message : Object.assign(new Error(message ?? "The assertion failed"), { name: "AssertionError", code: "ERR_ASSERTION" });
  };
  const equal = (test) => (a, b, message) => assert(test(a, b), message ?? `${inspect(a, 1)} and ${inspect(b, 1)} differ`);
  Object.assign(assert, {
    ok: assert, equal: equal((a, b) => a == b), strictEqual: equal(Object.is), deepEqual: equal(isDeepEqual), deepStrictEqual: equal(isDeepEqual),
    notStrictEqual: (a, b, m) => assert(!Object.is(a, b), m), fail: (m) => assert(false, m),
  });
  assert.strict = assert;
  const os = {
    EOL: "\n", platform: () => facts.platform, type: () => (facts.platform === "darwin" ? "Darwin" : "Linux"), arch: () => facts.arch,
    homedir: () => facts.home, tmpdir: () => facts.temporary, hostname: () => facts.host, release: () => "", version: () => "",
    cpus: () => Array.from({ length: facts.cores }, () => ({ model: "", speed: 0 })), availableParallelism: () => facts.cores,
    totalmem: () => 0, freemem: () => 0, uptime: () => 0, loadavg: () => [0, 0, 0], networkInterfaces: () => ({}),
    userInfo: () => ({ username: facts.user, homedir: facts.home, shell: facts.env.SHELL ?? null, uid: facts.uid, gid: -1 }),
    endianness: () => "LE",
  };
  const timersPromises = { setTimeout: async (ms, value) => (await sleep(ms), value), setImmediate: async (value) => (await sleep(0), value), scheduler: { wait: sleep } };
  const querystring = {
    parse: (text) => Object.fromEntries(new URLSearchParams(text)), stringify: (value) => String(new URLSearchParams(value)),
    escape: encodeURIComponent, unescape: decodeURIComponent,
  };
  const url = { URL, URLSearchParams, fileURLToPath, pathToFileURL, parse: (text) => new URL(text), format: String };
  // Node's client for HTTP, over fetch: an answer comes in one piece.
  class Incoming extends Emitter {
    constructor(answer, bytes) {
      super();
      Object.assign(this, { statusCode: answer.status, statusMessage: answer.statusText, headers: Object.fromEntries(answer.headers), bytes: Buffer.from(bytes) });
    }
    setEncoding(encoding) {
      this.encoding = encoding;
      return this;
    }
    resume() {
      return this;
    }
    pipe(target) {
      target.write(this.bytes);
      target.end();
      return target;
    }
    async *[Symbol.asyncIterator]() {
      yield this.encoding ? this.bytes.toString(this.encoding) : this.bytes;
    }
  }
  const client = (protocol) => {
    const request = (first, second, third) => {
      const callback = [third, second].find((given) => typeof given === "function");
      const plain = (given) => (given !== null && typeof given === "object" && !(given instanceof URL) ? given : {});
      const options = { ...plain(first), ...plain(second) };
      const address = typeof first === "string" || first instanceof URL ? String(first) : `${options.protocol ?? protocol}//${options.hostname ?? options.host}${options.port ? `:${options.port}` : ""}${options.path ?? "/"}`;
      const sent = new Emitter();
      const pieces = [];
      const controller = new AbortController();
      if (callback) sent.once("response", callback);
      return Object.assign(sent, {
        write: (data) => (pieces.push(bytesOf(data)), true),
        setHeader: (name, value) => void ((options.headers ??= {})[name] = value),
        setTimeout: () => sent,
        destroy: () => controller.abort(),
        abort: () => controller.abort(),
        end: (data) => {
          if (data !== undefined) pieces.push(bytesOf(data));
          const body = pieces.length ? Buffer.concat(pieces) : undefined;
          fetch(address, { method: options.method ?? "GET", headers: options.headers ?? {}, body, redirect: "manual", signal: controller.signal }).then(
            async (answer) => {
              const incoming = new Incoming(answer, await answer.bytes());
              sent.emit("response", incoming);
              if (incoming.bytes.length) incoming.emit("data", incoming.encoding ? incoming.bytes.toString(incoming.encoding) : incoming.bytes);
              incoming.emit("end");
              incoming.emit("close");
            },
            (error) => sent.emit("error", error),
          );
          return sent;
        },
      });
    };
    const missing = () => {
      throw new Error("There are no servers in Toolwright's script engine");
    };
    class Agent {}
    return { request, get: (...given) => request(...given).end(), Agent, globalAgent: new Agent(), createServer: missing, METHODS: ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"], STATUS_CODES: {} };
  };
  // What scripts import and seldom use: it is there, and says so when it is used.
  const absent = (module, name) => {
    const fail = () => {
      throw new Error(`${module}.${name} is not available in Toolwright's script engine`);
    };
    if (/^[A-Z][A-Z0-9_]*$/.test(name) || name === "constants") return undefined;
    return /^[A-Z]/.test(name) ? class { constructor() { fail(); } } : fail;
  };
  const complete = (name, module) => {
    for (const known of part("names")[name]?.split(" ") ?? []) if (!(known in module)) module[known] = absent(name, known);
    return module;
  };
  const timers = { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, promises: timersPromises };
  const all = {
    path, "path/posix": path, fs, "fs/promises": promises, os, url, util, events: Emitter, child_process, crypto, assert, "assert/strict": assert,
    process, buffer: { Buffer, Blob: part("web").Blob, atob, btoa }, querystring, timers, "timers/promises": timersPromises,
    bun: Bun, string_decoder: { StringDecoder: class { write(b) { return H.text(bytesOf(b).slice()); } end() { return ""; } } },
    perf_hooks: { performance: part("web").performance },
    module: { createRequire: (from) => requireFrom(String(from).startsWith("file:") ? fileURLToPath(from) : String(from)) },
    async_hooks: { AsyncLocalStorage: class { run(store, call, ...given) { this.store = store; return call(...given); } getStore() { return this.store; } } },
    tty: { isatty: () => false },
    constants: { O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024, F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, SIGINT: 2, SIGTERM: 15, SIGKILL: 9 },
    worker_threads: { isMainThread: true, parentPort: null, workerData: null, threadId: 0 },
    http: client("http:"),
    https: client("https:"),
  };
  const STREAMS = { stream: 1, "stream/promises": 1, readline: 1, "readline/promises": 1 };
  const ready = new Set();
  const module = (name) => {
    if (Object.hasOwn(STREAMS, name)) all[name] ??= part("stream")[name];
    if (!Object.hasOwn(all, name)) {
      if (!Object.hasOwn(part("names"), name)) throw new Error(`The module "${name}" is not available in Toolwright's script engine`);
      all[name] = {};
    }
    if (!ready.has(name)) {
      ready.add(name);
      complete(name, all[name]);
    }
    return all[name];
  };
  const say = (value) => (typeof value === "string" ? value : inspect(value));
  return { Buffer, process, Bun, $, module, format: say, forStreams: { Emitter, Buffer } };
})
