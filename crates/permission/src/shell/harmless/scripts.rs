//! Programs with a small language of their own: what of it only reads and prints.

use super::super::word::Word;
use super::options::{Allowed, Given, given};

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.len() < 19 && digits.bytes().all(|b| b.is_ascii_digit())
}

/// `find`: where it starts, if its expression only looks and prints.
pub(super) fn find(words: &[Word]) -> Option<Vec<&Word>> {
    /// With a word behind them.
    const WITH: &[&str] = &[
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
        "-regextype",
        "-type",
        "-xtype",
        "-maxdepth",
        "-mindepth",
        "-size",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-cmin",
        "-perm",
        "-user",
        "-group",
        "-uid",
        "-gid",
        "-links",
        "-inum",
        "-printf",
        "-lname",
        "-ilname",
        "-newermt",
    ];
    const ALONE: &[&str] = &[
        "-print",
        "-print0",
        "-prune",
        "-empty",
        "-not",
        "!",
        "(",
        ")",
        "-o",
        "-or",
        "-a",
        "-and",
        "-true",
        "-false",
        "-depth",
        "-xdev",
        "-mount",
        "-daystart",
        "-ls",
        "-readable",
        "-writable",
        "-executable",
        "-nouser",
        "-nogroup",
        "-quit",
        ",",
        "-noleaf",
        "-nowarn",
    ];
    let mut rest = words.iter().peekable();
    while rest.next_if(|word| word.text() == "-P").is_some() {}
    let mut starts = Vec::new();
    let begins = |word: &&Word| !word.text().starts_with(['-', '(', ')', '!', ',']);
    while let Some(word) = rest.next_if(begins) {
        starts.push(word);
    }
    while let Some(word) = rest.next() {
        let text = word.text.as_deref().filter(|_| !word.pattern)?;
        if WITH.contains(&text) {
            rest.next().filter(|value| value.text.is_some() && !value.pattern)?;
        } else if !ALONE.contains(&text) {
            return None;
        }
    }
    Some(starts)
}

/// `sed`: the files, if its scripts print, delete and substitute, and nothing else.
pub(super) fn sed(words: &[Word]) -> Option<Vec<&Word>> {
    let allowed = Allowed {
        short: "nErsuze:",
        long: "quiet silent regexp-extended separate unbuffered null-data expression= posix",
        number: false,
    };
    let Given { options, operands } = given(words, allowed)?;
    let mut scripts: Vec<&str> = options
        .iter()
        .filter(|(name, _)| matches!(*name, "e" | "expression"))
        .filter_map(|(_, script)| *script)
        .collect();
    let mut files = operands;
    if scripts.is_empty() {
        if files.is_empty() || files[0].pattern {
            return None;
        }
        scripts.push(files.remove(0).text.as_deref()?);
    }
    scripts.iter().all(|script| is_plain_sed(script)).then_some(files)
}

/// Either one substitution, or a list of addresses with `p`, `d`, `q` or `=`.
fn is_plain_sed(script: &str) -> bool {
    let script = script.trim();
    if script.contains('\n') || !script.is_ascii() {
        return false;
    }
    let body = script.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$'));
    if let Some(rest) = body.strip_prefix('s') {
        return is_substitution(rest);
    }
    // In one command alone a brace is a letter of its pattern.
    let alone = !script.contains(';') && !script.starts_with('{');
    script.split(';').all(|command| {
        let command = command.trim().trim_start_matches('{').trim_end_matches('}').trim();
        let Some(address) = command.strip_suffix(['p', 'd', 'q', '=']) else {
            return command.is_empty();
        };
        let address = address.trim_end().trim_end_matches('!');
        address.is_empty() || split_address(address).iter().all(|part| is_address(part, alone))
    })
}

fn split_address(address: &str) -> Vec<&str> {
    match address.split_once(',') {
        Some((from, to)) => vec![from, to],
        None => vec![address],
    }
}

fn is_address(part: &str, alone: bool) -> bool {
    let part = part.trim();
    let number = part.trim_start_matches(['+', '~']);
    if part == "$" || is_number(number) {
        return true;
    }
    // A pattern that holds no other slash has one reading only.
    part.strip_prefix('/').and_then(|p| p.strip_suffix('/')).is_some_and(|inner| {
        let plain = alone || !inner.contains(['{', '}']);
        plain && !inner.is_empty() && !inner.contains(['/', '\\', ';', ','])
    })
}

/// What stands behind the `s`. With the separator three times in all there is one reading only, and the
/// flags cannot write or run.
fn is_substitution(rest: &str) -> bool {
    let Some(separator) = rest.chars().next() else { return false };
    if separator.is_ascii_alphanumeric() || matches!(separator, '\\' | ' ' | ';' | '\n') {
        return false;
    }
    let parts: Vec<&str> = rest.split(separator).collect();
    let [_, pattern, replacement, flags] = parts.as_slice() else { return false };
    // A backslash in front of a separator would take it away.
    let cut = |part: &str| part.ends_with('\\');
    !cut(pattern)
        && !cut(replacement)
        && flags.bytes().all(|b| matches!(b, b'g' | b'p' | b'i' | b'I' | b'0'..=b'9'))
}

