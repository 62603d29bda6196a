import os from "os"
import { tool } from "@opencode-ai/plugin"

export default tool({
  description: "About this machine",
  args: {},
  execute: async () => `${os.platform() ? "platform" : ""} ${process.env.CORPUS_MARK ?? "no mark"} ${os.EOL === "\n" ? "lf" : "crlf"} ${typeof process.versions.node}`,
})
