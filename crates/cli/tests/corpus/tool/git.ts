// Helpers around git, with the shell of templates.
import { tool } from "@opencode-ai/plugin"
import { $ } from "bun"

export const recent = tool({
  description: "The newest commits",
  args: { count: tool.schema.number().int().min(1).max(50).default(5) },
  async execute(args, { worktree }) {
    const log = await $`git log --oneline -n ${args.count}`.cwd(worktree).quiet().nothrow()
    return log.exitCode === 0 ? log.text().trim() : `git failed: ${log.stderr.toString().trim()}`
  },
})

export const branch = tool({
  description: "The branch at work",
  args: {},
  execute: async () => (await Bun.$`git branch --show-current`.text()).trim(),
})
