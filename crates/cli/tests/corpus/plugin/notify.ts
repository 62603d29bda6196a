import type { Plugin } from "@opencode-ai/plugin"

export const Notify: Plugin = async ({ $, directory }) => ({
  event: async ({ event }) => {
    if (event.type === "session.idle") await $`echo ${"finished: " + event.type} >> ${directory}/notices.txt`
  },
})
