import { tool } from "@opencode-ai/plugin"
import { exec, execSync } from "node:child_process"
import { promisify } from "node:util"

const run = promisify(exec)

export default tool({
  description: "Runs the project's checks and says which failed",
  args: { commands: tool.schema.array(tool.schema.string()).nonempty() },
  async execute({ commands }, { directory }) {
    const shell = execSync("echo $0", { encoding: "utf8" }).trim() ? "shell" : "none"
    const results = await Promise.allSettled(commands.map((command) => run(command, { cwd: directory })))
    return results.map((result, i) => `${commands[i]}: ${result.status === "fulfilled" ? "ok" : `failed (${(result.reason as { status: number }).status})`}`).join("\n") + `\n${shell}`
  },
})
