//! A look at a page before it is parsed. The rules of HTML let a small page ask for work that grows
//! with the square of its size (elements in elements, formatting that is opened again in every
//! paragraph); such pages only lose their tags.

/// Steps that a parser may take to look through the elements that are open.
const STEPS_CAP: usize = 500_000_000;

/// Elements that formatting may add.
const ELEMENTS_CAP: usize = 3_000_000;

/// Opened again in every block until they are closed.
const FORMATTING: &[&str] = &[
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];

/// They have no end.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];

/// Whether the page can be parsed in a reasonable time and space.
pub(super) fn is_reasonable(html: &str) -> bool {
    let (mut tags, mut open, mut formatting) = (0_usize, 0_usize, 0_usize);
    let (mut deepest, mut most) = (1_usize, 1_usize);
    for piece in pieces(html) {
        let Piece::Tag { name, closes } = piece else { continue };
        tags += 1;
        let name = name.to_ascii_lowercase();
        let formats = FORMATTING.contains(&name.as_str());
        if closes {
            open = open.saturating_sub(1);
            formatting = formatting.saturating_sub(usize::from(formats));
        } else if !VOID.contains(&name.as_str()) {
            open += 1;
            formatting += usize::from(formats);
        }
        (deepest, most) = (deepest.max(open), most.max(formatting));
    }
    tags.saturating_mul(deepest) <= STEPS_CAP && tags.saturating_mul(most) <= ELEMENTS_CAP
}

/// What is left without tags, scripts and styles.
pub(super) fn without_tags(html: &str) -> String {
    let text: String = pieces(html)
        .filter_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::Tag { .. } => None,
        })
        .collect();
    text.trim().to_owned()
}

enum Piece<'a> {
    Text(&'a str),
    Tag { name: &'a str, closes: bool },
}

fn pieces(html: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = html;
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            if !begins_tag(rest) {
                let end = next_tag(rest);
                let (text, behind) = rest.split_at(end);
                rest = behind;
                return Some(Piece::Text(text));
            }
            if let Some(comment) = rest.strip_prefix("<!--") {
                rest = comment.find("-->").map_or("", |at| &comment[at + 3..]);
                continue;
            }
            let end = rest.find('>').map_or(rest.len(), |at| at + 1);
            let (tag, behind) = rest.split_at(end);
            rest = behind;
            let inner = tag.trim_start_matches('<');
            let closes = inner.starts_with('/');
            let inner = inner.trim_start_matches('/');
            let name_end = inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
            let name = &inner[..name_end];
            let raw = ["script", "style"].iter().find(|raw| name.eq_ignore_ascii_case(raw));
            if let (Some(raw), false) = (raw, closes) {
                rest = &rest[end_of_raw(rest, raw)..];
            }
            return Some(Piece::Tag { name, closes });
        }
    })
}

fn begins_tag(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next() == Some(b'<')
        && bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'/' | b'!' | b'?'))
}

/// Behind the first character at the earliest.
fn next_tag(text: &str) -> usize {
    let starts = text.match_indices('<').map(|(at, _)| at).filter(|at| *at > 0);
    starts.into_iter().find(|at| begins_tag(&text[*at..])).unwrap_or(text.len())
}

fn end_of_raw(text: &str, tag: &str) -> usize {
    let ends = text.match_indices("</").map(|(at, _)| at);
    let fits = |at: &usize| {
        text.get(at + 2..at + 2 + tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag))
    };
    ends.into_iter().find(fits).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_as_people_make_them_are_reasonable() {
        let article = "<div><p>Some <b>text</b> with <a href=x>links</a>.</p></div>".repeat(20_000);
        let list = format!("<ul>{}</ul>", "<li>entry".repeat(10_000));
        for page in ["", "<p>a", "a < b", article.as_str(), list.as_str()] {
            assert!(is_reasonable(page));
        }
        let formatted: String = (0..10_000).map(|n| format!("<b id={n}>")).collect();
        for page in ["<div>".repeat(100_000), formatted + &"<p>x".repeat(10_000)] {
            assert!(!is_reasonable(&page));
        }
    }

    #[test]
    fn tags_scripts_and_comments_go_and_text_stays() {
        for (html, text) in [
            ("<p>a &lt; b</p> c", "a &lt; b c"),
            ("1 < 2 <b>x</b>", "1 < 2 x"),
            ("<SCRIPT>if (a<b) {}</Script>t<style>x</style>", "t"),
            ("a<!-- <b> -->b<!doctype html>c", "abc"),
            ("<script>never ends", ""),
            ("<p unfinished", ""),
            ("ü<", "ü<"),
        ] {
            assert_eq!(without_tags(html), text, "{html}");
        }
    }
}
