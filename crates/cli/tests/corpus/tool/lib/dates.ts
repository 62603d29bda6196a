export const DAY = 86_400_000
export type Span = { days: number; weeks: number }
export const between = (a: Date, b: Date): Span => {
  const days = Math.round((b.getTime() - a.getTime()) / DAY)
  return { days, weeks: Math.floor(days / 7) }
}
