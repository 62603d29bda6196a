//! Programs that read files or nothing and print: their options that keep it so.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::super::Obeys;
use super::super::word::Word;
use super::options::{Allowed, Given, given};

/// What the words are that are no options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Files and folders that it reads.
    Paths,
    /// At most one of them: a second one would be written.
    OnePath,
    /// Something to look for, and where.
    PatternThenPaths,
    /// Words that it prints or looks up.
    Words,
    None,
}

use Operands::{None as Nothing, OnePath, Paths, PatternThenPaths, Words};

type Row = (&'static str, &'static str, &'static str, Operands);

/// Name, short options, long options, operands. What runs programs (`rg --pre`), writes (`sort -o`), reads
/// names of files from files (`--files0-from`), follows links out of the workspace (`ls -L`, `grep -R`),
/// or waits without end (`tail -f`) is left out.
const ROWS: &[Row] = &[
    (
        "ls",
        "1aAbBcCdfFgGhiklmnNopqQrRsStT:uUvw:xXZI:",
        "all almost-all author escape ignore-backups color? directory classify? file-type full-time group-directories-first no-group human-readable si inode ignore= kibibytes literal numeric-uid-gid quote-name reverse recursive size sort= time= time-style= format= width=",
        Paths,
    ),
    (
        "cat",
        "AbeEnstTuv",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
        Paths,
    ),
    ("head", "n:c:qvz", "lines= bytes= quiet silent verbose zero-terminated", Paths),
    ("tail", "n:c:qvz", "lines= bytes= quiet silent verbose zero-terminated", Paths),
    ("wc", "clmLw", "bytes chars lines max-line-length words total=", Paths),
    ("nl", "b:h:f:v:i:s:w:n:d:l:p", "body-numbering= number-width= number-format=", Paths),
    ("tac", "bs:", "before separator=", Paths),
    ("stat", "c:ft", "format= printf= file-system terse", Paths),
    ("cksum", "", "", Paths),
    ("md5sum", "bt", "binary text tag", Paths),
    ("sha1sum", "bt", "binary text tag", Paths),
    ("sha256sum", "bt", "binary text tag", Paths),
    ("sha512sum", "bt", "binary text tag", Paths),
    ("b2sum", "bt", "binary text tag", Paths),
    ("file", "biknNrv0", "brief mime mime-type mime-encoding extension no-pad", Paths),
    ("cmp", "bi:lsn:", "print-bytes verbose silent quiet bytes=", Paths),
    (
        "diff",
        "uU:cC:qrwbBiyEZatTNsW:p",
        "recursive unified? context? brief ignore-all-space ignore-space-change ignore-blank-lines ignore-case side-by-side suppress-common-lines color? text new-file report-identical-files minimal width= strip-trailing-cr",
        Paths,
    ),
    ("comm", "123z", "check-order nocheck-order output-delimiter= total", Paths),
    ("join", "a:e:io:t:v:1:2:j:", "", Paths),
    ("paste", "d:sz", "delimiters= serial", Paths),
    ("fold", "bsw:", "bytes spaces width=", Paths),
    ("expand", "it:", "initial tabs=", Paths),
    ("column", "ts:o:c:", "table separator= output-separator=", Paths),
    (
        "cut",
        "b:c:d:f:nsz",
        "bytes= characters= delimiter= fields= complement only-delimited output-delimiter=",
        Paths,
    ),
    ("tr", "cCdst", "complement delete squeeze-repeats truncate-set1", Words),
    ("rev", "", "", Paths),
    (
        "od",
        "A:t:N:j:w::vxcbdoxv",
        "address-radix= format= read-bytes= skip-bytes= output-duplicates",
        Paths,
    ),
    ("hexdump", "Cn:s:bcdovx", "canonical", Paths),
    ("strings", "an:t:e:w", "all bytes= radix= encoding=", Paths),
    ("base64", "dw:i", "decode wrap= ignore-garbage", OnePath),
    (
        "uniq",
        "cdDiuf:s:w:z",
        "count repeated unique ignore-case skip-fields= skip-chars= check-chars=",
        OnePath,
    ),
    (
        "sort",
        "bdfghiMnrRVsuzct:k:",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting month-sort numeric-sort reverse version-sort stable unique zero-terminated check? key= field-separator= sort=",
        Paths,
    ),
    (
        "grep",
        "EFGPicvwxnHhlLoqsrabzA:B:C:m:e:IT",
        "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case count invert-match word-regexp line-regexp line-number with-filename no-filename files-with-matches files-without-match only-matching quiet silent no-messages recursive byte-offset text null null-data after-context= before-context= context= max-count= regexp= include= exclude= exclude-dir= color? colour? binary-files= initial-tab",
        PatternThenPaths,
    ),
    (
        "egrep",
        "icvwxnHhlLoqsrA:B:C:m:e:I",
        "include= exclude= exclude-dir= color?",
        PatternThenPaths,
    ),
    (
        "fgrep",
        "icvwxnHhlLoqsrA:B:C:m:e:I",
        "include= exclude= exclude-dir= color?",
        PatternThenPaths,
    ),
    (
        "rg",
        "SsiFwxvnNHIlcoqUPe:A:B:C:m:g:t:T:r:M:j:p0ab",
        "smart-case case-sensitive ignore-case fixed-strings word-regexp line-regexp invert-match line-number no-line-number with-filename no-filename files-with-matches files-without-match count count-matches only-matching quiet multiline multiline-dotall pcre2 regexp= after-context= before-context= context= max-count= glob= iglob= type= type-not= replace= max-columns= max-columns-preview threads= pretty color= colors= heading no-heading json column stats sort= sortr= trim vimgrep max-depth= passthru files null text byte-offset no-messages no-config glob-case-insensitive max-filesize= type-list version",
        PatternThenPaths,
    ),
    (
        "fd",
        "gsiFad:t:e:E:0pS:c:1q",
        "glob case-sensitive ignore-case fixed-strings absolute-path max-depth= min-depth= exact-depth= type= extension= exclude= print0 full-path size= color= max-results= quiet changed-within= changed-before= threads= regex and= prune strip-cwd-prefix",
        PatternThenPaths,
    ),
    (
        "fdfind",
        "gsiFad:t:e:E:0pS:c:1q",
        "glob case-sensitive ignore-case fixed-strings absolute-path max-depth= type= extension= exclude= print0 full-path size= color= max-results= quiet",
        PatternThenPaths,
    ),
    ("tree", "adfigpshDFL:I:P:nCQrtv", "dirsfirst noreport prune du si ignore-case inodes", Paths),
    (
        "du",
        "abchkmsSxd:t:0B:",
        "all apparent-size bytes total human-readable max-depth= summarize separate-dirs one-file-system threshold= si exclude= time? block-size= null",
        Paths,
    ),
    (
        "df",
        "ahHiklPTt:x:B:",
        "all human-readable si inodes local portability print-type type= exclude-type= total output? block-size=",
        Paths,
    ),
    (
        "readlink",
        "fenmqsvz",
        "canonicalize canonicalize-existing canonicalize-missing no-newline zero",
        Paths,
    ),
    (
        "realpath",
        "eLmPqsz",
        "canonicalize-existing canonicalize-missing strip no-symlinks relative-to= relative-base= zero",
        Paths,
    ),
    ("basename", "as:z", "multiple suffix= zero", Words),
    ("dirname", "z", "zero", Words),
    ("which", "as", "all", Words),
    ("type", "atpPf", "", Words),
    ("seq", "f:s:w", "format= separator= equal-width", Words),
    ("date", "ud:I::R", "date= utc universal iso-8601? rfc-3339= rfc-email", Words),
    ("sleep", "", "", Words),
    ("expr", "", "", Words),
    ("true", "", "", Words),
    ("false", "", "", Words),
    (":", "", "", Words),
    ("pwd", "LP", "logical physical", Nothing),
    ("whoami", "", "", Nothing),
    ("id", "ugGnr", "user group groups name real", Words),
    ("groups", "", "", Words),
    (
        "uname",
        "asnrvmpio",
        "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system",
        Nothing,
    ),
    ("hostname", "s", "short", Nothing),
    ("arch", "", "", Nothing),
    ("nproc", "", "all ignore=", Nothing),
    ("uptime", "ps", "pretty since", Nothing),
    ("free", "bkmghtw", "human total wide si", Nothing),
    ("tty", "s", "", Nothing),
    ("locale", "a", "", Nothing),
    ("cal", "13y", "", Nothing),
    ("sum", "rs", "", Paths),
    ("numfmt", "d:", "from= to= suffix= padding= field= delimiter=", Words),
];

static BY_NAME: LazyLock<HashMap<&str, &Row>> =
    LazyLock::new(|| ROWS.iter().map(|row| (row.0, row)).collect());

/// Options by which a pattern is given, or none is needed.
const PATTERN_GIVEN: &[&str] = &["e", "regexp", "files", "type-list", "version"];

/// What it reads, if it is on the list and so are its options.
pub(super) fn paths<'a>(name: &str, words: &'a [Word]) -> Option<Vec<&'a Word>> {
    let (_, short, long, operands) = BY_NAME.get(name)?;
    let number = matches!(name, "head" | "tail" | "grep" | "fold" | "diff" | "nl" | "seq");
    if name == "tree" && !words.iter().all(is_plain_for_tree) {
        return None;
    }
    // It reads more words from a file behind an `@`, wherever that stands.
    let listed = |word: &Word| word.text().starts_with('@') || word.pattern;
    if name == "strings" && words.iter().any(listed) {
        return None;
    }
    let Given { options, operands: found } = given(words, Allowed { short, long, number })?;
    match operands {
        Paths => Some(found),
        OnePath => (found.len() <= 1 && found.iter().all(|w| !w.pattern)).then_some(found),
        PatternThenPaths => {
            let is_given = options.iter().any(|(name, _)| PATTERN_GIVEN.contains(name));
            let skipped = usize::from(!is_given);
            // A pattern that the shell expands first is none of ours.
            let plain = found.iter().take(skipped).all(|word| !word.pattern);
            // As a pattern is written, so is a file with more of them.
            plain.then(|| found.into_iter().skip(skipped).collect())
        }
        Words => {
            let plain = found.iter().all(|word| !word.pattern);
            // A date that is no format is one to be set.
            let fits = name != "date" || found.iter().all(|word| word.text().starts_with('+'));
            (plain && fits).then(Vec::new)
        }
        Nothing => found.is_empty().then(Vec::new),
    }
}

