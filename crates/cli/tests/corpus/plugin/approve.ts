import type { Plugin } from "@opencode-ai/plugin"

export const Approve: Plugin = async () => ({
  "permission.ask": async (input, output) => {
    if (input.tool === "bash" && String(input.args?.command).startsWith("seq 3")) output.status = "allow"
  },
})
