// Node's hashes and randomness.
(({ H, part }) => {
  const { Buffer, decode } = part("buffer");
  const { bytesOf } = part("text");

  const hashOf = (algorithm, key) => {
    const pieces = [];
    const made = {
      update(data, encoding) {
        pieces.push(typeof data === "string" ? decode(data, encoding) : bytesOf(data));
        return made;
      },
      digest(encoding) {
        const bytes = Buffer.from(H.hash(String(algorithm).toLowerCase().replace("-", ""), new Uint8Array(Buffer.concat(pieces)), key));
        return encoding ? bytes.toString(encoding) : bytes;
      },
    };
    return made;
  };
  const webCrypto = part("text").crypto;
  const crypto = {
    createHash: (algorithm) => hashOf(algorithm, undefined),
    createHmac: (algorithm, key) => hashOf(algorithm, typeof key === "string" ? H.utf8(key) : bytesOf(key).slice()),
    randomBytes: (size) => Buffer.from(H.random(size)),
    randomUUID: webCrypto.randomUUID,
    randomInt: (low, high) => {
      const [from, to] = high === undefined ? [0, low] : [low, high];
      return from + (Buffer.from(H.random(4)).readUInt32BE() % (to - from));
    },
    getRandomValues: webCrypto.getRandomValues,
    randomFillSync: (array) => (webCrypto.getRandomValues(array), array),
    randomFill: (array, done) => (webCrypto.getRandomValues(array), queueMicrotask(() => done(null, array))),
    getHashes: () => ["md5", "sha1", "sha256", "sha384", "sha512"],
    hash: (algorithm, data, encoding = "hex") => hashOf(algorithm, undefined).update(data).digest(encoding),
    timingSafeEqual: (a, b) => Buffer.from(a).equals(Buffer.from(b)),
    subtle: webCrypto.subtle,
    webcrypto: webCrypto,
  };
  return crypto;
})
