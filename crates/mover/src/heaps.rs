//! The heaps of the C library. A process with many short-lived threads would have almost one heap per thread.

/// Heaps shared by all threads: the first one, and one more.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;

/// Makes the threads of this process share two heaps from now on. glibc gives each thread its own heap until there are
/// eight per CPU, and keeps whatever a heap has ever needed (`M_ARENA_MAX`, mallopt(3)): a server whose threads come
/// and go with its clients would grow for ever. Flows allocate nothing while payload moves, so they hardly wait for
/// each other. Other C libraries have one heap.
#[cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "a call that no wrapper has"))]
pub fn share_heaps() {
    // SAFETY: this sets a number of the allocator, under the allocator's own lock. It can only refuse; the process is
    // then larger than it could be.
    #[cfg(target_env = "gnu")]
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, HEAPS) };
}
