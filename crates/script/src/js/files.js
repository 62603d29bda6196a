// Node's files. The host asks for permission.
(({ H, host, hostSync, part }) => {
  const { path, fileURLToPath } = part("path");
  const { Buffer, decode } = part("buffer");
  const { bytesOf, URL } = part("text");
  const Emitter = part("events");

  const at = (file) => path.resolve(file instanceof URL || String(file).startsWith("file:") ? fileURLToPath(file) : String(file));
  const encodingOf = (options) => (typeof options === "string" ? options : options?.encoding);
  const dataOf = (data, options) => H.encodeBase64(typeof data === "string" ? decode(data, encodingOf(options)) : bytesOf(data).slice());
  const contentOf = (options) => (value) => {
    const bytes = Buffer.from(H.decodeBase64(value));
    const encoding = encodingOf(options);
    return encoding && encoding !== "buffer" ? bytes.toString(encoding) : bytes;
  };
  class Entry {
    isFile() {
      return this.kind === "file";
    }
    isDirectory() {
      return this.kind === "folder";
    }
    isSymbolicLink() {
      return this.kind === "link";
    }
    isBlockDevice() {
      return false;
    }
    isCharacterDevice() {
      return false;
    }
    isFIFO() {
      return false;
    }
    isSocket() {
      return false;
    }
  }
  class Stats extends Entry {
    constructor(given) {
      super();
      Object.assign(this, given);
      for (const name of ["mtime", "atime", "ctime", "birthtime"]) this[name] = new Date(this[`${name}Ms`] ?? this.mtimeMs);
    }
  }
  class Dirent extends Entry {
    constructor(given, parent) {
      super();
      Object.assign(this, { name: given.name, kind: given.kind, parentPath: parent, path: parent });
    }
  }
  const same = (value) => value;
  const timeOf = (time) => (time instanceof Date ? time.getTime() : Number(time) * 1000);
  // Each operation: what is sent, and what is made of the answer. Both forms of `fs` come of it.
  const operations = {
    readFile: (file, options) => ["readFile", { path: at(file) }, contentOf(options)],
    writeFile: (file, data, options) => ["writeFile", { path: at(file), data: dataOf(data, options), append: options?.flag?.startsWith("a") === true, exclusive: options?.flag?.includes("x") === true, mode: options?.mode }, same],
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
    link: (from, to) => ["link", { path: at(from), to: at(to) }, same],
    utimes: (file, atime, mtime) => ["utimes", { path: at(file), atimeMs: timeOf(atime), mtimeMs: timeOf(mtime) }, same],
    truncate: (file, length = 0) => ["writeFile", { path: at(file), data: H.encodeBase64(new Uint8Array(fs.readFileSync(file)).slice(0, length)) }, same],
    mkdtemp: (prefix) => ["mkdtemp", { path: at(prefix) }, same],
  };
  // What the system's own calls are named in errors, where that is another word.
  const SYSTEM = { readFile: "open", writeFile: "open", appendFile: "open", truncate: "open", readdir: "scandir", rm: "lstat", copyFile: "copyfile", utimes: "utime" };
  const named = (name, operation) => (...given) => {
    const [op, payload, make] = operation(...given);
    return [op, { ...payload, syscall: SYSTEM[name] ?? name }, make];
  };
  const promises = {};
  const fs = { promises, constants: { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 }, Stats, Dirent };
  for (const [name, plain] of Object.entries(operations)) {
    const operation = named(name, plain);
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
    stream.pipe = (target) => (target.emit?.("pipe", stream), promises.readFile(file).then((data) => (target.write(data), target.end()), (error) => stream.emit("error", error)), target);
    return stream;
  };
  // Nothing is watched: what is asked for each time is always new.
  for (const name of ["watch", "watchFile"]) fs[name] = () => Object.assign(new Emitter(), { close() {}, ref() {}, unref() {} });
  fs.unwatchFile = () => {};
  // Files that are held open: read whole when they are opened, written when something was added.
  for (const name of ["openSync", "closeSync", "readSync", "writeSync", "fsyncSync", "fdatasyncSync", "fstatSync", "ftruncateSync", "open", "close", "read", "write", "fsync", "fdatasync", "fstat", "ftruncate"]) {
    fs[name] = (...given) => part("handles")[name](...given);
  }
  for (const name of ["opendir", "opendirSync"]) {
    fs[name] = () => {
      throw new Error(`fs.${name} is not available in Toolwright's script engine`);
    };
  }
  promises.watch = async function* () {};
  promises.open = async (...given) => part("handles").handle(...given);
  return { fs, promises, at, encodingOf, dataOf };
})
