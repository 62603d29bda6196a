//! A server for the tests of this crate.

fn main() {
    toolwright_testkit::mcp_server::main();
}
