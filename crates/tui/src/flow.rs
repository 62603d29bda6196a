//! Markdown that is still arriving. What can no longer change is given out once, in rows; only the
//! last block is drawn again and again.

use crate::highlight::Highlighter;
use crate::markdown;
use crate::style::Line;
use crate::theme::Theme;

/// A block that is longer than this is given out at a line's end, for better or worse.
const BLOCK_CAP_BYTES: usize = 32 << 10;

#[derive(Default)]
pub struct Flow {
    /// What was not given out yet.
    source: String,
    code: Option<Code>,
    /// Something was given out already.
    begun: bool,
    /// A blank row belongs before what follows.
    gap: bool,
}

struct Code {
    fence: (char, usize),
    highlighter: Highlighter,
}

impl Flow {
    pub fn push(&mut self, text: &str) {
        self.source.push_str(text);
    }

    /// Whether something of it was given out.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Rows that are finished; with `last`, all of them.
    pub fn ready(&mut self, columns: usize, theme: &Theme, last: bool) -> Vec<Line> {
        let mut lines = Vec::new();
        if !self.begun {
            let blank = self.source.len() - self.source.trim_start_matches(['\n', '\r']).len();
            self.source.drain(..blank);
        }
        loop {
            if self.code.is_some() {
                if !self.take_code(&mut lines, columns, theme, last) {
                    break;
                }
                continue;
            }
            if let Some((fence, name, after)) = opening(&self.source) {
                self.space(&mut lines, true);
                self.code = Some(Code { fence, highlighter: Highlighter::new(&name) });
                self.source.drain(..after);
                continue;
            }
            let end = match boundary(&self.source) {
                0 if last => self.source.len(),
                end => end,
            };
            if end == 0 {
                break;
            }
            let chunk: String = self.source.drain(..end).collect();
            let block = markdown::render(&chunk, columns, theme);
            if !block.is_empty() {
                self.space(&mut lines, chunk.starts_with('#'));
                lines.extend(block);
            }
            self.gap |= chunk.ends_with("\n\n") || chunk.starts_with('#') || blank_end(&chunk);
        }
        lines
    }

    /// What is not finished, as it looks now.
    pub fn tail(&self, columns: usize, theme: &Theme) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(Code { .. }) = &self.code {
            if !self.source.is_empty() && !closes(&self.source, self.fence()) {
                // Not the highlighter of the block: it must see each line once.
                let mut plain = Highlighter::new("");
                lines.extend(markdown::code_line(&self.source, columns, &mut plain, theme));
            }
            return lines;
        }
        // What waits behind something else may be long; only its end can be seen.
        let far = self.source.len().saturating_sub(2 * BLOCK_CAP_BYTES);
        let cut = self.source.bytes().skip(far).position(|b| b == b'\n').map_or(0, |n| far + n + 1);
        let shown = if far > 0 { &self.source[cut..] } else { &self.source };
        let block = markdown::render(shown, columns, theme);
        if !block.is_empty() && self.begun && (self.gap || self.source.starts_with('#')) {
            lines.push(Line::empty());
        }
        lines.extend(block);
        lines
    }

    fn fence(&self) -> (char, usize) {
        self.code.as_ref().map_or(('`', 3), |code| code.fence)
    }

    fn space(&mut self, lines: &mut Vec<Line>, always: bool) {
        if self.begun && (std::mem::take(&mut self.gap) || always) {
            lines.push(Line::empty());
        }
        self.gap = false;
        self.begun = true;
    }

    /// Gives out the next line of code; not, if none is whole.
    fn take_code(
        &mut self,
        lines: &mut Vec<Line>,
        columns: usize,
        theme: &Theme,
        last: bool,
    ) -> bool {
        let fence = self.fence();
        let all = last || self.source.len() > BLOCK_CAP_BYTES;
        let end = self.source.find('\n').map(|n| n + 1).or(all.then_some(self.source.len()));
        let Some(end) = end else { return false };
        if end == 0 {
            self.code = None;
            return false;
        }
        let line: String = self.source.drain(..end).collect();
        if closes(&line, fence) {
            self.code = None;
            self.gap = true;
        } else if let Some(code) = &mut self.code {
            let text = line.trim_end_matches(['\n', '\r']);
            lines.extend(markdown::code_line(text, columns, &mut code.highlighter, theme));
        }
        true
    }
}

fn blank_end(chunk: &str) -> bool {
    let mut lines = chunk.rsplit('\n');
    lines.next().is_some_and(str::is_empty) && lines.next().is_some_and(|l| l.trim().is_empty())
}

/// A fence that a whole first line opens: its sign, the language, and where the code begins.
fn opening(source: &str) -> Option<((char, usize), String, usize)> {
    let end = source.find('\n')?;
    let line = &source[..end];
    let (sign, count) = fence_of(line)?;
    let name = line.trim_start_matches(sign).trim();
    // Behind backticks, a backtick makes it code within a line.
    (!(sign == '`' && name.contains('`'))).then(|| ((sign, count), name.to_owned(), end + 1))
}

