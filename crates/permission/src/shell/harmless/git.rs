//! Git's commands that only look, each with the options that keep it so.

use super::super::parse::Raw;
use super::super::word::Word;
use super::super::{Folder, Obeys, TouchKind, When, paths};
use super::Harmless;
use super::options::{Allowed, Given, given};
use crate::defaults::is_secret_name;

/// Options of everything that shows commits or differences. What runs programs (`--ext-diff`,
/// `--show-signature`, `--textconv`), writes (`--output`), reads other files (`-O`, `--no-index`) or enters
/// submodules is left out.
const SHOW_SHORT: &str = "puwbmcizasqgRWn:S:G:L:U::M::C::B::l:E";
/// Differences have no lines to follow: there `-L` takes no value.
const DIFF_SHORT: &str = "puwbmcizasqgRWn:S:G:U::M::C::B::l:E";
const SHOW_LONG: &str = "oneline stat? shortstat numstat dirstat? summary name-only name-status graph all \
    decorate? no-decorate abbrev-commit no-abbrev-commit abbrev? patch no-patch patch-with-stat raw max-count= skip= \
    since= until= after= before= author= committer= grep= invert-grep all-match regexp-ignore-case \
    extended-regexp fixed-strings perl-regexp pretty? format== no-merges merges first-parent reverse follow \
    cached staged ignore-all-space ignore-space-change ignore-blank-lines ignore-space-at-eol word-diff? \
    word-diff-regex= color-words? color? no-color color-moved? diff-filter= find-renames? find-copies? \
    find-copies-harder no-renames unified? function-context date= relative-date tags? branches? remotes? glob= \
    exclude= topo-order date-order author-date-order minimal patience histogram diff-algorithm= no-ext-diff \
    no-textconv full-index binary check exit-code quiet no-prefix src-prefix= dst-prefix= pickaxe-all \
    pickaxe-regex full-history simplify-merges ancestry-path left-right left-only right-only cherry-pick \
    cherry cherry-mark boundary children parents count walk-reflogs merge-base ignore-submodules? \
    inter-hunk-context= compact-summary text full-diff root cc combined-all-paths no-walk? source notes? \
    no-notes mailmap no-mailmap use-mailmap log-size dense sparse show-pulls encoding= numbered email line-prefix= \
    relative? no-relative no-indent-heuristic indent-heuristic";

/// Subcommand, short options, long options, whether it may have operands.
const ROWS: &[(&str, &str, &str, bool)] = &[
    (
        "status",
        "sbzu::v",
        "short branch porcelain? long verbose untracked-files? ignored? ahead-behind no-ahead-behind renames no-renames find-renames? column? no-column show-stash null",
        true,
    ),
    ("log", SHOW_SHORT, SHOW_LONG, true),
    ("show", SHOW_SHORT, SHOW_LONG, true),
    ("diff", DIFF_SHORT, SHOW_LONG, true),
    (
        "shortlog",
        "nsec",
        "numbered summary email committer no-merges all since= until= group=",
        true,
    ),
    (
        "rev-list",
        "n:",
        "all count max-count= since= until= author= no-merges merges first-parent reverse abbrev-commit oneline left-right branches? tags? remotes? not parents",
        true,
    ),
    (
        "rev-parse",
        "q",
        "show-toplevel abbrev-ref? short? verify git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository show-prefix show-cdup symbolic-full-name symbolic quiet all branches? tags? remotes? show-object-format default=",
        true,
    ),
    (
        "ls-files",
        "cdomskuizvtf",
        "cached deleted others modified stage killed unmerged ignored exclude-standard full-name error-unmatch abbrev? directory no-empty-directory eol deduplicate exclude=",
        true,
    ),
    (
        "ls-tree",
        "drtlz",
        "name-only name-status long full-name full-tree abbrev? object-only",
        true,
    ),
    (
        "describe",
        "",
        "tags always dirty? all long abbrev? match= exclude= contains first-parent exact-match candidates= broken?",
        true,
    ),
    (
        "blame",
        "L:wsecflntpM::C::b",
        "date= color-lines color-by-age porcelain line-porcelain show-email show-name show-number root abbrev? first-parent since=",
        true,
    ),
    ("annotate", "L:wsecflnt", "date=", true),
    (
        "grep",
        "niIlLcwvEFGPhHoqapWe:A:B:C:m:",
        "line-number ignore-case files-with-matches name-only files-without-match count word-regexp invert-match extended-regexp fixed-strings basic-regexp perl-regexp only-matching column after-context= before-context= context= max-depth= heading break show-function function-context color? no-color cached untracked text full-name all-match and or not quiet null max-count=",
        true,
    ),
    ("cat-file", "ptse", "allow-unknown-type", true),
    (
        "show-ref",
        "hds",
        "heads tags branches head dereference hash? abbrev? verify quiet exclude-existing?",
        true,
    ),
    ("merge-base", "a", "all octopus independent is-ancestor fork-point", true),
    ("name-rev", "", "name-only tags refs= all always no-undefined", true),
    ("count-objects", "vH", "verbose human-readable", false),
    ("check-ignore", "vnq", "verbose non-matching no-index quiet", true),
    ("check-attr", "a", "all cached", true),
    ("cherry", "v", "verbose abbrev?", true),
    (
        "for-each-ref",
        "",
        "sort= format= count= points-at= contains? no-contains? merged? no-merged? ignore-case",
        true,
    ),
    (
        "diff-tree",
        "prtsczuM::C::",
        "no-commit-id name-only name-status stat? numstat shortstat summary patch root raw cc diff-filter= find-renames? abbrev? no-renames",
        true,
    ),
    ("range-diff", "s", "no-patch stat? no-color color? creation-factor=", true),
];

