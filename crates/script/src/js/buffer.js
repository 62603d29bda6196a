// Bytes in the manner of Node.
(({ H, part }) => {
  const { bytesOf, latin } = part("text");

  class Buffer extends Uint8Array {
    static from(value, encoding) {
      if (typeof value === "string") return Buffer.#of(decode(value, encoding));
      if (value instanceof ArrayBuffer) return new Buffer(value);
      if (value?.type === "Buffer" && Array.isArray(value.data)) value = value.data;
      const made = new Buffer(value.length);
      made.set(value);
      return made;
    }
    static #of(bytes) {
      return new Buffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    static alloc(size, fill) {
      const made = new Buffer(size);
      return fill === undefined ? made : made.fill(typeof fill === "string" ? fill.charCodeAt(0) : fill);
    }
    static allocUnsafe(size) {
      return new Buffer(size);
    }
    static concat(list, total) {
      const made = new Buffer(total ?? list.reduce((sum, b) => sum + b.length, 0));
      let at = 0;
      for (const bytes of list) {
        made.set(bytes.subarray(0, Math.max(0, made.length - at)), at);
        at += bytes.length;
      }
      return made;
    }
    static isBuffer(value) {
      return value instanceof Buffer;
    }
    static byteLength(value, encoding) {
      return typeof value === "string" ? decode(value, encoding).length : value.byteLength;
    }
    static compare(a, b) {
      return a.compare(b);
    }
    toString(encoding = "utf8", from = 0, to = this.length) {
      const bytes = this.subarray(from, to);
      switch (encoding.toLowerCase()) {
        case "hex":
          return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
        case "base64":
          return H.encodeBase64(new Uint8Array(bytes));
        case "base64url":
          return H.encodeBase64(new Uint8Array(bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
        case "latin1":
        case "binary":
        case "ascii":
          return latin(bytes);
        default:
          return H.text(new Uint8Array(bytes));
      }
    }
    toJSON() {
      return { type: "Buffer", data: [...this] };
    }
    equals(other) {
      return this.compare(other) === 0;
    }
    compare(other) {
      for (let i = 0; i < Math.min(this.length, other.length); i++) if (this[i] !== other[i]) return this[i] < other[i] ? -1 : 1;
      return Math.sign(this.length - other.length);
    }
    write(text, at = 0) {
      const bytes = decode(text);
      this.set(bytes.subarray(0, this.length - at), at);
      return Math.min(bytes.length, this.length - at);
    }
    slice(from, to) {
      return this.subarray(from, to);
    }
    copy(target, at = 0, from = 0, to = this.length) {
      target.set(this.subarray(from, to), at);
      return to - from;
    }
    indexOf(value, from = 0) {
      if (typeof value === "number") return super.indexOf(value, from);
      const wanted = typeof value === "string" ? decode(value) : value;
      outer: for (let i = from; i <= this.length - wanted.length; i++) {
        for (let j = 0; j < wanted.length; j++) if (this[i + j] !== wanted[j]) continue outer;
        return i;
      }
      return -1;
    }
    includes(value, from) {
      return this.indexOf(value, from) >= 0;
    }
    static isEncoding(name) {
      return ["utf8", "utf-8", "hex", "base64", "base64url", "latin1", "binary", "ascii"].includes(String(name).toLowerCase());
    }
    readUInt8(at = 0) {
      return this[at];
    }
    readUInt32BE(at = 0) {
      return new DataView(this.buffer, this.byteOffset).getUint32(at);
    }
    readUInt32LE(at = 0) {
      return new DataView(this.buffer, this.byteOffset).getUint32(at, true);
    }
  }
  const decode = (text, encoding = "utf8") => {
    switch (String(encoding).toLowerCase()) {
      case "hex":
        return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
      case "base64":
      case "base64url":
        return H.decodeBase64(text.replaceAll("-", "+").replaceAll("_", "/").replace(/\s|=+$/g, ""));
      case "latin1":
      case "binary":
      case "ascii":
        return Uint8Array.from(text, (c) => c.charCodeAt(0));
      default:
        return H.utf8(text);
    }
  };
  return { Buffer, decode };
})
