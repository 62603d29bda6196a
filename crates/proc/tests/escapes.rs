//! Ways out of a sandbox, each tried bare (where it must work, or the test proves nothing) and behind
//! every layer that this machine has (where it must not).
//!
//! The attacker is this test's own program, started again: no tool of the machine is needed.

#![cfg(target_os = "linux")]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

use std::fs;
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use toolwright_proc::sandbox::{Fence, Layer, Network, Sandbox, available};
use toolwright_proc::{Ended, Spec};

/// What the attacker is told to try.
const TRY: &str = "ESCAPE_TRY";
/// The folder that holds `work` (writable) and everything that is out of bounds.
const ROOT: &str = "ESCAPE_ROOT";
/// A number that the attempt needs: a port, a process, a descriptor.
const NUMBER: &str = "ESCAPE_NUMBER";

/// Not a test of its own: what runs inside.
#[test]
fn attacker() {
    let Ok(name) = std::env::var(TRY) else { return };
    let root = PathBuf::from(std::env::var(ROOT).unwrap());
    let number = std::env::var(NUMBER).unwrap_or_default().parse().unwrap_or(0);
    match attempt(&name, &root, number) {
        Ok(()) => println!("ESCAPED"),
        Err(error) => println!("STOPPED {error}"),
    }
}

fn checked(value: i64) -> io::Result<()> {
    if value < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn attempt(name: &str, root: &Path, number: i32) -> io::Result<()> {
    let (work, outside) = (root.join("work"), root.join("outside"));
    let victim = outside.join("file");
    match name {
        "nothing" => Ok(()),
        "write" => fs::write(&victim, "x"),
        "create" => fs::write(outside.join("new"), "x"),
        "remove" => fs::remove_file(&victim),
        "truncate" => {
            let path = std::ffi::CString::new(victim.to_str().unwrap()).unwrap();
            checked(unsafe { libc::truncate(path.as_ptr(), 0) }.into())
        }
        "symlink" => {
            symlink(&victim, work.join("link"))?;
            fs::write(work.join("link"), "x")
        }
        "hard link" => {
            fs::hard_link(&victim, work.join("hard"))?;
            fs::write(work.join("hard"), "x")
        }
        "rename" => fs::rename(&victim, work.join("stolen")),
        "proc cwd" => fs::write("/proc/self/cwd/../outside/file", "x"),
        "proc root" => {
            let path = format!("/proc/self/root{}", victim.display());
            fs::write(path, "x")
        }
        "other's root" => fs::write(format!("/proc/{number}/root{}", victim.display()), "x"),
        "bind mount" => {
            fs::create_dir_all(work.join("mount"))?;
            let [from, to] = [&outside, &work.join("mount")]
                .map(|path| std::ffi::CString::new(path.to_str().unwrap()).unwrap());
            // As somebody without powers would: with a namespace of one's own first.
            unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) };
            let none = std::ptr::null();
            checked(
                unsafe {
                    libc::mount(from.as_ptr(), to.as_ptr(), none, libc::MS_BIND, none.cast())
                }
                .into(),
            )?;
            fs::write(work.join("mount/file"), "x")
        }
        "remount" => {
            let flags = libc::MS_REMOUNT | libc::MS_BIND;
            let none = std::ptr::null();
            let done = unsafe { libc::mount(none, c"/".as_ptr(), none, flags, none.cast()) };
            checked(done.into())?;
            fs::write(&victim, "x")
        }
        "descriptor" => checked(unsafe { libc::write(number, b"x".as_ptr().cast(), 1) } as i64),
        "device" => {
            let path = std::ffi::CString::new(work.join("disk").to_str().unwrap()).unwrap();
            // The memory device: harmless to make.
            checked(
                unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o600, libc::makedev(1, 5)) }
                    .into(),
            )
        }
        "signal" => checked(unsafe { libc::kill(number, 0) }.into()),
        "kill" => checked(unsafe { libc::kill(number, libc::SIGKILL) }.into()),
        "trace" => {
            let none: *mut libc::c_void = std::ptr::null_mut();
            checked(unsafe { libc::ptrace(libc::PTRACE_ATTACH, number, none, none) })
        }
        "environment" => {
            let environment = fs::read(format!("/proc/{number}/environ"))?;
            let found = environment.windows(11).any(|window| window == b"ESCAPE_BAIT");
            if found { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        }
        "tcp" => TcpStream::connect(("127.0.0.1", number as u16)).map(drop),
        "udp" => {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.send_to(b"x", ("127.0.0.1", number as u16)).map(drop)
        }
        "docker" => UnixStream::connect(outside.join("docker.sock")).map(drop),
        "ssh-agent" => UnixStream::connect(root.join("temp/ssh-agent")).map(drop),
        "abstract socket" => {
            let address = SocketAddr::from_abstract_name(format!("tw-escape-{number}"))?;
            UnixStream::connect_addr(&address).map(drop)
        }
        "packets" => checked(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) }.into()),
        "key folder" => fs::read(root.join("home/.ssh/id")).map(drop),
        "key file" => fs::read(root.join("home/.netrc")).map(drop),
        "key link" => fs::read(root.join("home/keys/id")).map(drop),
        "start-up file" => fs::write(root.join("home/.bashrc"), "x"),
        "cron" => fs::write("/etc/cron.d/toolwright-escape", "# x\n"),
        "hook" => fs::write(work.join(".git/hooks/pre-commit"), "x"),
        "git config" => fs::write(work.join(".git/config"), "x"),
        "another git" => {
            fs::rename(work.join(".git"), work.join("old"))?;
            fs::create_dir_all(work.join(".git/hooks"))?;
            fs::write(work.join(".git/hooks/pre-commit"), "x")?;
            fs::write(work.join(".git/config"), "x")
        }
        "new settings" => fs::write(work.join("toolwright.json"), "x"),
        other => panic!("{other}"),
    }
}

