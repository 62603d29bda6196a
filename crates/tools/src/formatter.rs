//! Formatters: programs that bring a file into shape after it was written. One that fails leaves the
//! file as it was and is reported; it never fails the edit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;
use toolwright_lsp::Place;
use toolwright_proc::sandbox::Find;
use toolwright_proc::{Ended, Spec};
use toolwright_tool::{Files, ToolError};

use crate::rewrite::BOM;
use crate::walk::blocking;

#[path = "formatter_table.rs"]
mod table;

/// What one formatter may take. It stands between an edit and its answer.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Bytes of a file that is formatted.
const FILE_CAP_BYTES: u64 = 8 << 20;

/// Bytes of a formatter's output that are kept for the one who is told of its failure.
const OUTPUT_CAP_BYTES: usize = 2 << 10;

/// What people say about formatters.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum FormatterSetting {
    #[default]
    Off,
    BuiltIn,
    With(Vec<(String, FormatterEntry)>),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct FormatterEntry {
    pub disabled: bool,
    pub command: Option<Vec<String>>,
    pub environment: BTreeMap<String, String>,
    pub extensions: Option<Vec<String>>,
}

pub struct Formatters {
    list: Vec<Formatter>,
    place: Place,
    /// Variables that formatters must not see: our own keys.
    withheld: Vec<String>,
    passed: Vec<String>,
    sandbox: Option<Find>,
    limit: Duration,
}

#[derive(Debug, Clone)]
struct Formatter {
    name: String,
    extensions: Vec<String>,
    command: Vec<String>,
    environment: BTreeMap<String, String>,
    when: When,
    runs_project_code: bool,
}

/// When a formatter is for a project, beyond being there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Found,
    /// A `package.json` above the file names it.
    Package(&'static str),
    /// `composer.json` names it.
    Composer(&'static str),
    /// One of these lies above the file.
    Marker(&'static [&'static str]),
    /// The project speaks of ruff.
    Ruff,
    /// ruff is not for this project.
    WithoutRuff,
}

/// What came of formatting a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Formatted {
    /// Names of those that changed it.
    pub(crate) changed_by: Vec<String>,
    pub(crate) problems: Vec<String>,
}

impl Formatters {
    /// Fails with words for the person who wrote the setting.
    pub fn new(
        setting: FormatterSetting,
        place: Place,
        withheld: Vec<String>,
    ) -> Result<Self, String> {
        let list = configured(setting)?;
        let (passed, sandbox, limit) = (Vec::new(), None, TIME_LIMIT);
        Ok(Self { list, place, withheld, passed, sandbox, limit })
    }

    /// Each runs in the sandbox that is found; variables named in `passed` are not kept from them.
    pub fn fenced(mut self, sandbox: Option<Find>, passed: Vec<String>) -> Self {
        (self.sandbox, self.passed) = (sandbox, passed);
        self
    }

    pub fn is_off(&self) -> bool {
        self.list.is_empty()
    }

    /// Runs all that are for `file`, one after the other.
    pub(crate) async fn format(
        &self,
        file: &Path,
        files: &Files,
        cancel: &CancellationToken,
    ) -> Formatted {
        let mut formatted = Formatted::default();
        let small = |data: std::fs::Metadata| data.is_file() && data.len() <= FILE_CAP_BYTES;
        if !self.place.contains(file) || !std::fs::metadata(file).is_ok_and(small) {
            return formatted;
        }
        for formatter in self.list.iter().filter(|formatter| formatter.takes(file)) {
            let Some(program) = self.program_for(formatter, file) else { continue };
            if formatter.runs_project_code && !self.place.trusted {
                formatted.problems.push(format!(
                    "{} was not run: it runs code of the project, and this folder is not trusted (--trust)",
                    formatter.name
                ));
                continue;
            }
            match self.run(formatter, &program, file, files, cancel).await {
                Ok(true) => formatted.changed_by.push(formatter.name.clone()),
                Ok(false) => {}
                Err(problem) => {
                    formatted.problems.push(format!("{} failed: {problem}", formatter.name));
                }
            }
        }
        formatted
    }

    /// Whether it changed the file.
    async fn run(
        &self,
        formatter: &Formatter,
        program: &Path,
        file: &Path,
        files: &Files,
        cancel: &CancellationToken,
    ) -> Result<bool, String> {
        let before = tokio::fs::read(file).await.map_err(|e| e.to_string())?;
        let mut spec = Spec::new(program, &self.place.directory);
        let path = file.to_string_lossy();
        let arguments =
            formatter.command.iter().skip(1).map(|word| word.replacen("$FILE", &path, 1));
        spec.arguments.extend(arguments.map(Into::into));
        spec.environment.extend(formatter.environment.clone());
        spec.withheld.clone_from(&self.withheld);
        spec.passed.clone_from(&self.passed);
        let spec = spec.fenced_by(self.sandbox.as_ref())?;
        let ran = run_to_end(&spec, self.limit, cancel).await;
        let after = tokio::fs::read(file).await.unwrap_or_default();
        let emptied = after.is_empty() && !before.is_empty();
        let wanted = match &ran {
            Ok(()) if !emptied => with_mark_of(&before, &after),
            _ => before.clone(),
        };
        let changed = wanted != before;
        if wanted != after {
            put(files, file, wanted).await.map_err(|e| e.to_string())?;
        }
        match ran {
            Ok(()) if emptied => {
                Err("it left the file empty; the file is as it was before".to_owned())
            }
            Ok(()) => Ok(changed),
            Err(problem) => Err(format!("{problem}; the file is as it was before")),
        }
    }

