//! A session as one HTML page that needs nothing else. It has no script at all, and its own policy
//! forbids any: what a session holds comes from anywhere, and must only ever be looked at.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use serde_json::Value;

use super::ansi;
use super::parts::{Shown, Tool, bill, child, date, duration, orphans, shown, text, voice};

const STYLE: &str = include_str!("page.css");

/// What a browser may load and run: the page's own style and images that are in it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Lines of an output that are open from the start.
const OPEN_LINES: usize = 12;

/// The whole conversation, from the export form.
pub fn page(form: &Value) -> String {
    let title = escaped(text(&form["info"]["title"]));
    let mut body = String::new();
    write(form, &mut body, 1);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <input type=\"checkbox\" id=\"other\" aria-label=\"Light or dark\">\
         <label for=\"other\" title=\"Light or dark\"></label>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn write(form: &Value, out: &mut String, level: usize) {
    let info = &form["info"];
    let tag = format!("h{}", level.min(6));
    out.push_str(&format!("<header>\n<{tag}>{}</{tag}>\n<p>", escaped(text(&info["title"]))));
    let created = date(&info["time"]["created"]);
    let model = [text(&info["model"]["providerID"]), text(&info["model"]["id"])].join("/");
    let model = model.trim_matches('/').to_owned();
    let facts = [
        created,
        model,
        bill(info),
        text(&info["directory"]).to_owned(),
        text(&info["id"]).to_owned(),
    ];
    let facts = facts.iter().filter(|fact| !fact.is_empty());
    let facts: Vec<String> = facts.map(|fact| format!("<span>{}</span>", escaped(fact))).collect();
    out.push_str(&format!("{}</p>\n</header>\n", facts.join(" ")));
    let mut last = String::new();
    for message in form["messages"].as_array().into_iter().flatten() {
        let info = &message["info"];
        let is_user = info["role"] == "user";
        let is_note = shown(message).all(|part| matches!(part, Shown::Note(_)));
        let class = match (is_user, is_note) {
            (true, false) => "user",
            (true, true) => "note",
            (false, _) => "answer",
        };
        out.push_str(&format!("<section class=\"{class}\">\n"));
        let said = voice(info);
        if said != last && !is_note {
            let when = date(&info["time"]["created"]);
            out.push_str(&format!(
                "<div class=\"who\">{} <time>{when}</time></div>\n",
                escaped(&said)
            ));
            last = said;
        }
        for part in shown(message) {
            write_part(form, part, out, level);
        }
        if let Some(problem) = info["error"]["data"]["message"].as_str() {
            out.push_str(&format!("<p class=\"problem\">✗ {}</p>\n", escaped(problem)));
        }
        out.push_str("</section>\n");
    }
    for orphan in orphans(form) {
        write_work(orphan, out, level);
    }
}

fn write_work(form: &Value, out: &mut String, level: usize) {
    let title = escaped(text(&form["info"]["title"]));
    out.push_str(&format!(
        "<details class=\"work\"><summary>Work of an agent: {title}</summary>\n"
    ));
    write(form, out, level + 1);
    out.push_str("</details>\n");
}

fn write_part(form: &Value, part: Shown<'_>, out: &mut String, level: usize) {
    match part {
        Shown::Text(said) => {
            out.push_str(&format!("<div class=\"text\">{}</div>\n", rendered(said)))
        }
        Shown::Reasoning(thought) => {
            let thought = rendered(thought);
            out.push_str(&format!(
                "<details class=\"thought\"><summary>Thinking</summary>\n<div class=\"text\">{thought}</div></details>\n"
            ));
        }
        Shown::Note(note) => {
            let note = escaped(note);
            out.push_str(&format!(
                "<details class=\"thought\"><summary>Note to the model</summary>\n<pre>{note}</pre></details>\n"
            ));
        }
        Shown::File { .. } => write_file(&part, out),
        Shown::Shortened => {
            out.push_str("<p class=\"cut\">From here on, notes stand for the beginning.</p>\n");
        }
        Shown::Other(kind) => out.push_str(&format!("<p class=\"cut\">({})</p>\n", escaped(kind))),
        Shown::Tool(tool) => write_tool(form, &tool, out, level),
    }
}

fn write_file(file: &Shown<'_>, out: &mut String) {
    let Shown::File { mime, name, url } = file else { return };
    let name = escaped(name);
    match is_picture(mime, url) {
        true => {
            let url = escaped(url);
            out.push_str(&format!("<figure><img src=\"{url}\" alt=\"{name}\"><figcaption>{name}</figcaption></figure>\n"));
        }
        false => {
            out.push_str(&format!("<p class=\"cut\">Attached: {name} ({})</p>\n", escaped(mime)))
        }
    }
}

