import type { Plugin } from "@opencode-ai/plugin"

const forbidden = [/\brm\s+-rf\b/, /\bgit\s+push\s+--force\b/]

export const Careful: Plugin = async ({ client }) => ({
  "tool.execute.before": async (input, output) => {
    const command = input.tool === "bash" ? String(output.args.command ?? "") : ""
    const hit = forbidden.find((pattern) => pattern.test(command))
    if (!hit) return
    await client.tui.showToast({ body: { message: `refused ${command}`, variant: "warning" } })
    throw new Error(`"${command}" is not done in this house`)
  },
})
