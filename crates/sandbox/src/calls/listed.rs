//! The system calls that need no look at their arguments, and above each group why the server makes them.

/// Every group.
pub(super) const GROUPS: &[&[i64]] = &[
    // Sockets: accept, connect, options, and who is at the other end.
    &[
        libc::SYS_accept4,
        libc::SYS_bind,
        libc::SYS_connect,
        libc::SYS_getpeername,
        libc::SYS_getsockname,
        libc::SYS_getsockopt,
        libc::SYS_listen,
        libc::SYS_setsockopt,
        libc::SYS_shutdown,
        libc::SYS_socketpair,
    ],
    // Payload and control messages, by every mover.
    &[
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_recvfrom,
        libc::SYS_recvmmsg,
        libc::SYS_recvmsg,
        libc::SYS_sendfile,
        libc::SYS_sendmmsg,
        libc::SYS_sendmsg,
        libc::SYS_sendto,
        libc::SYS_splice,
        libc::SYS_tee,
        libc::SYS_vmsplice,
        libc::SYS_write,
        libc::SYS_writev,
    ],
    // Movers by io_uring.
    &[libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_io_uring_setup],
    // Waiting: the event loop, flows that wait for space in a buffer, strict pacing.
    &[
        libc::SYS_clock_nanosleep,
        libc::SYS_epoll_create1,
        libc::SYS_epoll_ctl,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        libc::SYS_eventfd2,
        libc::SYS_nanosleep,
        libc::SYS_ppoll,
        libc::SYS_pselect6,
        libc::SYS_timerfd_create,
        libc::SYS_timerfd_settime,
    ],
    // Time, if the vDSO does not have it.
    &[libc::SYS_clock_getres, libc::SYS_clock_gettime, libc::SYS_gettimeofday],
    // Memory: payload, receive buffers, stacks (mmap and mprotect have a condition).
    &[
        libc::SYS_brk,
        libc::SYS_madvise,
        libc::SYS_membarrier,
        libc::SYS_memfd_create,
        libc::SYS_mincore,
        libc::SYS_mremap,
        libc::SYS_munmap,
    ],
    // The end of the settings helper, which the server had started.
    &[libc::SYS_wait4, libc::SYS_waitid],
    // Threads, one a flow (clone has a condition): start, lock, end.
    &[
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_get_robust_list,
        libc::SYS_getpid,
        libc::SYS_getppid,
        libc::SYS_gettid,
        libc::SYS_restart_syscall,
        libc::SYS_rseq,
        libc::SYS_set_robust_list,
        libc::SYS_set_tid_address,
    ],
    // CPUs of flows: pinning, priority, time used.
    &[
        libc::SYS_getcpu,
        libc::SYS_getpriority,
        libc::SYS_getrusage,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_getattr,
        libc::SYS_sched_getparam,
        libc::SYS_sched_getscheduler,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_yield,
        libc::SYS_times,
    ],
    // Signals to this process: the operator's, and a panic's end (tgkill reaches no process of
    // another user, and Landlock keeps signals in).
    &[
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_tgkill,
    ],
    // Descriptors, pipes and their sizes.
    &[
        libc::SYS_close,
        libc::SYS_close_range,
        libc::SYS_dup,
        libc::SYS_dup3,
        libc::SYS_fcntl,
        libc::SYS_pipe2,
    ],
    // Files: the facts of the kernel, and what clients send and keep; which ones is Landlock's
    // business and the user's.
    &[
        libc::SYS_faccessat,
        libc::SYS_faccessat2,
        libc::SYS_fadvise64,
        libc::SYS_fallocate,
        libc::SYS_fdatasync,
        libc::SYS_fstat,
        libc::SYS_fstatfs,
        libc::SYS_fsync,
        libc::SYS_ftruncate,
        libc::SYS_getcwd,
        libc::SYS_getdents64,
        libc::SYS_lseek,
        libc::SYS_newfstatat,
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_pread64,
        libc::SYS_preadv,
        libc::SYS_preadv2,
        libc::SYS_pwrite64,
        libc::SYS_pwritev,
        libc::SYS_pwritev2,
        libc::SYS_readlinkat,
        libc::SYS_statfs,
        libc::SYS_statx,
        libc::SYS_sync_file_range,
    ],
    // Facts about this host and this process, its limits and who it is.
    &[
        libc::SYS_capget,
        libc::SYS_getegid,
        libc::SYS_geteuid,
        libc::SYS_getgid,
        libc::SYS_getrandom,
        libc::SYS_getuid,
        libc::SYS_prlimit64,
        libc::SYS_sysinfo,
        libc::SYS_uname,
    ],
    // Older names of the same calls, which the C library still uses on x86-64.
    #[cfg(target_arch = "x86_64")]
    &[
        libc::SYS_access,
        libc::SYS_epoll_wait,
        libc::SYS_getrlimit,
        libc::SYS_lstat,
        libc::SYS_open,
        libc::SYS_pipe,
        libc::SYS_poll,
        libc::SYS_readlink,
        libc::SYS_select,
        libc::SYS_stat,
        libc::SYS_time,
    ],
];
