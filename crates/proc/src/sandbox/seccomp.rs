//! A filter of system calls, as the kernel takes it: for what rules on files do not cover.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{FromRawFd, OwnedFd};

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW,
    SECCOMP_RET_ERRNO, sock_filter,
};

/// Calls that change the machine, other programs' view of it, or what holds the fence.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // It opens files without a path that a rule could be about.
    libc::SYS_open_by_handle_at,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_fanotify_init,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Calls that hide others from the filter; programs do without them when they do not exist. The
/// flags of `clone3` lie in memory, where no filter can look.
const ABSENT: &[libc::c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_clone3,
];

/// Memory, queues and locks that all programs of a user share, by numbers that no rule on files is about.
const SHARED: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// How a process is scheduled; the first argument says which, 0 being oneself.
const SCHEDULING: &[libc::c_long] = &[
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
];

/// Likewise; the first argument says of what kind the second is, and the last kind is all of a user.
const PRIORITIES: &[(libc::c_long, u32)] = &[(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// Calls that set a mode, and where it stands among their arguments.
const MODES: &[(libc::c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];
const FCHMODAT2: libc::c_long = 452;
/// Whoever runs it is somebody else.
const SET_ID: u32 = 0o6000;

#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 0xC000_00B7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u32 = 0;

/// `struct seccomp_data`: the call's number, the machine, and six arguments of eight bytes.
const AT_NUMBER: u32 = 0;
const AT_MACHINE: u32 = 4;
const AT_ARGUMENTS: u32 = 16;

/// On x86-64 a second set of numbers begins here.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

#[derive(Debug, Clone)]
pub(super) struct Program(Vec<sock_filter>);

pub(super) fn is_known_machine() -> bool {
    MACHINE != 0
}

/// Inside namespaces: the network and what can be seen are closed already.
pub(super) fn for_bubblewrap() -> Program {
    program(Code::default(), &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6])
}

/// Beside rules on files: sockets of other programs cannot be told from a child's own, so there are
/// none of that kind.
pub(super) fn for_landlock(network: bool) -> Program {
    program(without_others(), if network { &[libc::AF_INET, libc::AF_INET6] } else { &[] })
}

/// What namespaces would keep apart: other processes and what programs share. And modes of files outside,
/// which rules on files do not know.
fn without_others() -> Code {
    let mut code = Code::default();
    for call in SHARED {
        code.when(number(*call), |code| code.refuse(libc::ENOSYS));
    }
    code.when(number(libc::SYS_prlimit64), |code| {
        code.load(AT_ARGUMENTS);
        code.when(0, Code::allow);
        // Of another process: looking is allowed, a new limit is not.
        for half in [16, 20] {
            code.load(AT_ARGUMENTS + half);
            code.unless(0, |code| code.refuse(libc::EPERM));
        }
        code.allow();
    });
    for call in SCHEDULING {
        code.when(number(*call), |code| {
            code.load(AT_ARGUMENTS);
            code.when(0, Code::allow);
            code.refuse(libc::EPERM);
        });
    }
    for (call, all_of_user) in PRIORITIES {
        code.when(number(*call), |code| {
            code.load(AT_ARGUMENTS);
            code.when(*all_of_user, |code| code.refuse(libc::EPERM));
            code.load(AT_ARGUMENTS + 8);
            code.when(0, Code::allow);
            code.refuse(libc::EPERM);
        });
    }
    for (call, at) in MODES {
        code.when(number(*call), |code| {
            code.load(AT_ARGUMENTS + 8 * at);
            code.jump(BPF_JSET, SET_ID, |code| code.refuse(libc::EPERM));
            code.allow();
        });
    }
    code
}

/// `first` is asked before the rest, with the call's number loaded.
fn program(mut first: Code, families: &[i32]) -> Program {
    let mut code = Code::default();
    code.load(AT_MACHINE);
    code.unless(MACHINE, |code| code.refuse(libc::EPERM));
    code.load(AT_NUMBER);
    #[cfg(target_arch = "x86_64")]
    code.jump(BPF_JGE, X32, |code| code.refuse(libc::EPERM));
    code.0.append(&mut first.0);
    for call in REFUSED {
        code.when(number(*call), |code| code.refuse(libc::EPERM));
    }
    for call in ABSENT {
        code.when(number(*call), |code| code.refuse(libc::ENOSYS));
    }
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        code.when(number(call), |code| {
            code.load(AT_ARGUMENTS);
            code.jump(BPF_JSET, libc::CLONE_NEWUSER.cast_unsigned(), |code| {
                code.refuse(libc::EPERM)
            });
            code.allow();
        });
    }
    // Typing into a terminal that is shared with somebody outside.
    code.when(number(libc::SYS_ioctl), |code| {
        code.load(AT_ARGUMENTS + 8);
        for request in [TIOCSTI, TIOCLINUX] {
            code.when(request, |code| code.refuse(libc::EPERM));
        }
        code.allow();
    });
    code.when(number(libc::SYS_socket), |code| {
        code.load(AT_ARGUMENTS);
        for family in families {
            code.when(family.cast_unsigned(), Code::allow);
        }
        // Which addresses this machine has is asked here; changing them takes more than a socket.
        code.when(libc::AF_NETLINK.cast_unsigned(), |code| {
            code.load(AT_ARGUMENTS + 16);
            code.when(libc::NETLINK_ROUTE.cast_unsigned(), Code::allow);
            code.refuse(libc::EACCES);
        });
        for family in [libc::AF_INET, libc::AF_INET6] {
            // What a machine without network says.
            code.when(family.cast_unsigned(), |code| code.refuse(libc::ENETUNREACH));
        }
        code.refuse(libc::EACCES);
    });
    code.allow();
    Program(code.0)
}

const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

#[derive(Default)]
struct Code(Vec<sock_filter>);

impl Code {
    fn push(&mut self, code: u32, value: u32) {
        self.step(code, value, (0, 0));
    }

    fn step(&mut self, code: u32, k: u32, (jt, jf): (u8, u8)) {
        // Every code is a small number.
        let code = u16::try_from(code).unwrap_or_default();
        self.0.push(sock_filter { code, jt, jf, k });
    }

    fn load(&mut self, at: u32) {
        self.push(BPF_LD | BPF_W | BPF_ABS, at);
    }

    fn allow(&mut self) {
        self.push(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }

    fn refuse(&mut self, error: i32) {
        self.push(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error.cast_unsigned());
    }

    /// `inner` where the loaded value compares as asked, and on behind it where not. `inner` must not
    /// come to its end with another value loaded.
    fn jump(&mut self, comparison: u32, value: u32, inner: impl FnOnce(&mut Self)) {
        let mut block = Self::default();
        inner(&mut block);
        let over = u8::try_from(block.0.len()).unwrap_or(u8::MAX);
        self.step(BPF_JMP | comparison | BPF_K, value, (0, over));
        self.0.append(&mut block.0);
    }

    fn when(&mut self, value: u32, inner: impl FnOnce(&mut Self)) {
        self.jump(BPF_JEQ, value, inner);
    }

    fn unless(&mut self, value: u32, inner: impl FnOnce(&mut Self)) {
        let mut block = Self::default();
        inner(&mut block);
        let over = u8::try_from(block.0.len()).unwrap_or(u8::MAX);
        self.step(BPF_JMP | BPF_JEQ | BPF_K, value, (over, 0));
        self.0.append(&mut block.0);
    }
}

impl Program {
    /// For this process and all that it starts.
    pub(super) fn load(&self) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: u16::try_from(self.0.len()).unwrap_or(u16::MAX),
            filter: self.0.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel copies the program, which lives through the call.
        let done = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// In memory, for a program that loads it itself.
    pub(super) fn into_file(self) -> io::Result<OwnedFd> {
        // SAFETY: takes a name and flags, gives a descriptor or -1.
        let file = unsafe { libc::memfd_create(c"fence".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just made and belongs to nobody else.
        let mut file = unsafe { File::from_raw_fd(file) };
        let mut bytes = Vec::with_capacity(self.0.len() * 8);
        for step in &self.0 {
            bytes.extend(step.code.to_ne_bytes());
            bytes.extend([step.jt, step.jf]);
            bytes.extend(step.k.to_ne_bytes());
        }
        file.write_all(&bytes)?;
        file.rewind()?;
        Ok(file.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would do, as far as this filter goes.
    fn judge(program: &Program, call: libc::c_long, arguments: [u64; 3]) -> u32 {
        let load = |at: u32| match at {
            AT_NUMBER => number(call),
            AT_MACHINE => MACHINE,
            at => {
                let argument = arguments[((at - AT_ARGUMENTS) / 8) as usize];
                let half = argument >> (8 * (at % 8));
                u32::try_from(half & 0xFFFF_FFFF).unwrap()
            }
        };
        let (mut at, mut value) = (0, 0);
        loop {
            let step = program.0[at];
            at += 1;
            let code = u32::from(step.code);
            if code == BPF_LD | BPF_W | BPF_ABS {
                value = load(step.k);
                continue;
            }
            if code == BPF_RET | BPF_K {
                return step.k;
            }
            let holds = match code & 0xF0 {
                BPF_JEQ => value == step.k,
                BPF_JGE => value >= step.k,
                BPF_JSET => value & step.k != 0,
                other => panic!("{other:x}"),
            };
            at += usize::from(if holds { step.jt } else { step.jf });
        }
    }

    #[test]
    fn a_filter_refuses_what_it_names_and_nothing_else() {
        let refused = |error: i32| SECCOMP_RET_ERRNO | error.cast_unsigned();
        let family = |family: i32| [u64::from(family.cast_unsigned()), 1, 0];
        let user = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
        let closed = for_landlock(false);
        let open = for_landlock(true);
        let inside = for_bubblewrap();
        for program in [&closed, &open, &inside] {
            for call in REFUSED {
                assert_eq!(judge(program, *call, [0; 3]), refused(libc::EPERM), "{call}");
            }
            for call in ABSENT {
                assert_eq!(judge(program, *call, [0; 3]), refused(libc::ENOSYS), "{call}");
            }
            for call in [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_socketpair] {
                assert_eq!(judge(program, call, [0; 3]), SECCOMP_RET_ALLOW, "{call}");
            }
            assert_eq!(judge(program, libc::SYS_unshare, [user, 0, 0]), refused(libc::EPERM));
            assert_eq!(judge(program, libc::SYS_clone, [user | 17, 0, 0]), refused(libc::EPERM));
            assert_eq!(judge(program, libc::SYS_clone, [17, 0, 0]), SECCOMP_RET_ALLOW);
            let typing = [0, u64::from(TIOCSTI), 0];
            assert_eq!(judge(program, libc::SYS_ioctl, typing), refused(libc::EPERM));
            assert_eq!(judge(program, libc::SYS_ioctl, [0, 0x5401, 0]), SECCOMP_RET_ALLOW);
            let packets = family(libc::AF_PACKET);
            assert_eq!(judge(program, libc::SYS_socket, packets), refused(libc::EACCES));
            let routes = family(libc::AF_NETLINK);
            assert_eq!(judge(program, libc::SYS_socket, routes), SECCOMP_RET_ALLOW);
        }
        let internet = family(libc::AF_INET);
        let local = family(libc::AF_UNIX);
        assert_eq!(judge(&closed, libc::SYS_socket, internet), refused(libc::ENETUNREACH));
        assert_eq!(judge(&closed, libc::SYS_socket, local), refused(libc::EACCES));
        assert_eq!(judge(&open, libc::SYS_socket, internet), SECCOMP_RET_ALLOW);
        assert_eq!(judge(&open, libc::SYS_socket, local), refused(libc::EACCES));
        assert_eq!(judge(&inside, libc::SYS_socket, internet), SECCOMP_RET_ALLOW);
        assert_eq!(judge(&inside, libc::SYS_socket, local), SECCOMP_RET_ALLOW);
    }

    #[test]
    fn beside_rules_on_files_only_ones_own_process_is_changed_and_nobody_becomes_another() {
        let refused = SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
        let pointer = 0x7fff_0000_0000;
        let cases = [
            (libc::SYS_prlimit64, [0, 7, pointer], false),
            (libc::SYS_prlimit64, [1, 7, 0], false),
            (libc::SYS_prlimit64, [1, 7, pointer], true),
            (libc::SYS_prlimit64, [1, 7, 0x1000], true),
            (libc::SYS_sched_setaffinity, [0, 8, pointer], false),
            (libc::SYS_sched_setaffinity, [1, 8, pointer], true),
            (libc::SYS_sched_setscheduler, [1, 0, pointer], true),
            (libc::SYS_setpriority, [0, 0, 5], false),
            (libc::SYS_setpriority, [0, 1, 5], true),
            (libc::SYS_setpriority, [2, 0, 5], true),
            (libc::SYS_ioprio_set, [1, 0, 5], false),
            (libc::SYS_ioprio_set, [1, 9, 5], true),
            (libc::SYS_ioprio_set, [3, 0, 5], true),
            (libc::SYS_fchmod, [3, 0o755, 0], false),
            (libc::SYS_fchmod, [3, 0o4755, 0], true),
            (libc::SYS_fchmodat, [3, pointer, 0o2755], true),
            (libc::SYS_fchmodat, [3, pointer, 0o1777], false),
            (FCHMODAT2, [3, pointer, 0o6755], true),
        ];
        for (call, arguments, stopped) in cases {
            let judged = judge(&for_landlock(false), call, arguments);
            assert_eq!(judged == refused, stopped, "{call} {arguments:?}");
            assert_eq!(judge(&for_bubblewrap(), call, arguments), SECCOMP_RET_ALLOW, "{call}");
        }
        let absent = SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
        for call in SHARED {
            assert_eq!(judge(&for_landlock(true), *call, [0; 3]), absent, "{call}");
        }
    }
}
