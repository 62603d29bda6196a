// Schemas in the manner of Zod: what custom tools use to say what their arguments are. Written for
// this engine; each schema can check and change a value, and can say itself as JSON Schema.
(({ part }) => {
  class ZodError extends Error {
    constructor(issues) {
      super();
      this.name = "ZodError";
      this.issues = issues;
      this.message = issues
        .map((issue) => (issue.path.length ? `${issue.path.join(".")}: ` : "") + issue.message)
        .join("\n");
    }
    get errors() {
      return this.issues;
    }
    format() {
      const root = { _errors: [] };
      for (const issue of this.issues) {
        let at = root;
        for (const key of issue.path) at = at[key] ??= { _errors: [] };
        at._errors.push(issue.message);
      }
      return root;
    }
    flatten() {
      const flat = { formErrors: [], fieldErrors: {} };
      for (const issue of this.issues) {
        if (issue.path.length) (flat.fieldErrors[issue.path[0]] ??= []).push(issue.message);
        else flat.formErrors.push(issue.message);
      }
      return flat;
    }
  }

  const kindOf = (value) => {
    if (value === null) return "null";
    if (Array.isArray(value)) return "array";
    if (value instanceof Date) return "date";
    if (value instanceof Map) return "map";
    if (value instanceof Set) return "set";
    if (typeof value === "number" && Number.isNaN(value)) return "nan";
    return typeof value;
  };
  const bad = (code, message, path = [], more = {}) => ({ code, message, path, ...more });
  const wrongType = (expected, value) =>
    bad("invalid_type", `Invalid input: expected ${expected}, received ${kindOf(value)}`, [], {
      expected,
      received: kindOf(value),
    });
  const wordsOf = (given, fallback) => {
    if (typeof given === "string") return given;
    const said = given?.message ?? given?.error;
    if (typeof said === "string") return said;
    return typeof said === "function" ? said() : fallback;
  };
  const isPromise = (value) => value !== null && typeof value === "object" && typeof value.then === "function";
  // Goes on with a value that may still be on its way.
  const then = (value, next) => (isPromise(value) ? value.then(next) : next(value));
  const ok = (value) => ({ value });
  const fail = (...issues) => ({ issues });
  const at = (key, result) =>
    result.issues ? { issues: result.issues.map((i) => ({ ...i, path: [key, ...i.path] })) } : result;

  class Schema {
    // `run(value)` gives {value} or {issues}, or a promise of one.
    constructor(def) {
      this._def = def;
    }
    with(changes) {
      const copy = Object.create(Object.getPrototypeOf(this));
      copy._def = { ...this._def, ...changes };
      return copy;
    }
    get description() {
      return this._def.meta?.description;
    }
    // Where others look for what a schema is, and leave their own way of saying it as JSON Schema.
    get _zod() {
      const side = { def: this._def };
      Object.defineProperty(this, "_zod", { value: side });
      return side;
    }
    get def() {
      return this._def;
    }
    describe(description) {
      return this.with({ meta: { ...this._def.meta, description } });
    }
    meta(meta) {
      return meta === undefined ? this._def.meta : this.with({ meta: { ...this._def.meta, ...meta } });
    }
    register() {
      return this;
    }
    check(test) {
      return this.with({ checks: [...(this._def.checks ?? []), test] });
    }
    base(value) {
      return ok(value);
    }
    run(value) {
      const checks = this._def.checks ?? [];
      const step = (result, index) => {
        if (result.issues || index === checks.length) return result;
        return then(checks[index](result.value), (outcome) => {
          const next = outcome ?? result;
          if (next.issues && !next.abort) {
            // The other checks may find more to say.
            const rest = step(result, index + 1);
            return then(rest, (r) => ({ issues: [...next.issues, ...(r.issues ?? [])] }));
          }
          return step(next, index + 1);
        });
      };
      return then(this.base(value), (result) => step(result, 0));
    }
    safeParse(value) {
      const result = this.run(value);
      if (isPromise(result)) throw new Error("Encountered Promise during synchronous parse. Use .parseAsync() instead.");
      return finish(result);
    }
    async safeParseAsync(value) {
      return finish(await this.run(value));
    }
    spa(value) {
      return this.safeParseAsync(value);
    }
    parse(value) {
      const result = this.safeParse(value);
      if (!result.success) throw result.error;
      return result.data;
    }
    async parseAsync(value) {
      const result = await this.safeParseAsync(value);
      if (!result.success) throw result.error;
      return result.data;
    }
    refine(test, words) {
      return this.check((value) =>
        then(test(value), (good) => {
          if (good) return undefined;
          const options = typeof words === "function" ? words(value) : words;
          const path = options?.path ?? [];
          return fail(bad("custom", wordsOf(options, "Invalid input"), path, { params: options?.params }));
        }),
      );
    }
    superRefine(test) {
      return this.check((value) => {
        const issues = [];
        const context = {
          value,
          issues,
          path: [],
          addIssue: (issue) =>
            issues.push(typeof issue === "string" ? bad("custom", issue) : { code: "custom", message: "Invalid input", path: [], ...issue }),
        };
        return then(test(value, context), () => (issues.length ? fail(...issues) : undefined));
      });
    }
    overwrite(change) {
      return this.check((value) => then(change(value), ok));
    }
    transform(change) {
      return new Transform({ inner: this, change });
    }
    pipe(next) {
      return new Pipe({ inner: this, next });
    }
    optional() {
      return new Optional({ inner: this });
    }
    exactOptional() {
      return this.optional();
    }
    nullable() {
      return new Nullable({ inner: this });
    }
    nullish() {
      return this.nullable().optional();
    }
    default(value) {
      return new Default({ inner: this, value, early: false });
    }
    prefault(value) {
      return new Default({ inner: this, value, early: true });
    }
    catch(value) {
      return new Catch({ inner: this, value });
    }
    array() {
      return z.array(this);
    }
    or(other) {
      return z.union([this, other]);
    }
    and(other) {
      return z.intersection(this, other);
    }
    brand() {
      return this;
    }
    readonly() {
      return this;
    }
    isOptional() {
      return this.safeParse(undefined).success;
    }
    isNullable() {
      return this.safeParse(null).success;
    }
    clone() {
      return this.with({});
    }
    json() {
      return {};
    }
    toJSONSchema() {
      return toJSONSchema(this);
    }
  }
  const finish = (result) =>
    result.issues ? { success: false, error: new ZodError(result.issues) } : { success: true, data: result.value };

  // Schemas around another one.
  class Around extends Schema {
    unwrap() {
      return this._def.inner;
    }
    innerType() {
      return this._def.inner;
    }
    json() {
      return toJSON(this._def.inner);
    }
  }
  class Optional extends Around {
    base(value) {
      return value === undefined ? ok(value) : this._def.inner.run(value);
    }
  }
  class Nullable extends Around {
    base(value) {
      return value === null ? ok(value) : this._def.inner.run(value);
    }
    json() {
      const inner = toJSON(this._def.inner);
      return typeof inner.type === "string" && !inner.enum && inner.const === undefined
        ? { ...inner, type: [inner.type, "null"] }
        : { anyOf: [inner, { type: "null" }] };
    }
  }
  class Default extends Around {
    base(value) {
      if (value !== undefined) return this._def.inner.run(value);
      const { value: given } = this._def;
      const made = typeof given === "function" ? given() : given;
      return this._def.early ? this._def.inner.run(made) : ok(made);
    }
    removeDefault() {
      return this._def.inner;
    }
    json() {
      const { value: given } = this._def;
      return { ...toJSON(this._def.inner), default: typeof given === "function" ? given() : given };
    }
  }
  class Catch extends Around {
    base(value) {
      return then(this._def.inner.run(value), (result) => {
        if (!result.issues) return result;
        const { value: given } = this._def;
        return ok(typeof given === "function" ? given({ input: value, error: new ZodError(result.issues) }) : given);
      });
    }
  }
  class Transform extends Around {
    base(value) {
      return then(this._def.inner.run(value), (result) => {
        if (result.issues) return result;
        const issues = [];
        const addIssue = (issue) =>
          issues.push(typeof issue === "string" ? bad("custom", issue) : { code: "custom", message: "Invalid input", path: [], ...issue });
        const changed = this._def.change(result.value, { addIssue, issues, path: [], value: result.value });
        return then(changed, (made) => (issues.length ? fail(...issues) : ok(made)));
      });
    }
  }
  class Pipe extends Around {
    base(value) {
      return then(this._def.inner.run(value), (result) => (result.issues ? result : this._def.next.run(result.value)));
    }
    json() {
      return toJSON(this._def.inner instanceof Preprocess ? this._def.next : this._def.inner);
    }
  }
  class Preprocess extends Schema {
    base(value) {
      return then(this._def.change(value), ok);
    }
  }
  class Lazy extends Schema {
    get inner() {
      return (this._def.made ??= this._def.make());
    }
    base(value) {
      return this.inner.run(value);
    }
    json() {
      return toJSON(this.inner);
    }
  }

  // Values that are of one type.
  class Plain extends Schema {
    base(value) {
      if (this._def.coerce) value = this._def.coerce(value);
      return this._def.is(value) ? ok(value) : fail(wrongTypeOf(this, value));
    }
    json() {
      return { ...(this._def.json ?? {}), ...(this._def.limits ?? {}) };
    }
    limit(limits, test, message, code = "custom") {
      const words = message;
      return this.with({ limits: { ...this._def.limits, ...limits } }).check((value) =>
        test(value) ? undefined : fail(bad(code, words)),
      );
    }
  }
  const wrongTypeOf = (schema, value) => {
    const issue = wrongType(schema._def.type, value);
    const own = schema._def.words;
    return own ? { ...issue, message: typeof own === "function" ? own(issue) : own } : issue;
  };

  const EMAIL = /^[A-Za-z0-9_'+\-.]*[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z]{2,}$/;
  const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
  const DATE = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
  const TIME = /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?$/;
  const DATE_TIME = /^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$/;
  const IPV4 = /^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)$/;
  const IPV6 = /^[0-9a-f:]+(:[\d.]+)?$/i;

  class Text extends Plain {
    min(n, words) {
      return this.limit({ minLength: n }, (s) => s.length >= n, wordsOf(words, `Too small: expected string to have >=${n} characters`), "too_small");
    }
    max(n, words) {
      return this.limit({ maxLength: n }, (s) => s.length <= n, wordsOf(words, `Too big: expected string to have <=${n} characters`), "too_big");
    }
    length(n, words) {
      return this.limit({ minLength: n, maxLength: n }, (s) => s.length === n, wordsOf(words, `Expected string to have ${n} characters`));
    }
    nonempty(words) {
      return this.min(1, words);
    }
    form(format, test, words) {
      return this.limit({ format }, test, wordsOf(words, `Invalid ${format}`), "invalid_format");
    }
    regex(pattern, words) {
      const test = (s) => new RegExp(pattern.source, pattern.flags.replace("g", "")).test(s);
      return this.limit({ pattern: pattern.source }, test, wordsOf(words, `Invalid string: must match pattern ${pattern}`), "invalid_format");
    }
    startsWith(s, words) {
      return this.limit({}, (v) => v.startsWith(s), wordsOf(words, `Invalid string: must start with "${s}"`));
    }
    endsWith(s, words) {
      return this.limit({}, (v) => v.endsWith(s), wordsOf(words, `Invalid string: must end with "${s}"`));
    }
    includes(s, words) {
      return this.limit({}, (v) => v.includes(s), wordsOf(words, `Invalid string: must include "${s}"`));
    }
    email(words) {
      return this.form("email", (s) => EMAIL.test(s), words);
    }
    url(words) {
      return this.form("uri", isURL, words);
    }
    uuid(words) {
      return this.form("uuid", (s) => UUID.test(s), words);
    }
    guid(words) {
      return this.uuid(words);
    }
    date(words) {
      return this.form("date", (s) => DATE.test(s), words);
    }
    time(words) {
      return this.form("time", (s) => TIME.test(s), words);
    }
    datetime(words) {
      return this.form("date-time", (s) => DATE_TIME.test(s), words);
    }
    ipv4(words) {
      return this.form("ipv4", (s) => IPV4.test(s), words);
    }
    ipv6(words) {
      return this.form("ipv6", (s) => s.includes(":") && IPV6.test(s), words);
    }
    ip(words) {
      return this.limit({}, (s) => IPV4.test(s) || (s.includes(":") && IPV6.test(s)), wordsOf(words, "Invalid IP address"));
    }
    base64(words) {
      return this.form("base64", (s) => s.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(s), words);
    }
    trim() {
      return this.overwrite((s) => s.trim());
    }
    toLowerCase() {
      return this.overwrite((s) => s.toLowerCase());
    }
    toUpperCase() {
      return this.overwrite((s) => s.toUpperCase());
    }
    normalize(form) {
      return this.overwrite((s) => s.normalize(form));
    }
  }
  const isURL = (text) => {
    try {
      new URL(text);
      return true;
    } catch {
      return false;
    }
  };

  class Numeric extends Plain {
    gte(n, words) {
      return this.limit({ minimum: Number(n) }, (v) => v >= n, wordsOf(words, `Too small: expected number to be >=${n}`), "too_small");
    }
    lte(n, words) {
      return this.limit({ maximum: Number(n) }, (v) => v <= n, wordsOf(words, `Too big: expected number to be <=${n}`), "too_big");
    }
    gt(n, words) {
      return this.limit({ exclusiveMinimum: Number(n) }, (v) => v > n, wordsOf(words, `Too small: expected number to be >${n}`), "too_small");
    }
    lt(n, words) {
      return this.limit({ exclusiveMaximum: Number(n) }, (v) => v < n, wordsOf(words, `Too big: expected number to be <${n}`), "too_big");
    }
    min(n, words) {
      return this.gte(n, words);
    }
    max(n, words) {
      return this.lte(n, words);
    }
    int(words) {
      return this.limit({ type: "integer" }, Number.isSafeInteger, wordsOf(words, "Invalid input: expected int, received number"), "invalid_type");
    }
    safe(words) {
      return this.int(words);
    }
    positive(words) {
      return this.gt(0, words);
    }
    nonnegative(words) {
      return this.gte(0, words);
    }
    negative(words) {
      return this.lt(0, words);
    }
    nonpositive(words) {
      return this.lte(0, words);
    }
    multipleOf(n, words) {
      const near = (v) => Math.abs(v / n - Math.round(v / n)) < 1e-9;
      return this.limit({ multipleOf: n }, near, wordsOf(words, `Invalid number: must be a multiple of ${n}`));
    }
    step(n, words) {
      return this.multipleOf(n, words);
    }
    finite() {
      return this;
    }
  }
  class Moment extends Plain {
    min(date, words) {
      return this.limit({}, (v) => v >= date, wordsOf(words, "Too small: the date is too early"), "too_small");
    }
    max(date, words) {
      return this.limit({}, (v) => v <= date, wordsOf(words, "Too big: the date is too late"), "too_big");
    }
  }

  class OneOf extends Schema {
    base(value) {
      const { values } = this._def;
      if (values.includes(value)) return ok(value);
      const said = values.map((v) => JSON.stringify(v)).join("|");
      const message = wordsOf(this._def.words, values.length === 1 ? `Invalid input: expected ${said}` : `Invalid option: expected one of ${said}`);
      return fail(bad("invalid_value", message, [], { values }));
    }
    get options() {
      return this._def.values;
    }
    get value() {
      return this._def.values[0];
    }
    get enum() {
      return this._def.names ?? Object.fromEntries(this._def.values.map((v) => [v, v]));
    }
    extract(names) {
      return z.enum(this._def.values.filter((v) => names.includes(v)));
    }
    exclude(names) {
      return z.enum(this._def.values.filter((v) => !names.includes(v)));
    }
    json() {
      const { values } = this._def;
      const types = [...new Set(values.map((v) => kindOf(v)))];
      const type = types.length === 1 ? { type: types[0] } : {};
      return values.length === 1 && this._def.literal ? { ...type, const: values[0] } : { ...type, enum: values };
    }
  }

  class List extends Plain {
    base(value) {
      if (!Array.isArray(value)) return fail(wrongTypeOf(this, value));
      return gather(value.map((item, index) => [index, this._def.item.run(item)]), () => []);
    }
    get element() {
      return this._def.item;
    }
    min(n, words) {
      return this.limit({ minItems: n }, (v) => v.length >= n, wordsOf(words, `Too small: expected array to have >=${n} items`), "too_small");
    }
    max(n, words) {
      return this.limit({ maxItems: n }, (v) => v.length <= n, wordsOf(words, `Too big: expected array to have <=${n} items`), "too_big");
    }
    length(n, words) {
      return this.min(n, words).max(n, words);
    }
    nonempty(words) {
      return this.min(1, words);
    }
    json() {
      return { type: "array", items: toJSON(this._def.item), ...this._def.limits };
    }
  }
  class Tuple extends Schema {
    rest(schema) {
      return this.with({ rest: schema });
    }
    base(value) {
      if (!Array.isArray(value)) return fail(wrongType("tuple", value));
      const { items, rest } = this._def;
      if (value.length < items.filter((i) => !i.isOptional()).length) return fail(bad("too_small", `Too small: expected array to have >=${items.length} items`));
      if (value.length > items.length && !rest) return fail(bad("too_big", `Too big: expected array to have <=${items.length} items`));
      const length = Math.max(value.length, items.length);
      const pairs = Array.from({ length }, (_, i) => [i, (items[i] ?? rest).run(value[i])]);
      return gather(pairs, () => []);
    }
    json() {
      const { items, rest } = this._def;
      return { type: "array", prefixItems: items.map(toJSON), items: rest ? toJSON(rest) : false, minItems: items.length };
    }
  }
  // Puts the parts of a value together again, or their issues.
  const gather = (pairs, make) => {
    const collect = (results) => {
      const issues = results.flatMap(([key, result]) => at(key, result).issues ?? []);
      if (issues.length) return { issues };
      const whole = make();
      for (const [key, result] of results) if (result.value !== undefined || result.keep || Array.isArray(whole)) whole[key] = result.value;
      return ok(whole);
    };
    if (!pairs.some(([, result]) => isPromise(result))) return collect(pairs);
    return Promise.all(pairs.map(async ([key, result]) => [key, await result])).then(collect);
  };

  class Shape extends Schema {
    get shape() {
      return this._def.shape;
    }
    base(value) {
      if (value === null || typeof value !== "object" || Array.isArray(value)) return fail(wrongTypeOf(this, value));
      const { shape, unknown, rest } = this._def;
      const pairs = Object.entries(shape).map(([key, schema]) => [key, schema.run(value[key])]);
      const extra = Object.keys(value).filter((key) => !Object.hasOwn(shape, key));
      if (rest) pairs.push(...extra.map((key) => [key, rest.run(value[key])]));
      else if (unknown === "keep") pairs.push(...extra.map((key) => [key, { ...ok(value[key]), keep: true }]));
      else if (unknown === "refuse" && extra.length) {
        const said = extra.map((key) => JSON.stringify(key)).join(", ");
        pairs.push([undefined, fail(bad("unrecognized_keys", `Unrecognized key${extra.length > 1 ? "s" : ""}: ${said}`, [], { keys: extra }))]);
        return then(gather(pairs, () => ({})), (r) => ({ issues: r.issues.map((i) => (i.path[0] === undefined ? { ...i, path: [] } : i)) }));
      }
      return gather(pairs, () => ({}));
    }
    strict() {
      return this.with({ unknown: "refuse", rest: undefined });
    }
    strip() {
      return this.with({ unknown: undefined, rest: undefined });
    }
    passthrough() {
      return this.with({ unknown: "keep" });
    }
    loose() {
      return this.passthrough();
    }
    catchall(rest) {
      return this.with({ rest });
    }
    extend(shape) {
      return this.with({ shape: { ...this._def.shape, ...(shape instanceof Shape ? shape.shape : shape) }, checks: [] });
    }
    safeExtend(shape) {
      return this.extend(shape);
    }
    augment(shape) {
      return this.extend(shape);
    }
    merge(other) {
      return this.extend(other.shape);
    }
    setKey(key, schema) {
      return this.extend({ [key]: schema });
    }
    select(keep) {
      return this.with({ shape: Object.fromEntries(Object.entries(this._def.shape).filter(([key]) => keep(key))) });
    }
    pick(mask) {
      return this.select((key) => mask[key]);
    }
    omit(mask) {
      return this.select((key) => !mask[key]);
    }
    change(mask, make) {
      const changed = Object.entries(this._def.shape).map(([key, s]) => [key, !mask || mask[key] ? make(s) : s]);
      return this.with({ shape: Object.fromEntries(changed) });
    }
    partial(mask) {
      return this.change(mask, (s) => s.optional());
    }
    deepPartial() {
      return this.change(undefined, (s) => (s instanceof Shape ? s.deepPartial() : s).optional());
    }
    required(mask) {
      return this.change(mask, (s) => (s instanceof Optional ? s.unwrap() : s));
    }
    keyof() {
      return z.enum(Object.keys(this._def.shape));
    }
    json() {
      const { shape, unknown, rest } = this._def;
      const properties = Object.fromEntries(Object.entries(shape).map(([key, s]) => [key, toJSON(s)]));
      const required = Object.entries(shape).filter(([, s]) => !mayBeMissing(s)).map(([key]) => key);
      const schema = { type: "object", properties };
      if (required.length) schema.required = required;
      if (rest) schema.additionalProperties = toJSON(rest);
      else if (unknown === "refuse") schema.additionalProperties = false;
      return schema;
    }
  }
  const mayBeMissing = (schema) => {
    if (schema instanceof Optional || schema instanceof Default || schema instanceof Catch) return true;
    if (schema instanceof Nullable || schema instanceof Transform || schema instanceof Pipe) return mayBeMissing(schema._def.inner);
    if (schema instanceof Preprocess) return false;
    if (schema instanceof Foreign) return schema.isOptional();
    if (schema instanceof Plain && schema._def.type === "any") return true;
    return schema instanceof Union && schema._def.options.some(mayBeMissing);
  };

  class Record extends Schema {
    base(value) {
      if (value === null || typeof value !== "object" || Array.isArray(value)) return fail(wrongType("record", value));
      const pairs = [];
      for (const [key, item] of Object.entries(value)) {
        const name = this._def.key.run(key);
        if (name.issues) pairs.push([key, fail(bad("invalid_key", `Invalid key in record: ${name.issues[0].message}`))]);
        else pairs.push([name.value, this._def.value.run(item)]);
      }
      return gather(pairs, () => ({}));
    }
    json() {
      const { key, value } = this._def;
      const names = key instanceof OneOf ? { propertyNames: toJSON(key) } : {};
      return { type: "object", ...names, additionalProperties: toJSON(value) };
    }
  }
  class Union extends Schema {
    base(value) {
      const { options, key } = this._def;
      if (key) {
        const option = options.find((o) => {
          const literal = o._def.shape?.[key];
          return literal && !literal.run(value?.[key]).issues;
        });
        if (option) return option.run(value);
        return fail(bad("invalid_union", "Invalid input", [key], { note: "No matching discriminator" }));
      }
      const tried = [];
      const next = (index) => {
        if (index === options.length) {
          const closest = tried.reduce((a, b) => (b.length < a.length ? b : a), tried[0] ?? []);
          const same = tried.length === 1 || tried.every((t) => t.length === 1 && t[0].path.length === 0);
          return same ? fail(bad("invalid_union", tried.map((t) => t[0]?.message).join("; or "), [], { errors: tried })) : { issues: closest };
        }
        return then(options[index].run(value), (result) => {
          if (!result.issues) return result;
          tried.push(result.issues);
          return next(index + 1);
        });
      };
      return next(0);
    }
    get options() {
      return this._def.options;
    }
    json() {
      return { anyOf: this._def.options.map(toJSON) };
    }
  }
  class Both extends Schema {
    base(value) {
      return then(this._def.left.run(value), (left) =>
        then(this._def.right.run(value), (right) => {
          if (left.issues || right.issues) return fail(...(left.issues ?? []), ...(right.issues ?? []));
          const objects = [left.value, right.value].every((v) => v !== null && typeof v === "object" && !Array.isArray(v));
          return ok(objects ? { ...left.value, ...right.value } : left.value);
        }),
      );
    }
    json() {
      return { allOf: [toJSON(this._def.left), toJSON(this._def.right)] };
    }
  }
  class Entries extends Schema {
    base(value) {
      const isMap = this._def.type === "map";
      if (!(value instanceof (isMap ? Map : Set))) return fail(wrongType(this._def.type, value));
      return ok(value);
    }
  }

  // Schemas are nested by people, and a lazy one may hold itself.
  let depth = 0;
  const toJSON = (schema) => {
    if (!(schema instanceof Schema)) return schema?._def || schema?._zod ? foreign(schema) : (schema ?? {});
    if (depth > 24) return {};
    depth += 1;
    try {
      const own = Object.hasOwn(schema, "_zod") ? schema._zod.toJSONSchema : undefined;
      if (typeof own === "function") return own();
      const made = schema.json();
      const { id: _, ...meta } = schema._def.meta ?? {};
      return { ...made, ...meta };
    } finally {
      depth -= 1;
    }
  };
  // A schema of another library that can say itself, or of a Zod that a package brings along.
  const foreign = (schema) => {
    for (const name of ["toJSONSchema", "toJsonSchema"]) {
      if (typeof schema[name] !== "function") continue;
      const { $schema: _, ...said } = schema[name]();
      return said;
    }
    const said = part("foreign")(schema);
    return schema.description ? { ...said, description: schema.description } : said;
  };
  const toJSONSchema = (schema) => ({ $schema: "https://json-schema.org/draft/2020-12/schema", ...toJSON(schema) });

  const plain = (Type, type, is, json, extra = {}) => (given) =>
    new Type({ type, is, json, words: typeof given === "string" ? given : (given?.error ?? given?.message ?? given?.invalid_type_error), meta: given?.description ? { description: given.description } : undefined, ...extra });
  const isNumber = (v) => typeof v === "number" && Number.isFinite(v);
  const isDate = (v) => v instanceof Date && !Number.isNaN(v.getTime());
  const anything = () => true;
  const z = {
    string: plain(Text, "string", (v) => typeof v === "string", { type: "string" }),
    number: plain(Numeric, "number", isNumber, { type: "number" }),
    int: (words) => z.number().int(words),
    bigint: plain(Numeric, "bigint", (v) => typeof v === "bigint", { type: "integer" }),
    boolean: plain(Plain, "boolean", (v) => typeof v === "boolean", { type: "boolean" }),
    date: plain(Moment, "date", isDate, { type: "string", format: "date-time" }),
    any: plain(Plain, "any", anything, {}),
    unknown: plain(Plain, "any", anything, {}),
    null: plain(Plain, "null", (v) => v === null, { type: "null" }),
    undefined: plain(Plain, "undefined", (v) => v === undefined, {}),
    void: plain(Plain, "undefined", (v) => v === undefined, {}),
    never: plain(Plain, "never", () => false, { not: {} }),
    nan: plain(Plain, "nan", (v) => Number.isNaN(v), {}),
    symbol: plain(Plain, "symbol", (v) => typeof v === "symbol", {}),
    function: plain(Plain, "function", (v) => typeof v === "function", {}),
    file: plain(Plain, "file", anything, {}),
    json: plain(Plain, "any", anything, {}),
    literal: (value) => new OneOf({ values: Array.isArray(value) ? value : [value], literal: true }),
    enum: (values, words) =>
      Array.isArray(values) ? new OneOf({ values: [...values], words }) : z.nativeEnum(values, words),
    nativeEnum: (names, words) => {
      // TypeScript's numeric enums name their values both ways.
      const keys = Object.keys(names).filter((key) => typeof names[names[key]] !== "number");
      return new OneOf({ values: keys.map((key) => names[key]), names, words });
    },
    array: (item, words) => new List({ type: "array", item, words: typeof words === "string" ? words : words?.error }),
    tuple: (items, rest) => new Tuple({ items, rest: rest instanceof Schema ? rest : undefined }),
    object: (shape = {}) => new Shape({ type: "object", shape }),
    strictObject: (shape) => z.object(shape).strict(),
    looseObject: (shape) => z.object(shape).passthrough(),
    record: (key, value) => new Record(value ? { key, value } : { key: z.string(), value: key }),
    partialRecord: (key, value) => z.record(key, value),
    map: (key, value) => new Entries({ type: "map", key, value }),
    set: (value) => new Entries({ type: "set", value }),
    union: (options) => new Union({ options }),
    xor: (options) => new Union({ options }),
    discriminatedUnion: (key, options) => new Union({ options: [...options], key }),
    intersection: (left, right) => new Both({ left, right }),
    optional: (schema) => schema.optional(),
    nullable: (schema) => schema.nullable(),
    nullish: (schema) => schema.nullish(),
    lazy: (make) => new Lazy({ make }),
    preprocess: (change, schema) => new Pipe({ inner: new Preprocess({ change }), next: schema }),
    pipe: (first, next) => first.pipe(next),
    transform: (change) => z.any().transform(change),
    promise: (schema) => schema,
    custom: (test, words) => (test ? z.any().refine(test, words) : z.any()),
    instanceof: (Class) => z.any().refine((v) => v instanceof Class, `Input not instance of ${Class.name}`),
    stringbool: () =>
      z.string().transform((s, context) => {
        if (["true", "1", "yes", "on", "y", "enabled"].includes(s.toLowerCase())) return true;
        if (["false", "0", "no", "off", "n", "disabled"].includes(s.toLowerCase())) return false;
        context.addIssue("Invalid option: expected a word for yes or no");
        return false;
      }),
    templateLiteral: () => z.string(),
    coerce: {
      string: () => z.string().with({ coerce: String }),
      number: () => z.number().with({ coerce: Number }),
      boolean: () => z.boolean().with({ coerce: Boolean }),
      bigint: () => z.bigint().with({ coerce: (v) => { try { return BigInt(v); } catch { return v; } } }),
      date: () => z.date().with({ coerce: (v) => (v instanceof Date ? v : new Date(v)) }),
    },
    iso: {
      date: (words) => z.string().date(words),
      time: (words) => z.string().time(words),
      datetime: (words) => z.string().datetime(words),
    },
    toJSONSchema,
    ZodError,
    ZodType: Schema,
    ZodSchema: Schema,
    Schema,
    ZodObject: Shape,
    ZodString: Text,
    ZodNumber: Numeric,
    ZodEnum: OneOf,
    ZodArray: List,
    ZodOptional: Optional,
    ZodIssueCode: new Proxy({}, { get: (_, name) => name }),
    NEVER: undefined,
    globalRegistry: { add() {} },
    config() {},
  };
  for (const name of ["email", "url", "uuid", "guid", "ipv4", "ipv6", "base64"]) z[name] = (words) => z.string()[name](words);
  // Names that libraries import beside those; what is not ours is no schema of ours either.
  const others = "ZodAny ZodBigInt ZodBoolean ZodBranded ZodCatch ZodDate ZodDefault ZodDiscriminatedUnion ZodEffects ZodFunction ZodIntersection ZodLazy ZodLiteral ZodMap ZodNaN ZodNativeEnum ZodNever ZodNull ZodNullable ZodPipeline ZodPromise ZodReadonly ZodRecord ZodSet ZodSymbol ZodTransformer ZodTuple ZodUndefined ZodUnion ZodUnknown ZodVoid";
  for (const name of others.split(" ")) z[name] ??= class {};
  z.ZodFirstPartyTypeKind = new Proxy({}, { get: (_, name) => name });
  z.z = z;
  z.default = z;
  // What a tool's `args` says: a shape of schemas, a schema, or plain JSON Schema.
  z.argumentsOf = (args) => {
    if (args === null || args === undefined) return { schema: z.object({}), json: { type: "object", properties: {} } };
    if (args instanceof Schema) return { schema: args, json: toJSON(args) };
    const isSchema = (v) => v instanceof Schema || v?._zod || v?._def;
    if (isSchema(args)) {
      const schema = new Foreign({ other: args });
      return { schema, json: toJSON(schema) };
    }
    const entries = Object.entries(args);
    if (entries.some(([, v]) => isSchema(v))) {
      const shape = Object.fromEntries(entries.map(([key, v]) => [key, v instanceof Schema ? v : new Foreign({ other: v })]));
      const schema = z.object(shape);
      return { schema, json: toJSON(schema) };
    }
    if (typeof args.type === "string" && typeof args.properties === "object") return { schema: undefined, json: args };
    return { schema: undefined, json: { type: "object", properties: args, required: Object.keys(args) } };
  };
  class Foreign extends Schema {
    isOptional() {
      return part("foreign").isOptional(this._def.other);
    }
    base(value) {
      const result = this._def.other.safeParse?.(value) ?? { success: true, data: value };
      return result.success ? ok(result.data) : fail(...(result.error.issues ?? [bad("custom", String(result.error))]));
    }
    json() {
      return foreign(this._def.other);
    }
  }
  return z;
})
