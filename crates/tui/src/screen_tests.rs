use super::*;
use crate::style::Color;

/// A terminal that shows what it is sent, and the screen that writes to it.
struct Pair {
    terminal: vt100::Parser,
    screen: Screen,
    columns: usize,
}

fn size(n: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(n).unwrap()
}

impl Pair {
    fn new(rows: u16, columns: u16) -> Self {
        let terminal = vt100::Parser::new(size(rows), size(columns), 500);
        let columns = usize::from(columns);
        Self { terminal, screen: Screen::new(Depth::True, columns), columns }
    }

    fn paint(&mut self, finished: &[&str], live: &[&str], cursor: Option<(usize, usize)>) -> usize {
        let lines = |texts: &[&str]| texts.iter().map(|t| Line::plain(*t)).collect::<Vec<_>>();
        let out = self.screen.paint(&lines(finished), lines(live), cursor).unwrap_or_default();
        self.terminal.process(out.as_bytes());
        out.len()
    }

    fn shown(&self) -> Vec<String> {
        let screen = self.terminal.screen();
        let rows = screen.rows(0, self.columns as u16).map(|r| r.trim_end().to_owned());
        let mut rows: Vec<String> = rows.collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }
}

#[test]
fn finished_lines_stay_above_and_the_live_area_follows_them() {
    let mut pair = Pair::new(8, 20);
    pair.paint(&[], &["> ", "status"], Some((0, 2)));
    assert_eq!(pair.shown(), [">", "status"]);
    pair.paint(&["one", "two"], &["> x", "status"], Some((0, 3)));
    assert_eq!(pair.shown(), ["one", "two", "> x", "status"]);
    assert_eq!(pair.terminal.screen().cursor_position(), (2, 3));
    pair.paint(&[], &["> "], Some((0, 2)));
    assert_eq!(pair.shown(), ["one", "two", ">"]);
}

#[test]
fn what_scrolls_out_is_in_the_terminals_own_scrollback() {
    let mut pair = Pair::new(4, 20);
    pair.paint(&[], &["> ", "status"], Some((0, 2)));
    for n in 0..10 {
        pair.paint(&[&format!("line {n}")], &["> ", "status"], Some((0, 2)));
    }
    assert_eq!(pair.shown(), ["line 8", "line 9", ">", "status"]);
    pair.terminal.screen_mut().set_scrollback(8);
    assert_eq!(pair.shown(), ["line 0", "line 1", "line 2", "line 3"]);
}

#[test]
fn a_line_that_is_only_finished_costs_no_bytes_of_its_own() {
    let mut pair = Pair::new(10, 60);
    let text = "a line that stands there already and is long";
    pair.paint(&[], &[text, ">"], Some((1, 1)));
    let bytes = pair.paint(&[text], &["next", ">"], Some((1, 1)));
    assert!(bytes < 60, "{bytes} bytes");
    assert_eq!(pair.shown(), [text, "next", ">"]);
    let spin = pair.paint(&[], &["nexT", ">"], Some((1, 1)));
    assert!(spin < 50, "{spin} bytes");
    assert_eq!(pair.paint(&[], &["nexT", ">"], Some((1, 1))), 0);
}

