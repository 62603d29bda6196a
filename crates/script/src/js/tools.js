// Custom tools and plugins: what a file exports, and how it is called.
(({ H, host, inspect, part, hostError }) => {
  const tool = (definition) => definition;
  Object.defineProperty(tool, "schema", { get: () => part("schema") });

  const isTool = (value) =>
    value !== null && typeof value === "object" && "args" in value && "description" in value && typeof value.execute === "function";
  const plainSchema = (definition) => {
    const { $schema: _, ...json } = part("schema").argumentsOf(definition.args).json;
    return json;
  };
  const described = (name, definition) => ({ name, description: String(definition.description ?? ""), parameters: plainSchema(definition) });

  const modules = new Map();
  const moduleAt = async (path) => {
    if (!modules.has(path)) modules.set(path, load(path));
    return modules.get(path);
  };
  const load = async (path) => {
    const module = await H.importFile(path);
    // The older form: what a file assigned to `module.exports` is what it exports.
    const whole = module.default;
    if (module.__older && whole !== null && typeof whole === "object" && !isTool(whole)) return { ...whole };
    return module;
  };
  const toolsOf = (module, file) => {
    const found = [];
    for (const [key, value] of Object.entries(module)) {
      if (key === "__older" || !isTool(value)) continue;
      found.push([key === "default" ? file : `${file}_${key}`, value]);
    }
    return found;
  };

  const describeTools = async ({ path, file }) => {
    const found = toolsOf(await moduleAt(path), file);
    const tools = [];
    const problems = [];
    for (const [name, definition] of found) {
      try {
        tools.push(described(name, definition));
      } catch (error) {
        problems.push(`${name}: ${error.message}`);
      }
    }
    return { tools, problems };
  };

  const contextOf = (given, signal) => ({
    ...given,
    abort: signal,
    metadata: (update) => void H.note(JSON.stringify(update ?? {})),
    ask: (request) => host("ask", request),
    messages: [],
    extra: {},
  });
  const resultOf = (result) => {
    if (typeof result === "string") return { output: result };
    if (result === undefined || result === null) return { output: "" };
    if (typeof result === "object" && typeof result.output === "string") {
      const { title, output, metadata, attachments } = result;
      return { title, output, metadata, attachments };
    }
    return { output: typeof result === "object" ? JSON.stringify(result, null, 2) : String(result), odd: typeof result };
  };
  const runTool = async (definition, args, context, signal) => {
    const { schema } = part("schema").argumentsOf(definition.args);
    const parsed = schema ? await schema.safeParseAsync(args) : { success: true, data: args };
    if (!parsed.success) throw hostError({ message: parsed.error.message, code: "ARGUMENTS" });
    return resultOf(await definition.execute(parsed.data, contextOf(context, signal)));
  };
  const callTool = async ({ path, file, name, args, context }, signal) => {
    const found = toolsOf(await moduleAt(path), file).find(([known]) => known === name);
    if (!found) throw new Error(`${path} no longer exports the tool ${name}`);
    return runTool(found[1], args, context, signal);
  };

  // Plugins: functions that are given the surroundings and give hooks back.
  const LEVELS = { debug: "debug", info: "info", warn: "warn", error: "error" };
  const clientOf = () => {
    const told = async ({ body = {}, ...rest } = {}) => {
      const { level, message, service, title } = { ...rest, ...body };
      H.say(LEVELS[level] ?? "info", [service ?? title, message].filter(Boolean).join(": "));
      return { data: true };
    };
    const toast = async ({ body = {}, ...rest } = {}) => {
      const { title, message } = { ...rest, ...body };
      H.notice([title, message].filter(Boolean).join(": "));
      return { data: true };
    };
    const known = { app: { log: told }, tui: { showToast: toast } };
    // Everything else is asked of the program, in the form in which its clients know the answer.
    const asked = (name) => async (input = {}) => ({ data: await host("client", { name, input }), error: undefined, request: {}, response: { ok: true, status: 200 } });
    const space = (path, own) =>
      new Proxy(asked(path), {
        get: (call, name) => {
          if (typeof name !== "string" || name === "then") return undefined;
          return own?.[name] ?? (["call", "apply", "bind"].includes(name) ? call[name] : space(`${path}.${name}`));
        },
        has: () => true,
      });
    return new Proxy({}, {
      get: (_, area) => (typeof area !== "string" || area === "then" ? undefined : space(area, known[area])),
      has: () => true,
    });
  };
  const plugins = new Map();
  const startPlugin = async ({ path, options, surroundings }) => {
    const module = await moduleAt(path);
    const input = {
      client: clientOf(),
      project: surroundings.project,
      directory: surroundings.directory,
      worktree: surroundings.worktree,
      serverUrl: new URL("http://localhost:4096"),
      $: part("run").$,
    };
    const whole = module.default;
    let makers;
    if (whole !== null && typeof whole === "object" && typeof whole.server === "function") makers = [(given) => whole.server(given, options)];
    else {
      const exports = Object.entries(module).filter(([key]) => key !== "__older");
      const odd = exports.find(([, value]) => typeof value !== "function" && typeof value?.server !== "function");
      if (odd) throw new Error(`the export "${odd[0]}" is no plugin: a plugin is a function`);
      if (!exports.length) throw new Error("it exports no plugin");
      makers = [...new Set(exports.map(([, value]) => value))].map((value) => (given) => (value.server ?? value)(given, options));
    }
    const hooks = [];
    for (const make of makers) {
      const made = await make(input);
      // Helpers that are exported beside the plugin are called like it, and give anything back.
      hooks.push(made !== null && typeof made === "object" && made !== input && !Array.isArray(made) ? made : {});
    }
    await configured(path, hooks);
    return hooks;
  };
  // The settings as the plugin leaves them: it sees them before any other hook of its is called.
  const configurations = new Map();
  const configured = async (path, hooks) => {
    const given = H.settings();
    const settings = JSON.parse(given);
    const problems = [];
    const attempt = async (what, work) => {
      try {
        await work();
      } catch (error) {
        problems.push(`its hook ${what} failed: ${error?.message ?? error}`);
      }
    };
    for (const set of hooks) if (typeof set.config === "function") await attempt("config", () => set.config(settings));
    for (const { provider } of hooks) {
      if (typeof provider?.models !== "function" || typeof provider.id !== "string") continue;
      await attempt("provider", async () => {
        const own = ((settings.provider ??= {})[provider.id] ??= {});
        const models = await provider.models({ id: provider.id, name: own.name ?? provider.id, source: "config", env: own.env ?? [], options: own.options ?? {}, models: own.models ?? {} }, {});
        own.models = { ...own.models };
        for (const [id, { name, limit, cost, api }] of Object.entries(models ?? {})) own.models[id] = { ...(api?.id ? { id: api.id } : {}), ...(name ? { name } : {}), ...(limit ? { limit } : {}), ...(cost ? { cost } : {}), ...own.models[id] };
      });
    }
    configurations.set(path, { given, answer: { settings, problems } });
  };
  const configure = async (payload) => {
    const hooks = await hooksOf(payload);
    // It may have begun before the settings were known.
    if (configurations.get(payload.path).given !== H.settings()) await configured(payload.path, hooks);
    return configurations.get(payload.path).answer;
  };
  // Begun once, also where two hooks come at the same time; one that fails may be tried again.
  const hooksOf = (payload) => {
    const { path } = payload;
    if (!plugins.has(path)) {
      const started = startPlugin(payload);
      plugins.set(path, started);
      started.catch(() => plugins.delete(path));
    }
    return plugins.get(path);
  };
  const describePlugin = async (payload) => {
    const hooks = await hooksOf(payload);
    const names = new Set();
    const tools = [];
    const problems = [];
    for (const set of hooks) {
      for (const [name, value] of Object.entries(set)) {
        if (name !== "tool") {
          if (typeof value === "function" || ((name === "auth" || name === "provider") && value)) names.add(name);
          continue;
        }
        for (const [id, definition] of Object.entries(value ?? {})) {
          try {
            tools.push(described(id, definition));
          } catch (error) {
            problems.push(`${id}: ${error.message}`);
          }
        }
      }
    }
    return { hooks: [...names], tools, problems };
  };
  const callHook = async ({ name, input, output, ...payload }) => {
    for (const set of await hooksOf(payload)) {
      const hook = set[name];
      if (typeof hook === "function") await hook(input, output);
    }
    return output;
  };
  const callPluginTool = async ({ name, args, context, ...payload }, signal) => {
    for (const set of await hooksOf(payload)) {
      const definition = set.tool?.[name];
      if (definition) return runTool(definition, args, context, signal);
    }
    throw new Error(`the plugin no longer gives the tool ${name}`);
  };

  // Code mode: a script of the model's that calls tools.
  const execute = async ({ code, names }, signal) => {
    const logs = [];
    const format = (value) => (typeof value === "string" ? value : inspect(value));
    const say = (prefix) => (...said) => logs.push(prefix + said.map((s) => format(s)).join(" "));
    const console = { log: say(""), info: say(""), debug: say("[debug] "), warn: say("[warn] "), error: say("[error] ") };
    const call = (name) => async (input) => {
      signal.throwIfAborted();
      return host("tool", { name, input: input ?? {} });
    };
    const tools = {};
    for (const name of names) {
      tools[name] = call(name);
      // A server's tools can be reached as `tools.server.tool` too.
      const cut = name.indexOf("_");
      if (cut > 0 && !names.includes(name.slice(0, cut))) {
        const space = (tools[name.slice(0, cut)] ??= {});
        if (typeof space === "object") space[name.slice(cut + 1)] = call(name);
      }
    }
    const known = new Proxy(tools, {
      get: (own, name) => {
        if (name in own || typeof name !== "string") return own[name];
        throw new Error(`Unknown tool '${name}'`);
      },
    });
    const body = H.script(code);
    const value = await body(known, console);
    return { value: value === undefined ? null : value, logs };
  };

  const kinds = { describeTools, callTool, describePlugin, configure, callHook, callPluginTool, execute };
  const perform = (kind, payload, signal) => kinds[kind](payload, signal);
  return { tool, perform };
})
