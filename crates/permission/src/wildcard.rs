//! The wildcards of OpenCode's permission rules.

/// Whether `pattern` covers all of `input`. `*` is any run of characters (slashes and newlines
/// too), `?` exactly one; a pattern that ends in a space and a star also matches without them, so
/// `ls *` covers `ls` and `ls -la` but not `lsof`.
pub fn matches(input: &str, pattern: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    if begins_otherwise(input, pattern) {
        return false;
    }
    if let Some(head) = pattern.strip_suffix(" *")
        && covers(input.as_bytes(), head.as_bytes())
    {
        return true;
    }
    covers(input.as_bytes(), pattern.as_bytes())
}

/// Whether the first letters already say that a pattern does not cover an input.
pub(crate) fn begins_otherwise(input: &str, pattern: &str) -> bool {
    match (pattern.bytes().next(), input.bytes().next()) {
        (Some(own), Some(first)) => !matches!(own, b'*' | b'?') && slashed(own) != slashed(first),
        _ => false,
    }
}

/// Backslashes count as slashes, on both sides.
fn slashed(byte: u8) -> u8 {
    if byte == b'\\' { b'/' } else { byte }
}

/// Greedy matching with one point to fall back to: linear in practice, never exponential.
fn covers(input: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut p) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < input.len() {
        match pattern.get(p).copied().map(slashed) {
            Some(b'*') => {
                star = Some((p, at));
                p += 1;
            }
            Some(b'?') => {
                at += char_width(input[at]);
                p += 1;
            }
            Some(byte) if byte == slashed(input[at]) => {
                at += 1;
                p += 1;
            }
            _ => match star {
                Some((star_at, resume)) => {
                    star = Some((star_at, resume + 1));
                    (p, at) = (star_at + 1, resume + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

/// Bytes of the UTF-8 character that starts with `first`.
fn char_width(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_opencode_documents_them() {
        let cases = [
            ("ls", "ls *", true),
            ("ls -la", "ls *", true),
            ("lstmeval", "ls *", false),
            ("lstmeval", "ls*", true),
            ("a/b/c.txt", "a/*", true),
            ("a/b", "a/?", true),
            ("a/ü", "a/?", true),
            ("a/bc", "a/?", false),
            ("line\nnext", "line*", true),
            ("src\\x.rs", "src/*", true),
            ("", "*", true),
            ("", "", true),
            ("x", "", false),
            ("git push --force", "git push*--force", true),
            ("(x)", "(x)", true),
            ("aXbXc", "*X*Y", false),
            ("src/a.env", "*.env", true),
        ];
        for (input, pattern, expected) in cases {
            assert_eq!(matches(input, pattern), expected, "{input:?} {pattern:?}");
        }
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let input = "a".repeat(5_000);
        assert!(!matches(&input, &format!("{}b", "*a".repeat(200))));
    }
}
