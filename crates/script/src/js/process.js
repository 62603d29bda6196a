// The process that a script believes to be.
(({ H, facts: found, part }) => {
  const facts = found();
  const Emitter = part("events");

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
    uptime: () => part("text").performance.now() / 1000,
    hrtime: Object.assign(() => {
      const ms = part("text").performance.now();
      return [Math.floor(ms / 1000), (ms % 1000) * 1e6];
    }, { bigint: () => BigInt(Math.round(part("text").performance.now() * 1e6)) }),
    nextTick: (callback, ...given) => queueMicrotask(() => callback(...given)),
    memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0 }),
    stdout: { write: (said) => (H.say("log", String(said).replace(/\n$/, "")), true), isTTY: false, columns: 80 },
    stderr: { write: (said) => (H.say("error", String(said).replace(/\n$/, "")), true), isTTY: false, columns: 80 },
    stdin: { isTTY: false, on() {} },
    getuid: () => facts.uid,
    emitWarning: (said) => H.say("warn", String(said)),
  });
  return process;
})