/// `awk`: the files, if its program neither redirects, runs, reads by itself, nor calls what is not
/// known. All that needs one of these characters or words, wherever they stand.
pub(super) fn awk(words: &[Word]) -> Option<Vec<&Word>> {
    const CALLS: &[&str] = &[
        "length", "substr", "index", "split", "toupper", "tolower", "int", "match", "gsub", "sub",
        "sprintf", "printf", "print", "if", "for", "while", "gensub", "sqrt", "log", "exp", "sin",
        "cos", "atan2", "rand", "srand", "strftime", "systime", "asort", "asorti", "else", "in",
        "return", "and", "or", "xor",
    ];
    let allowed = Allowed { short: "F:v:", long: "", number: false };
    let Given { options, operands } = given(words, allowed)?;
    let [program, files @ ..] = operands.as_slice() else { return None };
    // Behind the program there are files, also those that are called like options.
    let behind = words.iter().rev().take_while(|word| !std::ptr::eq(*word, *program));
    if behind.into_iter().any(|word| word.text().starts_with('-')) {
        return None;
    }
    let program = program.text.as_deref().filter(|_| !program.pattern)?;
    let sets = |word: &&Word| word.text().contains('=');
    // Before the first action there are only conditions, which compare by `>` and join by `|`.
    let actions = program.find('{').map_or("", |at| &program[at..]);
    let cut = program.contains("\\\n") || program.ends_with('\\');
    if actions.contains(['>', '|']) || program.contains('@') || cut || files.iter().any(sets) {
        return None;
    }
    const REACHES: &[&str] = &[
        "system", "getline", "ARGV", "ARGC", "ENVIRON", "PROCINFO", "SYMTAB", "FUNCTAB",
        "function", "func",
    ];
    for word in REACHES {
        if program.contains(*word) {
            return None;
        }
    }
    let plain_value = |(name, value): &(&str, Option<&str>)| {
        let value = value.unwrap_or_default();
        *name != "v" || !value.starts_with(['A', 'P', 'E']) || !value.contains("ARG")
    };
    if !options.iter().all(plain_value) {
        return None;
    }
    let bytes = program.as_bytes();
    let known = program.match_indices('(').all(|(at, _)| {
        let start = bytes[..at]
            .iter()
            .rposition(|b| !b.is_ascii_alphanumeric() && *b != b'_')
            .map_or(0, |at| at + 1);
        let name = &program[start..at];
        name.is_empty() || CALLS.contains(&name)
    });
    known.then(|| files.to_vec())
}

/// `jq`: the files, if the filter reads nothing but its input.
pub(super) fn jq(words: &[Word]) -> Option<Vec<&Word>> {
    let allowed = Allowed {
        short: "rcSensMCja",
        long: "raw-output compact-output sort-keys exit-status null-input slurp monochrome-output color-output join-output ascii-output raw-input tab indent=",
        number: false,
    };
    let Given { operands, .. } = given(words, allowed)?;
    let [filter, files @ ..] = operands.as_slice() else { return None };
    let filter = filter.text.as_deref().filter(|_| !filter.pattern)?;
    let reaches = ["import", "include", "env", "ENV", "input_filename", "modulemeta", "search"];
    (!reaches.iter().any(|word| filter.contains(word))).then(|| files.to_vec())
}

/// `test`: the files that it asks about. Some shells compute what they compare, and run what stands in
/// it: numbers must be numbers.
pub(super) fn test(words: &[Word]) -> Option<Vec<&Word>> {
    const OF_FILES: &[&str] =
        &["-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h", "-p", "-S", "-b", "-c"];
    if words.iter().any(|word| word.pattern) {
        return None;
    }
    let words = match words {
        [not, rest @ ..] if not.text() == "!" => rest,
        all => all,
    };
    match words {
        [_] => Some(Vec::new()),
        [operator, file] if OF_FILES.contains(&operator.text()) => Some(vec![file]),
        [operator, _] if matches!(operator.text(), "-n" | "-z") => Some(Vec::new()),
        [_, operator, _] if matches!(operator.text(), "=" | "==" | "!=") => Some(Vec::new()),
        [a, operator, b]
            if matches!(operator.text(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") =>
        {
            (is_number(a.text()) && is_number(b.text())).then(Vec::new)
        }
        [a, operator, b] if matches!(operator.text(), "-nt" | "-ot" | "-ef") => Some(vec![a, b]),
        _ => None,
    }
}

/// `printf`, where it prints text: some shells compute numbers, and `-v` and `%n` set variables.
pub(super) fn printf(words: &[Word]) -> bool {
    let words = match words {
        [dashes, rest @ ..] if dashes.text() == "--" => rest,
        all => all,
    };
    let Some(format) = words.first().and_then(|word| word.text.as_deref()) else { return false };
    if words.iter().any(|word| word.pattern) || format.starts_with('-') {
        return false;
    }
    let numbers = words.iter().skip(1).all(|word| is_decimal(word.text()));
    let mut conversions = format.split('%').skip(1);
    let mut fits = true;
    while let Some(conversion) = conversions.next() {
        if conversion.is_empty() {
            // `%%` is a sign of its own.
            conversions.next();
            continue;
        }
        let rest =
            conversion.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.'));
        fits &= rest.starts_with(['s', 'b', 'c', 'q'])
            || numbers && rest.starts_with(['d', 'i', 'u', 'x', 'X', 'o', 'f', 'e', 'g']);
    }
    fits
}

fn is_decimal(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    is_number(whole) && !part.starts_with('-') && is_number(part)
}
