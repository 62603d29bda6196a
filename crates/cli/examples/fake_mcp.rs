//! An MCP server for the tests of the command.

fn main() {
    toolwright_testkit::mcp_server::main();
}
