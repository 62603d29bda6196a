//! The search itself: all cores, bounded memory, and nothing that can hold it up.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use ignore::WalkState;
use toolwright_session::held::open_real;
use toolwright_tool::{MayRead, ToolError};

use super::{Output, Prepared};
use crate::names::show;
use crate::recency::{Newest, changed};
use crate::walk::{Stopped, Unreadable, walker};

/// Characters shown of a line. Minified files have lines of megabytes.
const LINE_CHARS: usize = 2_000;

/// Lines shown of one match that spans several.
const MATCH_LINES: usize = 50;

/// Bytes held of one line (of one file, where matches span lines).
const HEAP_BYTES: usize = 64 << 20;

pub(super) struct Hits {
    pub(super) lines: Vec<Line>,
    pub(super) matches: usize,
}

pub(super) enum Line {
    Match(u64, String),
    /// A further line of the same match.
    More(u64, String),
    Context(u64, String),
    /// Lines between two groups are left out.
    Gap,
}

pub(super) struct Search<'a> {
    call: &'a Prepared,
    stopped: Stopped,
    may_read: MayRead,
    newest: Mutex<Newest<Hits>>,
    full: AtomicBool,
    found: Counts,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) matches: AtomicUsize,
    pub(super) files: AtomicUsize,
    /// Files with matches that may not be shown.
    pub(super) withheld: AtomicUsize,
    pub(super) unreadable: Unreadable,
    pub(super) binary: AtomicBool,
}

pub(super) struct Found {
    pub(super) newest: Newest<Hits>,
    pub(super) counts: Counts,
}

impl<'a> Search<'a> {
    pub(super) fn new(call: &'a Prepared, stopped: Stopped, may_read: MayRead) -> Self {
        let newest = Mutex::new(Newest::new(call.limit));
        let full = AtomicBool::new(false);
        Self { call, stopped, may_read, newest, full, found: Counts::default() }
    }

    pub(super) fn tree(self) -> Found {
        walker(&self.call.place.root, true, None, |_| true).run(|| {
            let mut searcher = self.searcher();
            let search = &self;
            Box::new(move |entry| {
                if search.stopped.is_set() {
                    return WalkState::Quit;
                }
                match entry {
                    Err(error) => search.found.unreadable.note_walk(&error),
                    Ok(entry) => {
                        let is_file = entry.file_type().is_some_and(|t| t.is_file());
                        if is_file && search.call.wants(entry.path()) {
                            search.file(&mut searcher, entry.path());
                        }
                    }
                }
                WalkState::Continue
            })
        });
        self.end()
    }

    /// A file that is named is searched whatever the ignore files say; why it could not be is told.
    pub(super) fn one_file(self) -> Result<Found, ToolError> {
        let path = &self.call.place.root;
        let failed = |why: &dyn std::fmt::Display| {
            ToolError::for_model(format!("Cannot search {}: {why}", show(path)))
        };
        // It was one when the plan was made.
        match path.metadata() {
            Ok(data) if data.is_file() => {}
            Ok(_) => return Err(failed(&"it is no longer a file")),
            Err(error) => return Err(failed(&error)),
        }
        if self.call.wants(path)
            && let Err(error) = self.look_into(&mut self.searcher(), path)
            && !self.stopped.is_set()
        {
            return Err(failed(&error));
        }
        Ok(self.end())
    }

    fn end(self) -> Found {
        let newest = self.newest.into_inner().unwrap_or_else(|e| e.into_inner());
        Found { newest, counts: self.found }
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(self.call.output == Output::Lines)
            .before_context(self.call.context)
            .after_context(self.call.context)
            .multi_line(self.call.multiline)
            .heap_limit(Some(HEAP_BYTES))
            .build()
    }

    fn file(&self, searcher: &mut Searcher, path: &Path) {
        // Once there is enough that is newer, an older file need not even be opened. Counting needs
        // all of them.
        if self.full.load(Ordering::Relaxed) && self.call.output != Output::Count {
            let Ok(data) = path.symlink_metadata() else { return };
            if !self.lock().has_room_for(changed(&data)) {
                return;
            }
        }
        if let Err(error) = self.look_into(searcher, path)
            && !self.stopped.is_set()
        {
            self.found.unreadable.note(path, &error);
        }
    }

    fn look_into(&self, searcher: &mut Searcher, path: &Path) -> io::Result<()> {
        let file = open_real(path)?;
        let mut sink = Collector::new(self);
        let reader = Watched { file: &file, stopped: &self.stopped };
        let searched = searcher.search_reader(&self.call.matcher, reader, &mut sink);
        let Collector { hits, binary, .. } = sink;
        self.found.binary.fetch_or(binary, Ordering::Relaxed);
        if hits.matches > 0 {
            self.keep(path, &file, hits)?;
        }
        searched
    }

    fn keep(&self, path: &Path, file: &File, hits: Hits) -> io::Result<()> {
        if !(self.may_read)(path) {
            self.found.withheld.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let changed = changed(&file.metadata()?);
        self.found.matches.fetch_add(hits.matches, Ordering::Relaxed);
        self.found.files.fetch_add(1, Ordering::Relaxed);
        let weight = if self.call.output == Output::Lines { hits.matches } else { 1 };
        let mut newest = self.lock();
        newest.offer(changed, path.to_owned(), weight, hits);
        self.full.store(newest.is_full(), Ordering::Relaxed);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Newest<Hits>> {
        self.newest.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Ends a long file's search as soon as it is not wanted any more.
struct Watched<'a> {
    file: &'a File,
    stopped: &'a Stopped,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stopped.is_set() {
            return Err(io::Error::other("the search was stopped"));
        }
        self.file.read(buffer)
    }
}

/// What one file holds, no more of it than can be shown.
struct Collector<'a> {
    search: &'a Search<'a>,
    hits: Hits,
    binary: bool,
}

impl<'a> Collector<'a> {
    fn new(search: &'a Search<'a>) -> Self {
        let hits = Hits { lines: Vec::new(), matches: 0 };
        Self { search, hits, binary: false }
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.hits.matches += 1;
        let call = self.search.call;
        Ok(match call.output {
            Output::Files => false,
            Output::Count => !self.search.stopped.is_set(),
            Output::Lines => {
                let first = found.line_number().unwrap_or_default();
                let lines = found.lines().take(MATCH_LINES).zip(first..);
                let lines = lines.map(|(line, number)| match number == first {
                    true => Line::Match(number, shorten(line)),
                    false => Line::More(number, shorten(line)),
                });
                self.hits.lines.extend(lines);
                self.hits.matches < call.limit
            }
        })
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.search.call.output == Output::Lines {
            let number = context.line_number().unwrap_or_default();
            self.hits.lines.push(Line::Context(number, shorten(context.bytes())));
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.hits.lines.push(Line::Gap);
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> io::Result<()> {
        Ok(())
    }
}

fn shorten(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // Four bytes a character: no more needs to be decoded, however long the line is.
    let (head, long) = match line.get(..LINE_CHARS * 4) {
        Some(head) => (head, line.len() > head.len()),
        None => (line, false),
    };
    let text = String::from_utf8_lossy(head);
    match text.char_indices().nth(LINE_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None if long => format!("{text}..."),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_left_as_soon_as_the_search_is_stopped() {
        let file = File::open("/dev/zero").unwrap();
        let stopped = Stopped::default();
        let mut reader = Watched { file: &file, stopped: &stopped };
        let mut buffer = [1; 16];
        assert_eq!(reader.read(&mut buffer).unwrap(), 16);
        stopped.set();
        assert!(reader.read(&mut buffer).is_err());
    }
}
