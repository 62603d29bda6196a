use std::path::PathBuf;

use crate::tests::Setup;
use crate::{Trust, TrustState};

fn trust(setup: &Setup) -> (Trust, PathBuf, PathBuf) {
    let work = setup.root.path().join("work");
    (Trust::new(&setup.paths()), work.join("inner"), work)
}

#[test]
fn a_folder_is_trusted_as_long_as_its_files_are_those_that_were_looked_at() {
    let setup = Setup::new(&[
        ("work/opencode.json", r#"{"model":"a/b"}"#),
        ("work/.opencode/plugin/a.ts", "export default 1"),
        ("work/.claude/settings.json", "{}"),
    ]);
    let (trust, directory, work) = trust(&setup);
    assert_eq!(trust.state(&directory, &work), TrustState::Unknown);
    trust.decide(&directory, &work, true).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
    for changed in ["opencode.json", ".opencode/plugin/b.ts", ".claude/settings.local.json"] {
        let file = work.join(changed);
        let before = std::fs::read(&file).ok();
        std::fs::write(&file, "{\"hooks\":{}}").unwrap();
        let state = trust.state(&directory, &work);
        let files = vec![changed.to_owned()];
        assert_eq!(state, TrustState::Changed { files, was_trusted: true });
        match before {
            Some(bytes) => std::fs::write(&file, bytes).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
    }
    // Code, plans and what is gone are no reason to ask again.
    std::fs::create_dir_all(work.join(".opencode/plans")).unwrap();
    std::fs::write(work.join(".opencode/plans/x.md"), "plan").unwrap();
    std::fs::write(work.join("main.rs"), "fn main() {}").unwrap();
    std::fs::remove_file(work.join("opencode.json")).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
}

#[test]
fn trust_is_for_one_folder_and_neither_for_those_above_nor_below() {
    let setup = Setup::new(&[("work/opencode.json", "{}"), ("work/inner/opencode.json", "{}")]);
    let (trust, directory, work) = trust(&setup);
    trust.decide(&work, &work, true).unwrap();
    assert_eq!(trust.state(&work, &work), TrustState::Trusted);
    // The same repository seen from deeper inside has a file more.
    let files = vec!["inner/opencode.json".to_owned()];
    let more = TrustState::Changed { files, was_trusted: true };
    assert_eq!(trust.state(&directory, &work), more);
    trust.decide(&directory, &work, true).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
    assert_eq!(trust.state(&work, &work), TrustState::Trusted, "what was known stays known");
    // A repository of its own inside, and the folder above.
    assert_eq!(trust.state(&directory, &directory), TrustState::Unknown);
    let above = setup.root.path();
    assert_eq!(trust.state(above, above), TrustState::Unknown);
}

#[test]
fn a_no_is_remembered_and_both_can_be_taken_back() {
    let setup = Setup::new(&[("work/opencode.json", "{}")]);
    let (trust, directory, work) = trust(&setup);
    trust.decide(&directory, &work, false).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Refused);
    trust.decide(&directory, &work, true).unwrap();
    assert_eq!(trust.state(&directory, &work), TrustState::Trusted);
    assert_eq!(trust.all().unwrap().len(), 1);
    assert!(trust.revoke(&work).unwrap());
    assert!(!trust.revoke(&work).unwrap());
    assert_eq!(trust.state(&directory, &work), TrustState::Unknown);
}

#[test]
fn a_broken_store_trusts_nobody_and_is_not_written_over() {
    let setup = Setup::new(&[("data/trust.json", "{ not json")]);
    let (trust, directory, work) = trust(&setup);
    assert_eq!(trust.state(&directory, &work), TrustState::Unknown);
    let error = trust.decide(&directory, &work, true).unwrap_err().to_string();
    assert!(error.contains("trust.json"), "{error}");
    let text = std::fs::read_to_string(setup.root.path().join("data/trust.json")).unwrap();
    assert_eq!(text, "{ not json");
}
