// Text, bytes and addresses of the web: what almost everything else stands on.
(({ H, DOMException }) => {
  const bytesOf = (value) => {
    if (typeof value === "string") return H.utf8(value);
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return H.utf8(String(value));
  };

  class TextEncoder {
    encoding = "utf-8";
    encode(text = "") {
      return H.utf8(String(text));
    }
    encodeInto(text, target) {
      const bytes = H.utf8(String(text)).subarray(0, target.length);
      target.set(bytes);
      return { read: text.length, written: bytes.length };
    }
  }
  class TextDecoder {
    #rest = new Uint8Array();
    constructor(encoding = "utf-8", { fatal = false } = {}) {
      const name = String(encoding).toLowerCase();
      const known = { "utf-8": "utf-8", utf8: "utf-8", ascii: "latin", latin1: "latin", "iso-8859-1": "latin", "windows-1252": "latin", "utf-16le": "utf-16le", "utf-16": "utf-16le" }[name];
      if (!known) throw new RangeError(`The encoding ${encoding} is not supported`);
      Object.assign(this, { encoding: known === "latin" ? "windows-1252" : known, fatal });
    }
    decode(given, { stream = false } = {}) {
      let bytes = given === undefined ? new Uint8Array() : bytesOf(given).slice();
      if (this.encoding === "windows-1252") return latin(bytes);
      if (this.encoding === "utf-16le") return String.fromCharCode(...new Uint16Array(bytes.buffer, 0, bytes.length >> 1));
      if (this.#rest.length) {
        const whole = new Uint8Array(this.#rest.length + bytes.length);
        whole.set(this.#rest);
        whole.set(bytes, this.#rest.length);
        bytes = whole;
      }
      // A character that is cut in two waits for its other half.
      let cut = bytes.length;
      if (stream) {
        let at = bytes.length - 1;
        while (at > bytes.length - 4 && at >= 0 && (bytes[at] & 0xc0) === 0x80) at--;
        const lead = bytes[at] ?? 0;
        const wants = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
        if (at >= 0 && wants > bytes.length - at) cut = at;
      }
      this.#rest = bytes.slice(cut);
      const text = H.text(bytes.slice(0, cut));
      if (this.fatal && text.includes("\ufffd")) throw new TypeError("The encoded data was not valid for encoding utf-8");
      return text.startsWith("\ufeff") ? text.slice(1) : text;
    }
  }
  const latin = (bytes) => {
    let said = "";
    for (const byte of bytes) said += String.fromCharCode(byte);
    return said;
  };
  const atob = (text) => latin(H.decodeBase64(String(text).replace(/\s+/g, "")));
  const btoa = (text) => {
    const bytes = Uint8Array.from(String(text), (c) => {
      if (c.charCodeAt(0) > 255) throw new DOMException("The string has characters outside of Latin-1", "InvalidCharacterError");
      return c.charCodeAt(0);
    });
    return H.encodeBase64(bytes);
  };

  class URLSearchParams {
    #pairs = [];
    #changed;
    constructor(init = "", changed) {
      this.#changed = changed;
      if (typeof init === "string") {
        for (const piece of init.replace(/^\?/, "").split("&")) {
          if (!piece) continue;
          const cut = piece.indexOf("=");
          const decode = (s) => {
            try {
              return decodeURIComponent(s.replace(/\+/g, " "));
            } catch {
              return s;
            }
          };
          this.#pairs.push(cut < 0 ? [decode(piece), ""] : [decode(piece.slice(0, cut)), decode(piece.slice(cut + 1))]);
        }
      } else {
        const entries = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
        for (const [key, value] of entries) this.#pairs.push([String(key), String(value)]);
      }
    }
    append(key, value) {
      this.#pairs.push([String(key), String(value)]);
      this.#changed?.();
    }
    set(key, value) {
      const first = this.#pairs.findIndex(([k]) => k === key);
      this.#pairs = this.#pairs.filter(([k], index) => k !== key || index === first);
      if (first < 0) this.#pairs.push([String(key), String(value)]);
      else this.#pairs[this.#pairs.findIndex(([k]) => k === key)][1] = String(value);
      this.#changed?.();
    }
    delete(key) {
      this.#pairs = this.#pairs.filter(([k]) => k !== key);
      this.#changed?.();
    }
    get(key) {
      return this.#pairs.find(([k]) => k === key)?.[1] ?? null;
    }
    getAll(key) {
      return this.#pairs.filter(([k]) => k === key).map(([, v]) => v);
    }
    has(key) {
      return this.#pairs.some(([k]) => k === key);
    }
    sort() {
      this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed?.();
    }
    get size() {
      return this.#pairs.length;
    }
    forEach(callback) {
      for (const [key, value] of this.#pairs) callback(value, key, this);
    }
    keys() {
      return this.#pairs.map(([k]) => k)[Symbol.iterator]();
    }
    values() {
      return this.#pairs.map(([, v]) => v)[Symbol.iterator]();
    }
    entries() {
      return this.#pairs.map((pair) => [...pair])[Symbol.iterator]();
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      const encode = (s) => encodeURIComponent(s).replace(/%20/g, "+").replace(/[!'()~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
      return this.#pairs.map(([k, v]) => `${encode(k)}=${encode(v)}`).join("&");
    }
  }
  class URL {
    #parts;
    #params;
    constructor(href, base) {
      const parts = H.url(String(href), base === undefined ? undefined : String(base));
      if (!parts) throw Object.assign(new TypeError(`Invalid URL: ${href}`), { code: "ERR_INVALID_URL" });
      this.#parts = JSON.parse(parts);
    }
    static canParse(href, base) {
      return H.url(String(href), base === undefined ? undefined : String(base)) != null;
    }
    static parse(href, base) {
      return URL.canParse(href, base) ? new URL(href, base) : null;
    }
    #set(changes) {
      const { protocol, username, password, host, pathname, search, hash } = { ...this.#parts, ...changes };
      const login = username ? `${username}${password ? `:${password}` : ""}@` : "";
      const parts = H.url(`${protocol}//${login}${host}${pathname}${search}${hash}`, undefined);
      if (parts) this.#parts = JSON.parse(parts);
    }
    get searchParams() {
      return (this.#params ??= new URLSearchParams(this.search, () => this.#set({ search: this.#params.size ? `?${this.#params}` : "" })));
    }
    get host() {
      return this.#parts.host;
    }
    set host(value) {
      this.#set({ host: value });
    }
    get hostname() {
      return this.#parts.hostname;
    }
    set hostname(value) {
      this.#set({ host: this.port ? `${value}:${this.port}` : value });
    }
    get port() {
      return this.#parts.port;
    }
    set port(value) {
      this.#set({ host: value === "" ? this.hostname : `${this.hostname}:${value}` });
    }
    get search() {
      return this.#parts.search;
    }
    set search(value) {
      this.#params = undefined;
      this.#set({ search: value && !value.startsWith("?") ? `?${value}` : value });
    }
    get hash() {
      return this.#parts.hash;
    }
    set hash(value) {
      this.#set({ hash: value && !value.startsWith("#") ? `#${value}` : value });
    }
    get pathname() {
      return this.#parts.pathname;
    }
    set pathname(value) {
      this.#set({ pathname: value.startsWith("/") ? value : `/${value}` });
    }
    get protocol() {
      return this.#parts.protocol;
    }
    set protocol(value) {
      this.#set({ protocol: value.endsWith(":") ? value : `${value}:` });
    }
    get username() {
      return this.#parts.username;
    }
    get password() {
      return this.#parts.password;
    }
    get origin() {
      return this.#parts.origin;
    }
    get href() {
      return this.#parts.href;
    }
    set href(value) {
      this.#parts = JSON.parse(H.url(String(value), undefined));
    }
    toString() {
      return this.href;
    }
    toJSON() {
      return this.href;
    }
  }

  const began = Date.now();
  const performance = { now: () => Date.now() - began, timeOrigin: began, mark() {}, measure() {} };
  const HASHES = { "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512" };
  const crypto = {
    randomUUID: () => {
      const b = H.random(16);
      b[6] = (b[6] & 0x0f) | 0x40;
      b[8] = (b[8] & 0x3f) | 0x80;
      const hex = [...b].map((x) => x.toString(16).padStart(2, "0")).join("");
      return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
    },
    getRandomValues: (array) => {
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(H.random(array.byteLength));
      return array;
    },
    subtle: {
      digest: async (name, data) => {
        const hash = HASHES[(typeof name === "string" ? name : name.name).toUpperCase()];
        if (!hash) throw new DOMException(`Unrecognized algorithm ${name}`, "NotSupportedError");
        return H.hash(hash, bytesOf(data).slice(), undefined).slice().buffer;
      },
    },
  };
  return { bytesOf, latin, TextEncoder, TextDecoder, atob, btoa, URL, URLSearchParams, performance, crypto };
})