fn fence_of(line: &str) -> Option<(char, usize)> {
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let count = line.chars().take_while(|c| *c == sign).count();
    (count >= 3).then_some((sign, count))
}

fn closes(line: &str, (sign, count): (char, usize)) -> bool {
    let line = line.trim();
    line.chars().count() >= count && line.chars().all(|c| c == sign)
}

/// The end of the first block, once no later text can change it. Block by block, so that it makes no
/// difference how much has arrived.
fn boundary(source: &str) -> usize {
    let mut at = 0;
    let mut fence: Option<(char, usize)> = None;
    let (mut blank, mut heading) = (true, false);
    for line in source.split_inclusive('\n') {
        let whole = line.ends_with('\n');
        let text = line.trim_end();
        match fence {
            Some(open) => {
                if closes(text, open) && whole {
                    fence = None;
                }
                blank = false;
            }
            None => {
                let flush = !text.is_empty() && !text.starts_with([' ', '\t']);
                let fresh = blank || heading || begins_item(text) || fence_of(text).is_some();
                if flush && fresh && at > 0 {
                    return at;
                }
                // In an item's own indentation.
                fence = fence_of(text.trim_start()).filter(|_| whole);
                heading = text.starts_with('#') && whole;
                blank = text.is_empty();
            }
        }
        at += line.len();
        if heading && fence.is_none() {
            return at;
        }
    }
    // Code in a list may be longer, but not without end either.
    let cap = if fence.is_none() { BLOCK_CAP_BYTES } else { 4 * BLOCK_CAP_BYTES };
    if source.len() > cap {
        return source.rfind('\n').map_or(source.len(), |n| n + 1);
    }
    0
}

/// Bullets, and numbers as lists have them.
fn begins_item(text: &str) -> bool {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(b'-' | b'*' | b'+') => bytes.get(1) == Some(&b' '),
        Some(b'0'..=b'9') => {
            let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
            text.len() - rest.len() < 10 && (rest.starts_with(". ") || rest.starts_with(") "))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "# Head\nIntro *text* that\ngoes on.\n\n- one\n- two\n\n  still two\n- three\n\n```rust\nfn main() {}\n\nlet x = 1;\n```\nAfter.\n\n1. a\n2. b\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\nEnd";

    fn texts(lines: Vec<Line>) -> Vec<String> {
        lines.iter().map(|l| l.text().trim_end().to_owned()).collect()
    }

    fn streamed(source: &str, step: usize) -> Vec<String> {
        let theme = Theme::default();
        let mut flow = Flow::default();
        let mut lines = Vec::new();
        let chars: Vec<char> = source.chars().collect();
        for part in chars.chunks(step) {
            flow.push(&part.iter().collect::<String>());
            lines.extend(flow.ready(60, &theme, false));
            flow.tail(60, &theme);
        }
        lines.extend(flow.ready(60, &theme, true));
        texts(lines)
    }

    #[test]
    fn however_it_arrives_it_looks_the_same() {
        let whole = streamed(SOURCE, usize::MAX >> 1);
        for step in [1, 2, 3, 7, 20] {
            assert_eq!(streamed(SOURCE, step), whole, "in steps of {step}");
        }
        assert_eq!(whole[0], "Head");
        assert!(whole.contains(&"  let x = 1;".to_owned()), "{whole:?}");
    }

    #[test]
    fn code_is_given_out_line_by_line() {
        let theme = Theme::default();
        let mut flow = Flow::default();
        flow.push("Look:\n```py\na = 1\nb =");
        let lines = texts(flow.ready(40, &theme, false));
        assert_eq!(lines, ["Look:", "", "  a = 1"]);
        assert_eq!(texts(flow.tail(40, &theme)), ["  b ="]);
        flow.push(" 2\n``");
        assert_eq!(texts(flow.ready(40, &theme, false)), ["  b = 2"]);
        flow.push("`\nDone");
        assert!(flow.ready(40, &theme, false).is_empty());
        assert_eq!(texts(flow.tail(40, &theme)), ["", "Done"]);
    }

    #[test]
    fn what_never_ends_is_given_out_all_the_same() {
        let theme = Theme::default();
        let mut flow = Flow::default();
        flow.push(&"word ".repeat(20_000));
        assert!(!flow.ready(60, &theme, false).is_empty());
        assert_eq!(flow.tail(60, &theme).len(), 0);
        for endless in ["```\n", "- x\n  ```\n"] {
            let mut flow = Flow::default();
            flow.push(endless);
            let mut rows = 0;
            for _ in 0..400 {
                flow.push(&"code ".repeat(200));
                rows += flow.ready(60, &theme, false).len();
                assert!(flow.source.len() <= 5 * BLOCK_CAP_BYTES, "{endless:?}");
            }
            assert!(rows > 1_000, "{endless:?}: {rows} rows");
        }
    }
}