#[test]
fn rows_below_new_ones_are_moved_and_not_written_again() {
    for height in [0, 10] {
        let mut pair = Pair::new(10, 60);
        pair.screen.set_height(height);
        let foot = [
            "",
            "a row that says what is going on just now",
            "> the prompt",
            "a long status row of a model",
        ];
        let with = |rows: &[&'static str]| [rows, &foot[..]].concat();
        pair.paint(&[], &with(&["one"]), Some((3, 2)));
        let mut bytes = 0;
        for n in 0..20 {
            let row = format!("row {n}");
            let live = with(&["tail"]);
            bytes += pair.paint(&[&row, "more"], &live, Some((3, 2)));
            assert!(
                pair.shown().join("\n").contains("more\ntail\n\na row that"),
                "{:?}",
                pair.shown()
            );
            assert_eq!(pair.shown().last().unwrap(), foot[3]);
        }
        if height > 0 {
            assert!(bytes < 20 * 90, "{bytes} bytes");
        }
        // What has scrolled out is all there, once.
        pair.terminal.screen_mut().set_scrollback(40);
        let top = pair.shown().join("\n");
        assert!(top.contains("row 0\nmore\nrow 1\nmore"), "{top}");
    }
}

#[test]
fn a_narrower_terminal_gets_the_live_area_anew() {
    let mut pair = Pair::new(8, 20);
    pair.paint(&["above"], &["12345678901234567", "> "], Some((1, 2)));
    // This terminal does not fold its rows; ours have to be clean in either case.
    pair.terminal.screen_mut().set_size(size(8), size(30));
    pair.columns = 30;
    pair.screen.resize(30);
    pair.paint(&[], &["wider now", "> "], Some((1, 2)));
    assert_eq!(pair.shown(), ["above", "wider now", ">"]);
}

#[test]
fn rows_with_wide_characters_are_written_whole() {
    let mut pair = Pair::new(6, 30);
    pair.paint(&[], &["漢字 one", "> "], Some((1, 2)));
    pair.paint(&[], &["漢字 two x", "> a"], Some((1, 3)));
    assert_eq!(pair.shown(), ["漢字 two x", "> a"]);
    pair.paint(&[], &["ab", "> a"], Some((1, 3)));
    assert_eq!(pair.shown(), ["ab", "> a"]);
}

#[test]
fn whatever_is_painted_stands_there_afterwards() {
    // A small generator of our own: the same run each time.
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |limit: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % limit
    };
    let words = ["", "a", "bb cc", "漢字", "longer text here", "x é y"];
    let mut pair = Pair::new(12, 24);
    let mut above: Vec<String> = Vec::new();
    for n in 0..6_000 {
        // With and without the terminal's help.
        pair.screen.set_height(if n % 2_000 < 1_000 { 12 } else { 0 });
        let pick = |n: u64| words[n as usize % words.len()].to_owned();
        let finished: Vec<String> = (0..next(3)).map(|_| pick(next(6))).collect();
        let live: Vec<String> = (0..1 + next(5)).map(|_| pick(next(6))).collect();
        let cursor = Some((next(live.len() as u64) as usize, 0));
        let colour = Style::fg(Color::Index(next(4) as u8));
        let lines = |texts: &[String]| {
            texts.iter().map(|t| Line::styled(t.as_str(), colour)).collect::<Vec<_>>()
        };
        let out = pair.screen.paint(&lines(&finished), lines(&live), cursor).unwrap_or_default();
        pair.terminal.process(out.as_bytes());
        above.extend(finished);
        above.drain(..above.len().saturating_sub(12));
        let mut wanted: Vec<String> = above.iter().chain(&live).cloned().collect();
        let start = wanted.len().saturating_sub(12);
        wanted.drain(..start);
        let mut shown = pair.shown();
        // Rows above a live area that shrank stay where they are until something pushes them up.
        while wanted.last().is_some_and(String::is_empty) {
            wanted.pop();
        }
        let common = shown.len().min(wanted.len());
        let shown = shown.split_off(shown.len() - common);
        assert_eq!(shown, wanted[wanted.len() - common..]);
    }
}

