//! The prompt: arguments, attached files, standard input.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolwright::llm::{Content, Media};
use toolwright::tool::{FinalAnswer, ImageLimits, ImageSource, attachable_bytes, fit_image};

use crate::args::Run;
use crate::exit::Problem;
use crate::terminal::note;

/// Bytes of standard input or of a file that fit into a prompt.
const TEXT_CAP_BYTES: usize = 1 << 20;

/// When to say that we wait for standard input.
const PATIENCE: Duration = Duration::from_secs(2);

/// What somebody gives a run to work on.
pub struct Given {
    /// Their own words.
    pub words: String,
    /// What came from standard input; not necessarily anybody's words.
    pub piped: String,
    pub attached: Vec<Content>,
}

impl Given {
    /// Words and input as one text.
    pub fn text(&self) -> String {
        match (self.words.is_empty(), self.piped.is_empty()) {
            (_, true) => self.words.clone(),
            (true, false) => self.piped.clone(),
            (false, false) => format!("{}\n\n{}", self.words, self.piped),
        }
    }
}

pub async fn given(options: &Run, images: ImageLimits) -> Result<Given, Problem> {
    // What was one word to the shell is one argument of a command.
    let word = |word: &String| match options.command.is_some() && word.contains(char::is_whitespace)
    {
        true => format!("\"{}\"", word.replace('"', "'")),
        false => word.clone(),
    };
    let words: Vec<String> = options.prompt.iter().map(word).collect();
    let words = words.join(" ").trim().to_owned();
    let mut piped = String::new();
    if !options.commands && !std::io::stdin().is_terminal() {
        piped = read_stdin().await?.trim_end().to_owned();
        if piped.trim().is_empty() {
            piped.clear();
        }
    }
    let mut attached = Vec::new();
    for path in &options.files {
        attached.extend(attach(path, images).await?);
    }
    Ok(Given { words, piped, attached })
}

/// The form that `--output-schema` asks for.
pub fn answer_form(path: &Path) -> Result<FinalAnswer, Problem> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|e| Problem::usage(format!("cannot read the schema {shown}: {e}")))?;
    let schema = serde_json::from_str(&text)
        .map_err(|e| Problem::usage(format!("the schema {shown} is not JSON: {e}")))?;
    FinalAnswer::new(schema)
        .map_err(|e| Problem::usage(format!("the schema {shown} is not a JSON Schema: {e}")))
}

async fn read_stdin() -> Result<String, Problem> {
    let reading = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        let cap = TEXT_CAP_BYTES as u64 + 1;
        std::io::stdin().lock().take(cap).read_to_end(&mut bytes).map(|_| bytes)
    });
    tokio::pin!(reading);
    let read = tokio::select! {
        read = &mut reading => read,
        () = tokio::time::sleep(PATIENCE) => {
            note("tw: waiting for standard input to end (use < /dev/null if there is none)");
            reading.await
        }
    };
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        // A closed descriptor is an empty one.
        Ok(Err(_)) => Vec::new(),
        Err(crash) => return Err(Problem::failed(format!("cannot read standard input: {crash}"))),
    };
    if bytes.len() > TEXT_CAP_BYTES {
        let limit = TEXT_CAP_BYTES >> 10;
        return Err(Problem::usage(format!(
            "standard input has more than {limit} KiB; save it to a file and name the file in the prompt"
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn attach(path: &Path, images: ImageLimits) -> Result<Vec<Content>, Problem> {
    let shown = path.display();
    let failed = |e| Problem::usage(format!("cannot attach {shown}: {e}"));
    let data = std::fs::metadata(path).map_err(failed)?;
    if !data.is_file() {
        return Err(Problem::usage(format!("cannot attach {shown}: it is not a file")));
    }
    let too_large = |cap: u64| {
        let limit = cap >> 10;
        Problem::usage(format!(
            "cannot attach {shown}: it has more than {limit} KiB; name it in the prompt instead"
        ))
    };
    let most = attachable_bytes("image/");
    if data.len() > most {
        return Err(too_large(most));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let mime = Media::mime_of(&bytes);
    let cap = mime.map_or(TEXT_CAP_BYTES as u64, attachable_bytes);
    if bytes.len() as u64 > cap {
        return Err(too_large(cap));
    }
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    match mime {
        Some(mime) if mime.starts_with("image/") => {
            let source = ImageSource::File { bytes, name };
            let fitted = fit_image(source, images).await.map_err(|why| {
                Problem::usage(format!(
                    "cannot attach {shown}: the image could not be decoded: {why}"
                ))
            })?;
            Ok([Content::Media(fitted.media)]
                .into_iter()
                .chain(fitted.note.map(Content::text))
                .collect())
        }
        Some(mime) => {
            let base64 = STANDARD.encode(bytes).into();
            Ok(vec![Content::Media(Media { mime: mime.into(), base64, name })])
        }
        None => match String::from_utf8(bytes) {
            Ok(text) => {
                Ok(vec![Content::text(format!("<file path=\"{shown}\">\n{text}\n</file>"))])
            }
            Err(_) => Err(Problem::usage(format!("cannot attach {shown}: it is not text"))),
        },
    }
}
