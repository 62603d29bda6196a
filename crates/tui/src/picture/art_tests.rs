use image::{Rgba, RgbaImage};

use super::*;

const CANVAS: Canvas = Canvas { means: Means::Kitty, columns: 80, rows: 24, cell: Some((8, 16)) };

fn picture(width: u32, height: u32) -> DynamicImage {
    DynamicImage::from(RgbaImage::from_fn(width, height, |x, y| {
        Rgba([(x * 255 / width) as u8, (y * 255 / height) as u8, ((x ^ y) & 255) as u8, 255])
    }))
}

/// What a terminal would put together: the keys of the first piece, and the data of all.
fn put_together(bytes: &str) -> (String, Vec<u8>) {
    let mut keys = String::new();
    let mut data = String::new();
    let mut rest = bytes;
    let mut over = false;
    while let Some(inner) = rest.strip_prefix("\x1b_G") {
        assert!(!over, "something follows the last piece");
        let (piece, behind) = inner.split_once("\x1b\\").unwrap();
        let (own, payload) = piece.split_once(';').unwrap();
        assert!(payload.len() <= 4096 && own.contains("q=2"), "{own}");
        over = own.contains("m=0");
        assert!(over || payload.len() % 4 == 0);
        if keys.is_empty() {
            own.clone_into(&mut keys);
        }
        data.push_str(payload);
        rest = behind;
    }
    assert!(over && rest.is_empty());
    (keys, STANDARD.decode(data).unwrap())
}

#[test]
fn the_pieces_for_kitty_are_the_picture_again() {
    let whole = picture(300, 200);
    let art = Art::of(&whole, CANVAS).unwrap();
    assert_eq!((art.columns, art.rows), (38, 13), "300 by 200 in cells of 8 by 16");
    let (keys, png) = put_together(art.bytes());
    assert!(keys.starts_with("a=T,f=100,C=1,") && !keys.contains("r="), "{keys}");
    assert!(art.bytes().matches("\x1b_G").count() > 1, "more than one piece");
    let back = image::load_from_memory_with_format(&png, ImageFormat::Png).unwrap();
    assert_eq!(back.to_rgba8(), whole.to_rgba8());
}

#[test]
fn a_large_one_is_made_to_fit_and_a_terminal_that_hides_its_cells_is_told_how_many() {
    let art = Art::of(&picture(2000, 500), Canvas { cell: None, ..CANVAS }).unwrap();
    assert_eq!((art.columns, art.rows), (48, 6));
    let (keys, png) = put_together(art.bytes());
    assert!(keys.contains("c=48,r=6"), "{keys}");
    let back = image::load_from_memory(&png).unwrap();
    assert_eq!((back.width(), back.height()), (480, 120));
    let tall = Art::of(&picture(100, 4000), CANVAS).unwrap();
    assert_eq!((tall.columns, tall.rows), (1, 16));
    let small = Art::of(&picture(2000, 2000), Canvas { columns: 30, rows: 12, ..CANVAS }).unwrap();
    assert!(small.columns <= 24 && small.rows <= 6, "{small:?}");
}

#[test]
fn there_is_none_without_a_way_or_without_room() {
    for canvas in [
        Canvas { means: Means::Blocks, ..CANVAS },
        Canvas { means: Means::Off, ..CANVAS },
        Canvas { columns: 10, ..CANVAS },
        Canvas { rows: 6, ..CANVAS },
    ] {
        assert_eq!(Art::of(&picture(20, 20), canvas), None, "{canvas:?}");
    }
}

/// A terminal's side of it: rows of colours in percent, and nothing where nothing was drawn.
fn decoded(bytes: &str) -> Vec<Vec<Option<[u32; 3]>>> {
    let inner = bytes.strip_prefix("\x1bP0;1;0q").unwrap().strip_suffix("\x1b\\").unwrap();
    let mut at = inner.chars().peekable();
    let numbers = |at: &mut std::iter::Peekable<std::str::Chars<'_>>| {
        let mut all = vec![0_u32];
        while let Some(c) = at.next_if(|c| c.is_ascii_digit() || *c == ';') {
            match c.to_digit(10) {
                Some(digit) => *all.last_mut().unwrap() = all.last().unwrap() * 10 + digit,
                None => all.push(0),
            }
        }
        all
    };
    let (mut rows, mut palette) = (Vec::new(), std::collections::HashMap::new());
    let (mut x, mut top, mut colour) = (0, 0, 0);
    while let Some(c) = at.next() {
        let mut draw = |c: char, count: usize, x: &mut usize, colour: u32| {
            let bits = u32::from(c) - 63;
            for _ in 0..count {
                for y in (0..6).filter(|y| bits >> y & 1 == 1) {
                    let rows: &mut Vec<Vec<Option<[u32; 3]>>> = &mut rows;
                    rows[top + y][*x] = Some(palette[&colour]);
                }
                *x += 1;
            }
        };
        match c {
            '"' => {
                let size = numbers(&mut at);
                rows = vec![vec![None; size[2] as usize]; size[3] as usize];
            }
            '#' => match numbers(&mut at).as_slice() {
                [n] => colour = *n,
                [n, 2, r, g, b] => {
                    palette.insert(*n, [*r, *g, *b]);
                }
                other => panic!("{other:?}"),
            },
            '!' => {
                let count = numbers(&mut at)[0] as usize;
                let c = at.next().unwrap();
                draw(c, count, &mut x, colour);
            }
            '$' => x = 0,
            '-' => (x, top) = (0, top + 6),
            '?'..='~' => draw(c, 1, &mut x, colour),
            other => panic!("{other:?}"),
        }
    }
    rows
}

#[test]
fn sixels_are_the_picture_again_as_near_as_their_colours_are() {
    let sixel = Canvas { means: Means::Sixel, ..CANVAS };
    let mut few = RgbaImage::from_fn(40, 31, |x, y| match (x / 10 + y / 10) % 3 {
        0 => Rgba([200, 0, 0, 255]),
        1 => Rgba([0, 120, 255, 255]),
        _ => Rgba([255, 255, 255, 255]),
    });
    few.put_pixel(3, 30, Rgba([1, 2, 3, 0]));
    let art = Art::of(&DynamicImage::from(few.clone()), sixel).unwrap();
    assert_eq!((art.columns, art.rows), (5, 2));
    let back = decoded(art.bytes());
    assert_eq!((back.len(), back[0].len()), (31, 40));
    for (x, y, pixel) in few.enumerate_pixels() {
        let expected =
            (pixel.0[3] > 0).then(|| [0, 1, 2].map(|n| (u32::from(pixel.0[n]) * 100 + 127) / 255));
        assert_eq!(back[y as usize][x as usize], expected, "{x} {y}");
    }
    let many = picture(200, 150);
    let back = decoded(Art::of(&many, sixel).unwrap().bytes());
    let mut off = 0.0;
    for (x, y, pixel) in many.to_rgba8().enumerate_pixels() {
        let got = back[y as usize][x as usize].unwrap();
        off +=
            (0..3).map(|n| (f64::from(got[n]) * 2.55 - f64::from(pixel.0[n])).abs()).sum::<f64>();
    }
    let mean = off / f64::from(200 * 150 * 3);
    assert!(mean < 16.0, "off by {mean} of 255");
}

#[test]
fn a_picture_that_cannot_be_seen_at_all_is_still_one() {
    let clear = DynamicImage::from(RgbaImage::new(7, 7));
    let art = Art::of(&clear, Canvas { means: Means::Sixel, ..CANVAS }).unwrap();
    assert!(decoded(art.bytes()).iter().flatten().all(Option::is_none));
}
