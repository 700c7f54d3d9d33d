//! Which group of work a function of the kernel belongs to, by its name.
//!
//! A profile shows the innermost function. Helpers that serve everyone, such as locks, belong to no group here; their
//! time counts for the function that called them.

use goodput_model::CpuGroup;

use super::symbols::Symbol;

/// The beginnings of names by group; the longest that fits counts. The kernel's own file or folder gives the
/// group: lib/usercopy.c and arch/*/lib (copying), net/core/dev.c, net/sched, drivers/net, kernel/softirq.c (device), net
/// (stack), mm and fs/splice.c (memory), kernel/sched (scheduling), arch/*/entry and fs/file.c (calls).
const GROUPS: &[(CpuGroup, &[&str])] = &[
    (
        CpuGroup::Copying,
        &[
            "_copy_",
            "__arch_copy_",
            "__check_heap_object",
            "__check_object_size",
            "__copy_",
            "check_heap_object",
            "copy_from_iter",
            "copy_from_user",
            "copy_mc_",
            "copy_page_from_iter",
            "copy_page_to_iter",
            "copy_to_iter",
            "copy_to_user",
            "copy_user_",
            "copyin",
            "copyout",
            "fault_in_",
            "rep_movs_alternative",
            "simple_copy_to_iter",
        ],
    ),
    (
        CpuGroup::Device,
        &[
            "__dev_queue_xmit",
            "__do_softirq",
            "__irq",
            "__local_bh_",
            "__napi_",
            "__netif_",
            "__qdisc_",
            "__raise_softirq",
            "asm_common_interrupt",
            "asm_sysvec",
            "common_interrupt",
            "dev_",
            "dma_",
            "do_softirq",
            "enqueue_to_backlog",
            "eth_type_trans",
            "fq_",
            "gro_",
            "handle_edge_irq",
            "handle_irq",
            "handle_softirqs",
            "htb_",
            "iommu_",
            "irq_",
            "irqentry",
            "loopback_xmit",
            "napi_",
            "net_rx_action",
            "net_tx_action",
            "netdev_",
            "netif_",
            "page_pool_",
            "pfifo_",
            "process_backlog",
            "qdisc_",
            "raise_softirq",
            "sch_direct_xmit",
            "swiotlb_",
            "sysvec_",
            "tbf_",
            "validate_xmit",
            "veth_",
            "virtnet_",
            "virtqueue_",
            "vring_",
            "xdp_",
            "xmit_",
        ],
    ),
    (
        CpuGroup::Stack,
        &[
            "____sys_recvmsg",
            "____sys_sendmsg",
            "___sys_recvmsg",
            "___sys_sendmsg",
            "__alloc_skb",
            "__build_skb",
            "__copy_skb",
            "__inet",
            "__ip",
            "__kfree_skb",
            "__lock_sock",
            "__napi_alloc_skb",
            "__pskb",
            "__release_sock",
            "__sk_",
            "__skb",
            "__sock_",
            "__sys_recv",
            "__sys_send",
            "__tcp_",
            "__udp",
            "__zerocopy_sg_from_iter",
            "alloc_skb",
            "bbr_",
            "bictcp_",
            "bpf_",
            "bpfprog",
            "build_skb",
            "consume_skb",
            "csum_",
            "cubictcp_",
            "do_csum",
            "do_recvmmsg",
            "do_sendmmsg",
            "do_tcp_",
            "fib_",
            "import_ubuf",
            "inet",
            "ip4_",
            "ip6",
            "ip_",
            "ipv4_",
            "ipv6_",
            "kfree_skb",
            "lock_sock",
            "mptcp_",
            "msg_zerocopy_",
            "napi_consume_skb",
            "nf_",
            "nft_",
            "pskb_",
            "raw_v4_",
            "release_sock",
            "rt_",
            "skb",
            "sk_",
            "sock_",
            "sockfd_",
            "splice_to_socket",
            "tcp",
            "udp",
            "validate_skb",
        ],
    ),
    (
        CpuGroup::Memory,
        &[
            "___slab_",
            "__alloc_",
            "__folio_",
            "__free_",
            "__get_user_pages",
            "__handle_mm_fault",
            "__kmalloc",
            "__kmem_cache_",
            "__memcg_",
            "__mod_",
            "__page_",
            "__put_page",
            "__rmqueue",
            "__slab_",
            "alloc_",
            "asm_exc_page_fault",
            "charge_memcg",
            "clear_page",
            "__do_sys_vmsplice",
            "do_anonymous_page",
            "do_splice",
            "do_user_addr_fault",
            "exc_page_fault",
            "flush_tlb",
            "folio",
            "folios_",
            "free_",
            "get_page_from_freelist",
            "get_pfnblock",
            "get_user_page",
            "gup_",
            "handle_mm_fault",
            "internal_get_user_pages",
            "iov_iter_extract_pages",
            "iov_iter_get_pages",
            "kfree",
            "kmalloc_",
            "kmem_cache_",
            "lru_",
            "mem_cgroup_",
            "memcg_",
            "mod_node_",
            "mod_objcg_",
            "mod_zone_",
            "obj_cgroup_",
            "page_",
            "pin_user_pages",
            "pipe_",
            "post_alloc_hook",
            "propagate_protected",
            "put_page",
            "refill_obj_stock",
            "rmqueue",
            "slab_",
            "try_charge",
            "unpin_user_page",
            "user_page_pipe_buf",
            "zap_",
        ],
    ),
    (
        CpuGroup::Scheduling,
        &[
            "___wait_",
            "__calc_delta",
            "__futex",
            "__hrtimer_",
            "__pollwait",
            "__sched",
            "__switch_to",
            "__update_load",
            "__wake_up",
            "activate_task",
            "autoremove_wake",
            "available_idle_cpu",
            "check_preempt",
            "default_wake",
            "dequeue_",
            "do_poll",
            "do_sys_poll",
            "enqueue_entity",
            "enqueue_task",
            "ep_",
            "finish_task_switch",
            "futex_",
            "hrtimer_",
            "pick_",
            "poll_",
            "pollwake",
            "prepare_task_switch",
            "prepare_to_wait",
            "psi_",
            "put_prev_",
            "resched_",
            "reweight_",
            "sched_",
            "schedule",
            "select_task_rq",
            "set_next_",
            "switch_",
            "task_",
            "tick_",
            "try_to_wake_up",
            "ttwu_",
            "update_curr",
            "update_load",
            "update_min_vruntime",
            "update_rq_clock",
            "update_se",
            "wait_woken",
            "wake",
            "woken_",
        ],
    ),
    (
        CpuGroup::Calls,
        &[
            "__fdget",
            "__fget",
            "__rseq_",
            "__se_sys_",
            "__arm64_sys_",
            "__riscv_sys_",
            "__x64_sys_",
            "do_el0_svc",
            "do_syscall_64",
            "el0",
            "entry_",
            "exit_to_user",
            "fdget",
            "fput",
            "invoke_syscall",
            "ret_to_user",
            "syscall_",
            "x64_sys_call",
        ],
    ),
];