struct Place {
    folder: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for name in ["work/.git/hooks", "outside", "home/.ssh", "temp"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["outside/file", "home/.ssh/id", "home/.netrc", "home/.bashrc"] {
            fs::write(root.join(name), "untouched").unwrap();
        }
        symlink(root.join("home/.ssh"), root.join("home/keys")).unwrap();
        fs::write(root.join("work/.git/config"), "untouched").unwrap();
        fs::write(root.join("work/.git/hooks/pre-commit"), "untouched").unwrap();
        Self { folder, root }
    }

    fn fence(&self) -> Fence {
        let work = self.root.join("work");
        Fence {
            writable: vec![work.clone(), self.root.join("temp")],
            read_only: [".git/hooks", ".git/config", "toolwright.json", ".toolwright"]
                .map(|name| work.join(name))
                .into(),
            unreadable: ["home/.ssh", "home/.netrc"].map(|name| self.root.join(name)).into(),
            network: Network::Off,
        }
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap_or_default()
    }

    /// What the attacker says. A socket of a test beside this one may go away between being listed and being
    /// hidden: then nothing was started, and it is tried again.
    async fn attack(&self, name: &str, number: i32, sandbox: Option<Sandbox>) -> String {
        for _ in 0..5 {
            let (ended, text) = self.attack_once(name, number, sandbox.clone()).await;
            if ended == Ended::Exit(1) && text.starts_with("bwrap: Can't mkdir parents") {
                continue;
            }
            assert_eq!(ended, Ended::Exit(0), "{name}: {text}");
            assert!(text.contains("ESCAPED") != text.contains("STOPPED"), "{name}: {text}");
            return text;
        }
        panic!("{name} could not be started");
    }

    async fn attack_once(
        &self,
        name: &str,
        number: i32,
        sandbox: Option<Sandbox>,
    ) -> (Ended, String) {
        let mut spec = Spec::new(std::env::current_exe().unwrap(), self.root.join("work"))
            .arg("attacker")
            .arg("--exact")
            .arg("--nocapture")
            .env(TRY, name)
            .env(ROOT, self.root.to_str().unwrap())
            .env(NUMBER, &number.to_string());
        if let Some(sandbox) = sandbox {
            spec = spec.fenced(Arc::new(sandbox));
        }
        let mut child = spec.spawn().unwrap();
        let mut text = String::new();
        child.output().unwrap().read_to_string(&mut text).await.unwrap();
        (child.wait().await, text)
    }
}

fn sandboxes(fence: &Fence) -> Vec<Sandbox> {
    let layers = available();
    println!("layers tested here: {:?}", layers.iter().map(Layer::name).collect::<Vec<_>>());
    if layers.is_empty() {
        println!("none: nothing is proved on this machine");
    }
    layers.iter().map(|layer| Sandbox::new(layer.clone(), fence.clone())).collect()
}

/// Bare it must work; behind every layer it must be stopped, and `intact` must hold.
async fn stopped_everywhere(name: &str, number: i32, intact: impl Fn(&Place)) {
    let place = Place::new();
    let bare = place.attack(name, number, None).await;
    assert!(bare.contains("ESCAPED"), "{name} does not even work bare: {bare}");
    let layers = sandboxes(&Place::new().fence()).len();
    for index in 0..layers {
        let place = Place::new();
        let sandbox = sandboxes(&place.fence()).swap_remove(index);
        let layer = sandbox.layer.name();
        let said = place.attack(name, number, Some(sandbox)).await;
        assert!(said.contains("STOPPED"), "{name} behind {layer}: {said}");
        intact(&place);
        drop(place.folder);
    }
}

