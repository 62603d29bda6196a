// Node's small helpers and its assertions.
(({ inspect, format, part }) => {
  const { TextEncoder, TextDecoder } = part("text");
  const CUSTOM = Symbol.for("nodejs.util.promisify.custom");
  const same = (value) => value;
  const promisify = (call) =>
    call[CUSTOM] ?? ((...given) => new Promise((resolve, reject) => call(...given, (error, value) => (error ? reject(error) : resolve(value)))));
  promisify.custom = CUSTOM;
  const isDeepEqual = (a, b) => {
    if (Object.is(a, b)) return true;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    const [x, y] = [Object.keys(a), Object.keys(b)];
    return Array.isArray(a) === Array.isArray(b) && x.length === y.length && x.every((key) => isDeepEqual(a[key], b[key]));
  };
  const util = {
    promisify, inspect: Object.assign((value) => inspect(value), { custom: Symbol.for("nodejs.util.inspect.custom") }), format,
    callbackify: (call) => (...given) => call(...given.slice(0, -1)).then((v) => given.at(-1)(null, v), given.at(-1)),
    inherits: (child, parent) => Object.setPrototypeOf(child.prototype, parent.prototype),
    deprecate: same, isDeepStrictEqual: isDeepEqual, TextEncoder, TextDecoder, debuglog: () => () => {},
    stripVTControlCharacters: (s) => s.replace(/\u001b\[[0-9;]*[A-Za-z]/g, ""),
    styleText: (_style, text) => text, parseArgs: (...given) => part("args")(...given), types: { isPromise: (v) => typeof v?.then === "function", isDate: (v) => v instanceof Date, isRegExp: (v) => v instanceof RegExp },
  };
  const assert = (good, message) => {
    if (!good) throw message instanceof Error ? message : Object.assign(new Error(message ?? "The assertion failed"), { name: "AssertionError", code: "ERR_ASSERTION" });
  };
  const equal = (test) => (a, b, message) => assert(test(a, b), message ?? `${inspect(a, 1)} and ${inspect(b, 1)} differ`);
  Object.assign(assert, {
    ok: assert, equal: equal((a, b) => a == b), strictEqual: equal(Object.is), deepEqual: equal(isDeepEqual), deepStrictEqual: equal(isDeepEqual),
    notStrictEqual: (a, b, m) => assert(!Object.is(a, b), m), fail: (m) => assert(false, m),
  });
  assert.strict = assert;
  return { util, assert };
})
