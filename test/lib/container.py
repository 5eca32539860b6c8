"""Runs a program as container engines do by default: with root directory, processes and network of its own, few capabilities, under
their seccomp profile. Needs root, unshare(1), setpriv(1) and libseccomp.so.2.

    unshare --mount --pid --net --ipc --uts --fork --kill-child python3 container.py [--restricted] [--service] [--add=CAPABILITY] ROOT DIR:PLACE... -- PROGRAM...

Of this machine only /usr, /etc and what DIR:PLACE says are there, read-only but for a volume's "DIR:PLACE:rw". --restricted is
what Kubernetes' strictest standard wants: another user than root, no capabilities, and none by exec either. --service: the filter
ends the program for what systemd's SystemCallFilter=@system-service does not allow of what a tracer may call.
"""

import ctypes
import errno
import os
import pathlib
import stat
import subprocess
import sys

USER = 65534
CAPABILITIES = (
    "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod audit_write setfcap"
).split()

# The calls that Docker's and containerd's default profiles allow, whatever their arguments are, on 64-bit architectures.
CALLS = """
    accept accept4 access adjtimex alarm bind brk cachestat capget capset chdir chmod chown clock_adjtime
    clock_getres clock_gettime clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3
    epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd
    eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fanotify_mark fchdir fchmod
    fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat
    fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat get_robust_list
    get_thread_area getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid
    getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname
    getsockopt gettid gettimeofday getuid getxattr getxattrat inotify_add_watch inotify_init inotify_init1
    inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit ioctl ioprio_get ioprio_set
    kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen
    listmount listxattr listxattrat llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack
    membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect
    mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd
    msync munlock munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause pidfd_open
    pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2
    prlimit64 process_mrelease pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom
    recvmmsg recvmsg remap_file_pages removexattr removexattrat rename renameat renameat2 restart_syscall
    riscv_hwprobe rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
    rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
    sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
    sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto
    set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority
    setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr setxattrat shmat shmctl shmdt
    shmget shutdown sigaltstack signalfd signalfd4 socketpair splice stat statfs statmount statx symlink symlinkat
    sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime
    timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat
    uretprobe utime utimensat utimes vfork vmsplice wait4 waitid write writev
""".split()

# And those allowed or refused by something else. (A thread's clone has none of these flags of namespaces.)
NAMESPACES = 0x7E020000
LESS, EQUAL, GREATER, MASKED = 2, 4, 6, 7  # libseccomp's comparisons
CALLS_BY_ARGUMENT = [
    *[("personality", (0, EQUAL, value, 0)) for value in (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)],
    *[("socket", (0, *how, 0)) for how in ((LESS, 38), (EQUAL, 39), (GREATER, 40))],
    ("clone", (0, MASKED, NAMESPACES, 0)),
]
CALLS_BY_SYSTEM = ["ptrace", "process_vm_readv", "process_vm_writev", "arch_prctl", "modify_ldt", "chroot"]  # since Linux 4.8
CALLS_BY_CAPABILITY = {
    "sys_ptrace": ["kcmp", "pidfd_getfd", "process_madvise"],
    "perfmon": ["perf_event_open"],
}
NOT_OF_SERVICES = ["mincore", "perf_event_open", "pidfd_getfd"]  # systemd 252
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
WITHOUT_NO_NEW_PRIVILEGES = 3  # SCMP_FLTATR_CTL_NNP, which is set


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("how", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def confine(added, deadly):
    """The profile, from here on, for whatever is executed. Calls that this machine's libseccomp does not know are refused."""
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    profile = ctypes.c_void_p(library.seccomp_init(REFUSE | errno.EPERM))

    def rule(action, name, *comparisons):
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            wants = (Comparison * len(comparisons))(*comparisons)
            assert library.seccomp_rule_add_array(profile, action, number, len(comparisons), wants) == 0, name

    for name in {*CALLS, *CALLS_BY_SYSTEM, *(call for cap in added for call in CALLS_BY_CAPABILITY[cap])} - set(deadly):
        rule(ALLOW, name)
    for name in deadly:
        rule(KILL, name)
    for name, comparison in CALLS_BY_ARGUMENT:
        rule(ALLOW, name, comparison)
    rule(REFUSE | errno.ENOSYS, "clone3")
    assert library.seccomp_attr_set(profile, WITHOUT_NO_NEW_PRIVILEGES, 0) == 0
    assert library.seccomp_load(profile) == 0


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def furnish(root, volumes):
    """The files of the container; in a mount namespace of its own."""
    mount("-t", "tmpfs", "-o", "mode=755", "none", root)
    for name in ("proc", "dev", "tmp"):
        (root / name).mkdir()
    for name in ("usr", "etc"):
        volumes = [f"/{name}:/{name}", *volumes]
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/{name}"):
            (root / name).symlink_to(f"usr/{name}")
        elif os.path.isdir(f"/{name}"):
            volumes.append(f"/{name}:/{name}")
    mount("-t", "proc", "none", root / "proc")
    mount("-t", "tmpfs", "-o", "mode=1777", "none", root / "tmp")
    mount("--rbind", "/dev", root / "dev")
    for volume in volumes:
        source, place, *how = volume.split(":")
        there = root / place.lstrip("/")
        there.mkdir(parents=True)
        mount("--bind", source, there)
        mount("-o", f"remount,bind,{how[0] if how else 'ro'}", there)
    mount("-o", "remount,ro", root)


def privileges(restricted, added):
    caps = [] if restricted else [*CAPABILITIES, *added]
    bounds = ",".join(["-all", *(f"+{cap}" for cap in caps)])
    options = [f"--bounding-set={bounds}", "--inh-caps=-all"]
    user = [f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"] if restricted else []
    return ["setpriv", *options, *user]


def give_away_streams():
    """As engines do; a pipe on standard error can then be opened by who has it."""
    for fd in (0, 1, 2):
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.fchown(fd, USER, -1)


def main(arguments):
    own, program = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    options = [argument for argument in own if argument.startswith("--")]
    root, *volumes = [argument for argument in own if not argument.startswith("--")]
    added = [option.removeprefix("--add=") for option in options if option.startswith("--add=")]
    furnish(pathlib.Path(root), volumes)
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "."], check=True)
    subprocess.run(["umount", "--lazy", "."], check=True)
    os.chdir("/")
    if "--restricted" in options:
        give_away_streams()
    command = [*privileges("--restricted" in options, added), *program]
    confine(added, NOT_OF_SERVICES if "--service" in options else [])
    os.execvp(command[0], command)


main(sys.argv[1:])
