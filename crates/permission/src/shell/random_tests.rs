//! Lines by chance: what holds for each of them.

use super::*;
use proptest::prelude::*;

/// What lines are made of, and what they are broken with.
const PIECES: &[&str] = &[
    "ls",
    "cat",
    "git",
    "status",
    "log",
    "echo",
    "cd",
    "sort",
    "grep",
    "find",
    "sed",
    "awk",
    "rm",
    "x",
    "a.txt",
    "src",
    ".",
    "..",
    "/",
    "~",
    "-n",
    "-la",
    "--",
    "-o",
    "-exec",
    " ",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    ";",
    "&",
    "&&",
    "|",
    "||",
    ">",
    ">>",
    "<",
    "<<",
    "<<<",
    "2>&1",
    "2>/dev/null",
    "> /dev/null",
    "'",
    "\"",
    "\\",
    "\\\n",
    "`",
    "$",
    "$(",
    ")",
    "(",
    "{",
    "}",
    "[",
    "]",
    "[ -f x ]",
    "*",
    "?",
    "#",
    "!",
    "=",
    "A=1 ",
    ",",
    "%",
    "@",
    "^",
    "\r",
    "é",
    "\u{200b}",
    "'1,5p'",
    "'s/a/b/'",
    "'{print $1}'",
    "'a b'",
    "\"a$\"",
    "EOF",
    "$'x'",
    "${x}",
    "~root",
];

const STATEMENTS: &[&str] = &[
    "ls",
    "cd a",
    "cd ..",
    "rm -rf \"$HOME\"/x",
    "cat 'a b' c\\ d",
    "echo $(cd b; pwd) > y",
    "echo \"x $(ls $(pwd)) y\"",
    "A=1 B=x/y make -j 4",
    "(cd x && rm y)",
    "(a; b) ",
    "for f in *.txt 'b c'; do sed -i s/a/b/ \"$f\"; done",
    "while read l; do echo $l; done",
    "until a; do b; done",
    "if a; then b; elif c; then d; else e; fi",
    "cp a b 2>/dev/null",
    "a > b c 2>&1",
    "a 2>&1 b",
    "a < b >> c",
    "a &> b",
    "a >| b",
    "find . -name \\*.rs -exec rm {} \\;",
    "git -C a log -5 stash@{0}",
    "xargs -n 1 rm",
    "bash -c 'rm x | cat > y'",
    "rm ~/x ~",
    "cat [ab]*.txt",
    "sudo -u x rm -r /",
    "env A=1 rm x",
    "rg -n foo",
    "grep -r x",
    "d",
    "export A=1",
    "A=1",
    "! a",
    "time a",
    "[ -f x ]",
    "{ a; }",
    "f() { a; }",
    "a <<E\nx\nE\n",
    "case x in y) z;; esac",
    "# note\n",
    "case \"$1\" in a|b*) ls;; (c) ;; *) rm y; esac",
    "case $x in\n  -h|--help)\n    usage\n    ;;\n  *) cd a; exit 1 ;&\n  z) q;;\nesac",
    "f() { local x=$1 y; rm \"$x\"; }",
    "function g { g | cat; }",
    "h() {\n  cd a\n  h\n}\n",
    "b() { for i in 1; do b; done; }",
    "name=value; echo \"$name\"",
    "d=/x; rm -r $d/y ${d}",
    "d='a b'; rm $d \"$d\"",
    "d=~/x; rm $d",
    "d='*'; rm $d \"$d\"",
    "d=$(pwd)/x; rm $d",
    "d=",
    "d+=x",
    "A=x B=\"y z\"",
    "A=\"x $y\" B=$(ls) a $A",
    "a=(x \"y z\" $(ls)); rm \"${a[@]}\"",
    "export A=x PATH=$PATH:y",
    "readonly x=$(ls) y",
    "declare -a z",
    "unset d",
    "read d",
    "eval x",
    "[[ -f a ]] && rm a",
    "[[ $x == y* && -n \"$z\" ]] || rm a",
    "[[ $x =~ ^[0-9]+$ ]]",
    "[ \"$x\" = y ] && rm a",
    "[ -f x -a ! -d $(ls) ]",
    "[ -n \"$x\" ] 2>/dev/null",
    "{ a; cd b; c; }",
    "{ a; b; } > c 2>&1",
    "(a; b) 2>/dev/null",
    "! grep -q x y",
    "! [ -f x ]",
    "while read l; do echo $l; done < x",
    "while IFS= read -r l; do rm \"$l\"; done < x",
    "d=x; printf -vd y; rm $d",
    "d=x; let d=1; rm $d",
    "for f in a; do b; done > c",
    "for ((i=0; i<3; i++)); do rm $i; done",
    "select x in a b; do c; done",
    "if [ -f x ]; then cd a; elif b; then cd c; else rm ../x; fi",
    "if cd a; then rm x; fi",
    "echo $((x + 1)) ${y:-z} ${#y} ${z[@]} $# $$ \"$*\"",
    "i=1; rm $((i++)) $i",
    "mkdir -p src/{a,b}/c {d,e}",
    "diff <(sort a) <(sort b)",
    "cat <<< x",
    "bash <<< 'rm x'",
    "bash <<< \"$x\"",
    "time a",
    "a && { b; c; }",
    "a || (cd b; c)",
];

