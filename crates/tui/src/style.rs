//! Text with colours: what everything is drawn with, and the bytes that a terminal takes for it.

/// A colour as a theme says it; what a terminal can show of it is decided when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Color {
    /// The terminal's own.
    #[default]
    Default,
    Index(u8),
    Rgb(u8, u8, u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    pub fg: Color,
    pub bg: Color,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub strike: bool,
    pub reverse: bool,
}

impl Style {
    pub fn fg(fg: Color) -> Self {
        Self { fg, ..Self::default() }
    }

    pub fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    pub fn dim(mut self) -> Self {
        self.dim = true;
        self
    }

    pub fn italic(mut self) -> Self {
        self.italic = true;
        self
    }

    pub fn underline(mut self) -> Self {
        self.underline = true;
        self
    }

    pub fn strike(mut self) -> Self {
        self.strike = true;
        self
    }

    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    pub fn on(mut self, bg: Color) -> Self {
        self.bg = bg;
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    pub text: String,
    pub style: Style,
}

/// One row or one paragraph, before it is fitted to a width. Holds no control characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    pub spans: Vec<Span>,
    /// A picture that begins in this row and goes on in those below, which are blank there.
    pub placed: Option<Placed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub art: std::sync::Arc<crate::picture::Art>,
    pub column: usize,
}

impl Line {
    pub fn empty() -> Self {
        Self::default()
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::styled(text, Style::default())
    }

    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        let mut line = Self::default();
        line.push(text, style);
        line
    }

    pub fn push(&mut self, text: impl Into<String>, style: Style) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(&text),
            _ => self.spans.push(Span { text, style }),
        }
    }

    pub fn with(mut self, text: impl Into<String>, style: Style) -> Self {
        self.push(text, style);
        self
    }

    pub fn extend(&mut self, other: Line) {
        if let Some(placed) = other.placed {
            let column = placed.column + self.width();
            self.placed = Some(Placed { column, ..placed });
        }
        for span in other.spans {
            self.push(span.text, span.style);
        }
    }

    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| crate::width::of(&span.text)).sum()
    }
}

/// What a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// No colours at all; bold and the like stay.
    None,
    Sixteen,
    Indexed,
    True,
}

impl Depth {
    /// From the environment alone: asking the terminal takes a round trip.
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        if set("NO_COLOR").is_some() {
            return Self::None;
        }
        let term = set("TERM").unwrap_or_default();
        let known = set("COLORTERM").is_some_and(|v| v == "truecolor" || v == "24bit");
        // Their names come along to other machines, where that variable does not.
        let named = ["xterm-kitty", "xterm-ghostty", "wezterm", "alacritty", "foot", "contour"];
        if known || term.ends_with("-direct") || named.contains(&term.as_str()) {
            Self::True
        } else if term.contains("256color") {
            Self::Indexed
        } else {
            Self::Sixteen
        }
    }
}

/// The escape sequence that goes from one style to another, the shorter way.
pub fn change(out: &mut String, from: Style, to: Style, depth: Depth) {
    let (from, to) = (fitted(from, depth), fitted(to, depth));
    if from == to {
        return;
    }
    if to == Style::default() {
        out.push_str("\x1b[m");
        return;
    }
    let mut codes: Vec<String> = Vec::new();
    let lost = |had: bool, has: bool| had && !has;
    let reset = lost(from.bold, to.bold)
        || lost(from.dim, to.dim)
        || lost(from.italic, to.italic)
        || lost(from.underline, to.underline)
        || lost(from.strike, to.strike)
        || lost(from.reverse, to.reverse);
    let from = if reset { Style::default() } else { from };
    if reset {
        codes.push("0".to_owned());
    }
    for (had, has, code) in [
        (from.bold, to.bold, "1"),
        (from.dim, to.dim, "2"),
        (from.italic, to.italic, "3"),
        (from.underline, to.underline, "4"),
        (from.reverse, to.reverse, "7"),
        (from.strike, to.strike, "9"),
    ] {
        if has && !had {
            codes.push(code.to_owned());
        }
    }
    if from.fg != to.fg {
        codes.push(colour(to.fg, false));
    }
    if from.bg != to.bg {
        codes.push(colour(to.bg, true));
    }
    out.push_str("\x1b[");
    out.push_str(&codes.join(";"));
    out.push('m');
}

fn fitted(mut style: Style, depth: Depth) -> Style {
    // What is grey is meant to stand back; without colours it can at least be faint.
    let grey = matches!(fit(style.fg, Depth::Sixteen), Color::Index(7 | 8));
    style.dim |= depth == Depth::None && grey;
    style.fg = fit(style.fg, depth);
    style.bg = fit(style.bg, depth);
    style
}

