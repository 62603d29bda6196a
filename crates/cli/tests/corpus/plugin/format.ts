import type { Plugin } from "@opencode-ai/plugin"

const formatters: Record<string, (file: string) => string[]> = { txt: (file) => ["sed", "-i", "s/[ ]*$//", file] }

export default (async ({ $, client }) => ({
  "tool.execute.after": async (input, output) => {
    if (!["edit", "write"].includes(input.tool)) return
    const file: string = input.args.filePath
    const command = formatters[file.split(".").pop()!]?.(file)
    if (!command) return
    await $`${command}`.quiet()
    await client.app.log({ body: { service: "format", level: "info", message: `formatted ${file}` } })
    output.output += "\n(formatted)"
  },
})) satisfies Plugin
