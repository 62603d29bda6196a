//! The full coding agent in a program of your own: the folder's configuration, rules, tools and a
//! session on disk, with every event printed as it happens.
//! `cargo run --example coding_agent -- "What is this project?"`

use std::path::Path;

use tokio::sync::mpsc;
use toolwright::llm::Content;
use toolwright::{Answer, CancellationToken, DeskOptions, Event, Workbench};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "What is this project?".to_owned());
    let (sender, mut events) = mpsc::channel(256);

    let workbench = Workbench::open(Path::new("."), false)?;
    let options = DeskOptions { asker: Some(sender.clone()), ..DeskOptions::default() };
    let desk = workbench.desk(options).await?;
    let (mut engine, questions) = (desk.engine, desk.questions);

    // The turn runs in a task of its own; this one shows what happens and answers questions.
    let turn = tokio::spawn(async move {
        engine.prompt(vec![Content::text(prompt)], &CancellationToken::new(), &sender).await
    });
    while let Some(event) = events.recv().await {
        match event {
            Event::Text { delta } => print!("{delta}"),
            Event::CallStarted { tool, summary, .. } => println!("[{tool}] {summary}"),
            Event::Question { id, question, .. } => {
                println!("refused: {}", question.summary);
                let message = Some("this example only looks".to_owned());
                questions.answer(id, Answer::Reject { message })?;
            }
            Event::TurnEnded(end) => println!("\n({:?}, {} steps)", end.status, end.steps),
            _ => {}
        }
    }
    turn.await?;
    toolwright::end_everything();
    Ok(())
}
