use super::*;

fn request(permission: &str, pattern: &str, always: &str) -> Request {
    Request {
        permission: permission.to_owned(),
        pattern: pattern.to_owned(),
        always: always.to_owned(),
        ..Request::default()
    }
}

fn bash(command: &str) -> Request {
    request("bash", command, command)
}

fn patterns(request: &Request) -> Vec<(Extent, String)> {
    suggestions(request).into_iter().map(|s| (s.extent, s.pattern)).collect()
}

fn own(patterns: &[&str]) -> Grant {
    Grant { patterns: patterns.iter().map(|p| (*p).to_owned()).collect(), ..Grant::default() }
}

#[test]
fn a_command_is_offered_as_it_is_as_its_kind_and_as_the_tool() {
    let offered = patterns(&bash("git push origin main"));
    let expected = [
        (Extent::Exact, "git push origin main".to_owned()),
        (Extent::Prefix, "git push *".to_owned()),
        (Extent::Tool, "*".to_owned()),
    ];
    assert_eq!(offered, expected);
}

#[test]
fn a_kind_that_would_mean_anything_is_not_offered() {
    for command in [
        "bash -c 'rm x'",
        "sudo make install",
        "env X=1 make",
        "python -c 'print(1)'",
        "node evil.js",
        "xargs rm",
        "find . -delete",
        "curl https://example.org",
        "rm -rf build",
        "X=1 cargo test",
        "cargo test > out.txt",
        "git -c alias.x='!sh' x",
        "./run.sh --all",
        "docker run x",
        "$TOOL build",
    ] {
        let prefix = patterns(&bash(command)).into_iter().find(|(e, _)| *e == Extent::Prefix);
        assert_eq!(prefix, None, "{command}");
    }
    for (command, kind) in [
        ("cargo test --all", "cargo test *"),
        ("npm run build", "npm run build *"),
        ("python manage.py migrate", "python manage.py *"),
        ("pytest -q", "pytest *"),
    ] {
        let prefix = patterns(&bash(command)).into_iter().find(|(e, _)| *e == Extent::Prefix);
        assert_eq!(prefix.map(|(_, p)| p).as_deref(), Some(kind), "{command}");
    }
}

#[test]
fn what_is_not_known_is_never_offered_nor_covered() {
    let doubtful = Request { doubt: Some("it is computed".into()), ..bash("make") };
    assert!(patterns(&doubtful).is_empty());
    let all = Approval {
        permission: "bash".into(),
        pattern: "*".into(),
        exact: false,
        scope: Scope::Everywhere,
        command: String::new(),
    };
    assert!(all.covers(&bash("make")));
    assert!(!all.covers(&doubtful));
    assert!(agree(std::slice::from_ref(&doubtful), &Grant::default(), "/h").unwrap().is_empty());
    let refused = agree(&[doubtful], &own(&["make"]), "/h").unwrap_err();
    assert!(refused.contains("does not cover"), "{refused}");
}

#[test]
fn a_kind_of_command_does_not_say_where_its_output_goes() {
    let kind = |pattern: &str| Approval {
        permission: "bash".into(),
        pattern: pattern.into(),
        exact: false,
        scope: Scope::Session,
        command: String::new(),
    };
    assert!(kind("cargo test *").covers(&bash("cargo test --all")));
    assert!(!kind("cargo test *").covers(&bash("cargo test > src/main.rs")));
    assert!(!kind("cargo test *").covers(&bash("cargo testx")));
    assert!(!kind("cargo test *").covers(&request("edit", "cargo test x", "*")));
}

#[test]
fn paths_and_addresses_have_a_folder_and_a_host() {
    let edit = patterns(&request("edit", "src/a/b.rs", "*"));
    assert_eq!(edit[1], (Extent::Prefix, "src/a/*".to_owned()));
    let fetch = patterns(&request("webfetch", "https://example.org/a?b", "*"));
    assert_eq!(fetch[1], (Extent::Prefix, "https://example.org/*".to_owned()));
    let outside = patterns(&request("external_directory", "/srv/x/*", "/srv/x/*"));
    assert_eq!(outside, [(Extent::Prefix, "/srv/x/*".to_owned())]);
}

#[test]
fn a_pattern_of_ones_own_must_cover_what_was_asked_and_no_more_than_its_tool() {
    let asked = [bash("git push origin")];
    let agreed = agree(&asked, &own(&["git *"]), "/h").unwrap();
    assert_eq!((agreed[0].pattern.as_str(), agreed[0].exact), ("git *", false));
    let exact = agree(&asked, &own(&["git push origin"]), "/h").unwrap();
    assert!(exact[0].exact);
    let refused = agree(&asked, &own(&["cargo *"]), "/h").unwrap_err();
    assert!(refused.contains("\"cargo *\" does not cover git push origin"), "{refused}");
    let two = [bash("cargo build"), bash("git push")];
    let refused = agree(&two, &own(&["cargo *"]), "/h").unwrap_err();
    assert!(refused.contains("does not cover bash git push"), "{refused}");
    assert_eq!(agree(&two, &own(&["cargo *", "git push"]), "/h").unwrap().len(), 2);
    let outside = [request("external_directory", "/h/notes/*", "/h/notes/*")];
    for wide in ["*", "/*", "~/*", "/h/*"] {
        let refused = agree(&outside, &own(&[wide]), "/h").unwrap_err();
        assert!(refused.contains("wider than what was asked"), "{wide}: {refused}");
    }
    assert_eq!(agree(&outside, &own(&["~/notes/*"]), "/h").unwrap()[0].pattern, "/h/notes/*");
}

#[test]
fn what_is_kept_for_long_is_kept_narrow_unless_somebody_says_more() {
    let edit = [request("edit", "src/a.rs", "*")];
    let agreed = |grant: Grant| agree(&edit, &grant, "/h").unwrap()[0].clone();
    assert_eq!(agreed(Grant::default()).pattern, "*", "as people know it");
    let project = Grant { scope: Scope::Project, ..Grant::default() };
    assert_eq!(agreed(project.clone()).pattern, "src/a.rs");
    assert_eq!(agreed(Grant { extent: Some(Extent::Tool), ..project }).pattern, "*");
    // Where there is no such kind, the narrower choice stands for it.
    let remove = [bash("rm -rf build")];
    let kind = Grant { extent: Some(Extent::Prefix), ..Grant::default() };
    assert_eq!(agree(&remove, &kind, "/h").unwrap()[0].pattern, "rm -rf build");
}

#[test]
fn a_star_of_the_commands_own_is_no_pattern() {
    let agreed = agree(&[bash("rm *.log")], &Grant::default(), "/h").unwrap();
    assert!(agreed[0].covers(&bash("rm *.log")));
    assert!(!agreed[0].covers(&bash("rm -rf / a.log")));
}
