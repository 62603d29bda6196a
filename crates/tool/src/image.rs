//! Makes images fit what models take. What fits is passed on byte for byte; what is too large is
//! scaled; what cannot be decoded becomes a note, because a provider that cannot read one image
//! refuses every later request of the session as well.

use std::io::Cursor;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use toolwright_llm::Media;
use toolwright_session::Outcome;

/// Bytes of an image file that are read in order to scale it.
const FILE_CAP_BYTES: u64 = 64 << 20;

/// Pixels that are decoded: cameras stay below, and a few kilobytes that unpack to gigabytes do not.
const PIXELS_CAP: u64 = 64 << 20;

/// Bytes that decoding may take, at four a pixel.
const DECODED_CAP_BYTES: u64 = PIXELS_CAP * 4;

/// Images that are decoded at the same time; each may take as much memory as above.
const DECODING_AT_ONCE: usize = 2;

/// Good enough for screenshots with text, and half the bytes of what is called lossless to the eye.
const JPEG_QUALITY: u8 = 80;

/// An image whose edge had to become smaller than this shows nothing any more.
const SMALLEST_EDGE_PX: u32 = 16;

/// What models take.
#[derive(Debug, Clone, Copy)]
pub struct ImageLimits {
    pub edge_px: u32,
    pub base64_bytes: usize,
    /// Whether what is larger is scaled, or left out.
    pub scales: bool,
}

impl Default for ImageLimits {
    /// Anthropic's models scale longer edges to 1568 pixels themselves, and what the others' models
    /// see has no more detail: sending more costs time and nothing is gained. The smallest cap in
    /// bytes is 5 MiB in base64; some is left for what is counted differently.
    fn default() -> Self {
        Self { edge_px: 1568, base64_bytes: (9 << 20) / 2, scales: true }
    }
}

/// An image that may be sent.
#[derive(Debug)]
pub struct FittedImage {
    pub media: Media,
    /// What was done to it, for the model.
    pub note: Option<String>,
}

/// Bytes of a file that may be attached: an image may be larger than what is sent of it.
pub fn attachable_bytes(mime: &str) -> u64 {
    if mime.starts_with("image/") { FILE_CAP_BYTES } else { Media::cap_bytes(mime) }
}

/// Fits what a call hands over to what models take, and says so in its output.
pub(crate) async fn fit_attachments(
    outcome: &mut Outcome,
    limits: ImageLimits,
    cancel: &CancellationToken,
) {
    for media in std::mem::take(&mut outcome.attachments) {
        let fitted = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                let why = "the run was interrupted before it was";
                Err(format!("(the attachment could not be decoded: {why})"))
            }
            fitted = fit_media(media, limits) => fitted,
        };
        let note = match fitted {
            Ok(FittedImage { media, note }) => {
                outcome.attachments.push(media);
                note
            }
            Err(note) => Some(note),
        };
        if let Some(note) = note {
            outcome.output.push_str(&format!("\n\n{note}"));
        }
    }
}

/// What others call an image or a document, as it may be sent: its bytes say what it is, and one that
/// no provider takes would void every later request. Fails with a note for the model.
pub async fn fit_media(media: Media, limits: ImageLimits) -> Result<FittedImage, String> {
    let head = media.base64.get(..SNIFFED_CHARS).unwrap_or(&media.base64);
    let mime = STANDARD.decode(head).ok().and_then(|bytes| Media::mime_of(&bytes));
    let said: String = media.mime.chars().filter(|c| !c.is_control()).take(60).collect();
    let left_out = |why: &str| format!("(an attachment of the type {said:?} is left out: {why})");
    match mime {
        Some(mime) if !mime.starts_with("image/") => {
            let bytes = STANDARD.decode(media.base64.as_bytes());
            match bytes.map(|bytes| bytes.len() as u64) {
                Err(error) => Err(left_out(&error.to_string())),
                Ok(size) if size > Media::cap_bytes(mime) => Err(left_out("it is too large")),
                Ok(_) => {
                    Ok(FittedImage { media: Media { mime: mime.to_owned(), ..media }, note: None })
                }
            }
        }
        None if !said.starts_with("image/") => {
            Err(left_out("it is neither PNG, JPEG, GIF, WebP nor PDF"))
        }
        _ => fit_image(Source::Encoded(media), limits)
            .await
            .map_err(|why| format!("(the image could not be decoded: {why})")),
    }
}

/// Enough base64 to know what it is.
const SNIFFED_CHARS: usize = 24;

/// Where an image comes from.
pub enum Source {
    Encoded(Media),
    File { bytes: Vec<u8>, name: Option<String> },
}

/// On a thread for such work. Fails with the reason why the image cannot be decoded.
pub async fn fit_image(source: Source, limits: ImageLimits) -> Result<FittedImage, String> {
    static DECODING: Semaphore = Semaphore::const_new(DECODING_AT_ONCE);
    // Nobody closes it.
    let permit = DECODING.acquire().await.ok();
    let work = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        fit(source, limits)
    });
    match work.await {
        Ok(fitted) => fitted,
        // A decoder that panics has met an image that nobody should send on.
        Err(_) => Err("the decoder failed".to_owned()),
    }
}

