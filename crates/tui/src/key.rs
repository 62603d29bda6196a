//! Keys, as terminals send them and as people write them in settings.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    Char(char),
    Enter,
    Tab,
    Backspace,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Insert,
    Delete,
    F(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub code: Code,
    pub ctrl: bool,
    pub alt: bool,
    pub shift: bool,
}

impl Key {
    pub fn plain(code: Code) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }

    pub fn char(c: char) -> Self {
        Self::plain(Code::Char(c))
    }

    pub fn ctrl(c: char) -> Self {
        Self { ctrl: true, ..Self::char(c) }
    }

    pub fn alt(self) -> Self {
        Self { alt: true, ..self }
    }

    pub fn shift(self) -> Self {
        Self { shift: true, ..self }
    }

    /// The character that it types, if it types one.
    pub fn typed(self) -> Option<char> {
        match self.code {
            Code::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }

    /// As in settings: `ctrl+x`, `alt+return`, `shift+f2`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut key = Self::char('\0');
        let mut rest = text.trim();
        let parts = |text: &'_ str| {
            let at = text.find('+').filter(|at| *at > 0 && at + 1 < text.len())?;
            Some((at, at + 1))
        };
        while let Some((end, next)) = parts(rest) {
            let (modifier, after) = (&rest[..end], &rest[next..]);
            match modifier.to_ascii_lowercase().as_str() {
                "ctrl" | "control" => key.ctrl = true,
                "alt" | "meta" | "option" => key.alt = true,
                "shift" => key.shift = true,
                _ => return None,
            }
            rest = after;
        }
        key.code = match rest.to_ascii_lowercase().as_str() {
            "return" | "enter" => Code::Enter,
            "tab" => Code::Tab,
            "backspace" => Code::Backspace,
            "escape" | "esc" => Code::Escape,
            "up" => Code::Up,
            "down" => Code::Down,
            "left" => Code::Left,
            "right" => Code::Right,
            "home" => Code::Home,
            "end" => Code::End,
            "pageup" => Code::PageUp,
            "pagedown" => Code::PageDown,
            "insert" => Code::Insert,
            "delete" => Code::Delete,
            "space" => Code::Char(' '),
            name => match name.strip_prefix('f').and_then(|n| n.parse().ok()) {
                Some(n @ 1..=24) => Code::F(n),
                _ => {
                    let mut chars = rest.chars();
                    let c = chars.next().filter(|_| chars.next().is_none())?;
                    if c.is_uppercase() && (key.ctrl || key.alt) {
                        key.shift = true;
                    }
                    let lower = key.ctrl || key.alt;
                    Code::Char(if lower { c.to_ascii_lowercase() } else { c })
                }
            },
        };
        Some(key)
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (on, name) in [(self.ctrl, "ctrl+"), (self.alt, "alt+"), (self.shift, "shift+")] {
            if on {
                f.write_str(name)?;
            }
        }
        match self.code {
            Code::Char(' ') => f.write_str("space"),
            Code::Char(c) => write!(f, "{c}"),
            Code::F(n) => write!(f, "f{n}"),
            Code::Enter => f.write_str("enter"),
            Code::Tab => f.write_str("tab"),
            Code::Backspace => f.write_str("backspace"),
            Code::Escape => f.write_str("esc"),
            Code::Up => f.write_str("up"),
            Code::Down => f.write_str("down"),
            Code::Left => f.write_str("left"),
            Code::Right => f.write_str("right"),
            Code::Home => f.write_str("home"),
            Code::End => f.write_str("end"),
            Code::PageUp => f.write_str("pageup"),
            Code::PageDown => f.write_str("pagedown"),
            Code::Insert => f.write_str("insert"),
            Code::Delete => f.write_str("delete"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settings_say_is_understood_and_said_back() {
        for (text, key) in [
            ("ctrl+x", Key::ctrl('x')),
            ("alt+return", Key::plain(Code::Enter).alt()),
            ("shift+f2", Key::plain(Code::F(2)).shift()),
            ("escape", Key::plain(Code::Escape)),
            ("space", Key::char(' ')),
            ("E", Key::char('E')),
            ("ctrl+-", Key::ctrl('-')),
        ] {
            assert_eq!(Key::parse(text), Some(key), "{text}");
            assert_eq!(Key::parse(&key.to_string()), Some(key), "{key}");
        }
        assert_eq!(Key::parse("hyper+x"), None);
        assert_eq!(Key::parse("nothing"), None);
    }
}
