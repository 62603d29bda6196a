//! A page as Markdown or as plain text.

use std::rc::Rc;

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::options::{BulletListMarker, Options};
use htmd::{Element, HtmlToMarkdown, Node};
use markup5ever_rcdom::NodeData;

use super::rough;
use super::table::{self, tag};

/// Elements inside each other. Converting goes into them by recursion; pages that people make have a
/// few dozen.
const DEPTH_CAP: usize = 400;

/// Enough for that depth, also without optimisation.
const STACK_BYTES: usize = 64 << 20;

/// What lists and quotes may add by indenting each line of what they hold.
const INDENTED_CAP_BYTES: usize = 64 << 20;

/// What is no text of the page.
const SILENT: &[&str] = &[
    "script", "style", "meta", "link", "title", "noscript", "iframe", "object", "embed", "template",
];

pub(crate) enum Form {
    Markdown,
    Text,
}

/// Converts on a thread with room for deep pages. What is too deep to be converted comes as text.
pub(crate) async fn convert(html: String, form: Form) -> Result<String, String> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let work = move || {
        // Whoever wanted it may be gone.
        sender.send(convert_now(&html, &form)).ok();
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    thread.map_err(|e| format!("The page cannot be converted: {e}."))?;
    receiver.await.map_err(|_| "The page cannot be converted; try format html.".to_owned())
}

fn convert_now(html: &str, form: &Form) -> String {
    if !rough::is_reasonable(html) {
        return rough::without_tags(html);
    }
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder()
        .options(options)
        .skip_tags(SILENT.to_vec())
        .add_handler(vec!["hr"], rule)
        .add_handler(vec!["table"], table::handle)
        .add_handler(vec!["tr", "td", "th", "thead", "tbody", "tfoot"], table::part)
        .build();
    let Ok(tree) = converter.html_to_tree(html) else { return html.to_owned() };
    let shape = Shape::of(&tree);
    let fits =
        shape.depth <= DEPTH_CAP && shape.indents.saturating_mul(html.len()) <= INDENTED_CAP_BYTES;
    match form {
        Form::Markdown if fits => converter.tree_to_markdown(&tree),
        Form::Markdown | Form::Text => text_of(&tree),
    }
}

fn rule(_: &dyn Handlers, _: Element) -> Option<HandlerResult> {
    Some("\n\n---\n\n".into())
}

/// All text in its order, without what no reader sees.
fn text_of(tree: &Rc<Node>) -> String {
    let mut text = String::new();
    let mut open = vec![Rc::clone(tree)];
    while let Some(node) = open.pop() {
        if let NodeData::Text { contents } = &node.data {
            text.push_str(&contents.borrow());
        }
        // A title is text; the rest of what is silent is not.
        if tag(&node).is_some_and(|tag| tag != "title" && SILENT.contains(&tag)) {
            continue;
        }
        open.extend(node.children.borrow().iter().rev().cloned());
    }
    text.trim().to_owned()
}

#[derive(Default)]
struct Shape {
    depth: usize,
    indents: usize,
}

impl Shape {
    fn of(tree: &Rc<Node>) -> Self {
        let mut shape = Self::default();
        let mut open = vec![(Rc::clone(tree), 1, 1)];
        while let Some((node, depth, indents)) = open.pop() {
            let indents = indents + usize::from(matches!(tag(&node), Some("li" | "blockquote")));
            shape.depth = shape.depth.max(depth);
            shape.indents = shape.indents.max(indents);
            let below = node.children.borrow();
            open.extend(below.iter().map(|child| (Rc::clone(child), depth + 1, indents)));
        }
        shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn markdown(html: &str) -> String {
        convert(html.to_owned(), Form::Markdown).await.unwrap()
    }

    #[tokio::test]
    async fn a_page_becomes_markdown() {
        for (html, expected) in [
            ("<h1>A</h1><p>b <em>c</em> <strong>d</strong></p>", "# A\n\nb *c* **d**"),
            ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c"),
            ("<a href='/x'>t</a><hr>", "[t](/x)\n\n---"),
            (
                "<pre><code class='language-rust'>fn a() {}\n</code></pre>",
                "```rust\nfn a() {}\n```",
            ),
            ("<title>t</title><script>x</script><style>y</style><noscript>z</noscript>p", "p"),
            (
                "<table><tr><th>a<th>b<tr><td>1|2<td>long\n<p>text</table>",
                "| a | b |\n| --- | --- |\n| 1\\|2 | long text |",
            ),
            ("<table><tr><th>a<th>b<tr><td>1</table>", "| a | b |\n| --- | --- |\n| 1 |  |"),
            ("<table><tr><td>left<td>right</table>", "left\n\nright"),
            (
                "<table><tr><td><table><tr><th>x</th></tr></table></td></tr></table>",
                "| x |\n| --- |",
            ),
            ("", ""),
        ] {
            assert_eq!(markdown(html).await, expected, "{html}");
        }
    }

    #[tokio::test]
    async fn a_page_becomes_text_without_what_nobody_reads() {
        let html = "<title>T</title><body> <p>a<script>no</script><b>b</b></p>\
                    <noscript>no</noscript><iframe>no</iframe><object>no</object> c\n</body>";
        assert_eq!(convert(html.to_owned(), Form::Text).await.unwrap(), "T ab c");
    }

    #[tokio::test]
    async fn pages_made_to_break_us_come_as_text() {
        for tag in ["div", "blockquote", "ul><li", "b", "table><tr><td"] {
            let deep = format!("<{tag}>").repeat(100_000) + "deep";
            assert!(markdown(&deep).await.contains("deep"), "{tag}");
        }
        let deep_enough = "<div>".repeat(1_000) + "deep";
        assert_eq!(markdown(&deep_enough).await, "deep");
        let just_below = format!("{}deep", "<ul><li>".repeat(180));
        assert!(markdown(&just_below).await.trim_end().ends_with("- deep"));
        let quoted = "<blockquote>".repeat(300) + "<pre>" + &"\n".repeat(1_000_000);
        assert!(markdown(&quoted).await.len() < 2_000_000);
        let wide = format!(
            "<table><tr><th>{}</th></tr>{}</table>",
            "x".repeat(1_000_000),
            "<tr><td>y</td></tr>".repeat(10_000)
        );
        assert!(markdown(&wide).await.len() < 2_000_000);
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_the_conversion(html in "(<(/?[a-z]{1,5}|table|tr|td|th|ul|li|pre|p)>|[ -~ü]){0,60}") {
            convert_now(&html, &Form::Markdown);
            convert_now(&html, &Form::Text);
        }
    }
}
