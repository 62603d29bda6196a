//! Options by a list of those that are allowed, in the manner of `getopt`.

use super::super::word::Word;

/// What a program may be given. Short options as `getopt` writes them (`n:` takes a value, `U::` may
/// have one attached); long ones with `=` if they take a value, `==` if only behind their own `=`, `?` if
/// they may have one there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    pub(super) short: &'static str,
    pub(super) long: &'static str,
    /// `-5` is a number.
    pub(super) number: bool,
}

/// Words, told apart.
#[derive(Debug, Default)]
pub(super) struct Given<'a> {
    pub(super) options: Vec<(&'a str, Option<&'a str>)>,
    pub(super) operands: Vec<&'a Word>,
}

impl Given<'_> {
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(name))
    }
}

/// Nothing if one of the options is not on the list, or computed.
pub(super) fn given<'a>(words: &'a [Word], allowed: Allowed) -> Option<Given<'a>> {
    let mut found = Given::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_deref()?;
        if text == "--" {
            found.operands.extend(rest);
            break;
        }
        if text == "-" || !text.starts_with('-') {
            found.operands.push(word);
            continue;
        }
        // `--include=*.rs` stays that option, whatever the shell finds for it.
        let stays = || {
            let name = text.split(['*', '?', '[', '{']).next().unwrap_or_default();
            text.starts_with("--") && name.contains('=') && !text.contains('{')
        };
        if word.pattern && !stays() {
            return None;
        }
        // A value that looks like an option may be one: programs differ about it.
        let mut next = || {
            let value = rest.next().filter(|word| !word.pattern)?.text.as_deref()?;
            Some(value).filter(|value| !value.starts_with('-') || is_negative(value))
        };
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let value = match (kind_of_long(name, allowed.long)?, value) {
                (Takes::Nothing, None) => None,
                (Takes::Nothing, Some(_)) => return None,
                (Takes::Perhaps, value) => value,
                (Takes::Value | Takes::Attached, Some(value)) => Some(value),
                (Takes::Attached, None) => return None,
                (Takes::Value, None) => Some(next()?),
            };
            found.options.push((name, value));
            continue;
        }
        let bundle = &text[1..];
        if allowed.number && bundle.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        for (at, c) in bundle.char_indices() {
            let end = at + c.len_utf8();
            let attached = Some(&bundle[end..]).filter(|value| !value.is_empty());
            let name = &bundle[at..end];
            match kind_of_short(c, allowed.short)? {
                Takes::Nothing => found.options.push((name, None)),
                Takes::Perhaps => {
                    found.options.push((name, attached));
                    break;
                }
                Takes::Value | Takes::Attached => {
                    found.options.push((
                        name,
                        Some(match attached {
                            Some(value) => value,
                            None => next()?,
                        }),
                    ));
                    break;
                }
            }
        }
    }
    Some(found)
}

#[derive(Clone, Copy)]
enum Takes {
    Nothing,
    Perhaps,
    Value,
    Attached,
}

fn is_negative(value: &str) -> bool {
    value.len() > 1 && value.bytes().skip(1).all(|b| b.is_ascii_digit())
}

fn kind_of_long(name: &str, list: &str) -> Option<Takes> {
    list.split_whitespace().find_map(|entry| match entry.strip_prefix(name)? {
        "" => Some(Takes::Nothing),
        "?" => Some(Takes::Perhaps),
        "=" => Some(Takes::Value),
        "==" => Some(Takes::Attached),
        _ => None,
    })
}

fn kind_of_short(name: char, list: &str) -> Option<Takes> {
    let at = list.find(name).filter(|_| name != ':')?;
    let rest = &list[at + name.len_utf8()..];
    Some(match rest {
        rest if rest.starts_with("::") => Takes::Perhaps,
        rest if rest.starts_with(':') => Takes::Value,
        _ => Takes::Nothing,
    })
}
