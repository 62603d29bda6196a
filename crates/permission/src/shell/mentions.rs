//! Names in a line that no command of it is known to read: in scripts of other languages, in the lists of
//! loops, in values. Whether one of them is a file, and one that somebody wants to be asked about, is for
//! others to find out.

use std::collections::BTreeSet;

/// Names of one line that are looked at.
const NAMES_CAP: usize = 512;

/// Programs that say what they are given, or note it down, and open nothing by that name.
const SAYING: &[&str] = &[
    "git commit ",
    "git tag ",
    "git rm ",
    "git checkout ",
    "git restore ",
    "git check-ignore ",
    "gh ",
    "echo ",
    "printf ",
    "test ",
    "mkdir ",
    "touch ",
    "rm ",
    "chmod ",
];

/// Programs that copy a text of the line to where it is written to.
const COPYING: &[&str] = &["cat", "tee"];

/// Everything in a line that may be the name of a file, in the order of the alphabet. `texts` are the
/// commands in it.
pub fn mentions<'l>(line: &'l str, texts: &[&str]) -> Vec<&'l str> {
    let mut names = BTreeSet::new();
    for piece in pieces(line, texts) {
        for name in piece.split(|c| !is_part(c)).filter(|name| !name.is_empty()) {
            if names.len() == NAMES_CAP {
                break;
            }
            names.insert(name.trim_end_matches(['.', ':', ',']));
        }
    }
    names.into_iter().filter(|name| !name.is_empty()).collect()
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '~' | '+' | '@' | '*' | '?')
}

/// A line without what is only said in it.
fn pieces<'l>(line: &'l str, texts: &[&str]) -> Vec<&'l str> {
    let mut pieces = without_documents(line);
    // What another command is handed may be read by that.
    let noted = |text: &&&str| {
        let spoken = SAYING.iter().any(|program| text.starts_with(program));
        let handed = text.starts_with("echo ") || text.starts_with("printf ");
        let taken = ["|", "$(", "`", "<("].iter().any(|sign| line.contains(sign));
        spoken && (!handed || text.contains('>') || !taken)
    };
    for text in texts.iter().filter(noted) {
        pieces = pieces.iter().flat_map(|piece| piece.split(text)).collect();
    }
    pieces.into_iter().flat_map(without_tests).collect()
}

/// `[ -f name ]` looks whether there is one.
fn without_tests(piece: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut rest = piece;
    while let Some((before, behind)) = rest.split_once("[ ") {
        kept.push(before);
        rest = behind.split_once(" ]").map_or(behind, |(_, behind)| behind);
    }
    kept.push(rest);
    kept
}

/// Texts that stand in the line and are written to a file as they are (`cat > notes <<END`).
fn without_documents(line: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut until: Option<&str> = None;
    for one in line.lines() {
        if let Some(end) = until {
            until = (one.trim() != end).then_some(end);
            continue;
        }
        kept.push(one);
        let Some((before, behind)) = one.split_once("<<") else { continue };
        let command = before.rsplit([';', '|', '&', '(']).next().unwrap_or_default();
        let program = command.split_whitespace().next().unwrap_or("cat");
        let copies = COPYING.contains(&program) && !behind.contains('|');
        let end = behind.trim_start_matches(['-', ' ']);
        let end = end.split(|c: char| c.is_whitespace() || ";|&<>)".contains(c)).next();
        let end = end.map(|end| end.trim_matches(['\'', '"', '\\']));
        until = end.filter(|end| copies && !end.is_empty() && !end.starts_with('<'));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;

    fn of(line: &str) -> Vec<&str> {
        let analysis = analyse(line);
        let texts: Vec<&str> = analysis.commands.iter().map(|c| c.text.as_str()).collect();
        mentions(line, &texts)
    }

    #[test]
    fn names_are_found_wherever_something_may_open_them() {
        for line in [
            "for f in .env; do cat $f; done",
            r#"python3 -c "print(open('.env').read())""#,
            "python3 - <<'END'\nprint(open(\".env\").read())\nEND",
            "node -e 'fs.readFileSync(`.env`)'",
            "FILE=.env ./show",
            "files=(a .env); cat \"${files[@]}\"",
            "echo .env | xargs cat",
            "cat <<E | xargs cat\n.env\nE",
            "make ENV_FILE=.env show",
            "docker run --env-file=.env x",
        ] {
            assert!(of(line).contains(&".env"), "{line}: {:?}", of(line));
        }
        assert!(of("ruby -e 'puts File.read(\"#{d}/.env\")'").contains(&"/.env"));
    }

    #[test]
    fn what_is_only_said_is_not_opened() {
        for line in [
            "echo .env >> .gitignore",
            "git commit -m 'Leave out .env'",
            "[ -f .env ] && make",
            "cat > notes.md <<'END'\nPut it into .env\nEND",
            "cat <<-END > notes.md\n\t.env\n\tEND",
            "test -e .env || make",
        ] {
            assert!(!of(line).contains(&".env"), "{line}: {:?}", of(line));
        }
    }
}
