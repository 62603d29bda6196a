use crate::folder;

#[test]
fn without_key_and_server_the_demo_really_looks_and_says_what_it_is() {
    let folder = folder()
        .file("README.md", "# Frobnicator\n\nTurns wheels.\n")
        .file("src/wheel.rs", "fn turn_wheel() {}\n");
    let run = folder.tw(&["run", "Where is turn_wheel?"]).expect(0);
    for part in [
        "Frobnicator",
        "Turns wheels.",
        "Found 1 matches",
        "not a language model",
        "ANTHROPIC_API_KEY",
    ] {
        assert!(run.stdout.contains(part), "{part} in {}", run.stdout);
    }
    for part in ["demo model", "✓ read .", "✓ read README.md", "✓ grep", "bash git log"] {
        assert!(run.stderr.contains(part), "{part} in {}", run.stderr);
    }
}

#[test]
fn doctor_names_what_it_found_and_what_to_do_next() {
    let run = folder().tw(&["doctor"]).expect(0);
    assert!(
        run.stdout.contains("demo/demo") && run.stdout.contains("set ANTHROPIC_API_KEY"),
        "{}",
        run.stdout
    );
    let keyed =
        folder().env("OPENAI_API_KEY", "sk-secret").env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    let run = keyed.tw(&["doctor"]).expect(0);
    assert!(
        run.stdout.contains("OPENAI_API_KEY (OpenAI, http://127.0.0.1:1/v1)"),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains("sk-secret"));
}

#[test]
fn doctor_says_which_language_servers_are_there_and_which_are_missing() {
    let found = folder();
    let programs = found.root().join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink("/bin/true", programs.join("clangd")).unwrap();
    let found = found.env("PATH", &format!("{}:/usr/bin:/bin", programs.display()));
    let run = found.tw(&["doctor"]).expect(0);
    assert!(run.stdout.contains("  lsp              off;"), "{}", run.stdout);
    assert!(run.stdout.contains("  clangd           /"), "{}", run.stdout);
    assert!(run.stdout.contains("more are known and not on PATH"), "{}", run.stdout);
    let settings =
        r#"{ "lsp": { "mine": { "command": ["no-such-server"], "extensions": [".my"] } } }"#;
    let broken = folder().file("opencode.json", settings);
    let run = broken.tw(&["doctor", "--trust"]).expect(1);
    let missing = "! mine: no-such-server was not found on PATH";
    assert!(run.stdout.contains(missing), "{}", run.stdout);
}

#[test]
fn help_version_and_completions_are_answers() {
    let folder = folder();
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"], &["completions", "bash"]]
    {
        let run = folder.tw(arguments).expect(0);
        assert!(!run.stdout.is_empty() && run.stderr.is_empty(), "{arguments:?}");
    }
}
