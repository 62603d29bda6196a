import type { Plugin } from "@opencode-ai/plugin"

export const Persona: Plugin = async ({ worktree }) => ({
  "experimental.chat.system.transform": async (_input, output) => {
    output.system.push(`The team calls this place ${worktree.split("/").filter(Boolean).at(-1)}-house.`)
  },
})
