//! Images: as the terminal draws them where it is known to, else as half blocks, two pixels a cell, which every
//! terminal with colours can show. Nothing is asked of it.

mod art;
mod means;
mod sixel;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{ImageReader, Limits};
use toolwright::llm::Media;

pub use art::Art;
pub use means::{Canvas, Means};

use crate::style::{Color, Line, Placed, Style};
use crate::theme::Theme;

/// Cells of a picture; what it is about is seen, and the conversation is not pushed away.
const COLUMNS: u32 = 48;
const ROWS: u32 = 16;
pub const ROWS_MOST: usize = ROWS as usize;

/// Images larger than this are named and not shown.
const EDGE_CAP_PX: u32 = 8_192;
const DECODED_CAP_BYTES: u64 = 128 << 20;

/// A small copy of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    label: String,
    width: usize,
    /// None where one can see through.
    pixels: Vec<Option<[u8; 3]>>,
    /// For the terminal itself, until it was written.
    art: Option<Arc<Art>>,
}

impl Picture {
    /// Takes as long as decoding takes: not for a thread that draws. What is no image gives nothing, what
    /// cannot be decoded only a name.
    pub fn of(media: &Media, canvas: Canvas) -> Option<Self> {
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
            return Some(Self { label: named(""), width: 0, pixels: Vec::new(), art: None });
        };
        let label = named(&format!("{}×{} ", image.width(), image.height()));
        let art = Art::of(&image, canvas).map(Arc::new);
        let fits = image.width() <= COLUMNS && image.height() <= ROWS * 2;
        let small = if fits { image } else { image.thumbnail(COLUMNS, ROWS * 2) }.to_rgba8();
        let width = small.width() as usize;
        let seen = |[r, g, b, a]: [u8; 4]| (a >= 128).then_some([r, g, b]);
        let pixels = small.pixels().map(|pixel| seen(pixel.0)).collect();
        Some(Self { label, width, pixels, art })
    }

    /// It was written: only the small copy is kept.
    pub fn without_art(&mut self) {
        self.art = None;
    }

    /// Its rows; only its name where it cannot be shown. What the terminal draws itself is drawn once, so that is
    /// for rows which are never written again.
    pub fn render(&self, columns: usize, means: Means, theme: &Theme) -> Vec<Line> {
        let mut lines = vec![Line::styled(crate::width::cut(&self.label, columns), theme.muted())];
        if means == Means::Off || self.width == 0 || columns == 0 {
            return lines;
        }
        if let Some(art) = &self.art
            && matches!(means, Means::Kitty | Means::Sixel)
            && art.columns <= columns
        {
            let mut first = Line::empty();
            first.placed = Some(Placed { art: Arc::clone(art), column: 0 });
            lines.push(first);
            lines.extend(std::iter::repeat_n(Line::empty(), art.rows.saturating_sub(1)));
            return lines;
        }
        let height = self.pixels.len() / self.width;
        // Narrower where there is less room.
        let step = self.width.div_ceil(columns).max(1);
        let at = |x: usize, y: usize| {
            let pixel = self.pixels.get(y * self.width + x).copied().flatten();
            pixel.map(|[r, g, b]| Color::Rgb(r, g, b))
        };
        for y in (0..height).step_by(2 * step) {
            let mut line = Line::empty();
            for x in (0..self.width).step_by(step) {
                let below = (y + step < height).then(|| at(x, y + step)).flatten();
                match (at(x, y), below) {
                    (Some(above), Some(below)) => line.push("▀", Style::fg(above).on(below)),
                    (Some(above), None) => line.push("▀", Style::fg(above)),
                    (None, Some(below)) => line.push("▄", Style::fg(below)),
                    (None, None) => line.push(" ", Style::default()),
                }
            }
            lines.push(line);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: Canvas = Canvas { means: Means::Blocks, columns: 80, rows: 24, cell: None };

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
        let picture = Picture::of(&png(96, 32), BLOCKS).unwrap();
        let rows = picture.render(80, Means::Blocks, &Theme::default());
        assert_eq!(rows[0].text(), "image: a.png, 96×32 png");
        assert_eq!(rows.len(), 1 + 8);
        assert_eq!(rows[1].width(), 48);
        assert_eq!(rows[1].spans[0].style.fg, Color::Rgb(255, 0, 0));
        assert_eq!(rows[1].spans.last().unwrap().style.bg, Color::Rgb(0, 0, 255));
        let narrow = picture.render(20, Means::Blocks, &Theme::default());
        assert!(narrow.iter().all(|row| row.width() <= 20));
        assert_eq!(picture.render(80, Means::Off, &Theme::default()).len(), 1);
    }

    #[test]
    fn what_cannot_be_decoded_is_named_and_what_is_no_image_is_nothing() {
        let broken = Media { base64: "AAAA".into(), ..png(2, 2) };
        let rows =
            Picture::of(&broken, BLOCKS).unwrap().render(80, Means::Blocks, &Theme::default());
        assert_eq!(rows[0].text(), "image: a.png, png");
        assert_eq!(rows.len(), 1);
        let text = Media { mime: "text/plain".into(), ..png(2, 2) };
        assert_eq!(Picture::of(&text, BLOCKS), None);
    }

    #[test]
    fn a_terminal_that_draws_itself_gets_rows_for_it_once() {
        let canvas = Canvas { means: Means::Kitty, cell: Some((8, 16)), ..BLOCKS };
        let mut picture = Picture::of(&png(96, 32), canvas).unwrap();
        let rows = picture.render(80, Means::Kitty, &Theme::default());
        assert_eq!(rows.len(), 1 + 2, "two rows of cells are 32 pixels");
        let placed = rows[1].placed.as_ref().unwrap();
        assert!(placed.art.bytes().starts_with("\x1b_Ga=T"));
        assert!(rows[2].placed.is_none());
        let narrow = picture.render(11, Means::Kitty, &Theme::default());
        assert!(narrow.iter().all(|row| row.placed.is_none()), "no room: blocks");
        picture.without_art();
        let again = picture.render(80, Means::Kitty, &Theme::default());
        assert_eq!(again, picture.render(80, Means::Blocks, &Theme::default()));
    }

    #[test]
    fn what_one_can_see_through_shows_the_terminal() {
        let mut image = image::RgbaImage::from_pixel(2, 2, image::Rgba([9, 9, 9, 255]));
        image.put_pixel(0, 0, image::Rgba([0, 0, 0, 0]));
        image.put_pixel(1, 1, image::Rgba([0, 0, 0, 0]));
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        let media = Media { base64: STANDARD.encode(bytes.into_inner()).into(), ..png(1, 1) };
        let rows =
            Picture::of(&media, BLOCKS).unwrap().render(80, Means::Blocks, &Theme::default());
        assert_eq!(rows[1].text(), "▄▀");
    }
}
