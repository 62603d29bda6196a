import { tool } from "@opencode-ai/plugin"

const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

export default tool({
  description: "A picture",
  args: {},
  execute: async () => ({ title: "a dot", output: "here it is", attachments: [{ type: "file", mime: "image/png", url: `data:image/png;base64,${dot}`, filename: "dot.png" }] }),
})
