import { tool } from "@opencode-ai/plugin"

export default tool({
  description: "The last lines of a file that hold a word",
  args: { file: tool.schema.string(), word: tool.schema.string(), lines: tool.schema.number().default(3) },
  async execute(args) {
    const kept: string[] = []
    for await (const line of Bun.$`grep -n ${args.word} ${args.file}`.nothrow().lines()) {
      kept.push(line)
      if (kept.length > args.lines) kept.shift()
    }
    return kept.join("\n")
  },
})
