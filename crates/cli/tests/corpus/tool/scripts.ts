import { tool } from "@opencode-ai/plugin"
import { existsSync, readFileSync } from "fs"
import { join } from "path"

interface Manifest { name?: string; scripts?: Record<string, string> }

export default tool({
  description: "The scripts of package.json",
  args: {},
  async execute(_args, { worktree }) {
    const file = join(worktree, "package.json")
    if (!existsSync(file)) return "there is no package.json"
    const manifest = JSON.parse(readFileSync(file, "utf8")) as Manifest
    return Object.entries(manifest.scripts ?? {}).map(([name, line]) => `${name}: ${line}`).join("\n")
  },
})
