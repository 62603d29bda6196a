//! A custom tool, the loop, the printed answer. Run with a key set, for example
//! `ANTHROPIC_API_KEY=… cargo run --example weather`.

use toolwright::{Agent, Deserialize, JsonSchema, ToolError, tool_fn};

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The city's name.
    city: String,
}

async fn get_weather(place: Place) -> Result<String, ToolError> {
    Ok(format!("{}: 21 °C, sunny, light wind from the west", place.city))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut agent = Agent::builder()
        .system("You answer questions about the weather.")
        .tool(tool_fn("get_weather", "The weather in a city right now.", get_weather))
        .build()
        .await?;
    println!("{}", agent.ask("Do I need an umbrella in Lisbon?").await?);
    Ok(())
}
