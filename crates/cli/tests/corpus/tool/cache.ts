import { tool } from "@opencode-ai/plugin"

const seen = new Map<string, number>()

export default tool({
  description: "How often it was asked about something",
  args: { key: tool.schema.string().toLowerCase() },
  async execute({ key }) {
    const count = (seen.get(key) ?? 0) + 1
    seen.set(key, count)
    await new Promise((resolve) => setTimeout(resolve, 1))
    return `${key}: ${count}`
  },
})
