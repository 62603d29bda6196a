module.exports = async (_input, options) => ({
  "chat.params": async (input, output) => {
    output.temperature = input.agent === "plan" ? 0 : 0.3
  },
})
