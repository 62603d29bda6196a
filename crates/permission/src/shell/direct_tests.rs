//! Lines that the direct reader knows, and lines that it leaves alone.

use super::*;

/// The commands of a line: their words, and where they write (`>`) and read (`<`).
fn read(line: &str) -> Option<Vec<String>> {
    let shown = |raw: Raw| {
        let word = |word: &Word| word.text.clone().unwrap_or_else(|| "…".to_owned());
        let mut parts: Vec<String> = raw.assigned.iter().map(|name| format!("{name}=")).collect();
        parts.extend(raw.words.iter().map(word));
        for Redirect { to, writes } in &raw.redirects {
            parts.push(format!("{}{}", if *writes { '>' } else { '<' }, word(to)));
        }
        parts.join("|")
    };
    parse(line, &[]).map(|parsed| parsed.commands.into_iter().map(shown).collect())
}

#[test]
fn common_lines_are_read_as_bash_reads_them() {
    for (line, expected) in [
        ("ls -la 'a b' \"c d\" e\\ f", &["ls|-la|a b|c d|e f"][..]),
        ("a | b && c || d; e & f\ng", &["a", "b", "c", "d", "e", "f", "g"]),
        ("a > x b 2>&1 c", &["a|b|c|>x"]),
        ("a >>x <y &>z >|w 2>v", &["a|>x|<y|>z|>w|>v"]),
        ("a b2>c 3 >d", &["a|b2|3|>c|>d"]),
        ("a | b > c", &["a", "b|>c"]),
        ("a && b > c && d", &["a", "b|>c", "d"]),
        ("A=1 B=x/y a", &["A=|B=|a"]),
        ("echo $(cat $(ls x)) y", &["echo|…|y", "cat|…", "ls|x"]),
        ("echo \"a $(b) $c\" '$(d)'", &["echo|…|$(d)", "b"]),
        ("rm \"$HOME\"/x $PWD/y ~/z ~root", &["rm|~/x|./y|~/z|…"]),
        ("rm x$HOME", &["rm|…"]),
        ("for f in a *.b; do c \"$f\"; d; done; e", &["c|…", "d", "e"]),
        ("while a; do b; done", &["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi | f", &["a", "b", "c", "d", "e", "f"]),
        ("(cd a && b; c)", &["cd|a", "b", "c"]),
        ("a # b; c\nd #", &["a", "d"]),
        ("a \\\n b \\\n | c", &["a|b", "c"]),
        ("a x#y stash@{0} {} [ab]*", &["a|x#y|stash@{0}|{}|[ab]*"]),
        ("\\rm r''m \"a\"b'c'", &["rm|rm|abc"]),
        ("a 'b\nc' \"d\ne\"", &["a|b\nc|d\ne"]),
    ] {
        let expected: Vec<String> = expected.iter().map(|c| (*c).to_owned()).collect();
        assert_eq!(read(line), Some(expected), "{line:?}");
    }
}

#[test]
fn whatever_is_not_certain_is_left_to_the_grammar() {
    for line in [
        "",
        " ",
        "# a",
        "a `b`",
        "a $((1))",
        "a ${x:-y}",
        "a $'b'",
        "a $\"b\"",
        "a $",
        "a {b,c}",
        "a {1..3}",
        "a <<E\nE",
        "a <<< b",
        "a <(b)",
        "a >(b)",
        "a <> b",
        "a <& 3",
        "a >&b",
        "a >&-",
        "a {x}> b",
        "> a",
        "> a b",
        "a ;; b",
        "a |& b",
        "a | | b",
        "a &&",
        "a |",
        "| a",
        "; a",
        "a; ; b",
        "a &; b",
        "(a",
        "a)",
        "()",
        "((a))",
        "(a) > b",
        "{ a; }",
        "! a",
        "[ a ]",
        "[[ a ]]",
        "time a",
        "coproc a",
        "function f { a; }",
        "f() { a; }",
        "case a in b) c;; esac",
        "select a in b; do c; done",
        "export A=1",
        "local a",
        "unset a",
        "A=1",
        "A=$(b) c",
        "A=~ c",
        "A+=1 b",
        "a[0]=1 b",
        "$a b",
        "~/a b",
        "*a b",
        "'a",
        "\"a",
        "a\\",
        "a \\\tb",
        "a b\\\nc",
        "a =b",
        "a x=~y",
        "a 'b'~",
        "a $(",
        "a $()",
        "for a; do b; done",
        "for a in b; do; done",
        "for a in b; c",
        "while a; do b",
        "if a; then b",
        "if a; fi",
        "do a; done",
        "while a; do cd b; done",
        "if a; then cd b; fi; c",
        "cd $a",
        "cd -",
        "popd",
        "a > $(b)",
        "for a in b; do c; done > d",
        "a # b\\\nc",
        "a # b\\\n",
        "a\\\nb",
        "a[\\b",
        "a 'b'\\c",
    ] {
        assert_eq!(read(line), None, "{line:?}");
    }
}

#[test]
fn nesting_has_an_end() {
    let nested = |depth: usize| format!("{}a{}", "a $(".repeat(depth), ")".repeat(depth));
    assert!(read(&nested(8)).is_some());
    assert!(read(&nested(200)).is_none());
    assert!(read(&"(".repeat(300)).is_none());
}
