// Node's files that are held open, over whole ones: what is written is in the file when the call returns.
(({ part }) => {
  const { fs } = part("files");
  const { Buffer } = part("buffer");
  const { bytesOf } = part("text");
  const wrong = (code, message) => Object.assign(new Error(`${code}: ${message}`), { code });
  const open = new Map();
  let last = 2;
  const held = (fd) => {
    const file = open.get(Number(fd));
    if (!file) throw wrong("EBADF", "bad file descriptor");
    return file;
  };
  const wordsOf = (flags) => {
    if (typeof flags === "string") return flags;
    // The numbers of Linux.
    const base = flags & 1 ? "w" : flags & 2 ? (flags & 512 ? "w+" : "r+") : "r";
    return (flags & 1024 ? "a" : flags & 64 || !(flags & 1) ? base : "r+") + (flags & 128 ? "x" : "");
  };
  const sync = {
    openSync(path, flags = "r", mode) {
      const way = wordsOf(flags);
      if (way.includes("x")) fs.writeFileSync(path, "", { flag: "wx", mode });
      else if (way.startsWith("w")) fs.writeFileSync(path, "", { mode });
      else if (way.startsWith("a")) fs.writeFileSync(path, "", { flag: "a", mode });
      const bytes = way.startsWith("r") || way.startsWith("a") ? fs.readFileSync(path) : new Buffer(0);
      open.set(++last, { path, bytes, at: 0, adds: way.startsWith("a"), writes: !way.startsWith("r") || way.includes("+") });
      return last;
    },
    closeSync: (fd) => void (held(fd), open.delete(Number(fd))),
    readSync(fd, target, offset = 0, length, position) {
      if (offset !== null && typeof offset === "object") ({ offset = 0, length, position } = offset);
      const file = held(fd);
      const from = typeof position === "number" && position >= 0 ? position : file.at;
      const piece = file.bytes.subarray(from, from + Math.min(length ?? target.byteLength - offset, target.byteLength - offset));
      new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(piece, offset);
      if (typeof position !== "number" || position < 0) file.at += piece.length;
      return piece.length;
    },
    writeSync(fd, data, offset, length, position) {
      const file = held(fd);
      if (!file.writes) throw wrong("EBADF", "the file is not open for writing");
      let piece = bytesOf(data);
      let to = position;
      if (typeof data === "string") to = offset;
      else if (typeof offset === "number") piece = piece.subarray(offset, length === undefined || length === null ? undefined : offset + length);
      const whole = typeof to === "number" && !file.adds;
      const from = file.adds ? file.bytes.length : whole ? to : file.at;
      const made = Buffer.alloc(Math.max(file.bytes.length, from + piece.length));
      made.set(file.bytes);
      made.set(piece, from);
      if (from === file.bytes.length) fs.appendFileSync(file.path, piece);
      else fs.writeFileSync(file.path, made);
      file.bytes = made;
      if (!whole) file.at = from + piece.length;
      return piece.length;
    },
    fsyncSync: (fd) => void held(fd),
    fdatasyncSync: (fd) => void held(fd),
    fstatSync: (fd) => fs.statSync(held(fd).path),
    ftruncateSync(fd, length = 0) {
      const file = held(fd);
      file.bytes = Buffer.concat([file.bytes], length);
      fs.writeFileSync(file.path, file.bytes);
    },
  };
  const late = {};
  for (const [name, work] of Object.entries(sync)) {
    late[name.slice(0, -"Sync".length)] = (...given) => {
      const done = given.pop();
      Promise.resolve().then(() => work(...given)).then((value) => done(null, value), done);
    };
  }
  const handle = async (path, flags, mode) => {
    const fd = sync.openSync(path, flags, mode);
    const own = {
      fd,
      read: async (target, ...rest) => ({ bytesRead: sync.readSync(fd, target, ...rest), buffer: target }),
      write: async (data, ...rest) => ({ bytesWritten: sync.writeSync(fd, data, ...rest), buffer: data }),
      writeFile: async (data) => void sync.writeSync(fd, data),
      appendFile: async (data) => void sync.writeSync(fd, data),
      readFile: (options) => fs.promises.readFile(path, options),
      stat: async () => sync.fstatSync(fd),
      truncate: async (length) => sync.ftruncateSync(fd, length),
      sync: async () => {},
      datasync: async () => {},
      close: async () => open.has(fd) && sync.closeSync(fd),
    };
    own[Symbol.asyncDispose ?? Symbol.for("asyncDispose")] = own.close;
    return own;
  };
  return { ...sync, ...late, handle };
})