fn colour(colour: Color, background: bool) -> String {
    let base = if background { 40 } else { 30 };
    match colour {
        Color::Default => (base + 9).to_string(),
        Color::Index(n @ 0..8) => (base + u32::from(n)).to_string(),
        Color::Index(n @ 8..16) => (base + 52 + u32::from(n)).to_string(),
        Color::Index(n) => format!("{};5;{n}", base + 8),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
    }
}

/// The nearest that can be shown.
pub fn fit(colour: Color, depth: Depth) -> Color {
    match (colour, depth) {
        (_, Depth::None) => Color::Default,
        (Color::Rgb(r, g, b), Depth::Indexed) => Color::Index(indexed(r, g, b)),
        (Color::Rgb(r, g, b), Depth::Sixteen) => Color::Index(sixteen(r, g, b)),
        (Color::Index(n @ 16..), Depth::Sixteen) => {
            let (r, g, b) = of_index(n);
            Color::Index(sixteen(r, g, b))
        }
        (colour, _) => colour,
    }
}

const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn of_index(n: u8) -> (u8, u8, u8) {
    if n >= 232 {
        let grey = 8 + 10 * (n - 232);
        return (grey, grey, grey);
    }
    let n = usize::from(n.saturating_sub(16));
    (STEPS[n / 36 % 6], STEPS[n / 6 % 6], STEPS[n % 6])
}

fn indexed(r: u8, g: u8, b: u8) -> u8 {
    let step = |v: u8| {
        let near = |(_, s): &(usize, &u8)| s.abs_diff(v);
        STEPS.iter().enumerate().min_by_key(near).map_or(0, |(n, _)| n as u8)
    };
    let cube = 16 + 36 * step(r) + 6 * step(g) + step(b);
    let mean = (u32::from(r) + u32::from(g) + u32::from(b)) / 3;
    let grey = 232 + ((mean.saturating_sub(3)) / 10).min(23) as u8;
    let far = |n: u8| {
        let (x, y, z) = of_index(n);
        let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        square(x, r) + square(y, g) + square(z, b)
    };
    if far(grey) < far(cube) { grey } else { cube }
}

/// By hue, not by distance: people choose what their sixteen colours look like.
fn sixteen(r: u8, g: u8, b: u8) -> u8 {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    let pale = u32::from(most - least) * 100 < u32::from(most) * 40 && most < 160;
    if most - least < 40 || pale {
        return match most {
            0..48 => 0,
            48..128 => 8,
            128..208 => 7,
            _ => 15,
        };
    }
    let half = least + (most - least) / 2;
    let bit = |v: u8, n: u8| if v > half { n } else { 0 };
    bit(r, 1) | bit(g, 2) | bit(b, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_style_writes_only_what_differs() {
        let red = Style::fg(Color::Index(1));
        let mut out = String::new();
        change(&mut out, Style::default(), red, Depth::True);
        change(&mut out, red, red.bold(), Depth::True);
        change(&mut out, red.bold(), red, Depth::True);
        change(&mut out, red, Style::default(), Depth::True);
        assert_eq!(out, "\x1b[31m\x1b[1m\x1b[0;31m\x1b[m");
        let mut out = String::new();
        let grey = Style::fg(Color::Index(8));
        change(&mut out, Style::default(), grey, Depth::None);
        change(&mut out, grey, red, Depth::None);
        assert_eq!(out, "\x1b[2m\x1b[m", "grey is faint where there are no colours");
    }

    #[test]
    fn colours_become_what_the_terminal_can_show() {
        let orange = Color::Rgb(255, 135, 0);
        assert_eq!(fit(orange, Depth::True), orange);
        assert_eq!(fit(orange, Depth::Indexed), Color::Index(208));
        assert_eq!(fit(Color::Rgb(220, 50, 47), Depth::Sixteen), Color::Index(1));
        assert_eq!(fit(Color::Rgb(128, 128, 128), Depth::Indexed), Color::Index(244));
        assert_eq!(fit(orange, Depth::None), Color::Default);
    }

    #[test]
    fn the_depth_is_read_off_the_environment() {
        let depth = |pairs: &[(&str, &str)]| {
            let env =
                |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            Depth::from_env(&env)
        };
        assert_eq!(depth(&[("TERM", "xterm-256color")]), Depth::Indexed);
        assert_eq!(depth(&[("TERM", "xterm"), ("COLORTERM", "truecolor")]), Depth::True);
        assert_eq!(depth(&[("TERM", "xterm-kitty")]), Depth::True);
        assert_eq!(depth(&[("TERM", "linux")]), Depth::Sixteen);
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("NO_COLOR", "1")]), Depth::None);
    }
}
