import { tool } from "@opencode-ai/plugin"

class Trouble extends Error {
  override name = "Trouble"
}

export default tool({
  description: "Fails",
  args: {},
  async execute(): Promise<string> {
    throw new Trouble("as it was told to")
  },
})