/// Modules of the stack begin so; all other modules are taken for drivers and queueing disciplines.
const STACK_MODULES: &[&str] =
    &["bridge", "ip", "mptcp", "nf", "tcp", "tls", "udp", "wireguard", "x_tables"];

/// The group of a function, if its name shows one.
pub fn of(symbol: &Symbol) -> Option<CpuGroup> {
    let all = GROUPS.iter().flat_map(|(group, names)| names.iter().map(move |name| (group, name)));
    let fitting = all.filter(|(_, name)| symbol.name.starts_with(**name));
    let by_name = fitting.max_by_key(|(_, name)| name.len());
    by_name.map(|(group, _)| *group).or_else(|| {
        let module = symbol.module.as_deref()?;
        let is_stack = STACK_MODULES.iter().any(|name| module.starts_with(name));
        Some(if is_stack { CpuGroup::Stack } else { CpuGroup::Device })
    })
}

/// The group of a call chain, from the innermost function outwards: that of the first function with a group. The entry
/// into the kernel is the beginning of every chain, so it counts only if the CPU was there.
pub fn of_chain<'a>(chain: impl Iterator<Item = Option<&'a Symbol>>) -> CpuGroup {
    for (depth, symbol) in chain.enumerate() {
        match symbol.and_then(of) {
            Some(CpuGroup::Calls) if depth > 0 => break,
            Some(group) => return group,
            None => {}
        }
    }
    CpuGroup::OtherKernel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(names: &[(&str, Option<&str>)]) -> CpuGroup {
        let symbols: Vec<_> =
            names.iter().map(|(name, module)| Symbol::made_up(name, *module)).collect();
        of_chain(symbols.iter().map(Some))
    }

    fn built_in(names: &[&str]) -> CpuGroup {
        let names: Vec<_> = names.iter().map(|name| (*name, None)).collect();
        chain(&names)
    }

    #[test]
    fn functions_of_a_sending_thread_are_told_apart() {
        assert_eq!(built_in(&["rep_movs_alternative", "_copy_from_iter"]), CpuGroup::Copying);
        assert_eq!(built_in(&["tcp_sendmsg_locked"]), CpuGroup::Stack);
        assert_eq!(built_in(&["__alloc_skb"]), CpuGroup::Stack);
        assert_eq!(built_in(&["__alloc_frozen_pages_noprof"]), CpuGroup::Memory);
        assert_eq!(built_in(&["net_rx_action"]), CpuGroup::Device);
        assert_eq!(built_in(&["__napi_poll"]), CpuGroup::Device);
        assert_eq!(
            built_in(&["__napi_alloc_skb"]),
            CpuGroup::Stack,
            "the longest beginning counts"
        );
        assert_eq!(built_in(&["__copy_skb_header"]), CpuGroup::Stack);
        assert_eq!(built_in(&["try_to_wake_up"]), CpuGroup::Scheduling);
        assert_eq!(built_in(&["entry_SYSCALL_64"]), CpuGroup::Calls);
    }

    #[test]
    fn a_helper_counts_for_its_caller_but_not_for_the_entry_into_the_kernel() {
        let lock = "_raw_spin_lock";
        assert_eq!(built_in(&[lock, "tcp_v4_rcv", "ip_rcv"]), CpuGroup::Stack);
        assert_eq!(built_in(&[lock, "some_file_system", "do_syscall_64"]), CpuGroup::OtherKernel);
        assert_eq!(built_in(&[lock]), CpuGroup::OtherKernel);
        assert_eq!(of_chain([None].into_iter()), CpuGroup::OtherKernel);
    }

    #[test]
    fn a_module_is_a_driver_unless_it_is_of_the_stack() {
        assert_eq!(chain(&[("ixgbe_clean", Some("ixgbe"))]), CpuGroup::Device);
        assert_eq!(chain(&[("hash_conntrack", Some("nf_conntrack"))]), CpuGroup::Stack);
    }

    #[test]
    fn the_beginnings_have_no_duplicates() {
        let mut all: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
