/**
 * What any program may ask of the kernel, as the runtime's default profile has it (containerd `contrib/seccomp`, 2.1), without what
 * that profile gives for capabilities. runc and crun set it just before the sandbox's process is executed.
 */
const allowed = `
accept accept4 access alarm arch_prctl arm_fadvise64_64 arm_sync_file_range bind breakpoint brk cacheflush cachestat capget capset
chdir chmod chown chown32 clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 close
close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2
epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate
fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr flock fork fremovexattr
fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futex futex_requeue futex_time64 futex_wait
futex_waitv futex_wake futimesat get_robust_list get_thread_area get_tls getcpu getcwd getdents getdents64 getegid getegid32 geteuid
geteuid32 getgid getgid32 getgroups getgroups32 getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid
getresgid32 getresuid getresuid32 getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getuid32 getxattr
inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64
io_setup io_submit ioctl ioprio_get ioprio_set ipc kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown
lchown32 lgetxattr link linkat listen listxattr llistxattr lremovexattr lseek lsetxattr lstat lstat64 madvise map_shadow_stack
membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mmap2 mprotect mq_getsetattr
mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink mremap msgctl msgget msgrcv
msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause pidfd_open
pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64 preadv preadv2 prlimit64
process_mrelease pselect6 pselect6_time64 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recv recvfrom recvmmsg
recvmmsg_time64 recvmsg remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending
rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo
sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield
seccomp select semctl semget semop semtimedop semtimedop_time64 send sendfile sendfile64 sendmmsg sendmsg sendto set_robust_list
set_thread_area set_tid_address set_tls setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer
setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid setsockopt
setuid setuid32 setxattr shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 sigprocmask sigreturn socketcall
socketpair splice stat stat64 statfs statfs64 statx symlink symlinkat sync sync_file_range sync_file_range2 syncfs sysinfo tee tgkill
time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create
timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill truncate truncate64 ugetrlimit umask uname unlink
unlinkat utime utimensat utimensat_time64 utimes vfork vmsplice wait4 waitid waitpid write writev
`

/** All CLONE_NEW* flags: the sandbox's process makes no namespaces. */
const newNamespaces = 0x7e_02_00_00
/** AF_VSOCK, by which a virtual machine talks with its host. */
const vsock = 40
const noSuchCall = 38

/** OCI's names of the architectures that podd runs on, by Node's. */
const architectures: Readonly<Record<string, string>> = {
  x64: 'SCMP_ARCH_X86_64',
  arm64: 'SCMP_ARCH_AARCH64',
  arm: 'SCMP_ARCH_ARM',
}

/**
 * The seccomp profile of sandboxes as the OCI runtime reads it (`linux.seccomp` of its spec): the runtime's default one for this
 * host's own architecture alone. A program of another architecture (32 bits on 64) is killed, which the sandbox's image never has; the
 * default profile allows three on x86, and runc takes 8 ms of a start to compile it. Undefined where podd doesn't know the architecture.
 * @param architecture as `process.arch` has it
 */
export function sandboxSeccompProfile(architecture: string): object | undefined {
  const own = architectures[architecture]
  if (own === undefined) return undefined
  const action = 'SCMP_ACT_ALLOW'
  const without = { index: 0, value: newNamespaces, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    architectures: [own],
    syscalls: [
      { names: allowed.trim().split(/\s+/u), action },
      { names: ['socket'], action, args: [{ index: 0, value: vsock, op: 'SCMP_CMP_NE' }] },
      { names: ['clone'], action, args: [without] },
      { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: noSuchCall },
    ],
  }
}
