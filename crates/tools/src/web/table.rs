//! Tables of data as Markdown, without padding: columns filled up with blanks cost tokens, and one
//! wide cell in a long table would cost gigabytes.

use std::rc::Rc;

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, Node};
use markup5ever_rcdom::NodeData;

pub(super) fn tag(node: &Node) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        _ => None,
    }
}

pub(super) fn handle(handlers: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let mut rows = Vec::new();
    // Tables that only arrange a page are read like any other part of it.
    if !collect(element.node, &mut rows) || !rows.iter().flatten().any(|c| tag(c) == Some("th")) {
        return Some(blocks(handlers, element.node));
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::from("\n\n");
    for (at, row) in rows.iter().enumerate() {
        let cells = row.iter().map(|cell| one_line(&handlers.walk_children(cell).content));
        let empty = std::iter::repeat_n(String::new(), columns - row.len());
        let cells: Vec<String> = cells.chain(empty).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
        if at == 0 {
            text.push_str(&format!("|{}\n", " --- |".repeat(columns)));
        }
    }
    text.push('\n');
    Some(text.into())
}

/// The parts of a table that only arranges, one below the other.
pub(super) fn part(handlers: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    Some(blocks(handlers, element.node))
}

fn blocks(handlers: &dyn Handlers, node: &Rc<Node>) -> HandlerResult {
    let inner = handlers.walk_children(node).content;
    format!("\n\n{}\n\n", inner.trim_matches('\n')).into()
}

/// Finds rows and their cells; not, where a table lies in the table.
fn collect(table: &Rc<Node>, rows: &mut Vec<Vec<Rc<Node>>>) -> bool {
    let mut open: Vec<Rc<Node>> = table.children.borrow().iter().rev().cloned().collect();
    while let Some(node) = open.pop() {
        match tag(&node) {
            Some("table") => return false,
            Some("tr") => rows.push(Vec::new()),
            Some("td" | "th") => {
                if let Some(row) = rows.last_mut() {
                    row.push(Rc::clone(&node));
                }
            }
            _ => {}
        }
        open.extend(node.children.borrow().iter().rev().cloned());
    }
    rows.retain(|row| !row.is_empty());
    !rows.is_empty()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
