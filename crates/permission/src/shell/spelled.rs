//! A command as nobody would write it to hide it: its words without quotes, one blank between them, the
//! program without its folder. What is refused under one name is refused under the others.

use super::parse::Raw;
use super::word::Word;

/// The plain spelling of a command, where it was written in another way.
pub(super) fn plainly(raw: &Raw) -> Option<String> {
    let (first, rest) = raw.words.split_first()?;
    if is_plain(raw) {
        return None;
    }
    let program = shown(first);
    let program = program.rsplit('/').next().unwrap_or(program);
    let rest: Vec<&str> = rest.iter().map(shown).collect();
    let rest = if program == "git" { without_places(&rest) } else { rest.as_slice() };
    let mut text = program.to_owned();
    for word in rest {
        text.push(' ');
        text.push_str(word);
    }
    (text != raw.text).then_some(text)
}

/// Whether it stands there word for word already, as most commands do.
fn is_plain(raw: &Raw) -> bool {
    let mut rest = raw.text.as_str();
    for (at, word) in raw.words.iter().enumerate() {
        let blank = if at == 0 { Some(rest) } else { rest.strip_prefix(' ') };
        match blank.and_then(|rest| rest.strip_prefix(shown(word))) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    let places = |word: &Word| shown(word).starts_with('-');
    let is_led = raw.text.starts_with("git ") && raw.words.get(1).is_some_and(places);
    rest.is_empty() && !raw.is_path() && !is_led
}

fn shown(word: &Word) -> &str {
    word.text.as_deref().unwrap_or(&word.source)
}

/// `git -C folder push` is a push.
fn without_places<'r, 'w>(mut rest: &'r [&'w str]) -> &'r [&'w str] {
    loop {
        rest = match rest {
            ["-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace", _, more @ ..] => more,
            [option, more @ ..] if option.starts_with('-') && !more.is_empty() => more,
            _ => return rest,
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::analyse;

    #[test]
    fn a_command_has_one_plain_spelling() {
        for line in [
            "git  push origin main",
            "\"git\" push origin main",
            "g\\it push origin main",
            "git pu\"\"sh origin main",
            "/usr/bin/git push origin main",
            "git -C . push origin main",
            "git --no-pager push origin main",
            "git -c a=b push origin main",
            "x=push; git $x origin main",
            "GIT_DIR=x git push origin main",
            "git push origin main > log",
        ] {
            let spelled: Vec<_> =
                analyse(line).commands.into_iter().filter_map(|c| c.spelled).collect();
            assert_eq!(spelled, ["git push origin main"], "{line}");
        }
        assert_eq!(analyse("git push origin main").commands[0].spelled, None);
    }
}
