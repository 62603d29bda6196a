//! Colours by what they mean. The terminal's own background is never painted over, so text keeps the
//! terminal's own colour; files in OpenCode's form give the rest.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::style::{Color, Style};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    pub name: String,
    pub muted: Color,
    pub primary: Color,
    pub secondary: Color,
    pub accent: Color,
    pub error: Color,
    pub warning: Color,
    pub success: Color,
    pub info: Color,
    pub border: Color,
    pub added: Color,
    pub removed: Color,
    pub added_mark: Color,
    pub removed_mark: Color,
    pub heading: Color,
    pub link: Color,
    pub code: Color,
    pub quote: Color,
    pub list: Color,
    pub comment: Color,
    pub keyword: Color,
    pub function: Color,
    pub string: Color,
    pub number: Color,
    pub kind: Color,
    pub operator: Color,
}

/// Ten hues of a palette, in the order of [`HUES`].
type Palette = [u32; 10];

const HUES: &str = "muted red orange yellow green cyan blue purple accent border";

/// Name, for dark terminals, for light ones. The hues are the published ones of each palette.
const PALETTES: &[(&str, Palette, Palette)] = &[
    (
        "tokyonight",
        [
            0x565f89, 0xf7768e, 0xff9e64, 0xe0af68, 0x9ece6a, 0x7dcfff, 0x7aa2f7, 0xbb9af7,
            0xff9e64, 0x3b4261,
        ],
        [
            0x848cb5, 0xf52a65, 0xb15c00, 0x8c6c3e, 0x587539, 0x007197, 0x2e7de9, 0x9854f1,
            0xb15c00, 0xa8aecb,
        ],
    ),
    (
        "catppuccin",
        [
            0x6c7086, 0xf38ba8, 0xfab387, 0xf9e2af, 0xa6e3a1, 0x94e2d5, 0x89b4fa, 0xcba6f7,
            0xf5c2e7, 0x45475a,
        ],
        [
            0x9ca0b0, 0xd20f39, 0xfe640b, 0xdf8e1d, 0x40a02b, 0x179299, 0x1e66f5, 0x8839ef,
            0xea76cb, 0xbcc0cc,
        ],
    ),
    (
        "gruvbox",
        [
            0x928374, 0xfb4934, 0xfe8019, 0xfabd2f, 0xb8bb26, 0x8ec07c, 0x83a598, 0xd3869b,
            0xfe8019, 0x504945,
        ],
        [
            0x928374, 0x9d0006, 0xaf3a03, 0xb57614, 0x79740e, 0x427b58, 0x076678, 0x8f3f71,
            0xaf3a03, 0xbdae93,
        ],
    ),
    (
        "nord",
        [
            0x7b88a1, 0xbf616a, 0xd08770, 0xebcb8b, 0xa3be8c, 0x88c0d0, 0x81a1c1, 0xb48ead,
            0x8fbcbb, 0x4c566a,
        ],
        [
            0x7b88a1, 0xbf616a, 0xac4426, 0x9a7500, 0x4f894c, 0x398eac, 0x3b6ea8, 0x97365b,
            0x29838d, 0xc2d0e7,
        ],
    ),
    (
        "dracula",
        [
            0x6272a4, 0xff5555, 0xffb86c, 0xf1fa8c, 0x50fa7b, 0x8be9fd, 0x8be9fd, 0xbd93f9,
            0xff79c6, 0x44475a,
        ],
        [
            0x6c664b, 0xcb3a2a, 0xa34d14, 0x846e15, 0x14710a, 0x036a96, 0x036a96, 0x644ac9,
            0xa3144d, 0xcfcfde,
        ],
    ),
    (
        "solarized",
        [
            0x586e75, 0xdc322f, 0xcb4b16, 0xb58900, 0x859900, 0x2aa198, 0x268bd2, 0x6c71c4,
            0xd33682, 0x073642,
        ],
        [
            0x93a1a1, 0xdc322f, 0xcb4b16, 0xb58900, 0x859900, 0x2aa198, 0x268bd2, 0x6c71c4,
            0xd33682, 0xeee8d5,
        ],
    ),
    (
        "github",
        [
            0x8b949e, 0xff7b72, 0xffa657, 0xd29922, 0x7ee787, 0xa5d6ff, 0x79c0ff, 0xd2a8ff,
            0xf778ba, 0x30363d,
        ],
        [
            0x6e7781, 0xcf222e, 0x953800, 0x9a6700, 0x1a7f37, 0x0a3069, 0x0550ae, 0x8250df,
            0xbf3989, 0xd0d7de,
        ],
    ),
    (
        "one-dark",
        [
            0x7f848e, 0xe06c75, 0xd19a66, 0xe5c07b, 0x98c379, 0x56b6c2, 0x61afef, 0xc678dd,
            0xd19a66, 0x3e4451,
        ],
        [
            0xa0a1a7, 0xe45649, 0x986801, 0xc18401, 0x50a14f, 0x0184bc, 0x4078f2, 0xa626a4,
            0xca1243, 0xd4d4d4,
        ],
    ),
    (
        "everforest",
        [
            0x859289, 0xe67e80, 0xe69875, 0xdbbc7f, 0xa7c080, 0x83c092, 0x7fbbb3, 0xd699b6,
            0xe69875, 0x475258,
        ],
        [
            0x939f91, 0xf85552, 0xf57d26, 0xdfa000, 0x8da101, 0x35a77c, 0x3a94c5, 0xdf69ba,
            0xf57d26, 0xe0dcc7,
        ],
    ),
    (
        "rosepine",
        [
            0x6e6a86, 0xeb6f92, 0xea9a97, 0xf6c177, 0x9ccfd8, 0x9ccfd8, 0x3e8fb0, 0xc4a7e7,
            0xebbcba, 0x403d52,
        ],
        [
            0x9893a5, 0xb4637a, 0xd7827e, 0xea9d34, 0x286983, 0x56949f, 0x286983, 0x907aa9,
            0xd7827e, 0xdfdad9,
        ],
    ),
];

