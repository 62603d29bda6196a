//! Images as a terminal itself draws them: bytes for it, and the cells that they cover.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat};

use super::means::{Canvas, Means};
use super::{COLUMNS, ROWS, sixel};

/// A cell where the terminal does not say: what sixels were made for.
const USUAL_CELL: (u32, u32) = (10, 20);
/// Cells that stay free beside and below a picture.
const BESIDE: usize = 6;
const BELOW: usize = 6;
/// Smaller boxes show nothing that can be known again.
const LEAST: (u32, u32) = (8, 3);
/// The protocol takes no more at once.
const CHUNK_BYTES: usize = 4096;

/// A picture on its way to the terminal. It is written once.
#[derive(Debug, PartialEq, Eq)]
pub struct Art {
    pub columns: usize,
    pub rows: usize,
    bytes: String,
}

impl Art {
    /// Takes as long as encoding takes. Nothing, where the terminal has no way or no room.
    pub fn of(image: &DynamicImage, canvas: Canvas) -> Option<Self> {
        if !matches!(canvas.means, Means::Kitty | Means::Sixel) {
            return None;
        }
        let room = |all: usize, free: usize, most: u32| {
            u32::try_from(all.saturating_sub(free)).unwrap_or(most).min(most)
        };
        let columns = room(canvas.columns, BESIDE, COLUMNS);
        let rows = room(canvas.rows, BELOW, ROWS);
        if columns < LEAST.0 || rows < LEAST.1 {
            return None;
        }
        let (cell_width, cell_height) = canvas.cell.unwrap_or(USUAL_CELL);
        let (width, height) = fitted(
            (image.width().max(1), image.height().max(1)),
            // A pixel less, so that no terminal takes one more row for it.
            (columns * cell_width, (rows * cell_height).saturating_sub(1).max(1)),
        );
        let small = match (width, height) == (image.width(), image.height()) {
            true => image.to_rgba8(),
            false => image.thumbnail_exact(width, height).to_rgba8(),
        };
        let (columns, rows) = (width.div_ceil(cell_width), height.div_ceil(cell_height));
        let bytes = match canvas.means {
            Means::Sixel => sixel::encode(&small),
            _ => {
                let mut png = std::io::Cursor::new(Vec::new());
                DynamicImage::from(small).write_to(&mut png, ImageFormat::Png).ok()?;
                // Where the size of a cell is a guess, the terminal fits it into the cells.
                let cells = canvas.cell.is_none().then_some((columns, rows));
                kitty(&png.into_inner(), cells)
            }
        };
        Some(Self { columns: columns as usize, rows: rows as usize, bytes })
    }

    /// For the terminal, from where the cursor is; it is there again afterwards.
    pub fn bytes(&self) -> &str {
        &self.bytes
    }
}

/// As large as it is, or what fits of it in its own proportions.
fn fitted((width, height): (u32, u32), (most_width, most_height): (u32, u32)) -> (u32, u32) {
    if width <= most_width && height <= most_height {
        return (width, height);
    }
    let (w, h) = (u64::from(width), u64::from(height));
    let (mw, mh) = (u64::from(most_width), u64::from(most_height));
    let (w, h) = if w * mh > h * mw { (mw, h * mw / w) } else { (w * mh / h, mh) };
    (u32::try_from(w).unwrap_or(1).max(1), u32::try_from(h).unwrap_or(1).max(1))
}

/// A PNG in pieces, drawn where the cursor is, which stays there. No answer is wanted.
fn kitty(png: &[u8], cells: Option<(u32, u32)>) -> String {
    let data = STANDARD.encode(png);
    let cells = cells.map(|(c, r)| format!(",c={c},r={r}")).unwrap_or_default();
    let mut out = String::with_capacity(data.len() + data.len() / 128 + 64);
    let mut rest = data.as_str();
    let mut keys = format!("a=T,f=100,C=1{cells},");
    loop {
        let (now, later) = rest.split_at(rest.len().min(CHUNK_BYTES));
        let more = u8::from(!later.is_empty());
        out.push_str(&format!("\x1b_G{keys}q=2,m={more};{now}\x1b\\"));
        keys.clear();
        rest = later;
        if rest.is_empty() {
            return out;
        }
    }
}

#[cfg(test)]
#[path = "art_tests.rs"]
mod tests;
