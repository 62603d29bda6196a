const { tool } = require("@opencode-ai/plugin")
const { lower } = require("./lib/text.cjs")

module.exports = tool({
  description: "Makes a name for a file of a title",
  args: { title: tool.schema.string().trim().min(1), separator: tool.schema.string().length(1).default("-") },
  execute: async ({ title, separator }) => lower(title).normalize("NFKD").replace(/[^a-z0-9]+/g, separator).replace(/^-+|-+$/g, ""),
})
