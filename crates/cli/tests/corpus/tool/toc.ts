import { tool } from "@opencode-ai/plugin"

export default tool({
  description: "A table of contents for a Markdown file",
  args: { file: tool.schema.string(), depth: tool.schema.number().min(1).max(6).optional() },
  async execute(args, context) {
    const source = Bun.file(`${context.directory}/${args.file}`)
    if (!(await source.exists())) throw new Error(`there is no file ${args.file}`)
    const lines = (await source.text()).split("\n")
    const heads = lines.flatMap((line) => {
      const match = /^(#{1,6})\s+(.*)$/.exec(line)
      return match && match[1].length <= (args.depth ?? 3) ? [{ level: match[1].length, text: match[2] }] : []
    })
    return heads.map(({ level, text }) => `${"  ".repeat(level - 1)}- [${text}](#${text.toLowerCase().replace(/\W+/g, "-")})`).join("\n")
  },
})