fn outside_intact(place: &Place) {
    assert_eq!(place.text("outside/file"), "untouched");
    assert!(!place.root.join("outside/new").exists());
}

#[tokio::test]
async fn work_inside_the_fence_goes_on() {
    let place = Place::new();
    for sandbox in sandboxes(&place.fence()) {
        let spec = Spec::new("/bin/sh", place.root.join("work")).arg("-c").arg(
            "echo a > a && mkdir -p d/e && mv a d/e/b && ln -s d l && cat l/e/b && rm -r d l && \
             echo t > ../temp/t && cat /etc/passwd > /dev/null && ls ~ > /dev/null && \
             (echo x > /dev/null) && exit 7",
        );
        let mut child = spec.fenced(Arc::new(sandbox.clone())).spawn().unwrap();
        let mut text = String::new();
        child.output().unwrap().read_to_string(&mut text).await.unwrap();
        assert_eq!((child.wait().await, text.as_str()), (Ended::Exit(7), "a\n"), "{sandbox:?}");
        assert!(child.put_back().is_empty());
        assert!(!child.left_something());
    }
}

#[tokio::test]
async fn nothing_outside_is_written() {
    for name in ["write", "create", "remove", "truncate", "rename"] {
        stopped_everywhere(name, 0, outside_intact).await;
    }
}

#[tokio::test]
async fn no_link_leads_out() {
    for name in ["symlink", "hard link"] {
        stopped_everywhere(name, 0, outside_intact).await;
    }
}

#[tokio::test]
async fn no_way_leads_out_through_proc() {
    for name in ["proc cwd", "proc root"] {
        stopped_everywhere(name, 0, outside_intact).await;
    }
    let own = std::process::id().cast_signed();
    stopped_everywhere("other's root", own, outside_intact).await;
}

#[tokio::test]
async fn nothing_is_mounted_and_no_device_is_made() {
    let place = Place::new();
    // Whether they work bare depends on who runs this.
    for name in ["bind mount", "remount", "device"] {
        for sandbox in sandboxes(&place.fence()) {
            let layer = sandbox.layer.name();
            let said = place.attack(name, 0, Some(sandbox)).await;
            assert!(said.contains("STOPPED"), "{name} behind {layer}: {said}");
            outside_intact(&place);
        }
    }
}

#[tokio::test]
async fn an_open_descriptor_is_not_passed_on() {
    for sandbox in sandboxes(&Place::new().fence()) {
        let place = Place::new();
        let file =
            fs::OpenOptions::new().append(true).open(place.root.join("outside/file")).unwrap();
        // As whoever started this program may have left it: open for all children.
        let open = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, 100) };
        assert!(open >= 100);
        let said = place.attack("descriptor", open, Some(sandbox.clone())).await;
        unsafe { libc::close(open) };
        assert!(said.contains("STOPPED"), "{}: {said}", sandbox.layer.name());
        outside_intact(&place);
    }
}

struct Victim(std::process::Child);

