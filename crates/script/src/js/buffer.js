// Bytes in the manner of Node. What Node refuses is refused: wrong bytes would go unnoticed.
(({ H, part }) => {
  const { latin } = part("text");

  const fail = (Kind, code, message) => Object.assign(new Kind(message), { code });
  const outOfRange = (what) => fail(RangeError, "ERR_OUT_OF_RANGE", `${what} is out of range`);
  const NAMES = { utf8: "utf8", "utf-8": "utf8", hex: "hex", base64: "base64", base64url: "base64url", latin1: "latin1", binary: "latin1", ascii: "ascii", utf16le: "utf16le", "utf-16le": "utf16le", ucs2: "utf16le", "ucs-2": "utf16le" };
  const known = (encoding) => {
    const name = encoding === undefined || encoding === "" ? "utf8" : NAMES[String(encoding).toLowerCase()];
    if (!name) throw fail(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`);
    return name;
  };
  const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  // Whatever is no base64 is passed over, and what is left over of a last byte with it.
  const base64 = (text) => {
    let given = text.split("=", 1)[0].replaceAll("-", "+").replaceAll("_", "/").replace(/[^A-Za-z0-9+/]/g, "");
    const rest = given.length % 4;
    if (rest === 1) given = given.slice(0, -1);
    else if (rest) given = given.slice(0, -1) + ALPHABET[ALPHABET.indexOf(given.at(-1)) & (rest === 2 ? 0x30 : 0x3c)];
    return H.decodeBase64(given);
  };
  const decode = (text, encoding) => {
    switch (known(encoding)) {
      case "hex": {
        const bytes = new Uint8Array(text.length >> 1);
        let count = 0;
        for (; count < bytes.length; count++) {
          const pair = text.slice(2 * count, 2 * count + 2);
          if (!/^[0-9a-f]{2}$/i.test(pair)) break;
          bytes[count] = Number.parseInt(pair, 16);
        }
        return bytes.subarray(0, count);
      }
      case "base64":
      case "base64url":
        return base64(text);
      case "latin1":
      case "ascii": {
        const bytes = new Uint8Array(text.length);
        for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
        return bytes;
      }
      case "utf16le": {
        const bytes = new Uint8Array(text.length * 2);
        for (let i = 0; i < text.length; i++) {
          bytes[2 * i] = text.charCodeAt(i);
          bytes[2 * i + 1] = text.charCodeAt(i) >> 8;
        }
        return bytes;
      }
      default:
        return H.utf8(text);
    }
  };
  const wide = (bytes) => {
    let text = "";
    for (let i = 0; i + 1 < bytes.length; i += 2) text += String.fromCharCode(bytes[i] | (bytes[i + 1] << 8));
    return text;
  };
  const clamp = (value, otherwise, most) => Math.min(Math.max(value === undefined ? otherwise : Math.trunc(value) || 0, 0), most);

  class Buffer extends Uint8Array {
    static from(value, encoding, length) {
      if (typeof value === "string") return Buffer.#of(decode(value, encoding));
      if (value instanceof ArrayBuffer) return new Buffer(value, encoding, length);
      if (value?.type === "Buffer" && Array.isArray(value.data)) value = value.data;
      if (value instanceof String) return Buffer.from(value.valueOf(), encoding);
      if (value === null || typeof value !== "object" || (value.length === undefined && !(value.buffer instanceof ArrayBuffer)))
        throw fail(TypeError, "ERR_INVALID_ARG_TYPE", "The first argument must be of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object");
      const made = new Buffer(Number(value.length) || 0);
      made.set(made.length ? value : []);
      return made;
    }
    static #of(bytes) {
      return new Buffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    static alloc(size, fill, encoding) {
      if (typeof size !== "number") throw fail(TypeError, "ERR_INVALID_ARG_TYPE", 'The "size" argument must be of type number');
      if (!(size >= 0)) throw outOfRange("size");
      const made = new Buffer(size);
      return fill === undefined || fill === 0 ? made : made.fill(fill, encoding);
    }
    static allocUnsafe(size) {
      return Buffer.alloc(size);
    }
    static allocUnsafeSlow(size) {
      return Buffer.alloc(size);
    }
    static concat(list, total) {
      const made = new Buffer(total ?? list.reduce((sum, b) => sum + b.length, 0));
      let at = 0;
      for (const bytes of list) {
        made.set(bytes.subarray(0, Math.max(0, made.length - at)), Math.min(at, made.length));
        at += bytes.length;
      }
      return made;
    }
    static isBuffer(value) {
      return value instanceof Buffer;
    }
    static isEncoding(name) {
      return typeof name === "string" && NAMES[name.toLowerCase()] !== undefined;
    }
    static byteLength(value, encoding) {
      return typeof value === "string" ? decode(value, Buffer.isEncoding(encoding) ? encoding : "utf8").length : value.byteLength;
    }
    static compare(a, b) {
      return Buffer.prototype.compare.call(a, b);
    }
    toString(encoding, from, to) {
      from = clamp(from, 0, this.length);
      const bytes = new Uint8Array(this.subarray(from, Math.max(from, clamp(to, this.length, this.length))));
      switch (known(encoding)) {
        case "hex":
          return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
        case "base64":
          return H.encodeBase64(bytes);
        case "base64url":
          return H.encodeBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
        case "latin1":
          return latin(bytes);
        case "ascii":
          return latin(bytes.map((b) => b & 0x7f));
        case "utf16le":
          return wide(bytes);
        default:
          return H.text(bytes);
      }
    }
    toLocaleString(encoding, from, to) {
      return this.toString(encoding, from, to);
    }
    toJSON() {
      return { type: "Buffer", data: [...this] };
    }
    equals(other) {
      return this.compare(other) === 0;
    }
    compare(other, from = 0, to = other.length, ownFrom = 0, ownTo = this.length) {
      const [a, b] = [this.subarray(ownFrom, ownTo), other.subarray(from, to)];
      for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
      return Math.sign(a.length - b.length);
    }
    write(text, at = 0, length, encoding) {
      if (typeof at === "string") [at, encoding] = [0, at];
      else if (typeof length === "string") [length, encoding] = [undefined, length];
      if (at < 0 || at > this.length) throw outOfRange("offset");
      const room = Math.min(length ?? Infinity, this.length - at);
      let bytes = decode(text, encoding);
      if (bytes.length > room) {
        // No half of a character.
        let end = room;
        if (known(encoding) === "utf8") while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--;
        else if (known(encoding) === "utf16le") end -= end % 2;
        bytes = bytes.subarray(0, end);
      }
      this.set(bytes, at);
      return bytes.length;
    }
    fill(value, from = 0, to = this.length, encoding) {
      if (typeof from === "string") [from, encoding] = [0, from];
      else if (typeof to === "string") [to, encoding] = [this.length, to];
      if (from < 0 || to > this.length) throw outOfRange("offset");
      if (typeof value === "string" && value) value = Buffer.from(value, encoding);
      if (!(value instanceof Uint8Array)) return super.fill(typeof value === "string" ? 0 : Number(value) & 255, from, to);
      if (!value.length) throw fail(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'value' is invalid");
      for (let i = from; i < to; i++) this[i] = value[(i - from) % value.length];
      return this;
    }
    slice(from, to) {
      return this.subarray(from, to);
    }
    copy(target, at = 0, from = 0, to = this.length) {
      if (at < 0 || from < 0 || from > this.length) throw outOfRange("offset");
      const bytes = this.subarray(from, Math.max(from, Math.min(to, from + target.length - at)));
      if (at < target.length) target.set(bytes, at);
      return at < target.length ? bytes.length : 0;
    }
    #find(value, from, encoding, step) {
      if (typeof from === "string") [from, encoding] = [undefined, from];
      const wanted = typeof value === "number" ? [value & 255] : typeof value === "string" ? decode(value, encoding) : value;
      if (!(wanted instanceof Uint8Array) && !Array.isArray(wanted)) throw fail(TypeError, "ERR_INVALID_ARG_TYPE", 'The "value" argument must be one of type number or string or an instance of Buffer or Uint8Array');
      const last = this.length - wanted.length;
      const wide = known(encoding) === "utf16le" && typeof value === "string" ? 2 : 1;
      let at = Number(from);
      if (Number.isNaN(at)) at = step > 0 ? 0 : this.length;
      at = Math.trunc(at);
      if (at < 0) at += this.length;
      if (at < 0 && step < 0) return -1;
      if (!wanted.length) return Math.min(Math.max(at, 0), this.length);
      at = step > 0 ? Math.max(at, 0) : Math.min(at, last);
      outer: for (; at >= 0 && at <= last; at += step) {
        if (at % wide) continue;
        for (let j = 0; j < wanted.length; j++) if (this[at + j] !== wanted[j]) continue outer;
        return at;
      }
      return -1;
    }
    indexOf(value, from, encoding) {
      return this.#find(value, from, encoding, 1);
    }
    lastIndexOf(value, from, encoding) {
      return this.#find(value, from, encoding, -1);
    }
    includes(value, from, encoding) {
      return this.indexOf(value, from, encoding) >= 0;
    }
    #swap(size) {
      if (this.length % size) throw fail(RangeError, "ERR_INVALID_BUFFER_SIZE", `Buffer size must be a multiple of ${size * 8}-bits`);
      for (let i = 0; i < this.length; i += size) this.subarray(i, i + size).reverse();
      return this;
    }
    swap16() {
      return this.#swap(2);
    }
    swap32() {
      return this.#swap(4);
    }
    swap64() {
      return this.#swap(8);
    }
  }
  Buffer.poolSize = 8192;

  // Numbers, in both orders: Node's names, and how many bytes each has.
  const checked = (bytes, at, size) => {
    if (typeof at !== "number") throw fail(TypeError, "ERR_INVALID_ARG_TYPE", 'The "offset" argument must be of type number');
    if (!Number.isInteger(at) || at < 0 || at + size > bytes.length)
      throw bytes.length < size && Number.isInteger(at) ? fail(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", "Attempt to access memory outside buffer bounds") : outOfRange("offset");
    return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  };
  const define = (name, read, write) => {
    for (const given of new Set([name, name.replace("UInt", "Uint")])) {
      Object.defineProperty(Buffer.prototype, `read${given}`, { value: read, writable: true, configurable: true });
      Object.defineProperty(Buffer.prototype, `write${given}`, { value: write, writable: true, configurable: true });
    }
  };
  for (const [name, kind, size] of [["UInt8", "Uint8", 1], ["Int8", "Int8", 1], ["UInt16", "Uint16", 2], ["Int16", "Int16", 2], ["UInt32", "Uint32", 4], ["Int32", "Int32", 4], ["BigUInt64", "BigUint64", 8], ["BigInt64", "BigInt64", 8], ["Float", "Float32", 4], ["Double", "Float64", 8]]) {
    const signed = !name.includes("UInt");
    const fits = (value) => {
      if (size === 8 && name.startsWith("Big")) return value === (signed ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value));
      if (name === "Float" || name === "Double") return true;
      const most = 2 ** (8 * size - (signed ? 1 : 0));
      return !(value >= most) && !(value < (signed ? -most : 0));
    };
    for (const order of size === 1 ? [""] : ["BE", "LE"]) {
      define(name + order, function (at = 0) {
        return checked(this, at, size)[`get${kind}`](at, order === "LE");
      }, function (value, at = 0) {
        if (!fits(value)) throw outOfRange("value");
        checked(this, at, size)[`set${kind}`](at, value, order === "LE");
        return at + size;
      });
    }
  }
  for (const signed of [false, true]) {
    for (const order of ["BE", "LE"]) {
      const counted = (bytes, at, size) => {
        if (!(Number.isInteger(size) && size >= 1 && size <= 6)) throw outOfRange("byteLength");
        checked(bytes, at, size);
        return Array.from({ length: size }, (_, i) => (order === "BE" ? at + i : at + size - 1 - i));
      };
      define(`${signed ? "Int" : "UInt"}${order}`, function (at, size) {
        const value = counted(this, at, size).reduce((sum, i) => sum * 256 + this[i], 0);
        return signed && value >= 2 ** (8 * size - 1) ? value - 2 ** (8 * size) : value;
      }, function (value, at, size) {
        const places = counted(this, at, size).reverse();
        const most = 2 ** (8 * size - (signed ? 1 : 0));
        if (value >= most || value < (signed ? -most : 0)) throw outOfRange("value");
        let rest = value < 0 ? value + 2 ** (8 * size) : value;
        for (const i of places) {
          this[i] = rest % 256;
          rest = Math.floor(rest / 256);
        }
        return at + size;
      });
    }
  }
  return { Buffer, decode };
})
