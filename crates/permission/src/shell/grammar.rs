//! The tree that the grammar of bash makes of a line.

use std::cell::RefCell;

use tree_sitter::{Node, Parser, Tree};

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

/// Whether something of a statement is in none of its parts, and so was not read: `x - 1> y`.
pub(super) fn loses(line: &str, node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    let mut end = node.start_byte();
    node.children(&mut cursor).any(|child| {
        let gap = line.get(end..child.start_byte()).unwrap_or_default();
        end = end.max(child.end_byte());
        !gap.replace("\\\n", "").trim().is_empty()
    })
}
