//! Which of many texts fits what was typed, and how well. One pass over the bytes: a hundred thousand
//! paths take a few milliseconds.

/// Better is more; nothing where the letters are not all there in order. Lower-case letters fit
/// both, capitals only themselves.
pub fn score(query: &str, text: &str) -> Option<i32> {
    if query.is_empty() {
        return Some(0);
    }
    let exact = query.bytes().any(|b| b.is_ascii_uppercase());
    let fold = |b: u8| if exact { b } else { b.to_ascii_lowercase() };
    let (query, bytes) = (query.as_bytes(), text.as_bytes());
    // Backwards: in a path, the name at the end is what people mean.
    let mut at = bytes.len();
    let mut first = 0;
    for wanted in query.iter().rev() {
        let found = bytes[..at].iter().rposition(|b| fold(*b) == fold(*wanted))?;
        at = found;
        first = found;
    }
    // A name that begins with it is what people mean first.
    let name = bytes.iter().rposition(|b| *b == b'/').map_or(0, |n| n + 1);
    let own = &bytes[name..];
    if own.len() >= query.len() && own.iter().zip(query).all(|(a, b)| fold(*a) == fold(*b)) {
        first = name;
    }
    // Then forwards from where that began, for the tightest place.
    let mut points = 0;
    let mut previous = None;
    let mut at = first;
    for wanted in query {
        let found = at + bytes[at..].iter().position(|b| fold(*b) == fold(*wanted))?;
        points += 10;
        match previous {
            Some(p) if p + 1 == found => points += 15,
            Some(p) => points -= ((found - p) as i32).min(12),
            None => {}
        }
        if begins_word(bytes, found) {
            points += 12;
        }
        previous = Some(found);
        at = found + 1;
    }
    if first >= name {
        points += 20;
        if first == name {
            points += 15;
        }
        if at == bytes.len() && first == name {
            points += 30;
        }
    }
    Some(points - (bytes.len() as i32 / 8).min(20))
}

fn begins_word(bytes: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|n| bytes[n]) else { return true };
    let own = bytes[at];
    matches!(before, b'/' | b'_' | b'-' | b'.' | b' ')
        || (before.is_ascii_lowercase() && own.is_ascii_uppercase())
}

/// The best `limit` of them, best first; equals keep their order.
pub fn best<'a, T>(query: &str, all: impl Iterator<Item = (&'a str, T)>, limit: usize) -> Vec<T> {
    let mut found: Vec<(i32, usize, T)> = all
        .enumerate()
        .filter_map(|(n, (text, value))| Some((score(query, text)?, n, value)))
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    found.truncate(limit);
    found.into_iter().map(|(_, _, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(query: &str, all: &[&'static str]) -> Vec<&'static str> {
        best(query, all.iter().map(|t| (*t, *t)), 10)
    }

    #[test]
    fn names_come_before_folders_and_whole_words_before_scattered_letters() {
        let files = ["src/main.rs", "docs/domain.md", "main/other.txt", "src/manifest_in.rs"];
        assert_eq!(ranked("main", &files)[0], "src/main.rs");
        assert_eq!(ranked("srcmain", &files)[0], "src/main.rs");
        assert_eq!(ranked("zzz", &files), Vec::<&str>::new());
        assert_eq!(ranked("min", &files).len(), 4);
        let commands = ["models", "sessions", "jobs", "skills"];
        assert_eq!(ranked("s", &commands)[..2], ["skills", "sessions"]);
    }

    #[test]
    fn capitals_fit_only_themselves() {
        assert!(score("README", "readme.md").is_none());
        assert!(score("readme", "README.md").is_some());
        assert!(score("fé", "café").is_some());
    }
}
