// Node's client for HTTP, over fetch: an answer comes in one piece.
(({ part }) => {
  const { Buffer } = part("buffer");
  const { bytesOf, URL } = part("text");
  const Emitter = part("events");
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
  return client;
})
