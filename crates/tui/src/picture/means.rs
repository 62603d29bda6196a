//! How images are shown, chosen by the environment alone: asking the terminal takes a round trip.

use serde_json::Value;

use crate::style::Depth;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Means {
    /// By their names only.
    #[default]
    Off,
    /// As blocks of colour, two pixels a cell.
    Blocks,
    /// In the protocol of kitty, which others speak too.
    Kitty,
    Sixel,
}

/// What a terminal has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Canvas {
    pub means: Means,
    pub columns: usize,
    pub rows: usize,
    /// Pixels of a cell, where the terminal says so.
    pub cell: Option<(u32, u32)>,
}

impl Means {
    /// As the settings say, else as the terminal is known to do. What is not understood is told.
    pub fn chosen(setting: &Value, env: &dyn Fn(&str) -> Option<String>) -> (Self, Option<String>) {
        let means = match (setting, setting.as_str()) {
            (Value::Bool(false), _) | (_, Some("off" | "none")) => Self::Off,
            (_, Some("blocks")) => Self::Blocks,
            (_, Some("kitty")) => Self::Kitty,
            (_, Some("sixel")) => Self::Sixel,
            (Value::Null | Value::Bool(true), _) | (_, Some("auto")) => Self::of_terminal(env),
            _ => {
                let text = format!(
                    "tui.json: images: {setting} is none of auto, kitty, sixel, blocks, off"
                );
                return (Self::of_terminal(env), Some(text));
            }
        };
        (means, None)
    }

    fn of_terminal(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        if set("NO_COLOR").is_some() {
            return Self::Off;
        }
        let term = set("TERM").unwrap_or_default();
        // What is drawn past a multiplexer stays where it was when the pane moves on.
        let inside = ["TMUX", "ZELLIJ", "STY"].iter().any(|name| set(name).is_some());
        let inside = inside || term.starts_with("screen") || term.starts_with("tmux");
        let program = set("TERM_PROGRAM").unwrap_or_default();
        let own = match (term.as_str(), program.as_str()) {
            ("xterm-kitty" | "xterm-ghostty", _) | (_, "ghostty" | "kitty" | "WezTerm") => {
                Some(Self::Kitty)
            }
            ("mlterm" | "contour" | "foot", _) | (_, "iTerm.app" | "mintty" | "rio") => {
                Some(Self::Sixel)
            }
            (term, _) if term.starts_with("foot-") => Some(Self::Sixel),
            // Variables that a terminal of another kind may have from the one it was started in.
            (_, "") if set("KITTY_WINDOW_ID").is_some() || set("WEZTERM_PANE").is_some() => {
                Some(Self::Kitty)
            }
            (_, "") if set("KONSOLE_VERSION").is_some_and(|v| v.as_str() >= "220400") => {
                Some(Self::Sixel)
            }
            _ => None,
        };
        match own.filter(|_| !inside) {
            Some(means) => means,
            // Sixteen colours are too few for a picture.
            None if Depth::from_env(env) >= Depth::Indexed => Self::Blocks,
            None => Self::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn terminals_are_known_by_their_environment() {
        for (pairs, expected) in [
            (&[("TERM", "xterm-kitty")][..], Means::Kitty),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "ghostty")], Means::Kitty),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")], Means::Kitty),
            (&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")], Means::Kitty),
            (&[("TERM", "foot")], Means::Sixel),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], Means::Sixel),
            (&[("TERM", "xterm-256color"), ("KONSOLE_VERSION", "230804")], Means::Sixel),
            (&[("TERM", "xterm-256color"), ("KONSOLE_VERSION", "210400")], Means::Blocks),
            (&[("TERM", "xterm-256color")], Means::Blocks),
            (
                &[("TERM", "xterm-256color"), ("TERM_PROGRAM", "vscode"), ("KITTY_WINDOW_ID", "1")],
                Means::Blocks,
            ),
            (&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")], Means::Blocks),
            (&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x,1,0")], Means::Blocks),
            (&[("TERM", "xterm-kitty"), ("NO_COLOR", "1")], Means::Off),
            (&[("TERM", "linux")], Means::Off),
        ] {
            let env =
                |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            assert_eq!(Means::chosen(&Value::Null, &env), (expected, None), "{pairs:?}");
        }
    }

    #[test]
    fn the_settings_win_and_what_they_cannot_mean_is_told() {
        let env = |name: &str| (name == "TERM").then(|| "xterm-256color".to_owned());
        for (setting, expected) in [
            (json!("kitty"), Means::Kitty),
            (json!("sixel"), Means::Sixel),
            (json!("blocks"), Means::Blocks),
            (json!("off"), Means::Off),
            (json!(false), Means::Off),
            (json!(true), Means::Blocks),
            (json!("auto"), Means::Blocks),
        ] {
            assert_eq!(Means::chosen(&setting, &env), (expected, None), "{setting}");
        }
        let (means, warning) = Means::chosen(&json!("gif"), &env);
        assert_eq!(means, Means::Blocks);
        assert!(warning.unwrap().contains("none of auto"));
    }
}
