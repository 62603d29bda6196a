//! A conversation as a Markdown file.

use std::path::Path;

use toolwright::session::{Item, Session, StepBlock};

/// Writes it below `folder` and says where.
pub(super) fn to_file(
    session: &Session,
    folder: &Path,
    name: Option<&str>,
) -> Result<String, String> {
    let id = &session.header.session;
    let usual = format!(
        "session-{}.md",
        id.trim_start_matches("ses_").chars().take(10).collect::<String>()
    );
    let name = name.unwrap_or(&usual);
    let path = folder.join(name);
    if path.exists() {
        return Err(format!("{name} is there already; give another name: /export NAME"));
    }
    std::fs::write(&path, markdown(session))
        .map_err(|problem| format!("cannot write {}: {problem}", path.display()))?;
    Ok(path.display().to_string())
}

fn markdown(session: &Session) -> String {
    let mut out = format!("# {}\n\n**Session ID:** {}\n", session.title(), session.header.session);
    for item in session.items() {
        match item {
            Item::Prompt(prompt) => {
                let text = super::past::text_of(&prompt.content);
                out.push_str(&format!("\n---\n\n## User\n\n{text}\n"));
            }
            Item::Note(_) => {}
            Item::Step(step) => {
                out.push_str(&format!("\n---\n\n## Assistant ({})\n", step.model));
                for block in &step.blocks {
                    match block {
                        StepBlock::Text { text, .. } => out.push_str(&format!("\n{text}\n")),
                        StepBlock::Reasoning { text, .. } if !text.trim().is_empty() => {
                            out.push_str(&format!("\n_Thinking:_\n\n{text}\n"));
                        }
                        StepBlock::Call(call) => {
                            out.push_str(&format!("\n**Tool: {}**\n", call.name));
                            out.push_str(&fenced("Input", "json", &call.arguments));
                            if let Some(outcome) = call.outcome() {
                                out.push_str(&fenced("Output", "", &outcome.output));
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    out
}

/// In a fence that nothing in the text can end.
fn fenced(title: &str, language: &str, text: &str) -> String {
    let longest = text.lines().map(|l| l.trim_start().chars().take_while(|c| *c == '`').count());
    let fence = "`".repeat(longest.max().unwrap_or(0).max(2) + 1);
    format!("\n**{title}:**\n\n{fence}{language}\n{}\n{fence}\n", text.trim_end())
}
