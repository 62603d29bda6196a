import { tool } from "@opencode-ai/plugin"
import path from "path"

export default tool({
  description: "Adds two numbers in another language",
  args: { a: tool.schema.number(), b: tool.schema.number() },
  async execute(args, context) {
    const script = path.join(context.worktree, ".opencode/tool/add.sh")
    const sum = await Bun.$`sh ${script} ${args.a} ${args.b}`.text()
    return sum.trim()
  },
})
