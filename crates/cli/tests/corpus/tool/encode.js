import { tool } from "@opencode-ai/plugin"
import { createHash, randomUUID } from "node:crypto"

export const base64 = tool({
  description: "Text as base64, and back",
  args: { text: tool.schema.string(), decode: tool.schema.boolean().optional() },
  execute: async ({ text, decode }) => (decode ? Buffer.from(text, "base64").toString("utf8") : Buffer.from(text).toString("base64")),
})
export const sha = tool({
  description: "The hash of a text",
  args: { text: tool.schema.string(), algorithm: tool.schema.enum(["sha1", "sha256", "sha512"]).default("sha256") },
  execute: async ({ text, algorithm }) => createHash(algorithm).update(text).digest("hex"),
})
export const uuid = tool({ description: "A new id", args: {}, execute: async () => randomUUID() })
