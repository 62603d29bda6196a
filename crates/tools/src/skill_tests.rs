//! Skills as the model sees them.

use std::fs;
use std::sync::Arc;

use serde_json::json;
use toolwright_tool::AnyTool;

use crate::kit::Kit;
use crate::{Skill, SkillTool};

fn with_skills(names: &[(&str, Option<&str>)]) -> (Kit, std::path::PathBuf) {
    let kit = Kit::new([]);
    let root = fs::canonicalize(kit.folder.path()).unwrap().join("skills");
    let mut skills = Vec::new();
    for (name, about) in names {
        let location = root.join(name).join("SKILL.md");
        fs::create_dir_all(location.parent().unwrap()).unwrap();
        fs::write(&location, format!("---\nname: {name}\n---\n\n  Do it for {name}.\n\n")).unwrap();
        let description = about.map(str::to_owned);
        skills.push(Skill { name: (*name).to_owned(), description, location });
    }
    let tool: Arc<dyn AnyTool> = Arc::new(SkillTool::new(skills));
    kit.registry.register_from(toolwright_tool::Source::BuiltIn, tool);
    (kit, root)
}

#[tokio::test]
async fn a_skill_comes_with_its_folder_and_some_files() {
    let (kit, root) = with_skills(&[("pdf", Some("Reads PDFs."))]);
    let folder = root.join("pdf");
    fs::create_dir_all(folder.join("scripts")).unwrap();
    fs::write(folder.join("scripts/run.py"), "").unwrap();
    fs::write(folder.join(".hidden"), "").unwrap();
    let outcome = kit.ok("skill", json!({"name": "pdf"})).await;
    let at = folder.display();
    assert_eq!(
        outcome.output,
        format!(
            "<skill_content name=\"pdf\">\n# Skill: pdf\n\nDo it for pdf.\n\n\
             Base directory for this skill: {at}\n\
             Relative paths in this skill refer to that directory.\n\
             The list of files is a sample.\n\n<skill_files>\n<file>{at}/.hidden</file>\n\
             <file>{at}/scripts/run.py</file>\n</skill_files>\n</skill_content>"
        )
    );
    assert_eq!(outcome.title, "Loaded skill: pdf");
    assert_eq!(outcome.details, json!({"name": "pdf", "dir": folder}));
    assert_eq!(kit.asked()[0], ("skill".to_owned(), "pdf".to_owned()));
    for n in 0..20 {
        fs::write(folder.join(format!("f{n}")), "").unwrap();
    }
    let outcome = kit.ok("skill", json!({"name": "pdf"})).await;
    assert_eq!(outcome.output.matches("<file>").count(), 10);
}

#[tokio::test]
async fn a_name_that_is_not_there_is_answered_with_those_that_are() {
    let (kit, _) = with_skills(&[("a", Some("A.")), ("b", None)]);
    let error = kit.error("skill", json!({"name": "c"})).await;
    assert_eq!(error, "Skill \"c\" not found. Available skills: a, b");
    let (none, _) = with_skills(&[]);
    let error = none.error("skill", json!({"name": "c"})).await;
    assert_eq!(error, "Skill \"c\" not found. Available skills: none");
    kit.ok("skill", json!({"name": "b"})).await;
}

#[test]
fn only_skills_with_a_description_are_listed() {
    let (kit, _) = with_skills(&[("a", Some("Does\n  a.")), ("b", None)]);
    let description = kit.registry.definitions()[0].description.clone();
    assert!(description.contains("<available_skills>\na: Does a.\n</available_skills>"));
}

#[tokio::test]
async fn a_skill_that_is_gone_says_so() {
    let (kit, root) = with_skills(&[("a", Some("A."))]);
    fs::remove_file(root.join("a/SKILL.md")).unwrap();
    assert!(kit.error("skill", json!({"name": "a"})).await.contains("Cannot open"));
}
