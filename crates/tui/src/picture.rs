//! Images as half blocks: two pixels a cell, which every terminal with colours can show, without asking it
//! anything.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{ImageReader, Limits};
use toolwright::llm::Media;

use crate::style::{Color, Line, Style};
use crate::theme::Theme;

/// Cells of a picture; what it is about is seen, and the conversation is not pushed away.
const COLUMNS: u32 = 48;
const ROWS: u32 = 16;

/// Images larger than this are named and not shown.
const EDGE_CAP_PX: u32 = 8_192;
const DECODED_CAP_BYTES: u64 = 128 << 20;

/// A small copy of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    label: String,
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Takes as long as decoding takes: not for a thread that draws. What is no image gives nothing, what
    /// cannot be decoded only a name.
    pub fn of(media: &Media) -> Option<Self> {
        let kind = media.mime.strip_prefix("image/")?;
        let named = |about: &str| {
            let name = media.name.as_deref().map(|n| format!("{n}, ")).unwrap_or_default();
            crate::width::flat(&format!("image: {name}{about}{kind}"))
        };
        let decoded = STANDARD.decode(media.base64.as_bytes()).ok().and_then(|bytes| {
            let mut limits = Limits::default();
            limits.max_image_width = Some(EDGE_CAP_PX);
            limits.max_image_height = Some(EDGE_CAP_PX);
            limits.max_alloc = Some(DECODED_CAP_BYTES);
            let mut reader =
                ImageReader::new(std::io::Cursor::new(bytes)).with_guessed_format().ok()?;
            reader.limits(limits);
            reader.decode().ok()
        });
        let Some(image) = decoded else {
            return Some(Self { label: named(""), width: 0, pixels: Vec::new() });
        };
        let label = named(&format!("{}×{} ", image.width(), image.height()));
        let fits = image.width() <= COLUMNS && image.height() <= ROWS * 2;
        let small = if fits { image } else { image.thumbnail(COLUMNS, ROWS * 2) }.to_rgb8();
        let width = small.width() as usize;
        let pixels = small.pixels().map(|pixel| pixel.0).collect();
        Some(Self { label, width, pixels })
    }

    /// Its rows; only its name where colours cannot be shown.
    pub fn render(&self, columns: usize, shown: bool, theme: &Theme) -> Vec<Line> {
        let mut lines = vec![Line::styled(crate::width::cut(&self.label, columns), theme.muted())];
        if !shown || self.width == 0 || columns == 0 {
            return lines;
        }
        let height = self.pixels.len() / self.width;
        // Narrower where there is less room.
        let step = self.width.div_ceil(columns).max(1);
        let at = |x: usize, y: usize| {
            let [r, g, b] = self.pixels.get(y * self.width + x).copied().unwrap_or_default();
            Color::Rgb(r, g, b)
        };
        for y in (0..height).step_by(2 * step) {
            let mut line = Line::empty();
            for x in (0..self.width).step_by(step) {
                let style = Style::fg(at(x, y));
                let style = if y + step < height { style.on(at(x, y + step)) } else { style };
                line.push("▀", style);
            }
            lines.push(line);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Media {
        let image = image::RgbImage::from_fn(width, height, |x, _| {
            image::Rgb(if x < width / 2 { [255, 0, 0] } else { [0, 0, 255] })
        });
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        let base64 = STANDARD.encode(bytes.into_inner()).into();
        Media { mime: "image/png".into(), base64, name: Some("a.png".into()) }
    }

    #[test]
    fn an_image_is_shown_small_and_in_its_colours() {
        let picture = Picture::of(&png(96, 32)).unwrap();
        let rows = picture.render(80, true, &Theme::default());
        assert_eq!(rows[0].text(), "image: a.png, 96×32 png");
        assert_eq!(rows.len(), 1 + 8);
        assert_eq!(rows[1].width(), 48);
        assert_eq!(rows[1].spans[0].style.fg, Color::Rgb(255, 0, 0));
        assert_eq!(rows[1].spans.last().unwrap().style.bg, Color::Rgb(0, 0, 255));
        let narrow = picture.render(20, true, &Theme::default());
        assert!(narrow.iter().all(|row| row.width() <= 20));
        assert_eq!(picture.render(80, false, &Theme::default()).len(), 1);
    }

    #[test]
    fn what_cannot_be_decoded_is_named_and_what_is_no_image_is_nothing() {
        let broken = Media { base64: "AAAA".into(), ..png(2, 2) };
        let rows = Picture::of(&broken).unwrap().render(80, true, &Theme::default());
        assert_eq!(rows[0].text(), "image: a.png, png");
        assert_eq!(rows.len(), 1);
        let text = Media { mime: "text/plain".into(), ..png(2, 2) };
        assert_eq!(Picture::of(&text), None);
    }
}
