export const EnvGuard = async () => ({
  "tool.execute.before": async (input, output) => {
    if (input.tool === "read" && /\.env(\.|$)/.test(output.args.filePath)) throw new Error("Environment files stay closed")
  },
})
