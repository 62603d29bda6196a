// The web's interfaces, as far as tools use them.
(({ H, host, until, part }) => {
  const { bytesOf, URLSearchParams, crypto } = part("text");

  class Headers {
    #map = new Map();
    constructor(init = {}) {
      const entries = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
      for (const [key, value] of entries) this.append(key, value);
    }
    append(key, value) {
      const name = String(key).toLowerCase();
      this.#map.set(name, this.#map.has(name) ? `${this.#map.get(name)}, ${value}` : String(value));
    }
    set(key, value) {
      this.#map.set(String(key).toLowerCase(), String(value));
    }
    get(key) {
      return this.#map.get(String(key).toLowerCase()) ?? null;
    }
    has(key) {
      return this.#map.has(String(key).toLowerCase());
    }
    delete(key) {
      this.#map.delete(String(key).toLowerCase());
    }
    forEach(callback) {
      for (const [key, value] of this) callback(value, key, this);
    }
    keys() {
      return this.#map.keys();
    }
    values() {
      return this.#map.values();
    }
    entries() {
      return [...this.#map].sort()[Symbol.iterator]();
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    getSetCookie() {
      return this.has("set-cookie") ? [this.get("set-cookie")] : [];
    }
  }
  class Blob {
    #bytes;
    constructor(pieces = [], { type = "" } = {}) {
      const all = pieces.map((piece) => (piece instanceof Blob ? piece.#bytes : bytesOf(piece)));
      this.#bytes = new Uint8Array(all.reduce((sum, b) => sum + b.length, 0));
      let at = 0;
      for (const bytes of all) {
        this.#bytes.set(bytes, at);
        at += bytes.length;
      }
      this.type = type;
    }
    get size() {
      return this.#bytes.length;
    }
    async text() {
      return H.text(this.#bytes);
    }
    async arrayBuffer() {
      return this.#bytes.slice().buffer;
    }
    async bytes() {
      return this.#bytes.slice();
    }
    slice(from, to, type) {
      return new Blob([this.#bytes.slice(from, to)], { type });
    }
    get raw() {
      return this.#bytes;
    }
  }
  class File extends Blob {
    constructor(pieces, name, options) {
      super(pieces, options);
      this.name = name;
    }
  }
  class FormData {
    #pairs = [];
    append(key, value, name) {
      this.#pairs.push([key, value instanceof Blob && name ? new File([value], name, value) : value]);
    }
    set(key, value, name) {
      this.#pairs = this.#pairs.filter(([k]) => k !== key);
      this.append(key, value, name);
    }
    get(key) {
      return this.#pairs.find(([k]) => k === key)?.[1] ?? null;
    }
    has(key) {
      return this.#pairs.some(([k]) => k === key);
    }
    [Symbol.iterator]() {
      return this.#pairs[Symbol.iterator]();
    }
    encode() {
      const edge = `----toolwright${crypto.randomUUID().replaceAll("-", "")}`;
      const pieces = [];
      const quote = (s) => String(s).replace(/["\r\n]/g, (c) => encodeURIComponent(c));
      for (const [key, value] of this.#pairs) {
        const file = value instanceof Blob;
        const name = file ? `; filename="${quote(value.name ?? "blob")}"\r\nContent-Type: ${value.type || "application/octet-stream"}` : "";
        pieces.push(`--${edge}\r\nContent-Disposition: form-data; name="${quote(key)}"${name}\r\n\r\n`, file ? value : String(value), "\r\n");
      }
      pieces.push(`--${edge}--\r\n`);
      return new Blob(pieces, { type: `multipart/form-data; boundary=${edge}` });
    }
  }

  // A body as bytes, with the type that it has by itself.
  const bodyOf = (body) => {
    if (body === undefined || body === null) return {};
    if (body instanceof FormData) body = body.encode();
    if (body instanceof Blob) return { bytes: body.raw, type: body.type || undefined };
    if (body instanceof URLSearchParams) return { bytes: bytesOf(String(body)), type: "application/x-www-form-urlencoded;charset=UTF-8" };
    if (typeof body === "string") return { bytes: bytesOf(body), type: "text/plain;charset=UTF-8" };
    if (typeof body[Symbol.asyncIterator] === "function") return { stream: body };
    return { bytes: bytesOf(body) };
  };
  class Body {
    #bytes;
    #stream;
    bodyUsed = false;
    constructor(bytes, stream) {
      this.#bytes = bytes ?? new Uint8Array();
      this.#stream = stream;
    }
    async #take() {
      if (this.bodyUsed) throw new TypeError("Body is unusable: it has been read already");
      this.bodyUsed = true;
      if (!this.#stream || this.#bytes.length) return this.#bytes;
      const pieces = [];
      for await (const piece of this.#stream) pieces.push(piece);
      return (this.#bytes = await new Blob(pieces).bytes());
    }
    get raw() {
      return this.#bytes;
    }
    // All of it, for whoever sends it on.
    async whole() {
      return this.#stream && !this.#bytes.length ? this.#take() : this.#bytes;
    }
    async text() {
      return H.text(await this.#take());
    }
    async json() {
      return JSON.parse(H.text(await this.#take()));
    }
    async arrayBuffer() {
      return (await this.#take()).slice().buffer;
    }
    async bytes() {
      return (await this.#take()).slice();
    }
    async blob() {
      return new Blob([await this.#take()], { type: this.headers?.get("content-type") ?? "" });
    }
    get body() {
      if (this.#stream) return this.#stream;
      if (!this.#bytes.length) return null;
      const bytes = this.#bytes;
      return (this.#stream ??= new ReadableStream({
        pull: (controller) => {
          this.bodyUsed = true;
          controller.enqueue(bytes);
          controller.close();
        },
      }));
    }
  }
  class Response extends Body {
    constructor(body, { status = 200, statusText = "", headers = {}, url = "", redirected = false } = {}) {
      const { bytes, type, stream } = bodyOf(body);
      super(bytes, stream);
      this.headers = new Headers(headers);
      if (type && !this.headers.has("content-type")) this.headers.set("content-type", type);
      Object.assign(this, { status, statusText, url, redirected, ok: status >= 200 && status < 300, type: "basic" });
    }
    clone() {
      return new Response(this.raw, this);
    }
    static json(value, init = {}) {
      const headers = new Headers(init.headers);
      headers.set("content-type", "application/json");
      return new Response(JSON.stringify(value), { ...init, headers });
    }
    static error() {
      return new Response(null, { status: 0 });
    }
  }
  class Request extends Body {
    constructor(input, init = {}) {
      const from = input instanceof Request ? input : undefined;
      const { bytes, type, stream } = bodyOf(init.body);
      super(bytes ?? from?.raw, stream);
      this.url = from ? from.url : String(input);
      this.method = (init.method ?? from?.method ?? "GET").toUpperCase();
      this.headers = new Headers(init.headers ?? from?.headers);
      this.signal = init.signal ?? from?.signal;
      this.redirect = init.redirect ?? from?.redirect ?? "follow";
      if (type && !this.headers.has("content-type")) this.headers.set("content-type", type);
    }
    clone() {
      return new Request(this);
    }
  }
  const fetch = async (input, init) => {
    const request = new Request(input, init);
    const sent = await request.whole();
    const hasBody = sent.length > 0;
    const asked = host("fetch", {
      url: request.url,
      method: request.method,
      headers: [...request.headers],
      body: hasBody ? H.encodeBase64(sent) : undefined,
      redirect: request.redirect,
    }).catch((error) => {
      throw Object.assign(new TypeError(`fetch failed: ${error.message}`), { cause: error });
    });
    const { status, statusText, headers, url, redirected, body } = await until(request.signal, asked);
    return new Response(H.decodeBase64(body), { status, statusText, headers, url, redirected });
  };

  // Streams of the web, over lists that are waited for.
  class ReadableStream {
    #pieces = [];
    #wake = [];
    #ended = false;
    #failed;
    #source;
    constructor(source = {}) {
      this.#source = source;
      this.locked = false;
      const controller = {
        enqueue: (piece) => (this.#pieces.push(piece), this.#go()),
        close: () => ((this.#ended = true), this.#go()),
        error: (error) => ((this.#failed = error ?? new Error("the stream failed")), this.#go()),
        desiredSize: 1,
      };
      this.controller = controller;
      Promise.resolve(source.start?.(controller)).catch(controller.error);
    }
    static from(list) {
      const walk = (list[Symbol.asyncIterator] ?? list[Symbol.iterator]).call(list);
      return new ReadableStream({
        async pull(controller) {
          const { done, value } = await walk.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
      });
    }
    #go() {
      for (const wake of this.#wake.splice(0)) wake();
    }
    async #next() {
      while (true) {
        if (this.#pieces.length) return { done: false, value: this.#pieces.shift() };
        if (this.#failed) throw this.#failed;
        if (this.#ended) return { done: true, value: undefined };
        if (this.#source.pull) await this.#source.pull(this.controller);
        if (!this.#pieces.length && !this.#ended && !this.#failed) await new Promise((wake) => this.#wake.push(wake));
      }
    }
    getReader() {
      this.locked = true;
      return { read: () => this.#next(), releaseLock: () => void (this.locked = false), cancel: () => this.cancel(), closed: Promise.resolve() };
    }
    async cancel(reason) {
      this.#ended = true;
      await this.#source.cancel?.(reason);
      this.#go();
    }
    pipeThrough({ readable, writable }) {
      void this.pipeTo(writable);
      return readable;
    }
    async pipeTo(writable) {
      const writer = writable.getWriter();
      try {
        for await (const piece of this) await writer.write(piece);
        await writer.close();
      } catch (error) {
        await writer.abort(error);
      }
    }
    tee() {
      const [a, b] = [[], []].map(() => new ReadableStream());
      void (async () => {
        for await (const piece of this) [a, b].forEach((s) => s.controller.enqueue(piece));
        [a, b].forEach((s) => s.controller.close());
      })();
      return [a, b];
    }
    async *[Symbol.asyncIterator]() {
      while (true) {
        const { done, value } = await this.#next();
        if (done) return;
        yield value;
      }
    }
    values() {
      return this[Symbol.asyncIterator]();
    }
  }
  class WritableStream {
    constructor(sink = {}) {
      this.sink = sink;
      this.started = Promise.resolve(sink.start?.({ error() {} }));
    }
    getWriter() {
      const { sink, started } = this;
      return {
        ready: started, closed: started,
        write: async (piece) => (await started, sink.write?.(piece, { error() {} })),
        close: async () => (await started, sink.close?.()),
        abort: async (reason) => sink.abort?.(reason),
        releaseLock() {},
      };
    }
  }
  class TransformStream {
    constructor({ start, transform, flush } = {}) {
      this.readable = new ReadableStream();
      const { controller } = this.readable;
      controller.terminate = controller.close;
      this.writable = new WritableStream({
        start: () => start?.(controller),
        write: (piece) => (transform ? transform(piece, controller) : controller.enqueue(piece)),
        close: async () => (await flush?.(controller), controller.close()),
        abort: (reason) => controller.error(reason),
      });
    }
  }
  class TextDecoderStream extends TransformStream {
    constructor() {
      super({ transform: (piece, controller) => controller.enqueue(H.text(bytesOf(piece).slice())) });
    }
  }
  class TextEncoderStream extends TransformStream {
    constructor() {
      super({ transform: (piece, controller) => controller.enqueue(H.utf8(String(piece))) });
    }
  }
  class CustomEvent extends Event {
    constructor(type, more = {}) {
      super(type, more);
      this.detail = more.detail ?? null;
    }
  }
  class MessageChannel {
    constructor() {
      const port = () => Object.assign(new EventTarget(), { start() {}, close() {} });
      [this.port1, this.port2] = [port(), port()];
      const join = (from, to) => (from.postMessage = (data) => queueMicrotask(() => to.dispatchEvent(new Event("message", { data }))));
      join(this.port1, this.port2);
      join(this.port2, this.port1);
    }
  }
  class WebSocket {
    constructor() {
      throw new Error("WebSocket is not available in Toolwright's script engine");
    }
  }
  return { Headers, Request, Response, fetch, Blob, File, FormData, ReadableStream, WritableStream, TransformStream, TextDecoderStream, TextEncoderStream, CustomEvent, MessageChannel, WebSocket };
})
