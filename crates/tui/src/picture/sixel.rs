//! Sixels: six pixels of a column are one character, a colour at a time.

use image::RgbaImage;

/// Colours of one picture; terminals that know sixels have as many.
const COLOURS: usize = 255;
/// Pixels that can be seen through more than this are left as the terminal has them.
const SEEN: u8 = 128;
/// No pixel is drawn here.
const NOTHING: u16 = u16::MAX;

pub fn encode(image: &RgbaImage) -> String {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let (palette, pixels) = quantized(image);
    let mut out = format!("\x1bP0;1;0q\"1;1;{width};{height}");
    for (n, colour) in palette.iter().enumerate() {
        let [r, g, b] = colour.map(|v| (u32::from(v) * 100 + 127) / 255);
        out.push_str(&format!("#{n};2;{r};{g};{b}"));
    }
    // For each colour the six bits of each column, and whether it is in this band at all.
    let mut bits = vec![0_u8; palette.len() * width];
    let mut used = vec![false; palette.len()];
    for top in (0..height).step_by(6) {
        for y in top..(top + 6).min(height) {
            for (x, colour) in pixels[y * width..(y + 1) * width].iter().enumerate() {
                if *colour != NOTHING {
                    let n = usize::from(*colour);
                    bits[n * width + x] |= 1 << (y - top);
                    used[n] = true;
                }
            }
        }
        let mut first = true;
        for n in 0..palette.len() {
            if !std::mem::take(&mut used[n]) {
                continue;
            }
            if !first {
                out.push('$');
            }
            first = false;
            out.push_str(&format!("#{n}"));
            let row = &mut bits[n * width..(n + 1) * width];
            let end = row.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
            run_lengths(&row[..end], &mut out);
            row.fill(0);
        }
        out.push('-');
    }
    out.push_str("\x1b\\");
    out
}

fn run_lengths(row: &[u8], out: &mut String) {
    for run in row.chunk_by(|a, b| a == b) {
        let c = char::from(b'?' + run[0]);
        match run.len() {
            0..4 => out.extend(std::iter::repeat_n(c, run.len())),
            count => out.push_str(&format!("!{count}{c}")),
        }
    }
}

/// A palette, and for each pixel its place in there.
fn quantized(image: &RgbaImage) -> (Vec<[u8; 3]>, Vec<u16>) {
    // Five bits of each colour: how many pixels are about like that, and the sum of what they are.
    let mut count = vec![0_u32; 1 << 15];
    let mut sums = vec![[0_u64; 3]; 1 << 15];
    let bucket = |p: &[u8; 4]| {
        (usize::from(p[0] >> 3) << 10) | (usize::from(p[1] >> 3) << 5) | usize::from(p[2] >> 3)
    };
    for pixel in image.pixels().filter(|p| p.0[3] >= SEEN) {
        let at = bucket(&pixel.0);
        count[at] += 1;
        for (sum, value) in sums[at].iter_mut().zip(pixel.0) {
            *sum += u64::from(value);
        }
    }
    let filled: Vec<usize> = (0..count.len()).filter(|n| count[*n] > 0).collect();
    let mut boxes = if filled.is_empty() { Vec::new() } else { vec![filled] };
    // The box with the widest spread, weighed by its pixels, is cut in two until there are enough.
    while boxes.len() < COLOURS {
        let weight = |one: &Vec<usize>| {
            let pixels: u64 = one.iter().map(|n| u64::from(count[*n])).sum();
            let (_, spread) = widest(one);
            spread as u64 * spread as u64 * pixels
        };
        let at =
            (0..boxes.len()).filter(|n| boxes[*n].len() > 1).max_by_key(|n| weight(&boxes[*n]));
        let Some(at) = at else { break };
        let mut one = boxes.swap_remove(at);
        let (axis, _) = widest(&one);
        one.sort_unstable_by_key(|n| part(*n, axis));
        let all: u64 = one.iter().map(|n| u64::from(count[*n])).sum();
        let mut seen = 0;
        let half = one.iter().position(|n| {
            seen += u64::from(count[*n]);
            seen * 2 >= all
        });
        let cut = half.map_or(1, |n| n + 1).clamp(1, one.len() - 1);
        let rest = one.split_off(cut);
        boxes.extend([one, rest]);
    }
    let mut place = vec![NOTHING; 1 << 15];
    let mut palette = Vec::with_capacity(boxes.len());
    for (n, one) in boxes.iter().enumerate() {
        let pixels: u64 = one.iter().map(|n| u64::from(count[*n])).sum();
        let mean = |axis: usize| {
            let sum: u64 = one.iter().map(|n| sums[*n][axis]).sum();
            u8::try_from((sum + pixels / 2) / pixels.max(1)).unwrap_or(u8::MAX)
        };
        palette.push([mean(0), mean(1), mean(2)]);
        one.iter().for_each(|bucket| place[*bucket] = n as u16);
    }
    let of = |p: &image::Rgba<u8>| if p.0[3] >= SEEN { place[bucket(&p.0)] } else { NOTHING };
    (palette, image.pixels().map(of).collect())
}

fn part(bucket: usize, axis: usize) -> usize {
    bucket >> (10 - 5 * axis) & 31
}

/// The colour that differs most within a box, and by how much.
fn widest(buckets: &[usize]) -> (usize, usize) {
    let spread = |axis: usize| {
        let parts = buckets.iter().map(|n| part(*n, axis));
        parts.clone().max().unwrap_or(0) - parts.min().unwrap_or(0)
    };
    (0..3).map(|axis| (axis, spread(axis))).max_by_key(|(_, s)| *s).unwrap_or((0, 0))
}
