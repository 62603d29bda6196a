//! Scripts of other languages that stand in a line: what they delete or write by a name of their own. Only
//! the plainest calls are seen (`shutil.rmtree("/")`), and they count for what nobody can want alone.

use super::TouchKind::{self, DeleteTree, Write};

/// Calls whose first word is a path, and what they do to it.
const CALLS: &[(&str, TouchKind)] = &[
    ("rmtree(", DeleteTree),
    ("rm_rf(", DeleteTree),
    ("rm_r(", DeleteTree),
    ("rm_rf ", DeleteTree),
    ("remove_entry_secure(", DeleteTree),
    ("remove_tree(", DeleteTree),
    ("rmSync(", DeleteTree),
    ("rmdirSync(", DeleteTree),
    ("fs.rm(", DeleteTree),
    ("promises.rm(", DeleteTree),
    ("rimraf(", DeleteTree),
    ("writeFileSync(", Write),
    ("appendFileSync(", Write),
    ("writeFile(", Write),
    ("File.write(", Write),
    ("file_put_contents(", Write),
    ("unlink(", Write),
    ("unlinkSync(", Write),
    ("os.remove(", Write),
];

/// Paths that are named as such and still mean what they say.
const AROUND: &[&str] = &["os.path.expanduser(", "expanduser(", "pathlib.Path(", "Path("];

pub(super) fn touched(script: &str) -> Vec<(&str, TouchKind)> {
    let mut found = Vec::new();
    for (call, kind) in CALLS {
        for (at, _) in script.match_indices(call) {
            let named = first_argument(&script[at + call.len()..]);
            found.extend(named.map(|(path, _)| (path, *kind)));
        }
    }
    for (at, _) in script.match_indices("open(") {
        // How it is opened stands behind the path.
        let named = first_argument(&script[at + "open(".len()..]);
        let writes = |rest: &str| {
            let mode = rest.split(')').next().unwrap_or_default();
            rest.starts_with(',') && mode.contains(['w', 'a', '+', 'x'])
        };
        found.extend(named.filter(|(_, rest)| writes(rest)).map(|(path, _)| (path, Write)));
    }
    found
}

/// A text in quotes that is a whole argument, and what stands behind it.
fn first_argument(arguments: &str) -> Option<(&str, &str)> {
    let mut rest = arguments.trim_start();
    for around in AROUND {
        rest = rest.strip_prefix(around).unwrap_or(rest);
    }
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let (path, behind) = rest[1..].split_once(quote)?;
    let behind = behind.trim_start().trim_start_matches(')').trim_start();
    let ends = behind.is_empty() || behind.starts_with([',', ')', ';', '\n', '}', '.']);
    ends.then_some((path, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_calls_are_seen() {
        for (script, expected) in [
            ("import shutil; shutil.rmtree('/')", Some(("/", DeleteTree))),
            ("shutil.rmtree(os.path.expanduser(\"~\"))", Some(("~", DeleteTree))),
            ("fs.rmSync('.', {recursive: true})", Some((".", DeleteTree))),
            ("FileUtils.rm_rf('build')", Some(("build", DeleteTree))),
            ("open('x', 'w').write('y')", Some(("x", Write))),
            ("open('x').read()", None),
            ("shutil.rmtree('/' + name)", None),
            ("shutil.rmtree(path)", None),
            ("print('rmtree')", None),
        ] {
            assert_eq!(touched(script).first().copied(), expected, "{script}");
        }
    }
}
