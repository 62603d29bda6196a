import type { Plugin } from "@opencode-ai/plugin"

const shortcuts: Record<string, string> = { ":ship": "Write the release notes and stop." }

export const Rewrite: Plugin = async () => ({
  "chat.message": async (_input, output) => {
    for (const part of output.parts) {
      if (part.type !== "text") continue
      for (const [short, long] of Object.entries(shortcuts)) part.text = part.text.replaceAll(short, long)
    }
  },
})
