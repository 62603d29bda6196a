//! What programs write for a terminal, for those who have none: colours as marked text, everything that
//! moves a cursor left out, and of a line that was written over only its last state.

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Look {
    ink: Option<u8>,
    paper: Option<u8>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    inverse: bool,
}

/// The words alone.
pub(crate) fn plain(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    pieces(text, &mut |piece, _| out.push_str(piece));
    out
}

/// With each coloured piece in a `span` whose classes say how it looks. `escape` makes text harmless.
pub(super) fn marked(text: &str, escape: impl Fn(&str) -> String) -> String {
    if is_plain(text) {
        return escape(text);
    }
    let mut out = String::with_capacity(text.len() * 2);
    pieces(text, &mut |piece, look| {
        if look == Look::default() {
            out.push_str(&escape(piece));
        } else {
            out.push_str(&format!("<span class=\"{}\">{}</span>", classes(look), escape(piece)));
        }
    });
    out
}

fn is_plain(text: &str) -> bool {
    !text.contains(['\u{1b}', '\r', '\u{8}'])
}

/// Gives each piece of text that looks the same, in order.
fn pieces(text: &str, give: &mut impl FnMut(&str, Look)) {
    let mut look = Look::default();
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            give("\n", Look::default());
        }
        let mut row: Vec<(char, Look)> = Vec::new();
        let mut at = 0;
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\u{1b}' => look = sequence(&mut letters, look, &mut row, at),
                '\r' => at = 0,
                '\u{8}' => at = at.saturating_sub(1),
                other if at < row.len() => {
                    row[at] = (other, look);
                    at += 1;
                }
                other => {
                    row.push((other, look));
                    at += 1;
                }
            }
        }
        let mut piece = String::new();
        let mut own = Look::default();
        for (letter, look) in row {
            if look != own && !piece.is_empty() {
                give(&piece, own);
                piece.clear();
            }
            own = look;
            piece.push(letter);
        }
        if !piece.is_empty() {
            give(&piece, own);
        }
    }
}

/// One sequence, from behind its beginning. Only colours count, and what clears the line.
fn sequence(
    letters: &mut std::str::Chars<'_>,
    look: Look,
    row: &mut Vec<(char, Look)>,
    at: usize,
) -> Look {
    match letters.next() {
        Some('[') => {
            let mut parameters = String::new();
            for letter in letters.by_ref() {
                match letter {
                    'm' => return coloured(&parameters, look),
                    'K' => {
                        match parameters.as_str() {
                            "" | "0" => row.truncate(at),
                            _ => row.clear(),
                        }
                        return look;
                    }
                    '\u{40}'..='\u{7e}' => return look,
                    other => parameters.push(other),
                }
            }
        }
        // A title or a link: up to a bell, or an escape and the letter behind it.
        Some(']' | 'P' | '_' | '^') => {
            while let Some(letter) = letters.next() {
                match letter {
                    '\u{7}' => break,
                    '\u{1b}' => {
                        letters.next();
                        break;
                    }
                    _ => {}
                }
            }
        }
        Some('(' | ')') => drop(letters.next()),
        _ => {}
    }
    look
}

fn coloured(parameters: &str, mut look: Look) -> Look {
    // Not about colours, though it ends as they do: which keys are told, for one.
    if parameters.starts_with(['<', '=', '>', '?']) {
        return look;
    }
    let mut given = parameters.split(';');
    while let Some(parameter) = given.next() {
        // What follows a colon belongs to what stands before it.
        let (first, details) = match parameter.split_once(':') {
            Some((first, details)) => (first, Some(details)),
            None => (parameter, None),
        };
        let mut colour = || match details {
            Some(details) => extended(&mut without_space(details)),
            None => extended(&mut given.by_ref().map(number)),
        };
        match number(first) {
            38 => look.ink = colour(),
            48 => look.paper = colour(),
            // Of the line below, which has the colour of its text here.
            58 => {
                colour();
            }
            4 => look.underline = details != Some("0"),
            // None that we know has details.
            _ if details.is_some() => {}
            0 => look = Look::default(),
            1 => look.bold = true,
            2 => look.dim = true,
            3 => look.italic = true,
            7 => look.inverse = true,
            22 => (look.bold, look.dim) = (false, false),
            23 => look.italic = false,
            24 => look.underline = false,
            27 => look.inverse = false,
            plain @ 30..=37 => look.ink = u8::try_from(plain - 30).ok(),
            bright @ 90..=97 => look.ink = u8::try_from(bright - 82).ok(),
            plain @ 40..=47 => look.paper = u8::try_from(plain - 40).ok(),
            bright @ 100..=107 => look.paper = u8::try_from(bright - 92).ok(),
            39 => look.ink = None,
            49 => look.paper = None,
            _ => {}
        }
    }
    look
}

/// What is left out is zero; what is no number means nothing, as those beyond all that mean something.
fn number(text: &str) -> u16 {
    text.parse().unwrap_or(if text.is_empty() { 0 } else { u16::MAX })
}

/// The numbers of a colour. Behind the two of `2:SPACE:RED:GREEN:BLUE` the space is named, or is left out
/// with its place or without.
fn without_space(details: &str) -> impl Iterator<Item = u16> {
    let has_space = details.starts_with("2:") && details.split(':').count() > 4;
    let numbers = details.split(':').enumerate();
    numbers.filter(move |(at, _)| !has_space || *at != 1).map(|(_, text)| number(text))
}