fn art(rows: usize) -> Line {
    use crate::picture::{Canvas, Means, Picture};
    use base64::Engine as _;
    let image = image::RgbImage::from_pixel(80, 16 * rows as u32, image::Rgb([9, 9, 9]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes.into_inner()).into();
    let media = toolwright::llm::Media { mime: "image/png".into(), base64, name: None };
    let canvas = Canvas { means: Means::Kitty, columns: 80, rows: 24, cell: Some((8, 16)) };
    let picture = Picture::of(&media, canvas).unwrap();
    picture.render(40, Means::Kitty, &crate::theme::Theme::default()).swap_remove(1)
}

#[test]
fn a_picture_is_drawn_over_its_own_rows_while_they_are_still_to_be_seen() {
    let mut screen = Screen::new(Depth::True, 40);
    screen.set_height(6);
    let mut terminal = vt100::Parser::new(size(6), size(40), 100);
    let mut finished: Vec<Line> = (0..20).map(|n| Line::plain(format!("before {n}"))).collect();
    finished.push(art(3));
    finished.extend([Line::empty(), Line::empty()]);
    finished.extend((0..20).map(|n| Line::plain(format!("after {n}"))));
    let out = screen.paint(&finished, vec![Line::plain("> ")], Some((0, 2))).unwrap();
    let (to, from) = (out.find("\x1b7\x1b_G").unwrap(), out.find("\x1b\\\x1b8").unwrap());
    // Where the cursor is when it is drawn: three rows above the one that came last.
    terminal.process(&out.as_bytes()[..to]);
    let shown: Vec<String> = terminal.screen().rows(0, 40).collect();
    let (row, column) = terminal.screen().cursor_position();
    assert_eq!((row, column), (2, 0), "{shown:?}");
    assert_eq!(shown[1].trim_end(), "before 19");
    assert_eq!(shown[5].trim_end(), "after 0");
    terminal.process(&out.as_bytes()[from + 2..]);
    let shown: Vec<String> = terminal.screen().rows(0, 40).map(|r| r.trim_end().into()).collect();
    assert_eq!(shown, ["after 15", "after 16", "after 17", "after 18", "after 19", ">"]);
}

#[test]
fn a_picture_that_no_longer_fits_is_left_out() {
    for (columns, height) in [(8, 24), (40, 3)] {
        let mut screen = Screen::new(Depth::True, columns);
        screen.set_height(height);
        let finished = [art(3), Line::empty(), Line::empty(), Line::plain("x")];
        let out = screen.paint(&finished, vec![Line::plain("> ")], None).unwrap();
        assert!(!out.contains("\x1b_G"), "{columns} {height}");
    }
    // Its rows are not all for good.
    let mut screen = Screen::new(Depth::True, 40);
    screen.set_height(24);
    let out = screen.paint(&[art(3), Line::empty()], vec![Line::plain("> ")], None).unwrap();
    assert!(!out.contains("\x1b_G"));
}

#[test]
fn the_last_row_stays_the_last_when_it_is_held() {
    let mut pair = Pair::new(8, 20);
    pair.screen.set_height(8);
    let question = ["q1", "q2", "q3", "q4", "q5", "status"];
    // Where the last row is, nobody knows yet: nothing is held.
    pair.paint(&["one"], &question, None);
    pair.screen.hold();
    pair.paint(&[], &["> ", "status"], Some((0, 2)));
    assert_eq!(pair.shown(), ["one", ">", "status"]);
    let many: Vec<String> = (0..10).map(|n| format!("line {n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    pair.paint(&many, &question, None);
    assert_eq!(pair.shown()[..3], ["line 8", "line 9", "q1"]);
    pair.screen.hold();
    pair.paint(&[], &["> ", "status"], Some((0, 2)));
    assert_eq!(pair.shown(), ["line 8", "line 9", "", "", "", "", ">", "status"]);
    assert_eq!(pair.terminal.screen().cursor_position(), (6, 2));
    // What comes next takes the place, and the prompt stays.
    pair.paint(&["a", "b"], &["> x", "status"], Some((0, 3)));
    assert_eq!(pair.shown(), ["line 8", "line 9", "a", "b", "", "", "> x", "status"]);
    pair.paint(&["c", "d", "e"], &["> x", "status"], Some((0, 3)));
    assert_eq!(pair.shown(), ["line 9", "a", "b", "c", "d", "e", "> x", "status"]);
}

#[test]
fn what_lies_over_it_is_drawn_below_what_was_written_last() {
    let mut pair = Pair::new(6, 20);
    pair.screen.set_height(6);
    pair.paint(&["1", "2", "3", "4", "5", "6", "7"], &["> "], Some((0, 2)));
    let lines = |texts: &[&str]| texts.iter().map(|t| Line::plain(*t)).collect::<Vec<_>>();
    let (rows, cursor) = pair.screen.covered(lines(&["8"]), lines(&["list", "a"]), Some((0, 4)));
    let rows: Vec<String> = rows.iter().map(Line::text).collect();
    assert_eq!(rows, ["5", "6", "7", "8", "list", "a"]);
    assert_eq!(cursor, Some((4, 4)));
}

#[test]
fn rows_that_come_above_a_live_area_that_stays_do_not_confuse_what_comes_next() {
    let mut pair = Pair::new(8, 20);
    pair.screen.set_height(8);
    let many = ["1", "2", "3", "4", "5", "6", "7", "8"];
    // Nothing shows a cursor here.
    pair.paint(&many, &["call", "", "", "", "asks", "keys", "status"], None);
    pair.screen.hold();
    pair.paint(&["done"], &["asks", "keys", "status"], None);
    assert_eq!(pair.shown(), ["8", "done", "", "", "", "asks", "keys", "status"]);
    pair.screen.hold();
    pair.paint(&["more"], &["> ", "status"], Some((0, 2)));
    assert_eq!(pair.shown(), ["8", "done", "more", "", "", "", ">", "status"]);
    assert_eq!(pair.terminal.screen().cursor_position(), (6, 2));
}

#[test]
fn whatever_comes_and_goes_the_terminal_shows_what_should_stand_there() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut roll = |sides: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % sides as u64) as usize
    };
    const HEIGHT: usize = 9;
    for _ in 0..60 {
        let mut pair = Pair::new(HEIGHT as u16, 20);
        pair.screen.set_height(HEIGHT);
        let (mut past, mut bottom) = (Vec::<String>::new(), 0);
        for step in 0..60 {
            let most = if roll(8) == 0 { 14 } else { 4 };
            let finished: Vec<String> = (0..roll(most)).map(|n| format!("f{step}.{n}")).collect();
            let words = ["a", "bb", "", "漢", "same", "longer text"];
            let live: Vec<String> =
                (0..1 + roll(HEIGHT - 1)).map(|_| words[roll(words.len())].to_owned()).collect();
            let cursor = (roll(2) == 0).then(|| (roll(live.len()), roll(6)));
            if roll(2) == 0 {
                pair.screen.hold();
            }
            let done: Vec<&str> = finished.iter().map(String::as_str).collect();
            let now: Vec<&str> = live.iter().map(String::as_str).collect();
            pair.paint(&done, &now, cursor);
            past.extend(finished);
            let mut all = past.clone();
            all.extend(std::iter::repeat_n(String::new(), pair.screen.pad));
            all.extend(live);
            bottom = bottom.max(all.len());
            all.resize(bottom, String::new());
            let mut expected = all.split_off(bottom.saturating_sub(HEIGHT));
            while expected.last().is_some_and(String::is_empty) {
                expected.pop();
            }
            assert_eq!(pair.shown(), expected, "step {step}");
        }
    }
}
