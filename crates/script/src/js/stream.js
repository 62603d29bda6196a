// Node's streams, as far as tools use them: no back pressure, everything in order.
(({ Emitter, Buffer, bytesOf }) => {
  const tick = (work) => Promise.resolve().then(work);
  class Stream extends Emitter {
    pipe(target, { end = true } = {}) {
      this.on("data", (piece) => target.write(piece));
      if (end) this.on("end", () => target.end());
      this.on("error", (error) => target.emit("error", error));
      target.emit("pipe", this);
      return target;
    }
    destroy(error) {
      if (this.destroyed) return this;
      this.destroyed = true;
      tick(() => {
        if (error) this.emit("error", error);
        this.emit("close");
      });
      return this;
    }
    [Symbol.asyncDispose]() {
      this.destroy();
      return Promise.resolve();
    }
  }
  class Readable extends Stream {
    #pieces = [];
    #ended = false;
    #told = false;
    #reading = false;
    constructor(options = {}) {
      super();
      this.readable = true;
      this.readableFlowing = null;
      this.objectMode = options.objectMode ?? options.readableObjectMode ?? false;
      if (options.encoding) this.encoding = options.encoding;
      if (typeof options.read === "function") this._read = options.read;
      if (typeof options.destroy === "function") this._destroy = options.destroy;
    }
    static from(source, options) {
      const made = new Readable({ objectMode: true, ...options });
      tick(async () => {
        try {
          const whole = typeof source === "string" || source instanceof Uint8Array;
          for await (const piece of whole ? [source] : source) made.push(piece);
          made.push(null);
        } catch (error) {
          made.destroy(error);
        }
      });
      return made;
    }
    static fromWeb(stream) {
      return Readable.from(stream);
    }
    static toWeb(stream) {
      return stream;
    }
    _read() {}
    setEncoding(encoding) {
      this.encoding = encoding;
      return this;
    }
    push(piece) {
      if (piece === null) this.#ended = true;
      else this.#pieces.push(this.objectMode ? piece : this.#form(piece));
      this.#reading = false;
      if (this.readableFlowing) tick(() => this.#flow());
      else tick(() => this.emit("readable"));
      return !this.#ended;
    }
    unshift(piece) {
      this.#pieces.unshift(piece);
    }
    #form(piece) {
      const bytes = typeof piece === "string" ? Buffer.from(piece) : Buffer.from(bytesOf(piece));
      return this.encoding ? bytes.toString(this.encoding) : bytes;
    }
    #ask() {
      if (this.#ended || this.#reading || this.destroyed) return;
      this.#reading = true;
      this._read(65536);
    }
    #flow() {
      while (this.readableFlowing && this.#pieces.length) this.emit("data", this.#pieces.shift());
      if (!this.readableFlowing) return;
      if (this.#ended && !this.#told) {
        this.#told = true;
        this.readableEnded = true;
        this.emit("end");
        this.emit("close");
      } else this.#ask();
    }
    read() {
      if (!this.#pieces.length) this.#ask();
      return this.#pieces.shift() ?? null;
    }
    on(name, listener) {
      super.on(name, listener);
      if (name === "data") this.resume();
      if (name === "readable") tick(() => this.#ask());
      return this;
    }
    resume() {
      this.readableFlowing = true;
      tick(() => this.#flow());
      return this;
    }
    pause() {
      this.readableFlowing = false;
      return this;
    }
    isPaused() {
      return this.readableFlowing === false;
    }
    async *[Symbol.asyncIterator]() {
      let wake = () => {};
      let failed;
      const pieces = [];
      let done = false;
      this.on("data", (piece) => (pieces.push(piece), wake()));
      this.on("end", () => ((done = true), wake()));
      this.on("close", () => ((done = true), wake()));
      this.on("error", (error) => ((failed = error), wake()));
      while (true) {
        if (pieces.length) yield pieces.shift();
        else if (failed) throw failed;
        else if (done) return;
        else await new Promise((go) => (wake = go));
      }
    }
  }
  const writing = (Base) =>
    class extends Base {
      #chain = Promise.resolve();
      constructor(options = {}) {
        super(options);
        this.writable = true;
        this.writableObjectMode = options.objectMode ?? options.writableObjectMode ?? false;
        for (const name of ["write", "final", "transform", "flush"]) if (typeof options[name] === "function") this[`_${name}`] = options[name];
      }
      write(piece, encoding, done) {
        if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
        const given = this.writableObjectMode ? piece : typeof piece === "string" ? Buffer.from(piece, encoding) : piece;
        this.#chain = this.#chain.then(() => new Promise((go) => {
          this._write(given, encoding ?? "utf8", (error) => {
            if (error) this.emit("error", error);
            done?.(error);
            go();
          });
        })).catch((error) => this.emit("error", error));
        return true;
      }
      end(piece, encoding, done) {
        const last = [piece, encoding, done].find((given) => typeof given === "function");
        if (piece !== undefined && piece !== null && typeof piece !== "function") this.write(piece, typeof encoding === "string" ? encoding : undefined);
        this.writableEnded = true;
        this.#chain = this.#chain.then(() => new Promise((go) => {
          const finish = (error) => {
            if (error) this.emit("error", error);
            this.writableFinished = true;
            this.emit("finish");
            if (!(this instanceof Readable)) this.emit("close");
            last?.();
            go();
          };
          this._final ? this._final(finish) : finish();
        })).catch((error) => this.emit("error", error));
        return this;
      }
      _write(_piece, _encoding, done) {
        done();
      }
      cork() {}
      uncork() {}
      setDefaultEncoding() {
        return this;
      }
    };
  class Writable extends writing(Stream) {}
  class Duplex extends writing(Readable) {}
  class Transform extends Duplex {
    _transform(piece, _encoding, done) {
      done(null, piece);
    }
    _write(piece, encoding, done) {
      this._transform(piece, encoding, (error, made) => {
        if (!error && made !== undefined && made !== null) this.push(made);
        done(error);
      });
    }
    _final(done) {
      const finish = (error, made) => {
        if (!error && made !== undefined && made !== null) this.push(made);
        this.push(null);
        done(error);
      };
      this._flush ? this._flush(finish) : finish();
    }
  }
  class PassThrough extends Transform {}
  const finishedLater = (stream) =>
    new Promise((resolve, reject) => {
      for (const name of ["finish", "end", "close"]) stream.on(name, resolve);
      stream.on("error", reject);
    });
  const pipelineLater = async (...streams) => {
    const list = streams.flat().map((stream, at) => (at === 0 && typeof stream?.pipe !== "function" ? Readable.from(stream) : stream));
    const last = list.at(-1);
    const ended = finishedLater(last);
    const failed = list.slice(0, -1).map((stream) => new Promise((_, reject) => stream.on("error", reject)));
    list.reduce((from, to) => from.pipe(to));
    await Promise.race([ended, ...failed]);
  };
  const withCallback = (work) => (...given) => {
    const callback = typeof given.at(-1) === "function" ? given.pop() : () => {};
    work(...given).then(() => callback(), callback);
    return given.flat().at(-1);
  };
  const promises = { pipeline: pipelineLater, finished: finishedLater };
  Object.assign(Stream, { Stream, Readable, Writable, Duplex, Transform, PassThrough, pipeline: withCallback(pipelineLater), finished: withCallback(finishedLater), promises });
  const createInterface = ({ input } = {}) => {
    const reader = new Emitter();
    const lines = async function* () {
      let rest = "";
      for await (const piece of input ?? []) {
        rest += typeof piece === "string" ? piece : Buffer.from(piece).toString();
        const parts = rest.split(/\r?\n/);
        rest = parts.pop();
        yield* parts;
      }
      if (rest) yield rest;
    };
    let taken = false;
    reader.close = () => void reader.emit("close");
    reader.question = () => {
      throw new Error("readline.question is not available in Toolwright's script engine: nobody types there");
    };
    reader[Symbol.asyncIterator] = () => ((taken = true), lines());
    tick(() => tick(async () => {
      if (taken) return;
      for await (const line of lines()) reader.emit("line", line);
      reader.emit("close");
    }));
    return reader;
  };
  return { stream: Stream, "stream/promises": promises, readline: { createInterface, clearLine() {}, cursorTo() {}, promises: { createInterface } }, "readline/promises": { createInterface } };
})