/// Those that show what is in files.
const SHOWS: &[&str] = &[
    "log",
    "show",
    "diff",
    "blame",
    "annotate",
    "grep",
    "cat-file",
    "stash",
    "diff-tree",
    "range-diff",
];

/// Git has patterns of its own, that name files which nobody else sees (`'*.env'`, `':(top).env'`).
fn may_name_a_secret(operand: &str) -> bool {
    if operand.starts_with(":(") {
        return true;
    }
    let without = operand.strip_prefix(":!").or_else(|| operand.strip_prefix(":^"));
    let top = operand.strip_prefix(":/").unwrap_or(operand);
    let tail = top.rsplit(['*', '?', '[', ']']).next().unwrap_or_default();
    let is_pattern = tail.len() < top.len();
    let open = !tail.contains('.') || is_secret_name(&format!("x{tail}"));
    without.is_none() && (is_pattern && open || top != operand && is_secret_name(top))
}

const NO_OPTIONS: Allowed = Allowed { short: "", long: "", number: false };

pub(super) fn judge(words: &[Word], raw: &Raw) -> Option<Harmless> {
    let mut rest = words;
    let mut folder = None;
    loop {
        match rest {
            [option, more @ ..]
                if matches!(option.text(), "--no-pager" | "-P" | "--no-optional-locks") =>
            {
                rest = more;
            }
            [option, to, more @ ..] if option.text() == "-C" && folder.is_none() => {
                folder = Some(to);
                rest = more;
            }
            _ => break,
        }
    }
    let (subcommand, rest) = rest.split_first()?;
    // What a pattern finds is looked up where it can only name files.
    let names_files =
        matches!(subcommand.text(), "log" | "show" | "diff" | "grep" | "status" | "blame");
    let plain = |word: &Word| !word.pattern || names_files && !word.text().contains(':');
    if !rest.iter().all(plain) || folder.is_some_and(|to| to.pattern) {
        return None;
    }
    let (operands, files) = operands(subcommand.text(), rest)?;
    let mut raw = raw.clone();
    let mut reads = Vec::new();
    let mut into = None;
    if let Some(to) = folder {
        reads.extend(paths::of_word(to, TouchKind::Read, &raw));
        let path = to.paths().into_iter().next()?;
        raw.folders.push(Folder::new(path.clone(), When::Surely));
        into = Some(path);
    }
    for file in files {
        let word = Word { text: Some(file.to_owned()), ..Word::default() };
        reads.extend(paths::of_word(&word, TouchKind::Read, &raw));
    }
    let shows = SHOWS.contains(&subcommand.text());
    for word in operands {
        if shows && may_name_a_secret(word.text()) {
            return None;
        }
        reads.extend(paths::of_word(word, TouchKind::Read, &raw));
        // What a commit holds of a file is as secret as the file.
        if let Some((_, path)) = word.text().rsplit_once(':') {
            // It is seen from the repository's root, which may be above: then it is not known which.
            let from_root = !path.starts_with("./") && !path.starts_with("../");
            let moved = into.is_some() || !raw.folders.is_empty();
            if moved && from_root {
                return None;
            }
            let part = Word { text: Some(path.to_owned()), pattern: false, ..word.clone() };
            reads.extend(paths::of_word(&part, TouchKind::Read, &raw));
        }
    }
    Some(Harmless { reads, obeys: Some(Obeys::Git), into })
}

/// The words that may be names of files, and files that options name, if the subcommand only looks.
fn operands<'a>(subcommand: &str, rest: &'a [Word]) -> Option<(Vec<&'a Word>, Vec<&'a str>)> {
    let Some(row) = ROWS.iter().find(|(name, ..)| *name == subcommand) else {
        return special(subcommand, rest).map(|operands| (operands, Vec::new()));
    };
    let (_, short, long, named) = row;
    (*named || rest.iter().all(|w| w.text().starts_with('-'))).then_some(())?;
    let number = matches!(subcommand, "log" | "show" | "diff" | "grep" | "rev-list");
    let given = given(rest, Allowed { short, long, number })?;
    (plain_format(&given) && plain_order(&given)).then_some(())?;
    // `-L 1,5:file` shows the lines of a file, `-L 1,5` those of one that is named elsewhere.
    let lines =
        given.options.iter().filter(|(name, _)| *name == "L").filter_map(|(_, lines)| *lines);
    let files: Vec<&str> =
        lines.filter_map(|lines| lines.rsplit_once(':')).map(|(_, f)| f).collect();
    let skipped = usize::from(subcommand == "grep" && !given.has(&["e"]));
    // What the shell makes of a pattern that is looked for is not known.
    let plain = given.operands.iter().take(skipped).all(|word| !word.pattern);
    plain.then(|| (given.operands.into_iter().skip(skipped).collect(), files))
}

