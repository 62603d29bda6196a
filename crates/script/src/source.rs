//! Files as the engine takes them: TypeScript without its types, and where each line came from.

use std::path::Path;

use oxc::allocator::Allocator;
use oxc::codegen::{Codegen, CodegenOptions};
use oxc::diagnostics::OxcDiagnostic;
use oxc::parser::Parser;
use oxc::semantic::SemanticBuilder;
use oxc::span::SourceType;
use oxc::transformer::{TransformOptions, Transformer};

/// A file that the engine can run.
pub(crate) struct Source {
    pub(crate) code: String,
    pub(crate) form: Form,
    /// Where its lines came from, if they were moved.
    pub(crate) origin: Option<Origins>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// With `import` and `export`.
    Module,
    /// With `require` and `module.exports`.
    Script,
}

/// For each place of the code that runs, the place of the file that it was made from. Lines and
/// columns count from one.
pub(crate) struct Origins(Vec<(Place, Place)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Origins {
    pub(crate) fn of(&self, place: Place) -> Option<Place> {
        let after = self.0.partition_point(|(made, _)| *made <= place);
        let (made, from) = self.0.get(after.checked_sub(1)?)?;
        if made.line != place.line {
            return Some(*from);
        }
        Some(Place { line: from.line, column: from.column + (place.column - made.column) })
    }
}

/// So deep a text is read on the thread that wants it.
const SHALLOW: usize = 100;

/// Deeper than anything that people or bundlers write.
const DEEPEST: usize = 10_000;

/// The parser calls itself for each level.
const DEEP_STACK_BYTES: usize = 512 << 20;

/// Reads a file's text as its name says. What is wrong comes back as `path:line:column: words`.
pub(crate) fn prepare(path: &Path, text: &str) -> Result<Source, String> {
    let depth = depth(text);
    if depth > DEEPEST {
        return Err(format!("{}: it is nested too deeply", path.display()));
    }
    if depth <= SHALLOW {
        return parse(path, text);
    }
    // Only what is used of a stack is taken from memory.
    std::thread::scope(|scope| {
        let reading = std::thread::Builder::new().stack_size(DEEP_STACK_BYTES);
        let reading = reading.spawn_scoped(scope, || parse(path, text));
        let failed = || format!("{}: it cannot be read", path.display());
        reading.map_err(|_| failed())?.join().map_err(|_| failed())?
    })
}

/// About how deep a text is nested: brackets, signs in a row, functions that give functions, choices.
fn depth(text: &str) -> usize {
    let (mut open, mut row, mut chain, mut most) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b'"' | b'\'' => {
                while let Some(inner) = bytes.next() {
                    match inner {
                        b'\\' => drop(bytes.next()),
                        b'\n' => break,
                        inner if inner == byte => break,
                        _ => {}
                    }
                }
            }
            b';' | b',' | b'\n' => chain = 0,
            b'=' if bytes.peek() == Some(&b'>') => chain += 1,
            b'?' => chain += 1,
            _ => {}
        }
        match byte {
            b'!' | b'~' | b'+' | b'-' => row += 1,
            byte if byte.is_ascii_whitespace() => {}
            _ => row = 0,
        }
        most = most.max(open + chain + row);
    }
    most
}

fn parse(path: &Path, text: &str) -> Result<Source, String> {
    let kind = SourceType::from_path(path).unwrap_or_else(|_| SourceType::mjs());
    // Whether a plain file is a module is seen in what it says.
    let kind = kind.with_module(true);
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, kind).parse();
    if let Some(problem) = parsed.diagnostics.iter().next() {
        return Err(said(problem, path, text));
    }
    let form = match path.extension().and_then(|e| e.to_str()) {
        Some("mjs" | "mts") => Form::Module,
        Some("cjs" | "cts") => Form::Script,
        _ if parsed.module_record.has_module_syntax => Form::Module,
        _ => Form::Script,
    };
    if !kind.is_typescript() {
        return Ok(Source { code: text.to_owned(), form, origin: None });
    }
    let mut program = parsed.program;
    let scoping = SemanticBuilder::new().with_enum_eval(true).build(&program);
    let scoping = scoping.semantic.into_scoping();
    let options = TransformOptions::default();
    let changed =
        Transformer::new(&allocator, path, &options).build_with_scoping(scoping, &mut program);
    if let Some(problem) = changed.diagnostics.iter().next() {
        return Err(said(problem, path, text));
    }
    let options =
        CodegenOptions { source_map_path: Some(path.to_owned()), ..CodegenOptions::default() };
    let made = Codegen::new().with_options(options).with_source_text(text).build(&program);
    let origin = made.map.map(|map| {
        let mut places: Vec<(Place, Place)> = map
            .get_tokens()
            .map(|token| {
                let made =
                    Place { line: token.get_dst_line() + 1, column: token.get_dst_col() + 1 };
                let from =
                    Place { line: token.get_src_line() + 1, column: token.get_src_col() + 1 };
                (made, from)
            })
            .collect();
        places.sort_by_key(|(made, _)| *made);
        Origins(places)
    });
    Ok(Source { code: made.code, form, origin })
}

fn said(problem: &OxcDiagnostic, path: &Path, text: &str) -> String {
    let labels = problem.labels.as_slice();
    let at = labels.first().map_or(0, |label| label.offset() as usize);
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{}:{line}:{column}: {}", path.display(), problem.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_taken_off_and_lines_are_remembered() {
        let text = "import type { A } from './a'\nimport { B } from './b'\n\ninterface X {\n  a: string\n}\nenum Colour { Red, Green = 'g' }\nexport const f = (x: X, b: B): string => {\n  throw new Error(x.a)\n}\n";
        let source = prepare(Path::new("/x/f.ts"), text).unwrap();
        assert!(!source.code.contains("interface"), "{}", source.code);
        assert!(!source.code.contains("./a"), "{}", source.code);
        assert!(!source.code.contains("./b"), "an import of types only goes: {}", source.code);
        assert_eq!(source.form, Form::Module);
        let line = source.code.lines().position(|l| l.contains("throw")).unwrap() as u32 + 1;
        let at = source.origin.unwrap().of(Place { line, column: 3 }).unwrap();
        assert_eq!(at.line, 9);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let problem = prepare(Path::new("/x/f.ts"), "const a = 1\nconst b = = 2\n").err().unwrap();
        assert!(problem.starts_with("/x/f.ts:2:11: "), "{problem}");
    }

    #[test]
    fn the_older_form_is_told_by_what_is_missing() {
        let form = |name: &str, text| prepare(Path::new(name), text).unwrap().form;
        assert_eq!(form("a.js", "module.exports = {}"), Form::Script);
        assert_eq!(form("a.js", "export default 1"), Form::Module);
        assert_eq!(form("a.mjs", "globalThis.x = 1"), Form::Module);
        assert_eq!(form("a.ts", "const x: number = 1; module.exports = { x }"), Form::Script);
    }
}
