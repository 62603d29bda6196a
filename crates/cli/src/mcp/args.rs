//! What users type after `tw mcp`.

use std::net::SocketAddr;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct Mcp {
    #[command(subcommand)]
    pub action: McpAction,
}

#[derive(Debug, Subcommand)]
pub enum McpAction {
    /// Add a server to your configuration
    #[command(after_help = ADD_HELP)]
    Add(Add),
    /// Start all servers and say how it stands with each
    List {
        /// One JSON array instead of text
        #[arg(long)]
        json: bool,
    },
    /// Take a server out of the file that defines it
    Remove { name: String },
    /// Sign in at a server
    Auth {
        name: String,
        /// Print the address and do not open a browser
        #[arg(long)]
        no_browser: bool,
    },
    /// Forget what signing in at a server gave
    Logout { name: String },
    /// Connect to one server and say everything about it
    Debug { name: String },
    /// Call a tool of a server through the whole pipeline
    #[command(after_help = "Exit status: 0 done, 1 tool error, 3 denied")]
    Call(Call),
    /// Print a prompt of a server, filled in
    Prompt {
        /// SERVER:PROMPT
        name: String,
        /// Its arguments: words in order, or NAME=VALUE
        arguments: Vec<String>,
    },
    /// Offer Toolwright's own tools to other programs
    Serve(Serve),
}

const ADD_HELP: &str = "\
Examples:
  tw mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  tw mcp add tracker --url https://example.com/mcp --header \"X-Team=blue\"";

#[derive(Debug, Args)]
pub struct Add {
    pub name: String,
    /// The address of a remote server
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    pub url: Option<String>,
    /// A header for a remote server; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "url")]
    pub headers: Vec<String>,
    /// A variable for a local server; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url")]
    pub environment: Vec<String>,
    /// Into this folder's toolwright.json instead of your own
    #[arg(long)]
    pub project: bool,
    /// The command of a local server, after --
    #[arg(last = true)]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Call {
    pub server: String,
    /// The tool, as the server calls it
    pub tool: String,
    /// Its arguments as a JSON object, or - to read them from standard input
    #[arg(default_value = "{}")]
    pub arguments: String,
    /// Allow what would be asked
    #[arg(long, visible_alias = "yolo")]
    pub auto: bool,
    /// The whole outcome as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Over HTTP at this address of this machine (/mcp) instead of standard input and output
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<SocketAddr>,
    /// The tools to offer, with commas; "all" for every one. Without it: those that only read, and agent
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub tools: Option<Vec<String>>,
    /// Allow what would be asked; what is denied stays denied
    #[arg(long, visible_alias = "yolo")]
    pub auto: bool,
}
