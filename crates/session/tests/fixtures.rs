//! Files of every format that was ever written. They stay here for ever and open for ever: each
//! `*.jsonl` folds to what the `*.txt` beside it says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use toolwright_llm::{Block, Content, Turn};
use toolwright_session::{Entry, Item, Session, StepBlock, Store};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|x| x == "jsonl"));
    files.sort();
    files
}

fn words(content: &[Content]) -> String {
    let one = |part: &Content| match part {
        Content::Text { text } => text.clone(),
        Content::Media(media) => format!("[{}]", media.mime),
    };
    content.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// What people and what models see.
fn told(session: &mut Session) -> String {
    let header = &session.header;
    let mut out = format!("{} in {} by {}\n", header.session, header.directory, header.made_by);
    out.push_str(&format!("from {:?}, for {:?}\n", header.forked_from, header.parent));
    for (item, place) in session.items().iter().zip(session.places()) {
        out.push_str(&format!("{} ", place.time));
        match item {
            Item::Prompt(p) => {
                let steer = if p.steer { " (steer)" } else { "" };
                out.push_str(&format!(
                    "prompt{steer} {} {}: {}\n",
                    p.agent,
                    p.model,
                    words(&p.content)
                ));
            }
            Item::Note(text) => out.push_str(&format!("note: {text}\n")),
            Item::Step(step) => {
                let finish = step.finish.as_ref().map(|f| f.reason);
                out.push_str(&format!("step {} {finish:?} {:?}\n", step.usage.output, step.cost));
                for block in &step.blocks {
                    out.push_str(&match block {
                        StepBlock::Text { text, .. } => format!("  says {text}\n"),
                        StepBlock::Reasoning { text, .. } => format!("  thinks {text}\n"),
                        StepBlock::ServerTool { name, .. } => format!("  used {name}\n"),
                        StepBlock::Call(call) => format!(
                            "  calls {} {} {:?} {:?}\n",
                            call.name,
                            call.arguments,
                            call.outcome().map(|o| (o.ending, &o.output, &o.title)),
                            call.touched().writes,
                        ),
                    });
                }
                if let Some(failure) = &step.failure {
                    out.push_str(&format!("  failed {failure}\n"));
                }
            }
        }
    }
    let queued: Vec<String> = session.queued().iter().map(|q| words(&q.content)).collect();
    out.push_str(&format!("queued {queued:?}, ended {:?}\n", session.ended()));
    for turn in session.turns() {
        out.push_str(&match turn.as_ref() {
            Turn::User(content) => format!("→ user: {}\n", words(content)),
            Turn::Assistant { blocks, .. } => {
                let one = |block: &Block| match block {
                    Block::Text { text, .. } => text.clone(),
                    Block::Call { name, result, .. } => {
                        format!("{name}: {}", words(&result.content))
                    }
                    Block::Reasoning { .. } => "(reasoning)".to_owned(),
                    Block::ServerTool { .. } => "(server tool)".to_owned(),
                };
                let said = blocks.iter().map(one).collect::<Vec<_>>().join(" | ");
                format!("→ model: {said}\n")
            }
        });
    }
    out
}

#[test]
fn files_of_every_format_fold_to_what_they_always_did_and_can_be_gone_on_with() {
    let files = fixtures();
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let id = "ses_fixture";
        std::fs::copy(&file, project.join(format!("{id}.jsonl"))).unwrap();
        let store = Store::new(folder.path());
        let expected = std::fs::read_to_string(file.with_extension("txt")).unwrap_or_default();
        let found = told(&mut store.peek(id).unwrap());
        assert_eq!(found, expected, "{}", file.display());

        let (mut log, mut opened, _) = store.open(id).unwrap();
        let turns = opened.turns().len();
        let entry = Entry::Note { text: "goes on".to_owned() };
        let mark = log.append(&entry).unwrap();
        opened.apply(entry, mark);
        drop(log);
        let mut again = store.glance(id).unwrap();
        assert_eq!(again.items(), opened.items(), "{}", file.display());
        assert_eq!(again.turns().len(), turns + 1, "{}", file.display());
    }
}
