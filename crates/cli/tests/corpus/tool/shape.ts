import { tool } from "@opencode-ai/plugin"

const s = tool.schema
const shape = s.discriminatedUnion("kind", [
  s.object({ kind: s.literal("circle"), radius: s.number().positive() }),
  s.object({ kind: s.literal("rectangle"), width: s.number(), height: s.number() }),
])

export default tool({
  description: "The area of a shape",
  args: { shape, unit: s.string().nullable().optional() },
  async execute({ shape, unit }) {
    const area = shape.kind === "circle" ? Math.PI * shape.radius ** 2 : shape.width * shape.height
    return `${area.toFixed(1)}${unit ? ` ${unit}` : ""}`
  },
})
