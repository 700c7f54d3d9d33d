//! The heaps of the C library, of which a process with many short threads would have one for almost each.

/// Heaps that threads share: the first one, and one more.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;

/// Makes the threads of this process share two heaps from now on. glibc gives threads heaps of their own
/// until there are eight for each CPU, and keeps what each has ever needed (`M_ARENA_MAX`, mallopt(3)): a
/// server whose threads come and go with its clients would grow for as long as it runs. Flows take no memory
/// while payload moves, so they hardly wait for each other. Other C libraries have one heap.
#[cfg_attr(target_env = "gnu", expect(unsafe_code, reason = "a call that no wrapper has"))]
pub fn share_heaps() {
    // SAFETY: it sets a number of the allocator, under the allocator's own lock. It can only refuse, and then
    // the process is larger than it could be.
    #[cfg(target_env = "gnu")]
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, HEAPS) };
}
