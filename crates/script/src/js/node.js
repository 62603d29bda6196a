// Node's modules, each made of its parts when it is first asked for.
(({ H, sleep, part, requireFrom, facts: found }) => {
  const os = () => {
    const facts = found();
    return {
      EOL: "\n", platform: () => facts.platform, type: () => (facts.platform === "darwin" ? "Darwin" : "Linux"), arch: () => facts.arch,
      homedir: () => facts.home, tmpdir: () => facts.temporary, hostname: () => facts.host, release: () => "", version: () => "",
      cpus: () => Array.from({ length: facts.cores }, () => ({ model: "", speed: 0 })), availableParallelism: () => facts.cores,
      totalmem: () => 0, freemem: () => 0, uptime: () => 0, loadavg: () => [0, 0, 0], networkInterfaces: () => ({}),
      userInfo: () => ({ username: facts.user, homedir: facts.home, shell: facts.env.SHELL ?? null, uid: facts.uid, gid: facts.gid }),
      endianness: () => "LE",
    };
  };
  const timersPromises = () => ({ setTimeout: async (ms, value) => (await sleep(ms), value), setImmediate: async (value) => (await sleep(0), value), scheduler: { wait: sleep } });
  const querystring = () => {
    const { URLSearchParams } = part("text");
    return {
      parse: (text) => Object.fromEntries(new URLSearchParams(text)), stringify: (value) => String(new URLSearchParams(value)),
      escape: encodeURIComponent, unescape: decodeURIComponent,
    };
  };
  const url = () => {
    const { URL, URLSearchParams } = part("text");
    const { fileURLToPath, pathToFileURL } = part("path");
    return { URL, URLSearchParams, fileURLToPath, pathToFileURL, parse: (text) => new URL(text), format: String };
  };
  const created = (from) => requireFrom(String(from).startsWith("file:") ? part("path").fileURLToPath(from) : String(from));
  const streams = (name) => () => part("stream")[name];
  const makers = {
    path: () => part("path").path,
    "path/posix": () => part("path").path,
    fs: () => part("files").fs,
    "fs/promises": () => part("files").promises,
    os,
    url,
    util: () => part("util").util,
    events: () => part("events"),
    child_process: () => part("run").child_process,
    crypto: () => part("crypto"),
    assert: () => part("util").assert,
    "assert/strict": () => part("util").assert,
    process: () => part("process"),
    buffer: () => ({ Buffer: part("buffer").Buffer, Blob: part("web").Blob, File: part("web").File, atob: part("text").atob, btoa: part("text").btoa }),
    querystring,
    timers: () => ({ setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, promises: module("timers/promises") }),
    "timers/promises": timersPromises,
    bun: () => part("bun"),
    string_decoder: () => ({ StringDecoder: class { write(b) { return H.text(part("text").bytesOf(b).slice()); } end() { return ""; } } }),
    perf_hooks: () => ({ performance: part("text").performance }),
    module: () => ({ createRequire: created }),
    async_hooks: () => ({ AsyncLocalStorage: class { run(store, call, ...given) { this.store = store; return call(...given); } getStore() { return this.store; } } }),
    tty: () => ({ isatty: () => false }),
    constants: () => ({ O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024, F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, SIGINT: 2, SIGTERM: 15, SIGKILL: 9 }),
    worker_threads: () => ({ isMainThread: true, parentPort: null, workerData: null, threadId: 0 }),
    http: () => part("http")("http:"),
    https: () => part("http")("https:"),
    stream: streams("stream"),
    "stream/promises": streams("stream/promises"),
    readline: streams("readline"),
    "readline/promises": streams("readline/promises"),
  };

  // What scripts import and seldom use: an import of a name that is missing fails before a line has run, so each
  // is there, and says so when it is used.
  const absent = (module, name) => {
    const fail = () => {
      throw new Error(`${module}.${name} is not available in Toolwright's script engine`);
    };
    if (/^[A-Z][A-Z0-9_]*$/.test(name) || name === "constants") return undefined;
    return /^[A-Z]/.test(name) ? class { constructor() { fail(); } } : fail;
  };
  const all = new Map();
  const module = (name) => {
    if (all.has(name)) return all.get(name);
    const known = H.names(name) ?? undefined;
    if (!Object.hasOwn(makers, name) && known === undefined) throw new Error(`The module "${name}" is not available in Toolwright's script engine`);
    const made = Object.hasOwn(makers, name) ? makers[name]() : {};
    all.set(name, made);
    for (const one of known?.split(" ") ?? []) if (!(one in made)) made[one] = absent(name, one);
    return made;
  };
  return { module };
})
