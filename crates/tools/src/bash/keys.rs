//! Keys by name, as the bytes that a terminal sends for them.

/// The names that are worth telling; any `ctrl-LETTER` is one too.
pub(super) const NAMES: &str = "enter, tab, escape, space, backspace, delete, up, down, left, right, home, end, pageup, pagedown, ctrl-a … ctrl-z";

pub(super) fn bytes_of(name: &str) -> Option<Vec<u8>> {
    let name = name.trim().to_lowercase().replace(['_', '+', ' '], "-");
    let known: &[u8] = match name.as_str() {
        "enter" | "return" => b"\r",
        "tab" => b"\t",
        "escape" | "esc" => b"\x1b",
        "space" | "-" => b" ",
        "backspace" => b"\x7f",
        "delete" => b"\x1b[3~",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "pageup" | "page-up" => b"\x1b[5~",
        "pagedown" | "page-down" => b"\x1b[6~",
        other => return control(other),
    };
    Some(known.to_vec())
}

fn control(name: &str) -> Option<Vec<u8>> {
    let letter = name
        .strip_prefix("ctrl-")
        .or_else(|| name.strip_prefix("control-"))
        .or_else(|| name.strip_prefix("c-"))?;
    match letter.as_bytes() {
        [letter @ b'a'..=b'z'] => Some(vec![letter - b'a' + 1]),
        [b'\\'] => Some(vec![0x1c]),
        [b'['] => Some(vec![0x1b]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_the_names_that_people_use() {
        let cases: &[(&str, &[u8])] = &[
            ("ctrl-c", b"\x03"),
            ("Ctrl+D", b"\x04"),
            ("C-z", b"\x1a"),
            ("Enter", b"\r"),
            ("page_up", b"\x1b[5~"),
            ("up", b"\x1b[A"),
        ];
        for (name, wanted) in cases {
            assert_eq!(bytes_of(name).as_deref(), Some(*wanted), "{name}");
        }
        for name in ["", "ctrl-", "ctrl-ä", "ctrl-ab", "f99", "hyper"] {
            assert_eq!(bytes_of(name), None, "{name}");
        }
    }
}