/// `tree` takes the next word for the value of an option, whatever is attached to that, and goes on with
/// options behind `--`.
fn is_plain_for_tree(word: &Word) -> bool {
    let text = word.text();
    let takes = |c: char| matches!(c, 'I' | 'P' | 'L');
    let valued = text.chars().filter(|c| takes(*c)).count();
    let attached = valued > 1 || valued == 1 && !text.ends_with(takes);
    !text.starts_with('-') || text.starts_with("--") && text != "--" || text != "--" && !attached
}

/// `xxd` knows no options in one word, and writes to a second name: also to one that looks like an option.
pub(super) fn xxd(words: &[Word]) -> Option<Vec<&Word>> {
    let mut rest = words;
    loop {
        rest = match rest {
            [] => return Some(Vec::new()),
            [one] if !one.text().starts_with('-') && !one.pattern => return Some(vec![one]),
            [flag, more @ ..] if XXD_FLAGS.contains(&flag.text()) => more,
            [option, value, more @ ..]
                if matches!(option.text(), "-l" | "-s" | "-c" | "-g")
                    && !value.text().is_empty()
                    && value.text().bytes().all(|b| b.is_ascii_hexdigit() || b == b'x') =>
            {
                more
            }
            _ => return None,
        };
    }
}

const XXD_FLAGS: &[&str] = &["-a", "-b", "-e", "-E", "-i", "-p", "-ps", "-u"];

