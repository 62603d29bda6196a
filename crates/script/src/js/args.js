// A command line taken apart, as Node's util.parseArgs does it.
(({ part }) => {
  const failed = (code, message) => Object.assign(new TypeError(message), { code: `ERR_PARSE_ARGS_${code}` });
  const reader = (options) => {
    const typeOf = (name) => (Object.hasOwn(options, name) ? options[name].type : undefined);
    const longOf = (short) => Object.keys(options).find((name) => options[name].short === short) ?? short;
    return { typeOf, longOf };
  };

  // What each word is; a group of letters becomes one word for each.
  const tokensOf = (args, options, allowNegative) => {
    const { typeOf, longOf } = reader(options);
    const tokens = [];
    const rest = args.map((word, index) => ({ word, index }));
    const option = (index, name, rawName, value, inlineValue) => tokens.push({ kind: "option", name, rawName, index, value, inlineValue });
    const withNext = (index, name, rawName) => {
      if (typeOf(name) !== "string" || !rest.length) return option(index, name, rawName, undefined, undefined);
      return option(index, name, rawName, rest.shift().word, false);
    };
    while (rest.length) {
      const { word, index } = rest.shift();
      if (word === "--") {
        tokens.push({ kind: "option-terminator", index });
        for (const { word: value, index: at } of rest) tokens.push({ kind: "positional", index: at, value });
        break;
      }
      if (word.startsWith("--") && word.length > 2) {
        const cut = word.indexOf("=", 3);
        if (cut > 0) {
          option(index, word.slice(2, cut), word.slice(0, cut), word.slice(cut + 1), true);
          continue;
        }
        const name = word.slice(2);
        const plain = name.slice("no-".length);
        if (allowNegative && name.startsWith("no-") && typeOf(plain)) option(index, plain, word, undefined, undefined);
        else withNext(index, name, word);
        continue;
      }
      if (!word.startsWith("-") || word.length < 2) {
        tokens.push({ kind: "positional", index, value: word });
        continue;
      }
      const name = longOf(word[1]);
      if (word.length === 2) withNext(index, name, word);
      else if (typeOf(name) === "string") option(index, name, word.slice(0, 2), word.slice(2), true);
      else {
        const parts = [];
        for (let at = 1; at < word.length; at++) {
          const last = typeOf(longOf(word[at])) === "string" && at < word.length - 1;
          parts.push({ word: `-${last ? word.slice(at) : word[at]}`, index });
          if (last) break;
        }
        rest.unshift(...parts);
      }
    }
    return tokens;
  };

  const checkOption = (token, options) => {
    const { name, rawName, value, inlineValue } = token;
    const isNegative = rawName === `--no-${name}`;
    if (!Object.hasOwn(options, name) || (isNegative && options[name].type !== "boolean")) {
      throw failed("UNKNOWN_OPTION", `Unknown option '${rawName}'`);
    }
    const { short, type } = options[name];
    const both = `${short ? `-${short}, ` : ""}--${name}`;
    if (type === "string" && typeof value !== "string") throw failed("INVALID_OPTION_VALUE", `Option '${both} <value>' wants a value`);
    if (type === "boolean" && value !== undefined) throw failed("INVALID_OPTION_VALUE", `Option '${both}' takes no value`);
    if (inlineValue === false && value.length > 1 && value.startsWith("-")) {
      throw failed("INVALID_OPTION_VALUE", `Option '${rawName}' is followed by '${value}': write '--${name}=${value}' if that is its value`);
    }
  };

  return ({ args = part("process").argv.slice(2), options = {}, strict = true, allowPositionals = !strict, allowNegative = false, tokens: wanted = false } = {}) => {
    for (const [name, { type, short }] of Object.entries(options)) {
      const bad = (what) => Object.assign(new TypeError(what), { code: "ERR_INVALID_ARG_TYPE" });
      if (type !== "string" && type !== "boolean") throw bad(`The "options.${name}.type" property must be one of: 'string', 'boolean'`);
      if (short !== undefined && String(short).length !== 1) throw Object.assign(new TypeError(`The property 'options.${name}.short' must be a single character`), { code: "ERR_INVALID_ARG_VALUE" });
    }
    const values = Object.create(null);
    const positionals = [];
    const tokens = tokensOf(args, options, allowNegative);
    for (const token of tokens) {
      if (token.kind === "positional") {
        if (!allowPositionals) throw failed("UNEXPECTED_POSITIONAL", `Unexpected argument '${token.value}': only options are taken`);
        positionals.push(token.value);
      }
      if (token.kind !== "option") continue;
      if (strict) checkOption(token, options);
      if (token.name === "__proto__") continue;
      const negative = allowNegative && token.rawName === `--no-${token.name}`;
      const value = token.value ?? !negative;
      if (options[token.name]?.multiple) (values[token.name] ??= []).push(value);
      else values[token.name] = value;
    }
    for (const [name, { default: usual }] of Object.entries(options)) if (usual !== undefined && !(name in values)) values[name] = usual;
    return wanted ? { values, positionals, tokens } : { values, positionals };
  };
})
