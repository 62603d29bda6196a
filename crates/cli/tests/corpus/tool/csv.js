import { tool } from "@opencode-ai/plugin"

const split = (line) => {
  const cells = []
  let cell = ""
  let quoted = false
  for (const letter of line) {
    if (letter === '"') quoted = !quoted
    else if (letter === "," && !quoted) {
      cells.push(cell)
      cell = ""
    } else cell += letter
  }
  return [...cells, cell]
}

export default tool({
  description: "Reads CSV as objects",
  args: { text: tool.schema.string() },
  async execute({ text }) {
    const [head, ...rows] = text.trim().split(/\r?\n/).map(split)
    return JSON.stringify(rows.map((row) => Object.fromEntries(head.map((key, i) => [key, row[i] ?? ""]))))
  },
})
