import { tool } from "@opencode-ai/plugin"
import fs from "fs/promises"

export default tool({
  description: "Adds a line to the changelog",
  args: { line: tool.schema.string().max(200) },
  async execute({ line }, context) {
    const file = `${context.worktree}/CHANGES.md`
    const old = await fs.readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "# Changes\n"
      throw error
    })
    await fs.writeFile(file, old.replace("# Changes\n", `# Changes\n- ${line}\n`))
    context.metadata({ title: "changelog", metadata: { file } })
    return `added to ${file.split("/").at(-1)}`
  },
})
