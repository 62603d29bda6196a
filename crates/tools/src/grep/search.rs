//! The search itself: all cores, bounded memory, and nothing that can hold it up.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use toolwright_session::held::open_real;
use toolwright_tool::{MayRead, ToolError};

use super::{Output, Prepared};
use crate::names::show;
use crate::recency::{Newest, changed};
use crate::walk::{self, Stopped, Tree, Unreadable, Visitor};

/// Characters shown of a line. Minified files have lines of megabytes.
const LINE_CHARS: usize = 2_000;

/// Lines shown of one match that spans several.
const MATCH_LINES: usize = 50;

/// Bytes of a file that is read before it is searched: most files of a project.
const SMALL_BYTES: usize = 64 << 10;

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
    unreadable: Unreadable,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) matches: usize,
    pub(super) files: usize,
    /// Files with matches that may not be shown.
    pub(super) withheld: usize,
    pub(super) binary: bool,
}

pub(super) struct Found {
    pub(super) newest: Newest<Hits>,
    pub(super) counts: Counts,
    pub(super) unreadable: Unreadable,
}

impl<'a> Search<'a> {
    pub(super) fn new(call: &'a Prepared, stopped: Stopped, may_read: MayRead) -> Self {
        Self { call, stopped, may_read, unreadable: Unreadable::default() }
    }

    pub(super) fn tree(self) -> Found {
        let tree = Tree {
            root: &self.call.place.root,
            hidden: true,
            depth: None,
            stopped: &self.stopped,
            unreadable: &self.unreadable,
        };
        let mut newest = Newest::new(self.call.limit);
        let mut counts = Counts::default();
        for Worker { newest: own, counts: Counts { matches, files, withheld, binary }, .. } in
            tree.walk(|| Worker::new(&self))
        {
            newest.absorb(own);
            counts.matches += matches;
            counts.files += files;
            counts.withheld += withheld;
            counts.binary |= binary;
        }
        Found { newest, counts, unreadable: self.unreadable }
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
        let mut worker = Worker::new(&self);
        if self.call.wants(path)
            && let Err(error) = open_real(path).and_then(|file| worker.look_into(&file, path))
            && !self.stopped.is_set()
        {
            return Err(failed(&error));
        }
        let Worker { newest, counts, .. } = worker;
        Ok(Found { newest, counts, unreadable: self.unreadable })
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
}

/// One thread's part of a search: nothing is shared until the end, so that threads do not wait for each
/// other at every file.
struct Worker<'a> {
    search: &'a Search<'a>,
    searcher: Searcher,
    /// Holds a small file.
    buffer: Vec<u8>,
    newest: Newest<Hits>,
    counts: Counts,
}

impl<'a> Worker<'a> {
    fn new(search: &'a Search<'a>) -> Self {
        let newest = Newest::new(search.call.limit);
        let (buffer, counts) = (vec![0; SMALL_BYTES], Counts::default());
        Self { search, searcher: search.searcher(), buffer, newest, counts }
    }

    fn look_into(&mut self, file: &File, path: &Path) -> io::Result<()> {
        let Search { call, stopped, .. } = self.search;
        let mut sink = Collector::new(self.search);
        let mut rest = Watched { file, stopped };
        let length = fill(&mut self.buffer, &mut rest)?;
        let (matcher, start) = (&call.matcher, &self.buffer[..length]);
        // A small file is searched where it lies. One that is no text needs to be read in order: what is
        // before the first NUL counts.
        let is_whole = length < self.buffer.len() && memchr::memchr(0, start).is_none();
        let searched = match is_whole {
            true => self.searcher.search_slice(matcher, start, &mut sink),
            false => self.searcher.search_reader(matcher, start.chain(rest), &mut sink),
        };
        let Collector { hits, binary, .. } = sink;
        self.counts.binary |= binary;
        if hits.matches > 0 {
            self.keep(path, file, hits)?;
        }
        searched
    }

    fn keep(&mut self, path: &Path, file: &File, hits: Hits) -> io::Result<()> {
        if !(self.search.may_read)(path) {
            self.counts.withheld += 1;
            return Ok(());
        }
        self.counts.matches += hits.matches;
        self.counts.files += 1;
        let weight = if self.search.call.output == Output::Lines { hits.matches } else { 1 };
        let changed = changed(&file.metadata()?);
        if self.newest.has_room_for(changed) {
            self.newest.offer(changed, path.to_owned(), weight, hits);
        }
        Ok(())
    }
}

impl Visitor for Worker<'_> {
    fn wants(&mut self, path: &Path) -> bool {
        self.search.call.wants(path)
    }

    fn file(&mut self, found: &walk::Found<'_>) {
        // Once there is enough that is newer, an older file need not even be opened. Counting needs
        // all of them.
        if self.newest.is_full() && self.search.call.output != Output::Count {
            match found.changed() {
                Ok(changed) if self.newest.has_room_for(changed) => {}
                _ => return,
            }
        }
        let looked = found.open().and_then(|file| self.look_into(&file, found.path()));
        if let Err(error) = looked
            && !self.search.stopped.is_set()
        {
            self.search.unreadable.note(found.path(), &error);
        }
    }
}

/// Reads until the buffer is full or nothing more comes.
fn fill(buffer: &mut [u8], from: &mut impl Read) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match from.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
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
