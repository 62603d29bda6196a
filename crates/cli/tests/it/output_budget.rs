//! How much of an output reaches the model is a setting.

use serde_json::json;
use toolwright_testkit::{Answer, ModelServer, Wire};

use crate::{folder, results};

#[test]
fn the_budget_of_an_output_can_be_set() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "seq 100"})),
        Answer::text("ok"),
    ]);
    let folder = folder()
        .user_config(r#"{"permission":"allow","tool_output":{"max_lines":20}}"#)
        .with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "count"]).expect(0);
    let result = &results(&server.last_request())[0];
    assert!(result.contains("1\n2\n") && result.contains("\n100"), "{result}");
    assert!(!result.contains("\n50\n"), "{result}");
    assert!(result.contains("whole output is in"), "{result}");
}
