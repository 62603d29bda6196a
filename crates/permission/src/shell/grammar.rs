//! The tree that the grammar of bash makes of a line.

use std::cell::RefCell;

use tree_sitter::{Parser, Tree};

thread_local! {
    /// Made once: a parser holds buffers that are worth keeping.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

pub(super) fn tree_of(line: &str) -> Option<Tree> {
    // The grammar's scanner hands characters to C functions that are defined for bytes only, and reads
    // out of bounds for others. To a shell they are letters like any other.
    let shadow: Vec<u8> = line.bytes().map(|b| if b.is_ascii() { b } else { b'x' }).collect();
    PARSER.with_borrow_mut(|parser| {
        if parser.is_none() {
            let mut new = Parser::new();
            new.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *parser = Some(new);
        }
        let parser = parser.as_mut()?;
        parser.reset();
        parser.parse(&shadow, None)
    })
}
