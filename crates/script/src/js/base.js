// What every script finds: timers, console, the web's small things, modules, and the calls that come
// from outside. `H` is the host: send, sendSync, done, resolve, compile, part.
((H) => {
  const text = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return value.stack ? `${value.name}: ${value.message}\n${value.stack}` : String(value);
    return inspect(value);
  };
  const inspect = (value, depth = 0, seen = new Set()) => {
    if (value === null || typeof value !== "object") {
      if (typeof value === "string") return depth ? JSON.stringify(value) : value;
      if (typeof value === "function") return `[Function: ${value.name || "anonymous"}]`;
      return typeof value === "bigint" ? `${value}n` : String(value);
    }
    if (seen.has(value)) return "[Circular]";
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    if (value instanceof Date) return value.toISOString();
    if (value instanceof RegExp) return String(value);
    if (depth > 4) return Array.isArray(value) ? "[Array]" : "[Object]";
    seen.add(value);
    const inner = (item) => inspect(item, depth + 1, seen);
    let said;
    if (Array.isArray(value)) said = `[ ${value.slice(0, 100).map(inner).join(", ")}${value.length > 100 ? ", …" : ""} ]`;
    else if (value instanceof Map) said = `Map(${value.size}) { ${[...value].map(([k, v]) => `${inner(k)} => ${inner(v)}`).join(", ")} }`;
    else if (value instanceof Set) said = `Set(${value.size}) { ${[...value].map(inner).join(", ")} }`;
    else said = `{ ${Object.entries(value).map(([k, v]) => `${k}: ${inner(v)}`).join(", ")} }`;
    seen.delete(value);
    return said.length < 4 ? said.replaceAll(" ", "") : said;
  };
  const format = (first, ...rest) => {
    if (typeof first !== "string" || !first.includes("%")) return [first, ...rest].map(text).join(" ");
    const said = first.replace(/%[sdifjoO%]/g, (mark) => {
      if (mark === "%%") return "%";
      if (!rest.length) return mark;
      const value = rest.shift();
      if (mark === "%d" || mark === "%f") return String(Number(value));
      if (mark === "%i") return String(Math.trunc(Number(value)));
      return mark === "%j" ? JSON.stringify(value) : text(value);
    });
    return [said, ...rest.map(text)].join(" ");
  };
  const console = {};
  for (const level of ["log", "info", "debug", "warn", "error", "trace"]) {
    console[level] = (...said) => H.say(level === "trace" ? "debug" : level, format(...said));
  }
  console.dir = (value) => console.log(inspect(value));
  console.table = console.dir;
  console.assert = (good, ...said) => good || console.error("Assertion failed:", ...said);
  const timesAt = new Map();
  console.time = (label = "default") => timesAt.set(label, Date.now());
  console.timeEnd = (label = "default") => console.log(`${label}: ${Date.now() - (timesAt.get(label) ?? Date.now())}ms`);
  console.group = console.log;
  console.groupEnd = () => {};

  // Requests to the host that are under way.
  let lastRequest = 0;
  const waiting = new Map();
  const hostError = (given) => Object.assign(new Error(given.message), given.code ? { code: given.code } : {}, given.more ?? {});
  const host = (op, payload) =>
    new Promise((resolve, reject) => {
      const id = ++lastRequest;
      waiting.set(id, { resolve, reject });
      H.send(id, op, JSON.stringify(payload ?? null));
    });
  const hostSync = (op, payload) => {
    const answer = JSON.parse(H.sendSync(op, JSON.stringify(payload ?? null)));
    if (answer.error) throw hostError(answer.error);
    return answer.value;
  };

  const timers = new Map();
  let lastTimer = 0;
  class Timer {
    constructor(id) {
      this.id = id;
    }
    ref() {
      return this;
    }
    unref() {
      return this;
    }
    hasRef() {
      return true;
    }
    [Symbol.toPrimitive]() {
      return this.id;
    }
  }
  const sleep = (ms) => host("sleep", { ms: Math.max(0, Math.min(Number(ms) || 0, 2 ** 31)) });
  const start = (callback, ms, again, given) => {
    const id = ++lastTimer;
    timers.set(id, true);
    const turn = () =>
      sleep(ms).then(() => {
        if (!timers.has(id)) return undefined;
        if (!again) timers.delete(id);
        try {
          callback(...given);
        } catch (error) {
          console.error(error);
        }
        return again && timers.has(id) ? turn() : undefined;
      }, (error) => console.error(error));
    turn();
    return new Timer(id);
  };
  const stop = (timer) => timers.delete(Number(timer));
  const setTimeout = (callback, ms, ...given) => start(callback, ms, false, given);
  const setInterval = (callback, ms, ...given) => start(callback, Math.max(1, ms), true, given);
  const setImmediate = (callback, ...given) => start(callback, 0, false, given);
  const queueMicrotask = (callback) => void Promise.resolve().then(callback);

  const structuredClone = (value, seen = new Map()) => {
    if (value === null || typeof value !== "object") {
      if (typeof value === "function") throw new DOMException("A function cannot be cloned", "DataCloneError");
      return value;
    }
    if (seen.has(value)) return seen.get(value);
    if (value instanceof Date) return new Date(value);
    if (value instanceof RegExp) return new RegExp(value);
    if (ArrayBuffer.isView(value)) return value.slice();
    const keep = (copy) => (seen.set(value, copy), copy);
    if (Array.isArray(value)) {
      const copy = keep([]);
      for (const item of value) copy.push(structuredClone(item, seen));
      return copy;
    }
    if (value instanceof Map) {
      const copy = keep(new Map());
      for (const [k, v] of value) copy.set(structuredClone(k, seen), structuredClone(v, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      for (const v of value) copy.add(structuredClone(v, seen));
      return copy;
    }
    const copy = keep({});
    for (const [k, v] of Object.entries(value)) copy[k] = structuredClone(v, seen);
    return copy;
  };

  class DOMException extends Error {
    constructor(message = "", name = "Error") {
      super(message);
      Object.defineProperty(this, "name", { value: name });
    }
  }
  class Event {
    constructor(type, more = {}) {
      Object.assign(this, more, { type });
    }
  }
  class EventTarget {
    #listeners = new Map();
    addEventListener(type, listener, options) {
      const list = this.#listeners.get(type) ?? [];
      list.push({ listener, once: options?.once === true });
      this.#listeners.set(type, list);
    }
    removeEventListener(type, listener) {
      const list = this.#listeners.get(type) ?? [];
      this.#listeners.set(type, list.filter((l) => l.listener !== listener));
    }
    dispatchEvent(event) {
      event.target ??= this;
      this[`on${event.type}`]?.(event);
      for (const entry of [...(this.#listeners.get(event.type) ?? [])]) {
        if (entry.once) this.removeEventListener(event.type, entry.listener);
        if (typeof entry.listener === "function") entry.listener.call(this, event);
        else entry.listener.handleEvent(event);
      }
      return true;
    }
  }
  class AbortSignal extends EventTarget {
    aborted = false;
    reason = undefined;
    onabort = null;
    throwIfAborted() {
      if (this.aborted) throw this.reason;
    }
    static abort(reason) {
      const controller = new AbortController();
      controller.abort(reason);
      return controller.signal;
    }
    static timeout(ms) {
      const controller = new AbortController();
      setTimeout(() => controller.abort(new DOMException("The operation timed out.", "TimeoutError")), ms);
      return controller.signal;
    }
    static any(signals) {
      const controller = new AbortController();
      for (const signal of signals) {
        if (signal.aborted) controller.abort(signal.reason);
        else signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
      }
      return controller.signal;
    }
  }
  class AbortController {
    signal = new AbortSignal();
    abort(reason = new DOMException("This operation was aborted", "AbortError")) {
      if (this.signal.aborted) return;
      this.signal.aborted = true;
      this.signal.reason = reason;
      this.signal.dispatchEvent(new Event("abort"));
    }
  }
  // A promise that gives up when the signal does.
  const until = (signal, promise, onAbort) => {
    if (!signal) return promise;
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => (onAbort?.(), reject(signal.reason)), { once: true });
      promise.then(resolve, reject);
    });
  };

  // Modules in the older form, and those of ours.
  const parts = new Map();
  const part = (name) => {
    if (!parts.has(name)) parts.set(name, H.part(name)(more[name]?.() ?? inside));
    return parts.get(name);
  };
  // What a part is given, where that is not the same as for the others.
  const more = { stream: () => ({ Emitter: part("events"), Buffer: part("buffer").Buffer, bytesOf: part("text").bytesOf }) };
  let known;
  const facts = () => (known ??= JSON.parse(H.facts()));
  const plugin = () => {
    const { tool } = part("tools");
    return { tool, default: { tool } };
  };
  const own = { "tw:plugin": plugin, "tw:zod": () => part("schema") };
  const builtin = (name) => own[name]?.() ?? part("node").module(name.slice("node:".length));
  const names = (value) =>
    value !== null && (typeof value === "object" || typeof value === "function")
      ? Object.keys(value).filter((key) => /^[A-Za-z_$][\w$]*$/.test(key) && key !== "default")
      : [];
  const loaded = new Map();
  const requireFrom = (from) => {
    const require = (name) => {
      const id = H.resolve(from, name);
      return /^(node|tw):/.test(id) ? builtin(id) : load(id);
    };
    require.resolve = (name) => H.resolve(from, name);
    require.cache = {};
    return require;
  };
  const load = (id) => {
    if (loaded.has(id)) return loaded.get(id).exports;
    const module = { exports: {}, id, filename: id, loaded: false, children: [] };
    loaded.set(id, module);
    try {
      if (id.endsWith(".json")) {
        module.exports = JSON.parse(H.source(id));
      } else {
        const folder = id.slice(0, id.lastIndexOf("/")) || "/";
        const made = H.compile(id);
        if (typeof made === "function") made.call(module.exports, module.exports, requireFrom(id), module, id, folder);
        else module.exports = made;
      }
    } catch (error) {
      loaded.delete(id);
      throw error;
    }
    module.loaded = true;
    return module.exports;
  };

  // Calls from outside: each has a number, ends once, and can be told to stop.
  const running = new Map();
  const problem = (error) => {
    // The engine throws this where there is no room left for an error.
    if (error === null && H.isFull()) return { message: "out of memory", name: "InternalError", stack: "" };
    if (error === null || error === undefined) return { message: `it threw ${error}`, name: "Error", stack: "" };
    if (!(error instanceof Error)) return { message: text(error), name: "Error", stack: "" };
    return { message: String(error.message), name: String(error.name), stack: String(error.stack ?? ""), code: error.code };
  };
  const end = (id, good, value) => {
    running.delete(id);
    let said;
    try {
      said = JSON.stringify(value === undefined ? null : value);
    } catch (error) {
      said = JSON.stringify(problem(error));
      good = false;
    }
    H.done(id, good, said ?? "null");
  };
  const call = (id, kind, payload) => {
    const controller = new AbortController();
    running.set(id, controller);
    // Begun in a promise, so that what fails at once fails in the same way.
    Promise.resolve()
      .then(() => part("tools").perform(kind, JSON.parse(payload), controller.signal))
      .then((value) => end(id, true, value), (error) => end(id, false, problem(error)));
  };
  const reply = (id, good, payload) => {
    const request = waiting.get(id);
    waiting.delete(id);
    const value = JSON.parse(payload);
    if (good) request?.resolve(value);
    else request?.reject(hostError(value));
  };
  const abort = (id) => running.get(id)?.abort(new DOMException("The call was stopped.", "AbortError"));

  const inside = { H, host, hostSync, hostError, inspect, format, sleep, until, part, facts, requireFrom, DOMException, EventTarget, Event, AbortController, AbortSignal };
  const lazy = (name, owner, get) =>
    Object.defineProperty(owner, name, {
      configurable: true,
      enumerable: false,
      get() {
        const value = get();
        Object.defineProperty(owner, name, { value, writable: true, configurable: true });
        return value;
      },
      set(value) {
        Object.defineProperty(owner, name, { value, writable: true, configurable: true });
      },
    });
  Object.assign(globalThis, {
    console, setTimeout, setInterval, setImmediate, queueMicrotask, structuredClone,
    clearTimeout: stop, clearInterval: stop, clearImmediate: stop,
    DOMException, Event, EventTarget, AbortController, AbortSignal, global: globalThis, self: globalThis,
  });
  const globals = {
    text: ["URL", "URLSearchParams", "TextEncoder", "TextDecoder", "atob", "btoa", "performance", "crypto"],
    web: ["Headers", "Request", "Response", "fetch", "Blob", "File", "FormData", "ReadableStream", "WritableStream", "TransformStream", "TextDecoderStream", "TextEncoderStream", "CustomEvent", "MessageChannel", "WebSocket"],
    buffer: ["Buffer"],
    run: ["$"],
  };
  for (const [from, names] of Object.entries(globals)) for (const name of names) lazy(name, globalThis, () => part(from)[name]);
  for (const [name, from] of [["process", "process"], ["Bun", "bun"], ["Intl", "intl"]]) lazy(name, globalThis, () => part(from));
  lazy("WebAssembly", globalThis, () => part("wasm"));
  lazy("navigator", globalThis, () => ({ userAgent: "Toolwright", language: "en-US", languages: ["en-US"], hardwareConcurrency: 1 }));
  return { call, reply, abort, names, load, builtin, requireFrom };
})
