import { tool, type Plugin } from "@opencode-ai/plugin"

export const Inject: Plugin = async ({ project }) => {
  const started = Date.now()
  return {
    tool: {
      project_age: tool({
        description: "Whether the session is young",
        args: {},
        async execute() {
          return Date.now() - started < 3_600_000 ? `young (${typeof project.worktree})` : "old"
        },
      }),
    },
  }
}
