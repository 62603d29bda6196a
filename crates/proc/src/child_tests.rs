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

#[tokio::test]
async fn an_open_input_is_read_until_it_is_dropped() {
    use tokio::io::AsyncWriteExt;
    let mut child =
        shell("read -r first; echo \"got $first\"; wc -c").open_input().spawn().unwrap();
    let mut input = child.input().unwrap();
    input.write_all(b"one\ntwo\n").await.unwrap();
    drop(input);
    assert_eq!(
        output_of(child).await.0.split_whitespace().collect::<Vec<_>>(),
        ["got", "one", "4"]
    );
}

/// Reads until `wanted` has come: a terminal's output has no end while somebody holds it.
async fn read_until(screen: &mut tokio::net::unix::pipe::Receiver, wanted: &str) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    while !String::from_utf8_lossy(&seen).contains(wanted) {
        let count = screen.read(&mut buffer).await.unwrap_or(0);
        assert!(count > 0, "{:?} without {wanted:?}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[tokio::test]
async fn a_terminal_is_the_childs_own_with_a_size_and_an_end() {
    use tokio::io::AsyncWriteExt;
    let script = "tty && stty size; read -r word </dev/tty; echo \"<$word>\"";
    let size = super::TerminalSize { columns: 101, rows: 33 };
    let mut child = shell(script).terminal(size).spawn().unwrap();
    let (mut keyboard, mut screen) = (child.input().unwrap(), child.output().unwrap());
    let text = read_until(&mut screen, "33 101").await;
    assert!(text.starts_with("/dev/"), "{text}");
    keyboard.write_all(b"hello\r").await.unwrap();
    read_until(&mut screen, "<hello>").await;
    assert_eq!(child.wait().await, Ended::Exit(0));
    // Its end: an error or nothing, never a wait.
    let mut rest = Vec::new();
    screen.read_to_end(&mut rest).await.ok();
}

#[tokio::test]
async fn the_interrupt_key_reaches_what_runs_in_the_terminal() {
    use tokio::io::AsyncWriteExt;
    let mut child =
        shell("trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done")
            .terminal(super::TerminalSize::default())
            .spawn()
            .unwrap();
    let (mut keyboard, mut screen) = (child.input().unwrap(), child.output().unwrap());
    read_until(&mut screen, "ready").await;
    keyboard.write_all(b"\x03").await.unwrap();
    read_until(&mut screen, "caught").await;
    assert_eq!(child.wait().await, Ended::Exit(9));
}

#[tokio::test]
async fn groups_that_a_child_makes_in_its_session_end_with_it() {
    // Job control gives each background command a group of its own.
    let mut child = Spec::new("/bin/bash", std::env::temp_dir())
        .arg("-c")
        .arg("set -m; sleep 4321.1 & echo $!; wait")
        .spawn()
        .unwrap();
    let mut output = child.output().unwrap();
    let text = read_until(&mut output, "\n").await;
    let pid: i32 = text.trim().parse().unwrap();
    child.kill().await;
    // The pipe ends when the last holder is gone.
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).await.unwrap();
    assert!(!crate::descendants().contains(&pid));
}
