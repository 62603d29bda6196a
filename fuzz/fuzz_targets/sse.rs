#![no_main]
//! Any split of any bytes gives the same events.

use libfuzzer_sys::fuzz_target;
use toolwright_llm::SseReader;

fn read(data: &[u8], size: usize) -> Vec<(String, String)> {
    let mut reader = SseReader::default();
    let mut found = Vec::new();
    let mut failed = false;
    for piece in data.chunks(size) {
        failed |= reader
            .push(piece, &mut |event| found.push((event.name.to_owned(), event.data.to_owned())))
            .is_err();
    }
    assert!(!failed, "no input of this size reaches the cap");
    reader.finish(&mut |event| found.push((event.name.to_owned(), event.data.to_owned())));
    found
}

fuzz_target!(|data: &[u8]| {
    let whole = read(data, data.len().max(1));
    assert_eq!(read(data, 1), whole);
    assert_eq!(read(data, 3), whole);
});
