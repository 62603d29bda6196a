// Uses packages from a node_modules folder, in both forms.
import { tool } from "@opencode-ai/plugin"
import pad from "tiny-pad"
import { stars } from "@corpus/stars"

export default tool({
  description: "Pads a text",
  args: { text: tool.schema.string(), width: tool.schema.number().int() },
  execute: async ({ text, width }) => stars(pad(text, width)),
})
