//! Inside a network of its own a child can reach no proxy outside. A helper program, started before
//! the command, listens there and carries what it hears to the proxy's socket.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The word after the helper's name that starts it. Programs that set themselves as the helper look
/// for it before they do anything else and call [`run_bridge`].
pub const BRIDGE_COMMAND: &str = "__sandbox";

/// Where programs look for their proxy.
const VARIABLES: &[&str] =
    &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

static HELPER: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that calls [`run_bridge`] for [`BRIDGE_COMMAND`]. Without one, named hosts
/// cannot be reached and the network is off instead.
pub fn set_helper(program: impl Into<PathBuf>) {
    // The first word counts.
    HELPER.set(program.into()).ok();
}

pub(super) fn has_helper() -> bool {
    HELPER.get().is_some()
}

type Start = (Vec<OsString>, Vec<(String, String)>);

/// What stands before the command, and what the command finds in its environment.
pub(super) fn command(socket: &Path) -> io::Result<Start> {
    let helper = HELPER.get().ok_or_else(|| {
        io::Error::new(io::ErrorKind::Unsupported, "no helper program for named hosts was set")
    })?;
    let words = vec![helper.into(), BRIDGE_COMMAND.into(), socket.into(), "--".into()];
    Ok((words, vec![("NO_PROXY".to_owned(), "localhost,127.0.0.1,::1".to_owned())]))
}

/// The helper's whole work: `arguments` are what follows [`BRIDGE_COMMAND`]. Comes back only with an
/// error; on success this process has become the command.
#[cfg(target_os = "linux")]
pub fn run_bridge(arguments: impl Iterator<Item = OsString>) -> io::Error {
    match bridge(arguments.collect()) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

#[cfg(not(target_os = "linux"))]
pub fn run_bridge(_: impl Iterator<Item = OsString>) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "there is no such network here")
}

#[cfg(target_os = "linux")]
fn bridge(arguments: Vec<OsString>) -> io::Result<std::convert::Infallible> {
    use std::net::TcpListener;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    let usage = || io::Error::new(io::ErrorKind::InvalidInput, "SOCKET -- COMMAND is wanted");
    let [socket, line, program, rest @ ..] = arguments.as_slice() else { return Err(usage()) };
    if line != OsStr::new("--") {
        return Err(usage());
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    let parent = std::process::id().cast_signed();
    // SAFETY: this process has one thread, so its copy may do whatever it likes.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            crate::sys::end_with(parent);
            crate::sys::let_go_of_streams();
            carry(&listener, Path::new(socket));
            std::process::exit(0)
        }
        _ => {
            let proxies = VARIABLES.iter().map(|name| (name, &address));
            Err(Command::new(program).args(rest).envs(proxies).exec())
        }
    }
}

#[cfg(target_os = "linux")]
fn carry(listener: &std::net::TcpListener, socket: &Path) {
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    for client in listener.incoming().flatten() {
        let Ok(proxy) = UnixStream::connect(socket) else { continue };
        let (Ok(mut from_client), Ok(mut to_proxy)) = (client.try_clone(), proxy.try_clone())
        else {
            continue;
        };
        let (mut from_proxy, mut to_client) = (proxy, client);
        std::thread::spawn(move || {
            io::copy(&mut from_client, &mut to_proxy).ok();
            to_proxy.shutdown(Shutdown::Write).ok();
        });
        std::thread::spawn(move || {
            io::copy(&mut from_proxy, &mut to_client).ok();
            to_client.shutdown(Shutdown::Write).ok();
        });
    }
}
