//! A token bucket as an eBPF program at a device's ingress, by bpf(2). Layouts and numbers: include/uapi/linux/bpf.h.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use goodput_netlink::{Netlink, namespace};

use crate::need::Lack;

const MAP_CREATE: c_int = 0;
const PROG_LOAD: c_int = 5;
const PROG_QUERY: c_int = 16;
const LINK_CREATE: c_int = 28;

const MAP_TYPE_ARRAY: u32 = 2;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const ATTACH_TCX_INGRESS: u32 = 46;

/// Time of a byte in the program, in units of 1/1024 ns.
const FRACTION_BITS: u32 = 10;
/// What the kernel's helpers are licensed for.
const LICENSE: &[u8] = b"GPL\0";

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct ProgQuery {
    index: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
    padding: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    index: u32,
    attach_type: u32,
    flags: u32,
    relative: u32,
    padding: u32,
    revision: u64,
}

/// A bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    /// Bits per second of frames, 30 kbit/s at least.
    pub(crate) bits_per_s: f64,
    /// Bytes that it holds.
    pub(crate) bytes: u64,
}

/// Drops what a device of the thread's network namespace receives and the bucket does not hold, until the descriptor is
/// closed. The kernel must be 6.6 or later.
pub(crate) fn police(index: u32, bucket: Bucket) -> io::Result<OwnedFd> {
    let state = MapCreate {
        map_type: MAP_TYPE_ARRAY,
        key_size: 4,
        value_size: 8,
        max_entries: 1,
        map_flags: 0,
    };
    let state = descriptor(MAP_CREATE, state)?;
    let code = program(state.as_raw_fd(), bucket)?;
    let load = ProgLoad {
        prog_type: PROG_TYPE_SCHED_CLS,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        ..ProgLoad::default()
    };
    let loaded = descriptor(PROG_LOAD, load)?;
    let link = LinkCreate {
        program: loaded.as_raw_fd().cast_unsigned(),
        index,
        attach_type: ATTACH_TCX_INGRESS,
        ..LinkCreate::default()
    };
    descriptor(LINK_CREATE, link)
}

/// Number of programs at a device's ingress.
pub(crate) fn policers(index: u32) -> io::Result<u32> {
    let mut query = ProgQuery { index, attach_type: ATTACH_TCX_INGRESS, ..ProgQuery::default() };
    call(PROG_QUERY, &mut query)?;
    Ok(query.count)
}

/// Why no policer can be attached here, determined by trying it in a new network namespace; `None` if one can. Starts a
/// thread.
pub(crate) fn missing() -> Option<Lack> {
    let tried = namespace::in_new_namespace(|| {
        let loopback = Netlink::open().and_then(|mut netlink| netlink.link("lo"));
        let index = loopback.map_err(io::Error::other)?.index;
        police(index, Bucket { bits_per_s: 1e6, bytes: 3000 }).map(drop)
    });
    let error = tried.map_err(io::Error::other).and_then(|tried| tried).err()?;
    let not_permitted = error.kind() == io::ErrorKind::PermissionDenied;
    let remedy = if not_permitted { "run as root" } else { "Linux 6.6 or later can" };
    Some(Lack { why: format!("it can't be attached: {error}; {remedy}"), not_permitted })
}

fn descriptor<T>(command: c_int, mut attributes: T) -> io::Result<OwnedFd> {
    let descriptor = call(command, &mut attributes)?;
    // SAFETY: these commands return a new descriptor that nobody else owns.
    #[expect(unsafe_code, reason = "a raw descriptor becomes an owned one")]
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[expect(unsafe_code, reason = "no library wraps bpf(2)")]
fn call<T>(command: c_int, attributes: &mut T) -> io::Result<c_int> {
    let (pointer, size) = (std::ptr::from_mut(attributes), size_of::<T>());
    // SAFETY: the kernel reads and writes `size` bytes there, which `attributes` has; the addresses in it are those of
    // `code` and of `LICENSE`, which outlive the call.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, pointer, size) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as c_int) }
}

/// One instruction, or half of one with a number of 64 bits.
fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    let [code, registers] = [code, to | from << 4].map(u64::from);
    code | registers << 8
        | u64::from(offset.cast_unsigned()) << 16
        | u64::from(number.cast_unsigned()) << 32
}

/// The generic cell rate algorithm (ITU-T I.371): the map holds the time at which the bucket will be full again. A frame
/// moves it by the frame's time at the rate, and passes if it is then at most the bucket's time ahead of now.
fn program(state: c_int, bucket: Bucket) -> io::Result<[u64; 25]> {
    let byte_ns = 8e9 / bucket.bits_per_s;
    let scaled = (byte_ns * f64::from(1 << FRACTION_BITS)).round();
    if !(1.0..=f64::from(i32::MAX)).contains(&scaled) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "such a rate can't be policed"));
    }
    let depth_ns = (bucket.bytes as f64 * byte_ns) as u64;
    let (low, high) = (depth_ns as u32, (depth_ns >> 32) as u32);
    Ok([
        instruction(0x61, 6, 1, 0, 0),     // r6 = the frame's length
        instruction(0x85, 0, 0, 0, 5),     // r0 = the time, ns
        instruction(0xbf, 7, 0, 0, 0),     // r7 = r0
        instruction(0x62, 10, 0, -4, 0),   // the map's only key, on the stack
        instruction(0xbf, 2, 10, 0, 0),    // r2 = the stack
        instruction(0x07, 2, 0, 0, -4),    // r2 = the key's address
        instruction(0x18, 1, 1, 0, state), // r1 = the map
        instruction(0, 0, 0, 0, 0),
        instruction(0x85, 0, 0, 0, 1),  // r0 = the address of its value
        instruction(0x15, 0, 0, 12, 0), // none: passes
        instruction(0x79, 1, 0, 0, 0),  // r1 = when the bucket is full
        instruction(0x2d, 1, 7, 1, 0),  // in the future: keep it
        instruction(0xbf, 1, 7, 0, 0),  // r1 = now
        instruction(0x27, 6, 0, 0, scaled as i32), // r6 = the frame's time
        instruction(0x77, 6, 0, 0, FRACTION_BITS as i32),
        instruction(0x0f, 1, 6, 0, 0), // r1 = when it will be full
        instruction(0x18, 2, 0, 0, low.cast_signed()), // r2 = the bucket's time
        instruction(0, 0, 0, 0, high.cast_signed()),
        instruction(0x0f, 2, 7, 0, 0), // r2 = that long from now
        instruction(0x2d, 1, 2, 3, 0), // later than that: is dropped
        instruction(0x7b, 0, 1, 0, 0), // keeps r1
        instruction(0xb7, 0, 0, 0, 0), // TCX_PASS
        instruction(0x95, 0, 0, 0, 0),
        instruction(0xb7, 0, 0, 0, 2), // TCX_DROP
        instruction(0x95, 0, 0, 0, 0),
    ])
}