/// Uses the terminal's own sixteen colours, so it fits light and dark alike.
pub const DEFAULT: &str = "toolwright";

impl Default for Theme {
    fn default() -> Self {
        let hues = [8, 1, 3, 3, 2, 6, 4, 5, 6, 8].map(Color::Index);
        let mut theme = Self::of(DEFAULT, hues);
        theme.added_mark = Color::Index(2);
        theme.removed_mark = Color::Index(1);
        theme
    }
}

impl Theme {
    /// By name; the built-in ones only.
    pub fn built_in(name: &str, dark: bool) -> Option<Self> {
        if name == DEFAULT || name == "system" || name == "opencode" {
            return Some(Self::default());
        }
        let (name, night, day) = PALETTES.iter().find(|(own, _, _)| *own == name)?;
        let rgb = |n: u32| Color::Rgb((n >> 16) as u8, (n >> 8) as u8, n as u8);
        let mut theme = Self::of(name, if dark { *night } else { *day }.map(rgb));
        let (added, removed) = if dark {
            (Color::Rgb(0x1f, 0x4d, 0x2b), Color::Rgb(0x5c, 0x23, 0x2b))
        } else {
            (Color::Rgb(0xb7, 0xe4, 0xc0), Color::Rgb(0xf7, 0xc1, 0xc6))
        };
        (theme.added_mark, theme.removed_mark) = (added, removed);
        Some(theme)
    }

