import { tool } from "@opencode-ai/plugin"

export default tool({
  description: "Deploys, after asking",
  args: { target: tool.schema.enum(["staging", "production"]) },
  async execute({ target }, context) {
    await context.ask({ permission: "deploy", patterns: [target], always: [target], metadata: {} })
    return `deployed to ${target}`
  },
})