impl Victim {
    fn new() -> Self {
        Self(Command::new("sleep").arg("1000").env("ESCAPE_BAIT", "1").spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    for name in ["trace", "environment", "kill"] {
        let victim = Victim::new();
        let place = Place::new();
        let bare = place.attack(name, victim.pid(), None).await;
        println!("{name} bare: {bare}");
        for sandbox in sandboxes(&place.fence()) {
            let mut victim = Victim::new();
            let layer = sandbox.layer.name();
            let said = place.attack(name, victim.pid(), Some(sandbox)).await;
            assert!(said.contains("STOPPED"), "{name} behind {layer}: {said}");
            assert!(victim.0.try_wait().unwrap().is_none(), "{name} behind {layer}");
        }
    }
}

/// The program that started it, which decides what it may do. A signal that is none shows the way.
#[tokio::test]
async fn the_parent_can_be_neither_signalled_nor_traced_nor_read() {
    let own = std::process::id().cast_signed();
    stopped_everywhere("signal", own, |_| {}).await;
    let place = Place::new();
    for name in ["trace", "environment"] {
        for sandbox in sandboxes(&place.fence()) {
            let layer = sandbox.layer.name();
            let said = place.attack(name, own, Some(sandbox)).await;
            assert!(said.contains("STOPPED"), "{name} behind {layer}: {said}");
        }
    }
}

#[tokio::test]
async fn the_network_is_off() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    stopped_everywhere("tcp", tcp.local_addr().unwrap().port().into(), |_| {}).await;
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let port = udp.local_addr().unwrap().port().into();
    let place = Place::new();
    assert!(place.attack("udp", port, None).await.contains("ESCAPED"));
    let mut buffer = [0; 8];
    assert_eq!(udp.recv(&mut buffer).unwrap(), 1);
    for sandbox in sandboxes(&place.fence()) {
        // In a network of its own, sending works and reaches nobody.
        place.attack("udp", port, Some(sandbox)).await;
        assert_eq!(udp.recv(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let said = place.attack("packets", 0, Some(sandboxes(&place.fence()).remove(0))).await;
        assert!(said.contains("STOPPED"), "{said}");
    }
}

#[tokio::test]
async fn sockets_of_the_user_are_out_of_reach_with_and_without_network() {
    for network in [Network::Off, Network::On] {
        let place = Place::new();
        let _socket = UnixListener::bind(place.root.join("outside/docker.sock")).unwrap();
        let _temp = UnixListener::bind(place.root.join("temp/ssh-agent")).unwrap();
        let own = std::process::id().cast_signed() + i32::from(network == Network::On);
        let address = SocketAddr::from_abstract_name(format!("tw-escape-{own}")).unwrap();
        let _abstract = UnixListener::bind_addr(&address).unwrap();
        for name in ["docker", "ssh-agent", "abstract socket"] {
            assert!(place.attack(name, own, None).await.contains("ESCAPED"), "{name}");
            let fence = Fence { network: network.clone(), ..place.fence() };
            for sandbox in sandboxes(&fence) {
                let layer = sandbox.layer.name();
                let said = place.attack(name, own, Some(sandbox)).await;
                assert!(said.contains("STOPPED"), "{name}, {network}, behind {layer}: {said}");
            }
        }
    }
}

#[tokio::test]
async fn key_stores_are_unreadable() {
    for name in ["key folder", "key file", "key link"] {
        stopped_everywhere(name, 0, |_| {}).await;
    }
}

#[tokio::test]
async fn nothing_stays_behind_in_start_up_files_or_cron() {
    stopped_everywhere("start-up file", 0, |place| {
        assert_eq!(place.text("home/.bashrc"), "untouched");
    })
    .await;
    let place = Place::new();
    for sandbox in sandboxes(&place.fence()) {
        let said = place.attack("cron", 0, Some(sandbox)).await;
        let made = fs::remove_file("/etc/cron.d/toolwright-escape").is_ok();
        assert!(said.contains("STOPPED") && !made, "{said}");
    }
}

/// Where a layer cannot forbid it, it is undone before anybody is told that the command has ended.
#[tokio::test]
async fn hooks_and_settings_are_as_they_were() {
    for name in ["hook", "git config", "another git", "new settings"] {
        let layers = sandboxes(&Place::new().fence()).len();
        for index in 0..layers {
            let place = Place::new();
            let sandbox = sandboxes(&place.fence()).swap_remove(index);
            let layer = sandbox.layer.name();
            let said = place.attack(name, 0, Some(sandbox)).await;
            let kernel = said.contains("STOPPED");
            println!("{name} behind {layer}: {}", if kernel { "stopped" } else { "undone" });
            if layer == "bubblewrap" && name != "new settings" {
                assert!(kernel, "{name}: {said}");
            }
            assert_eq!(place.text("work/.git/config"), "untouched", "{name} behind {layer}");
            assert_eq!(place.text("work/.git/hooks/pre-commit"), "untouched", "{name}, {layer}");
            assert!(!place.root.join("work/toolwright.json").exists(), "{name} behind {layer}");
        }
    }
}

#[tokio::test]
async fn with_the_network_on_only_the_network_is_open() {
    let place = Place::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port().into();
    for sandbox in sandboxes(&Fence { network: Network::On, ..place.fence() }) {
        let said = place.attack("tcp", port, Some(sandbox.clone())).await;
        assert!(said.contains("ESCAPED"), "{}: {said}", sandbox.layer.name());
        tcp.accept().unwrap().0.read_to_end(&mut Vec::new()).unwrap();
        for name in ["write", "key folder", "packets"] {
            let said = place.attack(name, 0, Some(sandbox.clone())).await;
            assert!(said.contains("STOPPED"), "{name} behind {}: {said}", sandbox.layer.name());
        }
        outside_intact(&place);
    }
}