/// A program that says which version it is, and whether files beside it choose which one that is.
pub(super) fn tells_version(name: &str, words: &[Word]) -> Option<Option<Obeys>> {
    let [Word { text: Some(word), pattern: false, .. }] = words else { return None };
    if word == "--help" && BY_NAME.contains_key(name) {
        return Some(None);
    }
    let plain = matches!(word.as_str(), "--version" | "-V" | "-v" | "version" | "-version");
    let long = word == "--version";
    match name {
        "cargo" | "rustc" | "rustfmt" | "rustup" if long || word == "-V" => {
            Some(Some(Obeys::Toolchain))
        }
        "go" if word == "version" => Some(Some(Obeys::Toolchain)),
        "python" | "python3" | "pip" | "pip3" if long || word == "-V" => Some(None),
        "node" | "npm" | "bun" | "deno" | "tsc" if long || word == "-v" => Some(None),
        "java" | "javac" if plain && word != "-v" && word != "version" => Some(None),
        "gcc" | "g++" | "clang" | "clang++" | "cc" | "make" | "cmake" | "ruby" | "perl"
        | "bash" | "zsh" | "docker" | "rg" | "fd" | "jq" | "curl" | "tar" | "sed" | "grep"
        | "awk" | "find" | "php" | "ninja" | "gdb" | "lua" | "uv" | "gh"
            if long =>
        {
            Some(None)
        }
        _ => None,
    }
}
