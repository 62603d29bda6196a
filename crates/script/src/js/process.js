// The process that a script believes to be.
(({ H, facts: found, part }) => {
  const facts = found();
  const Emitter = part("events");

  const env = new Proxy({ ...facts.env }, {
    set: (own, name, value) => ((own[name] = String(value)), true),
  });
  const output = (level, fd) => Object.assign(new Emitter(), { write: (said) => (H.say(level, String(said).replace(/\n$/, "")), true), end() {}, isTTY: false, columns: 80, fd, hasColors: () => false, getColorDepth: () => 1 });
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
    memoryUsage: Object.assign(() => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }), { rss: () => 0 }),
    stdout: output("log", 1),
    stderr: output("error", 2),
    stdin: Object.assign(new Emitter(), { isTTY: false, fd: 0, resume() {}, pause() {}, unref() {}, setEncoding() {} }),
    getuid: () => facts.uid,
    geteuid: () => facts.uid,
    getgid: () => facts.gid,
    getegid: () => facts.gid,
    getgroups: () => [facts.gid],
    umask: () => 0o022,
    // Others are none of its business: they may be there, and are not to be signalled.
    kill(pid, signal = "SIGTERM") {
      if (pid === facts.pid && signal === 0) return true;
      throw Object.assign(new Error(`kill EPERM: process.kill is not available in Toolwright's script engine`), { code: "EPERM", syscall: "kill" });
    },
    cpuUsage: () => ({ user: 0, system: 0 }),
    resourceUsage: () => ({}),
    features: {},
    config: { variables: {} },
    emitWarning: (said) => H.say("warn", String(said)),
  });
  return process;
})
