//! For programs: one JSON object a line, in OpenCode's forms, plus text deltas and a last `result`.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use toolwright::llm::Usage;
use toolwright::session::{Ending, Session, TurnStatus};
use toolwright::{Desk, Event, TurnEnd};

use super::Face;

pub struct JsonFace {
    session: String,
    thinking: bool,
    step: u32,
    part: u32,
}

impl JsonFace {
    pub fn new(session: &Session, thinking: bool) -> Self {
        Self { session: session.header.session.clone(), thinking, step: 0, part: 0 }
    }

    fn line(&self, kind: &str, fields: Value) -> io::Result<()> {
        let mut object = Map::new();
        object.insert("type".into(), kind.into());
        object.insert("timestamp".into(), now_ms().into());
        object.insert("sessionID".into(), self.session.clone().into());
        if let Value::Object(fields) = fields {
            object.extend(fields);
        }
        let mut text = Value::Object(object).to_string();
        text.push('\n');
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// A part as OpenCode's clients know it.
    fn part(&mut self, kind: &str, fields: Value) -> Value {
        self.part += 1;
        let mut part = json!({
            "id": format!("prt_{}_{:05}", self.session, self.part),
            "sessionID": self.session,
            "messageID": format!("msg_{}_{:05}", self.session, self.step),
            "type": kind,
        });
        if let (Value::Object(part), Value::Object(fields)) = (&mut part, fields) {
            part.extend(fields);
        }
        json!({ "part": part })
    }

    fn send_part(&mut self, line: &str, kind: &str, fields: Value) -> io::Result<()> {
        let part = self.part(kind, fields);
        self.line(line, part)
    }
}

impl Face for JsonFace {
    fn begin(&mut self, desk: &Desk) -> io::Result<()> {
        let session = desk.engine.session();
        self.line(
            "session",
            json!({
                "model": desk.engine.model().to_string(), "agent": desk.agent.name,
                "directory": session.header.directory, "forkedFrom": session.header.forked_from,
                "mode": desk.gate.mode(), "everythingAllowed": desk.gate.allows_everything(),
                "sandbox": desk.protection.describe(),
            }),
        )
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::StepStarted => {
                self.step += 1;
                self.send_part("step_start", "step-start", json!({}))
            }
            Event::Text { delta } => self.line("text_delta", json!({ "delta": delta })),
            Event::Reasoning { delta } if self.thinking => {
                self.line("reasoning_delta", json!({ "delta": delta }))
            }
            Event::TextDone { text } => {
                let end = now_ms();
                let fields = json!({ "text": text, "time": { "start": end, "end": end } });
                self.send_part("text", "text", fields)
            }
            Event::ReasoningDone { text } if self.thinking => {
                self.send_part("reasoning", "reasoning", json!({ "text": text }))
            }
            Event::CallStarted { call, tool, summary, .. } => {
                self.line("tool_start", json!({ "callID": call, "tool": tool, "summary": summary }))
            }
            Event::CallSettled { call, arguments, outcome, .. } => {
                let end = now_ms();
                let time = json!({ "start": end.saturating_sub(outcome.duration_ms), "end": end });
                let input: Value = serde_json::from_str(arguments)
                    .unwrap_or_else(|_| json!({ "malformed_arguments": arguments }));
                let state = if outcome.ending == Ending::Completed {
                    json!({
                        "status": "completed", "input": input, "output": outcome.output,
                        "title": outcome.title, "metadata": outcome.details, "time": time,
                    })
                } else {
                    json!({
                        "status": "error", "input": input, "error": outcome.output,
                        "metadata": outcome.details, "ending": outcome.ending, "time": time,
                    })
                };
                let fields = json!({ "callID": call, "tool": outcome.tool, "state": state });
                self.send_part("tool_use", "tool", fields)
            }
            Event::Retrying { attempt, delay, cause } => self.line(
                "retry",
                json!({ "attempt": attempt, "delay_ms": delay.as_millis() as u64, "message": cause.message }),
            ),
            Event::ModeChanged { mode } => self.line("mode", json!({ "mode": mode })),
            Event::Question { id, question, offer } => {
                let permissions: Vec<Value> = question
                    .requests
                    .iter()
                    .map(|r| json!({ "permission": r.permission, "pattern": r.pattern, "always": r.always }))
                    .collect();
                self.line(
                    "question",
                    json!({
                        "id": id, "tool": question.tool, "summary": question.summary,
                        "preview": question.preview, "permissions": permissions,
                        "why": offer.why, "asked": offer.asked, "scopes": offer.scopes,
                    }),
                )
            }
            Event::Inquiry { id, inquiry } => {
                self.line("inquiry", json!({ "id": id, "questions": inquiry.items }))
            }
            Event::Queued { id, kind } => self.line("queued", json!({ "id": id, "kind": kind })),
            Event::QuestionClosed { id } => self.line("question_closed", json!({ "id": id })),
            Event::Withdrawn { id } => self.line("withdrawn", json!({ "id": id })),
            Event::Delivered { id } => self.line("delivered", json!({ "id": id })),
            Event::Pruned { outputs, tokens } => {
                self.line("pruned", json!({ "outputs": outputs, "tokens": tokens }))
            }
            Event::Compacting { reason } => self.line("compacting", json!({ "reason": reason })),
            Event::Compacted { before, after } => {
                self.line("compacted", json!({ "before": before, "after": after }))
            }
            Event::Notice { text } => self.line("notice", json!({ "text": text })),
            Event::StepEnded { usage, finish, cost } => {
                let fields = json!({ "reason": finish.reason, "cost": cost.unwrap_or(0.0), "tokens": tokens(usage) });
                self.send_part("step_finish", "step-finish", fields)
            }
            Event::TurnEnded(end) => self.result(end),
            Event::Reasoning { .. }
            | Event::ReasoningDone { .. }
            | Event::CallAnnounced { .. }
            | Event::CallProgress { .. }
            | Event::Idle => Ok(()),
        }
    }
}

impl JsonFace {
    fn result(&mut self, end: &TurnEnd) -> io::Result<()> {
        if end.status == TurnStatus::Failed {
            let message = end.problem.as_deref().unwrap_or("failed");
            let data = json!({ "message": message, "advice": end.advice });
            self.line("error", json!({ "error": { "name": "UnknownError", "data": data } }))?;
        }
        let denials: Vec<Value> = end
            .denials
            .iter()
            .map(|d| json!({ "tool": d.tool, "summary": d.summary, "by": d.by }))
            .collect();
        self.line(
            "result",
            json!({
                "status": end.status, "text": end.answer.as_ref(), "problem": end.problem, "steps": end.steps,
                "tokens": tokens(&end.usage), "cost": end.cost, "denials": denials,
            }),
        )
    }
}

fn tokens(usage: &Usage) -> Value {
    json!({
        "input": usage.input, "output": usage.output, "reasoning": usage.reasoning,
        "cache": { "read": usage.cache_read, "write": usage.cache_write },
    })
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