    pub fn names() -> Vec<&'static str> {
        std::iter::once(DEFAULT).chain(PALETTES.iter().map(|(name, _, _)| *name)).collect()
    }

    fn of(name: &str, hues: [Color; 10]) -> Self {
        debug_assert_eq!(HUES.split(' ').count(), hues.len());
        let [muted, red, orange, yellow, green, cyan, blue, purple, accent, border] = hues;
        Self {
            name: name.to_owned(),
            muted,
            primary: blue,
            secondary: purple,
            accent,
            error: red,
            warning: yellow,
            success: green,
            info: cyan,
            border,
            added: green,
            removed: red,
            added_mark: green,
            removed_mark: red,
            heading: purple,
            link: blue,
            code: cyan,
            quote: yellow,
            list: blue,
            comment: muted,
            keyword: purple,
            function: blue,
            string: green,
            number: orange,
            kind: yellow,
            operator: cyan,
        }
    }

    /// A theme file in OpenCode's form. What it leaves out is as in the default.
    pub fn from_json(name: &str, text: &str, dark: bool) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let keys = value["theme"].as_object().ok_or("it has no \"theme\"")?;
        let empty = serde_json::Map::new();
        let defs = value["defs"].as_object().unwrap_or(&empty);
        let look = |key: &str| keys.get(key).map(|v| resolve(v, defs, keys, dark, 0)).transpose();
        let mut theme = Self { name: name.to_owned(), ..Self::default() };
        let mut problems = BTreeMap::new();
        for (key, place) in [
            ("textMuted", &mut theme.muted),
            ("primary", &mut theme.primary),
            ("secondary", &mut theme.secondary),
            ("accent", &mut theme.accent),
            ("error", &mut theme.error),
            ("warning", &mut theme.warning),
            ("success", &mut theme.success),
            ("info", &mut theme.info),
            ("border", &mut theme.border),
            ("diffAdded", &mut theme.added),
            ("diffRemoved", &mut theme.removed),
            ("diffAddedBg", &mut theme.added_mark),
            ("diffRemovedBg", &mut theme.removed_mark),
            ("markdownHeading", &mut theme.heading),
            ("markdownLink", &mut theme.link),
            ("markdownCode", &mut theme.code),
            ("markdownBlockQuote", &mut theme.quote),
            ("markdownListItem", &mut theme.list),
            ("syntaxComment", &mut theme.comment),
            ("syntaxKeyword", &mut theme.keyword),
            ("syntaxFunction", &mut theme.function),
            ("syntaxString", &mut theme.string),
            ("syntaxNumber", &mut theme.number),
            ("syntaxType", &mut theme.kind),
            ("syntaxOperator", &mut theme.operator),
        ] {
            match look(key) {
                Ok(Some(colour)) => *place = colour,
                Ok(None) => {}
                Err(problem) => {
                    problems.insert(key, problem);
                }
            }
        }
        match problems.pop_first() {
            Some((key, problem)) => Err(format!("{key}: {problem}")),
            None => Ok(theme),
        }
    }

    pub fn muted(&self) -> Style {
        Style::fg(self.muted)
    }
}

fn resolve(
    value: &Value,
    defs: &serde_json::Map<String, Value>,
    keys: &serde_json::Map<String, Value>,
    dark: bool,
    depth: usize,
) -> Result<Color, String> {
    if depth > 16 {
        return Err("it refers to itself".to_owned());
    }
    let again = |v: &Value| resolve(v, defs, keys, dark, depth + 1);
    match value {
        Value::Number(n) => {
            let n = n.as_u64().and_then(|n| u8::try_from(n).ok());
            n.map(Color::Index).ok_or_else(|| "a number must be 0 to 255".to_owned())
        }
        Value::Object(both) => {
            let side = both.get(if dark { "dark" } else { "light" });
            again(side.ok_or("it has no such side")?)
        }
        Value::String(text) if text == "none" || text == "transparent" => Ok(Color::Default),
        Value::String(text) if text.starts_with('#') => {
            hex(text).ok_or_else(|| format!("{text} is no colour"))
        }
        Value::String(name) => match defs.get(name).or_else(|| keys.get(name)) {
            Some(value) => again(value),
            None => Err(format!("{name} is not defined")),
        },
        _ => Err("it is no colour".to_owned()),
    }
}

fn hex(text: &str) -> Option<Color> {
    let digits = text.strip_prefix('#')?;
    if !digits.is_ascii() {
        return None;
    }
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let single = |at: usize| Some(u8::from_str_radix(digits.get(at..at + 1)?, 16).ok()? * 17);
    match digits.len() {
        3 | 4 => Some(Color::Rgb(single(0)?, single(1)?, single(2)?)),
        6 | 8 => Some(Color::Rgb(pair(0)?, pair(2)?, pair(4)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_theme_is_there_for_light_and_dark() {
        assert!(Theme::names().len() >= 10);
        for name in Theme::names() {
            for dark in [true, false] {
                assert_eq!(Theme::built_in(name, dark).unwrap().name, name);
            }
        }
    }

    #[test]
    fn theme_files_of_opencode_work() {
        let text = r##"{"defs": {"sky": "#7dcfff"}, "theme": {
            "primary": "sky", "error": {"dark": "#f00", "light": 1}, "info": "primary",
            "textMuted": 244, "border": "none"}}"##;
        let theme = Theme::from_json("mine", text, true).unwrap();
        assert_eq!(theme.primary, Color::Rgb(0x7d, 0xcf, 0xff));
        assert_eq!(theme.info, theme.primary);
        assert_eq!(theme.error, Color::Rgb(255, 0, 0));
        assert_eq!((theme.muted, theme.border), (Color::Index(244), Color::Default));
        let circle = r#"{"theme": {"primary": "secondary", "secondary": "primary"}}"#;
        assert!(Theme::from_json("x", circle, true).unwrap_err().contains("itself"));
        assert!(Theme::from_json("x", r##"{"theme": {"error": "#ä"}}"##, true).is_err());
    }
}
