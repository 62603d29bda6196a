use image::{Rgba, RgbaImage};

use super::*;

/// Small numbers, so that the guards fire on small images.
const LIMITS: ImageLimits = ImageLimits { edge_px: 100, base64_bytes: 20_000, scales: true };

fn picture(width: u32, height: u32, alpha: u8) -> DynamicImage {
    let pixel = |x: u32, y: u32| Rgba([(x % 256) as u8, (y % 256) as u8, 128, alpha]);
    RgbaImage::from_fn(width, height, pixel).into()
}

/// Something that does not compress.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    RgbImage::from_fn(width, height, |_, _| image::Rgb([next(), next(), next()])).into()
}

fn encode(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let written = match format {
        ImageFormat::Jpeg => image.to_rgb8().write_to(&mut bytes, format),
        _ => image.write_to(&mut bytes, format),
    };
    written.unwrap();
    bytes.into_inner()
}

fn media(bytes: &[u8], mime: &str) -> Media {
    Media { mime: mime.to_owned(), base64: STANDARD.encode(bytes).into(), name: Some("x".into()) }
}

fn fitted(bytes: &[u8]) -> (Media, String, DynamicImage) {
    let FittedImage { media, note } =
        fit(Source::Encoded(media(bytes, "image/png")), LIMITS).unwrap();
    let bytes = STANDARD.decode(media.base64.as_bytes()).unwrap();
    assert!(media.base64.len() <= LIMITS.base64_bytes);
    let image = image::load_from_memory(&bytes).unwrap();
    assert_eq!(Media::mime_of(&bytes), Some(media.mime.as_str()));
    (media, note.unwrap_or_default(), image)
}

#[test]
fn what_fits_is_passed_on_byte_for_byte_in_every_format() {
    use ImageFormat::{Gif, Jpeg, Png, WebP};
    for format in [Png, Jpeg, Gif, WebP] {
        let bytes = encode(&picture(100, 60, 255), format);
        let before = media(&bytes, "image/png");
        let after = fit(Source::Encoded(before.clone()), LIMITS).unwrap();
        assert_eq!((after.media.base64, after.note), (before.base64, None), "{format:?}");
        // A provider refuses an image that is not what it is said to be.
        assert_eq!(after.media.mime, format.to_mime_type());
    }
}

#[test]
fn what_is_too_long_is_scaled_in_every_format_and_says_so() {
    use ImageFormat::{Gif, Jpeg, Png, WebP};
    for (format, mime) in
        [(Png, "image/png"), (Jpeg, "image/jpeg"), (Gif, "image/jpeg"), (WebP, "image/jpeg")]
    {
        let (media, note, image) = fitted(&encode(&picture(400, 300, 255), format));
        assert_eq!(note, "(image scaled from 400x300 to 100x75)");
        assert_eq!((image.width(), image.height()), (100, 75));
        assert_eq!((media.mime.as_str(), media.name.as_deref()), (mime, Some("x")), "{format:?}");
    }
}

#[test]
fn what_one_can_see_through_stays_png_while_it_is_small_enough() {
    let (media, _, image) = fitted(&encode(&picture(300, 300, 100), ImageFormat::WebP));
    assert_eq!(media.mime, "image/png");
    assert_eq!(image.to_rgba8().get_pixel(50, 50).0[3], 100);
}

#[test]
fn too_many_bytes_are_encoded_again_and_then_scaled_until_they_fit() {
    let noisy = encode(&noise(90, 90), ImageFormat::Png);
    assert!(base64_len(noisy.len()) > LIMITS.base64_bytes);
    let (media, note, _) = fitted(&noisy);
    assert_eq!(media.mime, "image/jpeg");
    assert_eq!(note, "(image of 90x90 encoded again as image/jpeg)");
    let tight = ImageLimits { base64_bytes: 2_000, ..LIMITS };
    let smaller = fit(Source::File { bytes: noisy.clone(), name: None }, tight).unwrap();
    assert!(smaller.media.base64.len() <= 2_000);
    assert!(smaller.note.unwrap().starts_with("(image scaled from 90x90 to "));
    let hopeless = ImageLimits { base64_bytes: 100, ..LIMITS };
    let why = fit(Source::File { bytes: noisy, name: None }, hopeless).unwrap_err();
    assert_eq!(why, "it does not fit into 100 bytes");
}

#[test]
fn a_picture_taken_sideways_is_turned_before_its_note_about_that_is_lost() {
    let upright = encode(&picture(200, 50, 255), ImageFormat::Jpeg);
    let mut exif =
        b"\xFF\xE1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend(b"\x06\0\0\0\0\0\0\0");
    let sideways = [&upright[..2], &exif, &upright[2..]].concat();
    let (_, note, image) = fitted(&sideways);
    assert_eq!((image.width(), image.height()), (25, 100), "{note}");
}

#[test]
fn an_image_that_unpacks_to_gigabytes_is_refused_before_it_does() {
    let mut bomb = b"GIF89a\xFF\xFF\xFF\xFF\x80\0\0".to_vec();
    bomb.extend([0, 0, 0, 255, 255, 255]);
    bomb.extend(b"\x2C\0\0\0\0\xFF\xFF\xFF\xFF\0\x02\x02\x44\x01\0\x3B");
    let why = fit(Source::File { bytes: bomb, name: None }, LIMITS).unwrap_err();
    assert_eq!(why, "65535x65535 pixels are more than the 64 million allowed");
}

#[tokio::test]
async fn what_cannot_be_decoded_is_told_instead_of_sent() {
    let whole = encode(&noise(50, 50), ImageFormat::Png);
    let cases = [
        (media(&whole[..whole.len() / 2], "image/png"), "could not be decoded: "),
        (media(b"<svg/>", "image/svg+xml"), "it is neither PNG, JPEG, GIF nor WebP)"),
        (Media { base64: "no base64!".into(), ..media(b"", "image/png") }, "Invalid symbol"),
    ];
    for (broken, expected) in cases {
        let document = media(b"%PDF-1.7", "application/pdf");
        let good = media(&whole, "image/png");
        let mut outcome = crate::pipeline::failed("t", "said".to_owned());
        outcome.attachments = vec![broken, document.clone(), good.clone()];
        fit_attachments(&mut outcome, ImageLimits::default(), &CancellationToken::new()).await;
        assert!(outcome.output.starts_with("said\n\n(the image could not be decoded: "));
        assert!(outcome.output.contains(expected), "{}", outcome.output);
        assert_eq!(outcome.attachments, [document, good]);
    }
}

#[tokio::test]
async fn an_abort_does_not_wait_for_an_image() {
    let mut outcome = crate::pipeline::failed("t", String::new());
    outcome.attachments = vec![media(&encode(&picture(9, 9, 255), ImageFormat::Png), "image/png")];
    let cancel = CancellationToken::new();
    cancel.cancel();
    fit_attachments(&mut outcome, ImageLimits::default(), &cancel).await;
    assert!(outcome.output.contains("interrupted") && outcome.attachments.is_empty());
}

#[tokio::test]
async fn what_is_too_large_is_left_out_where_nothing_is_scaled() {
    let limits = ImageLimits { scales: false, ..LIMITS };
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(200, 10).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let source = Source::File { bytes: bytes.into_inner(), name: None };
    let why = fit_image(source, limits).await.unwrap_err();
    assert!(why.contains("200x10") && why.contains("not scaled"), "{why}");
}
