import { tool } from "@opencode-ai/plugin"
import { between, type Span } from "./lib/dates"

export default tool({
  description: "The time between two dates",
  args: {
    from: tool.schema.iso.date(),
    to: tool.schema.string().refine((text) => !Number.isNaN(Date.parse(text)), "not a date"),
  },
  async execute(args): Promise<string> {
    const span: Span = between(new Date(args.from), new Date(args.to))
    return `${span.days} days (${span.weeks} weeks)`
  },
})
