import { tool } from "@opencode-ai/plugin"
import { pathToFileURL, fileURLToPath } from "url"

export default tool({
  description: "Takes an address apart",
  args: { url: tool.schema.url(), set: tool.schema.record(tool.schema.string(), tool.schema.string()).optional() },
  async execute({ url, set }) {
    const address = new URL(url)
    for (const [key, value] of Object.entries(set ?? {})) address.searchParams.set(key, value)
    address.hash = ""
    const round = fileURLToPath(pathToFileURL("/a b/c"))
    return `${address.hostname} ${address.port || "-"} ${address.pathname} ${address.href} ${round}`
  },
})
