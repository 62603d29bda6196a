// Node's way to tell of events.
(() => {
  class Emitter {
    #listeners = new Map();
    on(name, listener) {
      this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
      return this;
    }
    addListener(name, listener) {
      return this.on(name, listener);
    }
    prependListener(name, listener) {
      this.#listeners.set(name, [listener, ...(this.#listeners.get(name) ?? [])]);
      return this;
    }
    once(name, listener) {
      const first = (...given) => {
        this.off(name, first);
        listener.apply(this, given);
      };
      first.listener = listener;
      return this.on(name, first);
    }
    off(name, listener) {
      this.#listeners.set(name, (this.#listeners.get(name) ?? []).filter((l) => l !== listener && l.listener !== listener));
      return this;
    }
    removeListener(name, listener) {
      return this.off(name, listener);
    }
    removeAllListeners(name) {
      if (name === undefined) this.#listeners.clear();
      else this.#listeners.delete(name);
      return this;
    }
    emit(name, ...given) {
      const list = this.#listeners.get(name) ?? [];
      if (name === "error" && !list.length) throw given[0];
      for (const listener of list) listener.apply(this, given);
      return list.length > 0;
    }
    listeners(name) {
      return [...(this.#listeners.get(name) ?? [])];
    }
    listenerCount(name) {
      return this.listeners(name).length;
    }
    setMaxListeners() {
      return this;
    }
  }
  Emitter.EventEmitter = Emitter;
  Emitter.once = (emitter, name) => new Promise((resolve, reject) => {
    emitter.once(name, (...given) => resolve(given));
    if (name !== "error") emitter.once("error", reject);
  });
  return Emitter;
})
