// Schemas of a Zod that a package brings along, as JSON Schema: of both of the forms in which Zod keeps what it knows.
(() => {
  const LIMITS = { min: "minimum", max: "maximum", min_length: "minLength", max_length: "maxLength", greater_than: "minimum", less_than: "maximum", multiple_of: "multipleOf" };
  const defOf = (schema) => schema?._zod?.def ?? schema?._def ?? {};
  const kindOf = (def) => String(def.type && typeof def.type === "string" ? def.type : (def.typeName ?? "")).replace(/^Zod/, "").toLowerCase();
  const isOptional = (schema) => {
    const def = defOf(schema);
    if (["optional", "default", "prefault", "catch"].includes(kindOf(def))) return true;
    const inner = def.innerType ?? def.schema ?? def.in;
    return ["nullable", "readonly", "effects", "branded", "pipe", "pipeline"].includes(kindOf(def)) && inner ? isOptional(inner) : false;
  };
  const limitsOf = (def, type) => {
    const limits = {};
    for (const check of def.checks ?? []) {
      const own = check?._zod?.def ?? check;
      const kind = own.check ?? own.kind;
      const value = own.value ?? own.minimum ?? own.maximum;
      const long = { min: "minLength", max: "maxLength" };
      const name = (type === "string" && long[kind]) || (type === "array" && { min_length: "minItems", max_length: "maxItems" }[kind]) || LIMITS[kind];
      if (name && typeof value === "number") limits[name] = value;
      if (kind === "int" || (kind === "number_format" && String(own.format).includes("int"))) limits.type = "integer";
    }
    return limits;
  };
  const said = (schema, depth = 0) => {
    const made = depth > 24 ? {} : form(schema, depth + 1);
    const { description } = schema ?? {};
    return typeof description === "string" ? { ...made, description } : made;
  };
  const form = (schema, depth) => {
    const def = defOf(schema);
    const inner = (of) => said(of, depth);
    const kind = kindOf(def);
    switch (kind) {
      case "string":
      case "number":
      case "boolean":
        return { type: kind, ...limitsOf(def, kind) };
      case "bigint":
        return { type: "integer" };
      case "null":
        return { type: "null" };
      case "date":
        return { type: "string", format: "date-time" };
      case "literal": {
        const values = def.values ?? [def.value];
        return values.length === 1 ? { const: values[0] } : { enum: [...values] };
      }
      case "enum":
      case "nativeenum": {
        const values = Array.isArray(def.values) ? def.values : Object.values(def.entries ?? def.values ?? {});
        return { ...(values.every((v) => typeof v === "string") ? { type: "string" } : {}), enum: values };
      }
      case "array":
      case "set": {
        const item = def.element ?? def.valueType ?? (typeof def.type === "object" ? def.type : undefined);
        return { type: "array", items: item ? inner(item) : {}, ...limitsOf(def, "array") };
      }
      case "tuple":
        return { type: "array", prefixItems: (def.items ?? []).map(inner) };
      case "object": {
        const shape = typeof def.shape === "function" ? def.shape() : (def.shape ?? {});
        const entries = Object.entries(shape);
        const required = entries.filter(([, of]) => !isOptional(of)).map(([name]) => name);
        return { type: "object", properties: Object.fromEntries(entries.map(([name, of]) => [name, inner(of)])), ...(required.length ? { required } : {}) };
      }
      case "record":
      case "map":
        return { type: "object", additionalProperties: def.valueType ? inner(def.valueType) : {} };
      case "union":
      case "discriminatedunion":
        return { anyOf: [...(def.options?.values?.() ?? def.options ?? [])].map(inner) };
      case "intersection":
        return { allOf: [inner(def.left), inner(def.right)] };
      case "nullable": {
        const made = inner(def.innerType);
        return typeof made.type === "string" && !made.enum ? { ...made, type: [made.type, "null"] } : { anyOf: [made, { type: "null" }] };
      }
      case "default":
      case "prefault": {
        const usual = typeof def.defaultValue === "function" ? def.defaultValue() : def.defaultValue;
        return { ...inner(def.innerType), default: usual };
      }
      case "lazy":
        return inner(def.getter());
      case "pipe":
      case "pipeline":
        return inner(kindOf(defOf(def.in)) === "transform" ? def.out : def.in);
      default: {
        // Those that hold one other: optional, readonly, branded, catch, effects.
        const held = def.innerType ?? def.schema ?? (typeof def.type === "object" ? def.type : undefined);
        return held ? inner(held) : {};
      }
    }
  };
  return Object.assign((schema) => said(schema), { isOptional });
})
