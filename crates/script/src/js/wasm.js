// There is no WebAssembly. Packages that carry a piece of it load all the same, and hear so when they use it: most of
// them can do without.
(() => {
  const fail = () => {
    throw new Error("WebAssembly is not available in Toolwright's script engine");
  };
  const refused = async () => fail();
  const exported = () => new Proxy({}, { get: (own, name) => (typeof name === "string" && name !== "then" ? fail : own[name]) });
  class Module {
    static exports() {
      return [];
    }
    static imports() {
      return [];
    }
    static customSections() {
      return [];
    }
  }
  class Instance {
    exports = exported();
  }
  class Absent {
    constructor() {
      fail();
    }
  }
  return { Module, Instance, Memory: Absent, Table: Absent, Global: Absent, CompileError: class extends Error {}, LinkError: class extends Error {}, RuntimeError: class extends Error {}, validate: () => false, compile: refused, instantiate: refused, compileStreaming: refused, instantiateStreaming: refused };
})
