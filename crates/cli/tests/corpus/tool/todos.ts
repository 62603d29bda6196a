// Marks in the code, found by walking the folder.
import { tool } from "@opencode-ai/plugin"
import * as fs from "fs"
import * as path from "path"

const skip = new Set(["node_modules", ".git", "dist"])

function* files(folder: string): Generator<string> {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    if (skip.has(entry.name) || entry.name.startsWith(".")) continue
    const whole = path.join(folder, entry.name)
    if (entry.isDirectory()) yield* files(whole)
    else if (/\.(ts|js|rs)$/.test(entry.name)) yield whole
  }
}

export default tool({
  description: "Find TODO and FIXME marks in the source",
  args: { kind: tool.schema.enum(["TODO", "FIXME", "any"]).default("any") },
  async execute({ kind }, { directory }) {
    const pattern = kind === "any" ? /(TODO|FIXME):?\s*(.*)/ : new RegExp(`(${kind}):?\\s*(.*)`)
    const found: string[] = []
    for (const file of files(directory)) {
      fs.readFileSync(file, "utf8").split("\n").forEach((line, index) => {
        const match = line.match(pattern)
        if (match) found.push(`${path.relative(directory, file)}:${index + 1} ${match[2]}`)
      })
    }
    return found.length ? found.join("\n") : "nothing left to do"
  },
})
