//! Facts that identify this machine.

use goodput_model::Host;

/// Name, kernel, goodput's version, and the CPUs that this process may use.
pub fn host() -> Host {
    let uname = rustix::system::uname();
    let system = uname.sysname().to_string_lossy();
    let release = uname.release().to_string_lossy();
    Host {
        name: uname.nodename().to_string_lossy().into_owned(),
        kernel: format!("{system} {release}"),
        goodput: env!("CARGO_PKG_VERSION").into(),
        cpus: allowed_cpus(),
    }
}

/// CPUs in our affinity mask; if it can't be read (more than 1024 CPUs), the standard library's count, and at least 1.
fn allowed_cpus() -> u32 {
    match rustix::thread::sched_getaffinity(None) {
        Ok(cpus) => cpus.count(),
        Err(_) => {
            std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_machine_has_a_name_a_kernel_and_a_cpu() {
        let host = super::host();
        assert!(host.kernel.starts_with("Linux ") && !host.name.is_empty());
        assert!(host.cpus >= 1);
    }
}