/// Those with rules of their own.
fn special<'a>(subcommand: &str, rest: &'a [Word]) -> Option<Vec<&'a Word>> {
    let only = |allowed: Allowed| given(rest, allowed);
    let first = rest.first().map(Word::text);
    match subcommand {
        "--version" | "version" => rest.is_empty().then(Vec::new),
        // With a name it would make or delete one.
        "branch" => {
            let long = "all remotes list verbose show-current no-color color? merged? no-merged? contains= no-contains= sort= points-at= column? ignore-case abbrev? no-abbrev";
            let given = only(Allowed { short: "arvi", long, number: false }).filter(plain_order)?;
            let lists = given.has(&["list", "merged", "no-merged"]);
            (given.operands.is_empty() || lists).then(Vec::new)
        }
        "tag" => {
            let long = "list sort= contains= no-contains= merged? no-merged? points-at= column? ignore-case";
            let given = only(Allowed { short: "ln::i", long, number: false }).filter(plain_order)?;
            (given.operands.is_empty() || given.has(&["l", "list"])).then(Vec::new)
        }
        "remote" => match first {
            None => Some(Vec::new()),
            Some("-v" | "--verbose") if rest.len() == 1 => Some(Vec::new()),
            Some("get-url") => {
                let allowed = Allowed { short: "", long: "all push", number: false };
                given(&rest[1..], allowed).map(|_| Vec::new())
            }
            _ => None,
        },
        "stash" => match first {
            Some("list") => given(&rest[1..], Allowed { short: SHOW_SHORT, long: SHOW_LONG, number: true })
                .filter(plain_format)
                .map(|_| Vec::new()),
            Some("show") => given(&rest[1..], Allowed { short: "pu", long: "patch stat? name-only name-status include-untracked only-untracked no-color", number: false })
                .map(|given| given.operands),
            _ => None,
        },
        "worktree" => match first {
            Some("list") => {
                let allowed = Allowed { short: "vz", long: "porcelain verbose", number: false };
                given(&rest[1..], allowed).filter(|g| g.operands.is_empty()).map(|_| Vec::new())
            }
            _ => None,
        },
        "reflog" => {
            let rest = if first == Some("show") { &rest[1..] } else { rest };
            let given = given(rest, Allowed { short: "n:", long: "oneline max-count= date= all no-color", number: true })?;
            let shows = first == Some("show") || given.operands.is_empty();
            shows.then(Vec::new)
        }
        // With a second word it would point somewhere else.
        "symbolic-ref" => {
            let given = only(Allowed { short: "q", long: "short quiet", number: false })?;
            (given.operands.len() == 1).then(Vec::new)
        }
        "config" => match rest {
            [option, key] if matches!(option.text(), "--get" | "get" | "--get-all") => {
                is_plain_key(key).then(Vec::new)
            }
            [key] => is_plain_key(key).then(Vec::new),
            _ => None,
        },
        "var" => given(rest, NO_OPTIONS).map(|_| Vec::new()),
        _ => None,
    }
}

fn is_plain_key(key: &Word) -> bool {
    let key = key.text().to_lowercase();
    let plain = ["user.", "core.", "remote.", "branch.", "init.", "pull.", "push."];
    plain.iter().any(|section| key.starts_with(section))
}

/// What is sorted by a signature has it looked at.
fn plain_order(given: &Given<'_>) -> bool {
    let orders = given.options.iter().filter(|(name, _)| *name == "sort");
    orders.filter_map(|(_, value)| *value).all(|value| !value.contains("signature"))
}

/// `%G?`, also with a sign between (`%+G?`).
fn asks_for_signature(format: &str) -> bool {
    format.split('%').skip(1).any(|rest| rest.trim_start_matches(['+', '-', ' ']).starts_with('G'))
}

/// A format may ask for signatures, which another program looks at.
fn plain_format(given: &Given<'_>) -> bool {
    let is_format = |name: &str| matches!(name, "format" | "pretty" | "group");
    let formats = given.options.iter().filter(|(name, _)| is_format(name));
    formats.filter_map(|(_, value)| *value).all(|value| {
        let named = [
            "oneline",
            "short",
            "medium",
            "full",
            "fuller",
            "reference",
            "email",
            "raw",
            "author",
            "committer",
        ];
        let plain = value.is_empty() || named.contains(&value) || value.contains('%');
        plain
            && !asks_for_signature(value)
            && !value.contains("signature")
            && !value.contains("describe")
    })
}
