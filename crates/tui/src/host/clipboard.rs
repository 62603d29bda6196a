//! What is in the clipboard of the desktop. A terminal pastes text by itself and no images: for those a program
//! is asked, beside everything else and not for long.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinSet;
use toolwright::Workbench;
use toolwright_proc::{Bounds, Ended, Spec, find_program};

use super::Host;
use crate::app::{Clip, News};

/// A program that hangs (no desktop answers) is not waited for. All are asked at once, so this is the time of
/// all of them.
const BOUNDS: Bounds =
    Bounds { time: Duration::from_secs(5), output_bytes: 32 << 20, errors_bytes: 1 << 10 };
/// Images that are kept; prompts that name older ones were sent long ago.
const KEPT: usize = 50;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A way to ask: the variable without which it is of no use, the program, and what it is told for an image and
/// for text.
struct Way {
    needs: Option<&'static str>,
    program: &'static str,
    image: Option<&'static [&'static str]>,
    text: Option<&'static [&'static str]>,
}

const WAYS: &[Way] = &[
    Way {
        needs: Some("WAYLAND_DISPLAY"),
        program: "wl-paste",
        image: Some(&["--type", "image/png"]),
        text: Some(&["--no-newline"]),
    },
    Way {
        needs: Some("DISPLAY"),
        program: "xclip",
        image: Some(&["-selection", "clipboard", "-t", "image/png", "-o"]),
        text: Some(&["-selection", "clipboard", "-o"]),
    },
    Way { needs: None, program: "pngpaste", image: Some(&["-"]), text: None },
    Way {
        needs: None,
        program: "osascript",
        image: Some(&["-e", "get the clipboard as «class PNGf»"]),
        text: None,
    },
    Way { needs: None, program: "pbpaste", image: None, text: Some(&[]) },
];

impl Host {
    pub(super) fn clipboard(&self) {
        let bench = self.bench.clone();
        self.beside(async move { vec![News::Clipboard(look(&bench).await)] });
    }
}

async fn look(bench: &Workbench) -> Result<Clip, String> {
    let path = bench.variable("PATH").unwrap_or_default();
    let own = bench.workspace.directory().to_owned();
    let set = |name: &str| bench.variable(name).is_some_and(|value| !value.is_empty());
    let found: Vec<(&Way, PathBuf)> = WAYS
        .iter()
        .filter(|way| way.needs.is_none_or(set))
        .filter_map(|way| {
            // A folder that is worked in does not choose what is run.
            let skip = |folder: &Path| folder.starts_with(&own);
            Some((way, find_program(way.program, path.as_ref(), &skip)?))
        })
        .collect();
    if found.is_empty() {
        return Err("no program here reads the clipboard (wl-paste, xclip, pngpaste)".to_owned());
    }
    let images = found.iter().filter_map(|(way, program)| Some((true, program, way.image?)));
    let texts = found.iter().filter_map(|(way, program)| Some((false, program, way.text?)));
    let mut asked = JoinSet::new();
    for (n, (image, program, arguments)) in images.chain(texts).enumerate() {
        let mut spec = Spec::new(program, &bench.paths.home).separate_errors();
        for argument in arguments {
            spec = spec.arg(argument);
        }
        asked.spawn(async move { (n, said(spec, image).await) });
    }
    match first(asked).await {
        None => Err("the clipboard has no image and no text".to_owned()),
        Some(Found::Text(text)) => Ok(Clip::Text(text)),
        Some(Found::Image(png)) => {
            let folder = bench.paths.data.join("pasted");
            let kept = tokio::task::spawn_blocking(move || keep(&folder, &png)).await;
            kept.map_err(std::io::Error::other)
                .flatten()
                .map(|path| Clip::Image(path.display().to_string()))
                .map_err(|problem| format!("the image cannot be kept: {problem}"))
        }
    }
}

enum Found {
    Image(Vec<u8>),
    Text(String),
}

/// What those say who were asked, the first of them before the others. Who is not needed is not waited for.
async fn first(mut asked: JoinSet<(usize, Option<Found>)>) -> Option<Found> {
    let mut answers = BTreeMap::new();
    let mut next = 0;
    while let Some(answer) = asked.join_next().await {
        let (n, found) = answer.ok()?;
        answers.insert(n, found);
        while let Some(found) = answers.remove(&next) {
            if found.is_some() {
                return found;
            }
            next += 1;
        }
    }
    None
}

async fn said(spec: Spec, image: bool) -> Option<Found> {
    let ran = spec.run(BOUNDS).await.ok()?;
    if ran.ended != Some(Ended::Exit(0)) {
        return None;
    }
    if image {
        return png_of(&ran.output).map(Found::Image);
    }
    String::from_utf8(ran.output).ok().filter(|text| !text.is_empty()).map(Found::Text)
}

/// As it is, or as AppleScript writes it: `«data PNGf89504E…»`.
fn png_of(output: &[u8]) -> Option<Vec<u8>> {
    if output.starts_with(PNG) {
        return Some(output.to_owned());
    }
    let text = std::str::from_utf8(output).ok()?;
    let digits = text.trim().strip_prefix("«data PNGf")?.strip_suffix('»')?;
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.filter(|bytes| bytes.starts_with(PNG))
}

/// In a file of its own, which only its owner can read.
fn keep(folder: &Path, png: &[u8]) -> std::io::Result<PathBuf> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut old: Vec<PathBuf> =
        std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    // Their names begin with their times.
    old.sort();
    let over = old.len().saturating_sub(KEPT - 1);
    for path in &old[..over] {
        // One that stays takes room and nothing else.
        std::fs::remove_file(path).ok();
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_millis();
    let mut number = 0;
    loop {
        let path = folder.join(format!("{now:014}-{number}.png"));
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match file {
            Ok(mut file) => {
                let written = std::io::Write::write_all(&mut file, png);
                if written.is_err() {
                    // The problem is told; half an image is of no use.
                    std::fs::remove_file(&path).ok();
                }
                return written.map(|()| path);
            }
            Err(problem) if problem.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(problem) => return Err(problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_png_is_known_as_it_is_and_as_applescript_writes_it() {
        let png = [PNG, b"rest"].concat();
        let hex: String = png.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(png_of(&png), Some(png.clone()));
        assert_eq!(png_of(format!("«data PNGf{hex}»\n").as_bytes()), Some(png));
        for other in ["", "text", "«data PNGf»", "«data PNGfZZ»", "«data PNGf8950»"] {
            assert_eq!(png_of(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn only_so_many_images_are_kept_and_each_has_a_name_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("pasted");
        let paths: Vec<PathBuf> = (0..KEPT + 10).map(|_| keep(&folder, PNG).unwrap()).collect();
        let mut unique = paths.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), paths.len());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), KEPT);
        assert!(paths.last().unwrap().is_file());
    }
}
