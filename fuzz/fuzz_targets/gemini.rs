#![no_main]
//! Any body decodes without a panic, to the same summary whatever the split.

use libfuzzer_sys::fuzz_target;
use toolwright_llm::describe;
use toolwright_llm::wire::Wire;

fuzz_target!(|data: &[u8]| {
    let whole = describe(Wire::Gemini, 200, data, data.len().max(1));
    assert_eq!(describe(Wire::Gemini, 200, data, 1), whole);
    assert_eq!(describe(Wire::Gemini, 200, data, 7), whole);
});
