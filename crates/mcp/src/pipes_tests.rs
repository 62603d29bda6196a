use rmcp::model::JsonRpcMessage;

use super::*;

async fn heard(bytes: Vec<u8>) -> (Vec<ServerJsonRpcMessage>, Vec<String>) {
    let tail = Arc::new(Tail::default());
    let mut pipes = Pipes::new(std::io::Cursor::new(bytes), tokio::io::sink(), Arc::clone(&tail));
    let mut messages = Vec::new();
    while let Some(message) = pipes.receive().await {
        messages.push(message);
    }
    (messages, tail.lines())
}

#[tokio::test]
async fn noise_between_messages_is_kept_for_people_and_does_not_end_anything() {
    let text = "starting…\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\n{\"half\":\n[1,2]\n\
                {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\nno end";
    let (messages, noise) = heard(text.into()).await;
    assert_eq!(messages.len(), 2);
    assert_eq!(noise.len(), 3, "{noise:?}");
    assert!(noise[0].contains("starting"));
}

#[tokio::test]
async fn a_message_that_is_too_large_is_answered_in_the_servers_place() {
    let large = "x".repeat(MESSAGE_CAP_BYTES);
    for message in [
        format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"text\":\"{large}\"}}}}\n"),
        format!(
            "{{\"result\":{{\"text\":\"\\\"id\\\":8 {large}\"}},\"jsonrpc\":\"2.0\",\"id\":7}}\n"
        ),
        format!("{{\"result\":{{\"id\": 3, \"text\":\"{large}\"}}, \"id\": 7 }}\n"),
    ] {
        let (messages, _) = heard(message.into_bytes()).await;
        let [JsonRpcMessage::Error(error)] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!(error.id, Some(RequestId::Number(7)));
        assert!(error.error.message.contains("bytes"), "{error:?}");
    }
}

#[tokio::test]
async fn a_large_message_without_an_id_is_passed_over() {
    let large = "x".repeat(MESSAGE_CAP_BYTES);
    let text = format!(
        "{{\"method\":\"x\",\"params\":\"{large}\"}}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}\n"
    );
    let (messages, noise) = heard(text.into_bytes()).await;
    assert_eq!(messages.len(), 1);
    assert!(noise[0].contains("not taken"), "{noise:?}");
}
