//! What the model is told before the first prompt.

use std::path::Path;

/// Facts about where the agent works.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    pub directory: &'a Path,
    pub worktree: &'a Path,
    /// `2026-11-15`: a day is fine enough, and stays the same for the provider's cache.
    pub date: &'a str,
    pub instructions: &'a [(String, String)],
    /// An agent's own prompt stands in for the standard one.
    pub agent_prompt: Option<&'a str>,
}

/// The system prompt. It is frozen when a session begins; what changes later is appended as a note.
pub fn system_prompt(context: &Context<'_>) -> String {
    let standard = include_str!("prompts/system.md");
    let mut text = context.agent_prompt.unwrap_or(standard).trim().to_owned();
    let git = if context.worktree.join(".git").exists() { "yes" } else { "no" };
    text.push_str(&format!(
        "\n\n<env>\nWorking directory: {}\nWorkspace root: {}\nGit repository: {git}\nPlatform: {}\nToday's date: {}\n</env>",
        context.directory.display(),
        context.worktree.display(),
        std::env::consts::OS,
        context.date,
    ));
    for (path, instruction) in context.instructions {
        text.push_str(&format!("\n\nInstructions from: {path}\n{}", instruction.trim()));
    }
    text
}

#[cfg(test)]
mod tests {
    /// Four characters a token is the usual rule of thumb.
    #[test]
    fn the_standard_prompt_stays_below_500_tokens() {
        let size = include_str!("prompts/system.md").len() / 4;
        assert!(size < 500, "{size} tokens");
    }
}