fn fit(source: Source, limits: ImageLimits) -> Result<FittedImage, String> {
    let (bytes, name, encoded) = match source {
        Source::File { bytes, name } => (bytes, name, None),
        Source::Encoded(Media { base64, name, .. }) => {
            let bytes = STANDARD.decode(base64.as_bytes()).map_err(|e| e.to_string())?;
            (bytes, name, Some(base64))
        }
    };
    let mime = Media::mime_of(&bytes);
    let known = mime.and_then(|mime| Some((mime, ImageFormat::from_mime_type(mime)?)));
    let (mime, format) = known.ok_or("it is neither PNG, JPEG, GIF nor WebP")?;
    // Decoded even where it fits: whether it is whole shows only then.
    let image = decode(&bytes, format)?;
    let was = (image.width(), image.height());
    let fits = was.0.max(was.1) <= limits.edge_px;
    if fits && base64_len(bytes.len()) <= limits.base64_bytes {
        let base64 = encoded.unwrap_or_else(|| Arc::from(STANDARD.encode(&bytes)));
        return Ok(FittedImage {
            media: Media { mime: mime.to_owned(), base64, name },
            note: None,
        });
    }
    drop(bytes);
    if !limits.scales {
        let edge = limits.edge_px;
        return Err(format!(
            "{}x{} is more than {edge} pixels or too many bytes, and images are not scaled",
            was.0, was.1
        ));
    }
    let Encoded { bytes, mime, size } = shrink(image, format, limits)?;
    let note = if size == was {
        format!("(image of {}x{} encoded again as {mime})", was.0, was.1)
    } else {
        format!("(image scaled from {}x{} to {}x{})", was.0, was.1, size.0, size.1)
    };
    let base64 = STANDARD.encode(bytes).into();
    Ok(FittedImage { media: Media { mime: mime.to_owned(), base64, name }, note: Some(note) })
}

/// As it is meant to be seen: cameras note how they were held instead of turning the picture.
fn decode(bytes: &[u8], format: ImageFormat) -> Result<DynamicImage, String> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(DECODED_CAP_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|e| e.to_string())?;
    let (width, height) = decoder.dimensions();
    let too_many = u64::from(width) * u64::from(height) > PIXELS_CAP;
    if too_many || decoder.total_bytes() > DECODED_CAP_BYTES {
        let cap = PIXELS_CAP >> 20;
        return Err(format!("{width}x{height} pixels are more than the {cap} million allowed"));
    }
    let orientation = decoder.orientation().map_err(|e| e.to_string())?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(|e| e.to_string())?;
    image.apply_orientation(orientation);
    Ok(image)
}

struct Encoded {
    bytes: Vec<u8>,
    mime: &'static str,
    size: (u32, u32),
}

/// Scales until it fits. Screenshots stay PNG where that is small enough, and so does what one can
/// see through.
fn shrink(
    mut image: DynamicImage,
    format: ImageFormat,
    limits: ImageLimits,
) -> Result<Encoded, String> {
    let mut edge = limits.edge_px.min(image.width().max(image.height()));
    while edge >= SMALLEST_EDGE_PX {
        image = scale(image, edge);
        let rgba = image.has_alpha().then(|| image.to_rgba8());
        let transparent = rgba.filter(|rgba| rgba.pixels().any(|pixel| pixel.0[3] < u8::MAX));
        let size = (image.width(), image.height());
        if format == ImageFormat::Png || transparent.is_some() {
            let mut bytes = Cursor::new(Vec::new());
            let written = match &transparent {
                Some(rgba) => rgba.write_to(&mut bytes, ImageFormat::Png),
                None => image.to_rgb8().write_to(&mut bytes, ImageFormat::Png),
            };
            written.map_err(|e| e.to_string())?;
            if base64_len(bytes.get_ref().len()) <= limits.base64_bytes {
                return Ok(Encoded { bytes: bytes.into_inner(), mime: "image/png", size });
            }
        }
        let opaque = transparent.map_or_else(|| image.to_rgb8(), |rgba| on_white(&rgba));
        let mut bytes = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY);
        opaque.write_with_encoder(encoder).map_err(|e| e.to_string())?;
        if base64_len(bytes.len()) <= limits.base64_bytes {
            return Ok(Encoded { bytes, mime: "image/jpeg", size });
        }
        edge = edge * 3 / 4;
    }
    Err(format!("it does not fit into {} bytes", limits.base64_bytes))
}

fn scale(image: DynamicImage, edge: u32) -> DynamicImage {
    /// Above this, averaging first costs far less time and memory and nothing that can be seen.
    const ROUGH_FROM: u32 = 4;
    let longest = image.width().max(image.height());
    if longest <= edge {
        return image;
    }
    let rough =
        if longest / edge >= ROUGH_FROM { image.thumbnail(edge * 2, edge * 2) } else { image };
    rough.resize(edge, edge, FilterType::CatmullRom)
}

fn on_white(image: &image::RgbaImage) -> RgbImage {
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [red, green, blue, alpha] = image.get_pixel(x, y).0;
        let over = |colour: u8| {
            let (colour, alpha) = (u32::from(colour), u32::from(alpha));
            u8::try_from((colour * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
        };
        image::Rgb([over(red), over(green), over(blue)])
    })
}

fn base64_len(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
