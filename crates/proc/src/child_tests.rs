use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Child, Ended, Spec};

fn shell(script: &str) -> Spec {
    Spec::new("/bin/sh", std::env::temp_dir()).arg("-c").arg(script)
}

async fn all(pipe: Option<tokio::net::unix::pipe::Receiver>) -> String {
    let mut text = String::new();
    pipe.unwrap().read_to_string(&mut text).await.unwrap();
    text
}

async fn output_of(mut child: Child) -> (String, Ended) {
    let text = all(child.output()).await;
    (text, child.wait().await)
}

#[tokio::test]
async fn standard_input_is_empty_unless_bytes_are_given() {
    let (text, _) = output_of(shell("wc -c").spawn().unwrap()).await;
    assert_eq!(text.trim(), "0");
    let (text, _) = output_of(shell("cat; echo end").stdin("words ").spawn().unwrap()).await;
    assert_eq!(text, "words end\n");
}

#[tokio::test]
async fn more_than_a_pipe_holds_can_be_given_while_the_child_writes_first() {
    let bytes = vec![b'x'; 1 << 20];
    // It fills the output before it reads: whoever writes to it first would wait for ever.
    let child = shell("head -c 1000000 /dev/zero; wc -c").stdin(bytes).spawn().unwrap();
    let (text, _) = output_of(child).await;
    assert!(text.ends_with("1048576\n"));
}

#[tokio::test]
async fn a_child_that_does_not_read_its_input_ends_as_usual() {
    let child = shell("exec <&-; exit 7").stdin(vec![b'x'; 1 << 20]).spawn().unwrap();
    assert_eq!(output_of(child).await.1, Ended::Exit(7));
}

#[tokio::test]
async fn errors_come_apart_only_where_that_is_wanted() {
    let script = "echo out; echo err >&2";
    let (together, _) = output_of(shell(script).spawn().unwrap()).await;
    assert_eq!(together, "out\nerr\n");
    let mut child = shell(script).separate_errors().spawn().unwrap();
    assert_eq!(all(child.errors()).await, "err\n");
    assert_eq!(output_of(child).await.0, "out\n");
}

#[tokio::test]
async fn a_conversation_goes_back_and_forth_until_the_input_is_closed() {
    let script = "while read line; do echo \"heard $line\"; echo aside >&2; done; echo end";
    let mut child = shell(script).conversation().spawn().unwrap();
    let (mut input, mut output) = (child.input().unwrap(), child.output().unwrap());
    let mut heard = [0; 10];
    for word in ["one\n", "two\n"] {
        input.write_all(word.as_bytes()).await.unwrap();
        output.read_exact(&mut heard).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&heard), format!("heard {word}"));
    }
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "end\n");
    assert_eq!(all(child.errors()).await, "aside\naside\n");
    assert_eq!(child.wait().await, Ended::Exit(0));
}