/// What holds other statements.
const FRAMES: &[(&str, &str)] = &[
    ("", ""),
    ("{ ", "; }"),
    ("( ", " )"),
    ("if a; then ", "; fi"),
    ("if ", "; then b; else c; fi"),
    ("if a; then b; else ", "; fi"),
    ("for x in 1 2; do ", "; done"),
    ("while ", "; do b; done"),
    ("while a; do\n", "\ndone"),
    ("case x in y) ", ";; esac"),
    ("case x in y) ", " ;;\n z) b\nesac"),
    ("f() { ", "; }"),
    ("f() {\n", "\n}\nf"),
    ("function f { ", "; }; f"),
    ("echo $(", ")"),
    ("echo \"$(", ")\""),
    ("diff <(", ") x"),
    ("x=$(", "); rm $x"),
    ("a | ", " | b"),
    ("a && ", " || b"),
    ("! ", ""),
    ("{ ", "; } > z"),
    ("while a; do ", "; done < z"),
];

const JOINTS: &[&str] = &[
    "",
    " ",
    ";",
    "; ",
    " && ",
    "&&",
    " || ",
    " | ",
    "|",
    " & ",
    "&",
    "\n",
    " \\\n ",
    " > z",
    " 2>/dev/null",
    " # x\n",
    " |\n",
    " &&\n",
];

proptest! {
    /// Whatever it is, it is taken apart or said to be unknown, and never a panic.
    #[test]
    fn any_text_gives_an_analysis(line in "\\PC{0,80}") {
        analyse(&line);
    }

    /// The same as `fuzz/fuzz_targets/shell.rs`, for lines made of what shells care about: what passes
    /// without a question passes for what it says.
    #[test]
    fn what_is_harmless_is_read_in_one_way(
        pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 1..12)
    ) {
        let line: String = pieces.concat();
        if is_harmless(&line) {
            let printed = reprint(&line).expect("read as a whole");
            prop_assert!(is_harmless(&printed), "{:?} is harmless, {:?} is not", line, printed);
            prop_assert_eq!(reprint(&printed), Some(printed));
            let longer = format!("{line}\nrm x");
            prop_assert!(!is_harmless(&longer), "{:?}", longer);
        }
    }

    /// Where both readers can read a line as a whole, they find the same in it.
    #[test]
    fn both_readers_find_the_same(
        pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 1..14)
    ) {
        let line: String = pieces.concat();
        if let Some((direct, grammar)) = readings(&line) {
            prop_assert_eq!(direct, grammar, "{:?}", line);
        }
    }

    /// The same for lines that are more likely to be ones.
    #[test]
    fn both_readers_find_the_same_in_statements(
        pieces in prop::collection::vec(
            (prop::sample::select(STATEMENTS.to_vec()), prop::sample::select(JOINTS.to_vec())),
            1..6,
        )
    ) {
        let line: String = pieces.iter().flat_map(|(a, b)| [*a, *b]).collect();
        if let Some((direct, grammar)) = readings(&line) {
            prop_assert_eq!(direct, grammar, "{:?}", line);
        }
    }

    /// The same for statements in others, several deep.
    #[test]
    fn both_readers_find_the_same_in_nested_statements(
        pieces in prop::collection::vec(
            (
                prop::sample::select(STATEMENTS.to_vec()),
                prop::collection::vec(prop::sample::select(FRAMES.to_vec()), 0..4),
            ),
            1..4,
        ),
        joint in prop::sample::select(JOINTS.to_vec()),
    ) {
        let framed = |(statement, frames): &(&str, Vec<(&str, &str)>)| {
            let wrap = |inner: String, (open, close): &(&str, &str)| format!("{open}{inner}{close}");
            frames.iter().fold((*statement).to_owned(), wrap)
        };
        let line = pieces.iter().map(framed).collect::<Vec<_>>().join(joint);
        if let Some((direct, grammar)) = readings(&line) {
            prop_assert_eq!(direct, grammar, "{:?}", line);
        }
    }

    /// A writing command stays one, whatever harmless things stand around it.
    #[test]
    fn a_writing_command_is_seen_among_others(
        before in prop::sample::select(vec!["ls; ", "true && ", "echo a | ", "(", "if true; then ", "! ", ""]),
        after in prop::sample::select(vec!["; ls", " || true", " | cat", "", " # ok"]),
        what in prop::sample::select(vec!["rm x", "tee y", "echo a > b", "sh z", "$X", "eval \"$Y\""]),
    ) {
        let close = match before { "(" => ")", "if true; then " => "; fi", _ => "" };
        let line = format!("{before}{what}{close}{after}");
        prop_assert!(!is_harmless(&line), "{}", line);
    }
}