/// Kinds that are pictures and nothing else: one that can hold a program is not shown.
fn is_picture(mime: &str, url: &str) -> bool {
    let kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let base64 = url.strip_prefix("data:").and_then(|rest| rest.strip_prefix(mime));
    let base64 = base64.and_then(|rest| rest.strip_prefix(";base64,"));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    kinds.contains(&mime) && base64.is_some_and(|data| data.chars().all(plain))
}

fn write_tool(form: &Value, tool: &Tool<'_>, out: &mut String, level: usize) {
    let class = if tool.failed { "tool failed" } else { "tool" };
    let shows = tool.diff.is_some_and(|diff| diff.lines().count() <= OPEN_LINES * 3);
    let open = if shows { " open" } else { "" };
    out.push_str(&format!(
        "<details class=\"{class}\"{open}><summary><i>{}</i><b>{}</b> <code>{}</code> <span>{}</span></summary>\n",
        duration(tool.milliseconds),
        tool.mark,
        escaped(tool.name),
        escaped(tool.title),
    ));
    match tool.diff {
        Some(diff) => out.push_str(&format!("<pre class=\"diff\">{}</pre>\n", coloured(diff))),
        None => write_input(tool, out),
    }
    // Where the change itself is seen, a word that it was made says nothing more.
    let says_more = tool.failed || tool.diff.is_none() || tool.output.trim().lines().count() > 1;
    if says_more && !tool.output.trim().is_empty() {
        let name = match (tool.exit, tool.failed) {
            (Some(status), _) if status != 0 => format!("Output, exit status {status}"),
            (_, true) => "Error".to_owned(),
            (_, false) => "Output".to_owned(),
        };
        let output = ansi::marked(tool.output.trim_end(), escaped);
        out.push_str(&format!("<h6>{name}</h6><pre>{output}</pre>\n"));
    }
    tool.files.iter().for_each(|file| write_file(file, out));
    if let Some(work) = tool.child.and_then(|id| child(form, id)) {
        write_work(work, out, level);
    }
    out.push_str("</details>\n");
}

/// A command or a text as it is, the rest as names and values. What the title says already is left out.
fn write_input(tool: &Tool<'_>, out: &mut String) {
    let Some(fields) = tool.input.as_object() else { return };
    let fields = fields.iter().filter(|(_, value)| value.as_str() != Some(tool.title));
    for (name, value) in fields {
        let value = match value {
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        out.push_str(&format!(
            "<h6>{}</h6><pre>{}</pre>\n",
            escaped(name),
            escaped(value.trim_end())
        ));
    }
}

fn coloured(diff: &str) -> String {
    let line = |line: &str| {
        let class = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "file",
            [b'+', ..] => "add",
            [b'-', ..] => "del",
            [b'@', b'@', ..] => "hunk",
            _ => "same",
        };
        format!("<span class=\"{class}\">{}</span>", escaped(line))
    };
    // The first two lines of some diffs only say once more which file it is.
    let lines =
        diff.lines().filter(|line| !line.starts_with("Index: ") && !line.starts_with("====="));
    lines.map(line).collect::<Vec<_>>().join("\n")
}

/// Markdown as HTML. Tags in it are shown as they are, links lead to the web or nowhere, and pictures
/// from elsewhere become links: looking at a page tells nobody of it.
fn rendered(markdown: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let markdown = ansi::plain(markdown);
    let markdown: String = markdown.chars().filter(|letter| !turns_text(*letter)).collect();
    let events = Parser::new_ext(&markdown, options).map(|event| match event {
        Event::Html(tag) | Event::InlineHtml(tag) => Event::Text(tag),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => link(&dest_url),
        Event::End(TagEnd::Link | TagEnd::Image) => Event::InlineHtml(CowStr::Borrowed("</a>")),
        other => other,
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    out
}

fn link(url: &str) -> Event<'static> {
    let lower = url.trim().to_ascii_lowercase();
    let leads = ["http://", "https://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme));
    let tag = match leads {
        true => {
            format!("<a href=\"{}\" rel=\"noopener noreferrer nofollow\">", escaped(url.trim()))
        }
        false => "<a>".to_owned(),
    };
    Event::InlineHtml(tag.into())
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            // What moves a terminal's cursor means nothing here.
            other if other.is_control() || turns_text(other) => {}
            other => out.push(other),
        }
    }
    out
}

/// Marks that change the direction of what follows: they make text read as what it is not.
pub fn turns_text(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
