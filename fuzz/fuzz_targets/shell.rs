#![no_main]
//! No line makes the analyser panic, and what it lets pass without a question it lets pass for what it
//! says: printed again from what was read of it, with every word in quotes, the line is judged the same and
//! prints the same; and a command that stands behind it is never swallowed. Where both readers can read a
//! line as a whole, they find the same in it.

use libfuzzer_sys::fuzz_target;
use toolwright_permission::{analyse, readings, reprint};

fn is_harmless(line: &str) -> bool {
    let analysis = analyse(line);
    !analysis.tainted
        && analysis.unknown.is_empty()
        && analysis.floor.is_none()
        && !analysis.commands.is_empty()
        && analysis.commands.iter().all(|command| command.harmless || command.only_moves)
}

fuzz_target!(|data: &[u8]| {
    let Ok(line) = std::str::from_utf8(data) else { return };
    if let Some((direct, grammar)) = readings(line) {
        assert_eq!(direct, grammar, "{line:?}");
    }
    if !is_harmless(line) {
        return;
    }
    let printed = reprint(line).expect("what is harmless is read as a whole");
    assert!(is_harmless(&printed), "{line:?} is harmless, {printed:?} is not");
    assert_eq!(reprint(&printed).as_ref(), Some(&printed), "of {line:?}");
    for more in ["\nrm x", " ; rm x", " && rm x"] {
        let longer = format!("{line}{more}");
        let comment = line.rsplit('\n').next().is_some_and(|last| last.contains('#'));
        assert!(comment && more != "\nrm x" || !is_harmless(&longer), "{longer:?}");
    }
});
