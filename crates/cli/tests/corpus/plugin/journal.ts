import type { Plugin } from "@opencode-ai/plugin"
import { appendFile } from "node:fs/promises"

export const Journal: Plugin = async ({ directory }) => ({
  event: async ({ event }) => {
    await appendFile(`${directory}/journal.txt`, `${event.type}\n`)
  },
})
