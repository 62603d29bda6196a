import { tool } from "@opencode-ai/plugin"

const s = tool.schema

export default tool({
  description: "Fills a template",
  args: {
    template: s.string(),
    values: s.object({ name: s.string(), items: s.array(s.object({ label: s.string(), price: s.number().nonnegative() })).default([]) }),
  },
  async execute({ template, values }) {
    const total = values.items.reduce((sum, item) => sum + item.price, 0)
    return template
      .replaceAll("{{name}}", values.name)
      .replaceAll("{{items}}", values.items.map((item) => `${item.label} ${item.price.toFixed(2)}`).join("; "))
      .replaceAll("{{total}}", total.toFixed(2))
  },
})
