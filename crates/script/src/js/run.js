// Processes, in the words of Node, and the shell of templates. The host asks for permission.
(({ H, host, hostSync, until, part }) => {
  const { Buffer } = part("buffer");
  const { bytesOf } = part("text");
  const { at, encodingOf, dataOf } = part("files");
  const Emitter = part("events");

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
  // What a child is given, all of it before it begins. `all` comes when that is known: at the end of it, a moment
  // after the start where nobody says anything, or when somebody who began has nothing more to say for a while.
  const SOON_MS = 10;
  const QUIET_MS = 1000;
  const inputOf = () => {
    const pieces = [];
    let [words, piped, over, end] = [0, false, false];
    const ended = new Promise((go) => (end = go));
    const stdin = new Emitter();
    const take = (data, encoding) => {
      words++;
      if (!over) return pieces.push(typeof data === "string" ? Buffer.from(data, typeof encoding === "string" ? encoding : "utf8") : bytesOf(data));
      stdin.emit("error", Object.assign(new Error("write EPIPE: the child has begun without it"), { code: "EPIPE", syscall: "write" }));
    };
    const called = (given) => given.find((one) => typeof one === "function")?.();
    Object.assign(stdin, {
      writable: true,
      write: (data, ...more) => (take(data, more[0]), called(more), true),
      end: (...given) => {
        if (given[0] !== undefined && given[0] !== null && typeof given[0] !== "function") take(given[0], given[1]);
        over = true;
        end();
        called(given);
        return stdin;
      },
      destroy: () => stdin.end(),
      setDefaultEncoding: () => stdin,
    });
    stdin.on("pipe", () => (piped = true));
    const all = async () => {
      for (let heard = -1; !over && (piped || heard !== words); ) {
        heard = words;
        await Promise.race(piped ? [ended] : [ended, host("sleep", { ms: words ? QUIET_MS : SOON_MS })]);
      }
      over = true;
      return pieces.length ? Buffer.concat(pieces) : undefined;
    };
    return { stdin, all };
  };
  // Its output comes in one piece, when it has ended.
  const spawn = (file, args, options) => {
    const [list, more] = split(args, options);
    const child = new Emitter();
    const closed = ["ignore", "inherit"].includes(Array.isArray(more?.stdio) ? more.stdio[0] : more?.stdio);
    const { stdin, all } = closed ? { stdin: null, all: async () => undefined } : inputOf();
    Object.assign(child, {
      stdout: Object.assign(new Emitter(), { setEncoding() {} }),
      stderr: Object.assign(new Emitter(), { setEncoding() {} }),
      stdin,
      kill: () => false,
      unref() {},
      ref() {},
    });
    const command = more?.shell ? [file, ...list].join(" ") : line(file, list);
    queueMicrotask(async () => {
      try {
        const input = await until(more?.signal, all());
        const result = outcome(await until(more?.signal, host("run", runOptions(command, input ? { ...more, input } : more))));
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
  return { child_process, $, runOptions, outcome, line };
})
