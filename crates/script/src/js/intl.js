// What is left of `Intl` without the data of all languages: English, and the zone UTC.
(() => {
  const group = (digits) => digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  class NumberFormat {
    constructor(_locale, options = {}) {
      this.options = options;
    }
    format(value) {
      const { style, currency, minimumFractionDigits: least = style === "currency" ? 2 : 0, maximumFractionDigits: most = Math.max(least, style === "currency" ? 2 : style === "percent" ? 0 : 3), useGrouping = true, notation } = this.options;
      let number = Number(value);
      if (!Number.isFinite(number)) return Number.isNaN(number) ? "NaN" : number < 0 ? "-∞" : "∞";
      let tail = style === "percent" ? "%" : "";
      if (style === "percent") number *= 100;
      if (notation === "compact") {
        const step = Math.min(4, Math.floor(Math.log10(Math.max(1, Math.abs(number))) / 3));
        number /= 1000 ** step;
        tail = ["", "K", "M", "B", "T"][step] + tail;
      }
      let [whole, part = ""] = Math.abs(number).toFixed(notation === "compact" ? (Math.abs(number) < 100 && !Number.isInteger(number) ? 1 : 0) : most).split(".");
      while (part.length > least && part.endsWith("0")) part = part.slice(0, -1);
      const mark = style === "currency" ? ({ USD: "$", EUR: "€", GBP: "£", JPY: "¥" }[currency] ?? `${currency} `) : "";
      return `${number < 0 ? "-" : ""}${mark}${useGrouping ? group(whole) : whole}${part ? `.${part}` : ""}${tail}`;
    }
    formatToParts(value) {
      return [{ type: "literal", value: this.format(value) }];
    }
    resolvedOptions() {
      return { locale: "en-US", numberingSystem: "latn", ...this.options };
    }
  }
  const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  class DateTimeFormat {
    constructor(_locale, options = {}) {
      this.options = options;
    }
    formatToParts(value = new Date()) {
      const date = new Date(value);
      if (Number.isNaN(date.getTime())) throw new RangeError("Invalid time value");
      const given = { ...this.options };
      if (given.dateStyle) Object.assign(given, { short: { year: "2-digit", month: "numeric", day: "numeric" }, medium: { year: "numeric", month: "short", day: "numeric" }, long: { year: "numeric", month: "long", day: "numeric" }, full: { weekday: "long", year: "numeric", month: "long", day: "numeric" } }[given.dateStyle]);
      if (given.timeStyle) Object.assign(given, { hour: "numeric", minute: "2-digit" }, given.timeStyle === "short" ? {} : { second: "2-digit" });
      const names = ["weekday", "year", "month", "day", "hour", "minute", "second"];
      if (!names.some((name) => given[name])) Object.assign(given, { year: "numeric", month: "numeric", day: "numeric" });
      const utc = given.timeZone === "UTC";
      const get = (name) => date[`get${utc ? "UTC" : ""}${name}`]();
      const pad = (number, how) => (how === "2-digit" ? String(number % 100).padStart(2, "0") : String(number));
      const long = (list, at, how) => (how === "long" ? list[at] : list[at].slice(0, how === "narrow" ? 1 : 3));
      const parts = [];
      const add = (type, text, before) => {
        if (parts.length && before) parts.push({ type: "literal", value: before });
        parts.push({ type, value: text });
      };
      const words = given.month && !["numeric", "2-digit"].includes(given.month);
      if (given.weekday) add("weekday", long(DAYS, get("Day"), given.weekday));
      if (given.month) add("month", words ? long(MONTHS, get("Month"), given.month) : pad(get("Month") + 1, given.month), given.weekday ? ", " : undefined);
      if (given.day) add("day", pad(get("Date"), given.day), words ? " " : given.month ? "/" : ", ");
      if (given.year) add("year", pad(get("FullYear"), given.year), words ? (given.day ? ", " : " ") : "/");
      const half = given.hour && !(given.hour12 === false || given.hourCycle === "h23");
      if (given.hour) add("hour", pad(half ? get("Hours") % 12 || 12 : get("Hours"), half ? given.hour : "2-digit"), ", ");
      if (given.minute) add("minute", pad(get("Minutes"), "2-digit"), given.hour ? ":" : ", ");
      if (given.second) add("second", pad(get("Seconds"), "2-digit"), ":");
      if (half) add("dayPeriod", get("Hours") < 12 ? "AM" : "PM", " ");
      return parts;
    }
    format(value) {
      return this.formatToParts(value).map((part) => part.value).join("");
    }
    resolvedOptions() {
      return { locale: "en-US", calendar: "gregory", numberingSystem: "latn", timeZone: "UTC", ...this.options };
    }
  }
  class Collator {
    constructor(_locale, options = {}) {
      this.options = options;
      this.compare = (a, b) => {
        const form = (text) => (options.sensitivity === "base" || options.sensitivity === "accent" ? text.toLowerCase() : text);
        const [x, y] = [form(String(a)), form(String(b))];
        if (!options.numeric) return x < y ? -1 : x > y ? 1 : 0;
        const [p, q] = [x.split(/(\d+)/), y.split(/(\d+)/)];
        for (let i = 0; i < Math.min(p.length, q.length); i++) {
          const difference = i % 2 ? Number(p[i]) - Number(q[i]) : p[i] < q[i] ? -1 : p[i] > q[i] ? 1 : 0;
          if (difference) return Math.sign(difference);
        }
        return Math.sign(p.length - q.length);
      };
    }
    resolvedOptions() {
      return { locale: "en-US", ...this.options };
    }
  }
  class Segmenter {
    constructor(_locale, { granularity = "grapheme" } = {}) {
      this.granularity = granularity;
    }
    *segment(text) {
      const pattern = this.granularity === "word" ? /[\p{L}\p{N}_']+|[^]/gu : this.granularity === "sentence" ? /[^.!?]+[.!?]*\s*/g : /\P{M}(?:[\p{M}\u200d\ufe0f]|(?<=\u200d)\P{M})*/gu;
      for (const found of text.matchAll(pattern)) yield { segment: found[0], index: found.index, input: text, isWordLike: /[\p{L}\p{N}]/u.test(found[0]) };
    }
  }
  class PluralRules {
    select(count) {
      return count === 1 ? "one" : "other";
    }
  }
  class RelativeTimeFormat {
    format(value, unit) {
      const count = Math.abs(value);
      const words = `${count} ${String(unit).replace(/s$/, "")}${count === 1 ? "" : "s"}`;
      return value < 0 ? `${words} ago` : `in ${words}`;
    }
  }
  class ListFormat {
    constructor(_locale, { type = "conjunction" } = {}) {
      this.word = type === "disjunction" ? "or" : "and";
    }
    format(list) {
      const all = [...list];
      if (all.length < 3) return all.join(` ${this.word} `);
      return `${all.slice(0, -1).join(", ")}, ${this.word} ${all.at(-1)}`;
    }
  }
  const known = { NumberFormat, DateTimeFormat, Collator, Segmenter, PluralRules, RelativeTimeFormat, ListFormat };
  // Also called without `new`.
  const callable = (Class) => new Proxy(Class, { apply: (_, __, given) => new Class(...given) });
  for (const Class of Object.values(known)) Class.supportedLocalesOf = () => ["en-US"];
  return { ...Object.fromEntries(Object.entries(known).map(([name, Class]) => [name, callable(Class)])), getCanonicalLocales: (given) => [given ?? []].flat(), supportedValuesOf: () => [] };
})
