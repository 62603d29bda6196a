import type { Plugin } from "@opencode-ai/plugin"

export const Memory: Plugin = async () => {
  const files = new Set<string>()
  return {
    "tool.execute.after": async (input) => {
      if (input.args?.filePath) files.add(input.args.filePath)
    },
    "experimental.session.compacting": async (_input, output) => {
      output.context.push(`Files touched so far: ${[...files].join(", ")}`)
    },
  }
}
