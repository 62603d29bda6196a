import { tool } from "@opencode-ai/plugin"
import { z } from "zod"

enum Part { Major = "major", Minor = "minor", Patch = "patch" }

const version = z
  .string()
  .regex(/^v?\d+\.\d+\.\d+$/, "must look like 1.2.3")
  .transform((text) => text.replace(/^v/, "").split(".").map(Number) as [number, number, number])

export default tool({
  description: "Raises a version",
  args: { version, part: z.nativeEnum(Part) },
  async execute({ version: [major, minor, patch], part }) {
    switch (part) {
      case Part.Major: return `${major + 1}.0.0`
      case Part.Minor: return `${major}.${minor + 1}.0`
      case Part.Patch: return `${major}.${minor}.${patch + 1}`
    }
  },
})