/// One of 256, or any: the nearest of the sixteen that both themes have.
fn extended(numbers: &mut impl Iterator<Item = u16>) -> Option<u8> {
    let form = numbers.next()?;
    let mut part = || numbers.next().map(|part| part.min(255));
    let (red, green, blue) = match form {
        5 => {
            let number = part()?;
            match number {
                0..=15 => return u8::try_from(number).ok(),
                16..=231 => {
                    let step = |n: u16| if n == 0 { 0 } else { 55 + n * 40 };
                    let cube = number - 16;
                    (step(cube / 36), step(cube / 6 % 6), step(cube % 6))
                }
                _ => {
                    let grey = 8 + (number - 232) * 10;
                    (grey, grey, grey)
                }
            }
        }
        2 => (part()?, part()?, part()?),
        _ => return None,
    };
    let high = red.max(green).max(blue);
    // Almost without colour: grey, or what text has anyway.
    if high - red.min(green).min(blue) < 48 {
        return (high < 200).then_some(8);
    }
    let bit = |part: u16, value: u8| if part * 2 > high { value } else { 0 };
    Some(bit(red, 1) | bit(green, 2) | bit(blue, 4))
}

fn classes(look: Look) -> String {
    let (ink, paper) = match look.inverse {
        true => (look.paper.or(Some(16)), look.ink.or(Some(16))),
        false => (look.ink, look.paper),
    };
    let mut names = Vec::new();
    names.extend(ink.map(|n| format!("f{n}")));
    names.extend(paper.map(|n| format!("g{n}")));
    let marks = [(look.bold, "fb"), (look.dim, "fd"), (look.italic, "fi"), (look.underline, "fu")];
    names.extend(marks.iter().filter(|(on, _)| *on).map(|(_, name)| (*name).to_owned()));
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_classes_and_what_moves_a_cursor_is_left_out() {
        let marked = |text: &str| marked(text, |piece| piece.replace('<', "&lt;"));
        let table = [
            ("plain <b>", "plain &lt;b>"),
            ("\u{1b}[31mred\u{1b}[0m no", "<span class=\"f1\">red</span> no"),
            (
                "\u{1b}[1;32m<ok>\u{1b}[22m.",
                "<span class=\"f2 fb\">&lt;ok></span><span class=\"f2\">.</span>",
            ),
            ("\u{1b}[91;44mx", "<span class=\"f9 g4\">x</span>"),
            ("\u{1b}[38;5;196mx\u{1b}[39m", "<span class=\"f1\">x</span>"),
            ("\u{1b}[38;2;0;200;10mx", "<span class=\"f2\">x</span>"),
            ("\u{1b}[7mx", "<span class=\"f16 g16\">x</span>"),
            ("10%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
            ("long line\r\u{1b}[Kend", "end"),
            ("ab\u{8}c", "ac"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b\u{1b}[2J\u{1b}[?25hc", "abc"),
            ("\u{1b}[", ""),
            ("\u{1b}", ""),
            ("\u{1b}[999;38;5mx", "x"),
            // Numbers beyond those of colours.
            ("\u{1b}[38;2;40000;0;0mx", "<span class=\"f1\">x</span>"),
            ("\u{1b}[48;2;0;99999;65535mx", "<span class=\"g6\">x</span>"),
            ("\u{1b}[38;5;40000;1mx", "<span class=\"fb\">x</span>"),
            ("\u{1b}[1;70000mx", "<span class=\"fb\">x</span>"),
            // Details behind colons, with and without a colour space; lines below of any shape and colour.
            ("\u{1b}[38:5:196mx", "<span class=\"f1\">x</span>"),
            ("\u{1b}[38:2::255:0:4mx", "<span class=\"f1\">x</span>"),
            ("\u{1b}[1;48:2:0:200:10;3mx", "<span class=\"g2 fb fi\">x</span>"),
            ("\u{1b}[4:3mx\u{1b}[4:0my", "<span class=\"fu\">x</span>y"),
            ("\u{1b}[58;5;1mx\u{1b}[58;2;1;2;3my\u{1b}[58:2::1:2:3mz", "xyz"),
            ("\u{1b}[58;5;1;31mx", "<span class=\"f1\">x</span>"),
            ("\u{1b}[1:2mx", "x"),
            // Not about colours.
            ("\u{1b}[>4;2mx\u{1b}[?1my\u{1b}[=1m\u{1b}[<1mz", "xyz"),
        ];
        for (given, wanted) in table {
            assert_eq!(marked(given), wanted, "{given:?}");
        }
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m\r\n"), "red\n");
    }

    proptest::proptest! {
        /// Whatever a program writes, its words are shown and its sequences are not.
        #[test]
        fn no_sequence_is_too_odd(text in "(\u{1b}\\[[<>?]?([34]8|58|4|[0-9]{0,6})([;:][0-9 ]{0,6}){0,6}m|[\u{1b}\r\n\u{8}a\\[\\]K;m(])*") {
            let words = plain(&text);
            proptest::prop_assert!(is_plain(&words));
            let mut marked = marked(&text, str::to_owned).replace("</span>", "");
            while let Some(start) = marked.find("<span") {
                let end = marked[start..].find('>').unwrap();
                marked.replace_range(start..=start + end, "");
            }
            proptest::prop_assert_eq!(marked, words);
        }
    }
}
