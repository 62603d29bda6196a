// A client of an HTTP API, with a header, a query and an error that says what came back.
import { tool } from "@opencode-ai/plugin"

const base = process.env.CORPUS_API ?? "http://localhost:1"

async function request<T>(route: string, init: RequestInit = {}): Promise<T> {
  const headers = new Headers(init.headers)
  headers.set("Accept", "application/json")
  const answer = await fetch(`${base}${route}`, { ...init, headers, signal: AbortSignal.timeout(10_000) })
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}: ${await answer.text()}`)
  return (await answer.json()) as T
}

export const get = tool({
  description: "Look up an issue by its number",
  args: { number: tool.schema.coerce.number().int() },
  async execute({ number }) {
    const issue = await request<{ title: string; labels: string[] }>(`/issues/${number}?${new URLSearchParams({ full: "1" })}`)
    return `#${number} ${issue.title} [${issue.labels.join(", ")}]`
  },
})

export const create = tool({
  description: "Create an issue",
  args: { title: tool.schema.string().min(3), body: tool.schema.string().optional() },
  async execute(args) {
    const made = await request<{ number: number }>("/issues", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(args),
    })
    return `created #${made.number}`
  },
})
