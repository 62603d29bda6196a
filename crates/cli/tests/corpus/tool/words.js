// In the older form, with a description of arguments that is plain JSON Schema.
module.exports = {
  description: "Counts words, lines and characters",
  args: { text: { type: "string", description: "the text" } },
  async execute({ text }) {
    return { title: "counted", output: `${text.split(/\s+/).filter(Boolean).length} words, ${text.split("\n").length} lines, ${text.length} characters`, metadata: { length: text.length } }
  },
}