    fn program_for(&self, formatter: &Formatter, file: &Path) -> Option<PathBuf> {
        let speaks_of = |name: &str, word: &str| {
            let mut folders = file.ancestors().skip(1).take_while(|f| self.place.contains(f));
            folders.any(|folder| {
                std::fs::read_to_string(folder.join(name)).is_ok_and(|text| text.contains(word))
            })
        };
        let ruff = || {
            let own = self.place.upwards(file, &["ruff.toml", ".ruff.toml"]).is_some();
            let mut named = ["pyproject.toml", "requirements.txt", "Pipfile"].into_iter();
            own || named.any(|name| speaks_of(name, "ruff"))
        };
        let near = file.parent()?;
        let fits = match formatter.when {
            When::Found => true,
            When::Package(name) => speaks_of("package.json", &format!("\"{name}\"")),
            When::Composer(name) => speaks_of("composer.json", &format!("\"{name}\"")),
            When::Marker(names) => self.place.upwards(file, names).is_some(),
            When::Ruff => ruff(),
            When::WithoutRuff => !(ruff() && self.place.program("ruff", near).is_some()),
        };
        fits.then(|| self.place.program(formatter.command.first()?, near)).flatten()
    }
}

impl Formatter {
    /// By the file's last ending.
    fn takes(&self, file: &Path) -> bool {
        let Some(ending) = file.extension().map(|e| e.to_string_lossy()) else { return false };
        self.extensions.iter().any(|wanted| wanted.trim_start_matches('.') == ending)
    }
}

fn configured(setting: FormatterSetting) -> Result<Vec<Formatter>, String> {
    let entries = match setting {
        FormatterSetting::Off => return Ok(Vec::new()),
        FormatterSetting::BuiltIn => Vec::new(),
        FormatterSetting::With(entries) => entries,
    };
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    let mut list: Vec<Formatter> = table::TABLE
        .iter()
        .map(|row| Formatter {
            name: row.name.to_owned(),
            extensions: words(row.extensions),
            command: words(row.command),
            environment: BTreeMap::new(),
            when: row.when,
            runs_project_code: row.runs_project_code,
        })
        .collect();
    for (name, entry) in entries {
        if entry.disabled {
            // uv runs ruff: who wants none of it means both.
            let both = ["ruff", "uv"];
            let off =
                |known: &str| known == name || (both.contains(&&*name) && both.contains(&known));
            list.retain(|formatter| !off(&formatter.name));
            continue;
        }
        if entry.command.as_ref().is_some_and(|c| c.first().is_none_or(String::is_empty)) {
            return Err(format!("formatter.{name}: the command is empty"));
        }
        match (
            list.iter_mut().find(|formatter| formatter.name == name),
            entry.command,
            entry.extensions,
        ) {
            (Some(known), command, extensions) => {
                // Whoever gives the command says that it is for this project.
                if let Some(command) = command {
                    (known.command, known.when) = (command, When::Found);
                }
                known.extensions = extensions.unwrap_or(std::mem::take(&mut known.extensions));
                known.environment = entry.environment;
            }
            (None, Some(command), Some(extensions)) => list.push(Formatter {
                name,
                extensions,
                command,
                environment: entry.environment,
                when: When::Found,
                runs_project_code: false,
            }),
            (None, ..) => {
                return Err(format!(
                    "formatter.{name}: a formatter of your own needs command and extensions"
                ));
            }
        }
    }
    Ok(list)
}

/// The byte-order mark is the file's own affair, not the formatter's.
fn with_mark_of(before: &[u8], after: &[u8]) -> Vec<u8> {
    let bare = after.strip_prefix(BOM).unwrap_or(after);
    let mark = if before.starts_with(BOM) { BOM } else { &[] };
    [mark, bare].concat()
}

async fn put(files: &Files, file: &Path, content: Vec<u8>) -> Result<(), ToolError> {
    let (files, file) = (files.clone(), file.to_owned());
    blocking(move || files.write(&file, &content)).await
}

/// Fails with what a person would want to know.
async fn run_to_end(
    spec: &Spec,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<(), String> {
    let mut child = spec.spawn().map_err(|e| e.to_string())?;
    let mut output = child.output();
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    let deadline = tokio::time::sleep(limit);
    tokio::pin!(deadline);
    let ended = loop {
        let reading = async {
            match &mut output {
                Some(pipe) => pipe.read(&mut buffer).await.unwrap_or(0),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                child.kill().await;
                return Err("it was stopped".to_owned());
            }
            () = &mut deadline => {
                child.kill().await;
                return Err(format!("it took longer than {} s", limit.as_secs_f32()));
            }
            count = reading => match count {
                0 => output = None,
                count => {
                    said.extend_from_slice(&buffer[..count]);
                    let excess = said.len().saturating_sub(OUTPUT_CAP_BYTES);
                    said.drain(..excess);
                }
            },
            ended = child.wait() => break ended,
        }
    };
    let how = match ended {
        Ended::Exit(0) => return Ok(()),
        Ended::Exit(code) => format!("exit code {code}"),
        Ended::Signal(signal) => format!("ended by signal {signal}"),
    };
    let said = String::from_utf8_lossy(&said);
    match said.lines().find(|line| !line.trim().is_empty()) {
        Some(line) => Err(format!("{how}: {}", line.trim())),
        None => Err(how),
    }
}

#[cfg(test)]
#[path = "formatter_tests.rs"]
mod tests;
