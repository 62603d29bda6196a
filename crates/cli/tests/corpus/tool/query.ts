// A query over a table that is kept as JSON.
import { tool } from "@opencode-ai/plugin"
import { readFile } from "node:fs/promises"
import path from "node:path"

type Row = Record<string, string | number | null>

export default tool({
  description: "Query the project's data: filter rows of a table, choose columns, sort, limit",
  args: {
    table: tool.schema.string().regex(/^[a-z_]+$/).describe("Name of the table"),
    where: tool.schema.record(tool.schema.string(), tool.schema.union([tool.schema.string(), tool.schema.number()])).optional(),
    columns: tool.schema.array(tool.schema.string()).min(1).optional(),
    orderBy: tool.schema.string().optional(),
    limit: tool.schema.number().int().positive().max(100).default(10),
  },
  async execute(args, context) {
    const file = path.join(context.directory, "data", `${args.table}.json`)
    const rows: Row[] = JSON.parse(await readFile(file, "utf-8"))
    let found = rows.filter((row) => Object.entries(args.where ?? {}).every(([key, value]) => row[key] === value))
    if (args.orderBy) found = found.toSorted((a, b) => String(a[args.orderBy!]).localeCompare(String(b[args.orderBy!])))
    const shown = found.slice(0, args.limit).map((row) => (args.columns ? Object.fromEntries(args.columns.map((c) => [c, row[c] ?? null])) : row))
    return JSON.stringify({ total: found.length, rows: shown })
  },
})
