//! Which lines of /proc/interrupts belong to a device.
//!
//! Since Linux 6.2 the chip's name contains the PCI address: "PCI-MSIX-0000:00:03.0 1-edge". Before, the interrupt's
//! number at the chip did (`pci_msi_domain_calc_hwirq`, drivers/pci/msi): "PCI-MSI 49153-edge". Other interrupts are
//! matched if the driver named them after the device or its address.

use super::per_cpu::{Row, Table};

/// Bits of the number at the chip: the vector; above it the device, above this its domain.
const VECTOR_BITS: u32 = 11;
const DOMAIN_SHIFT: u32 = 27;

/// A device with the properties that may identify it in the table.
#[derive(Debug, Clone, Copy)]
pub struct DeviceMatch<'a> {
    /// Its name: "eth0".
    pub device: &'a str,
    /// Its PCI address: "0000:01:00.0".
    pub address: Option<&'a str>,
    /// Domain, and bus, device and function in one number.
    pub numbers: Option<(u64, u64)>,
}

/// The sums over the device's vectors, for each CPU of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vectors {
    /// Numbers of the device's lines.
    pub interrupts: Vec<u32>,
    /// One number for each CPU.
    pub counts: Vec<u64>,
}

/// Picks the device's lines: those with its address or, if there are none, those with its name.
pub fn of_device(table: &Table<'_>, wanted: DeviceMatch<'_>) -> Vectors {
    let hardware = || table.rows.iter().filter(|row| row.name.parse::<u32>().is_ok());
    let at_address: Vec<&Row<'_>> = hardware().filter(|row| is_at(row, wanted)).collect();
    let rows = if at_address.is_empty() {
        hardware().filter(|row| is_called(row, wanted.device)).collect()
    } else {
        at_address
    };
    let mut counts = vec![0u64; table.cpus.len()];
    for row in &rows {
        for (sum, count) in counts.iter_mut().zip(&row.counts) {
            *sum = sum.saturating_add(*count);
        }
    }
    let interrupts = rows.iter().filter_map(|row| row.name.parse().ok()).collect();
    Vectors { interrupts, counts }
}

fn is_at(row: &Row<'_>, wanted: DeviceMatch<'_>) -> bool {
    let spelled = wanted.address.is_some_and(|address| {
        row.words.iter().any(|word| {
            word.strip_suffix(address).is_some_and(|before| before.ends_with(['-', ':', '@']))
        })
    });
    spelled || wanted.numbers.is_some_and(|numbers| is_numbered(row, numbers))
}

fn is_numbered(row: &Row<'_>, (domain, id): (u64, u64)) -> bool {
    let [chip, number, ..] = row.words.as_slice() else { return false };
    let chip = chip.ends_with("PCI-MSI") || chip.ends_with("PCI-MSIX") || *chip == "ITS-MSI";
    let number = number.split_once('-').map_or(*number, |(number, _)| number).parse::<u64>();
    chip && number.is_ok_and(|number| {
        number >> VECTOR_BITS & 0xffff == id && number >> DOMAIN_SHIFT == domain
    })
}

/// "eth0", "eth0-TxRx-0", "i40e-eth0-TxRx-3": the name as a whole word.
fn is_called(row: &Row<'_>, device: &str) -> bool {
    row.words.iter().skip(2).any(|word| {
        word.match_indices(device).any(|(at, _)| {
            let inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let before = word[..at].chars().next_back();
            let after = word[at + device.len()..].chars().next();
            !before.is_some_and(inner) && !after.is_some_and(inner)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::per_cpu::parse;
    use proptest::prelude::*;

    const CARD: DeviceMatch<'_> =
        DeviceMatch { device: "eth0", address: Some("0000:00:03.0"), numbers: Some((0, 0x18)) };

    fn picked(text: &str) -> Vectors {
        of_device(&parse("t", text).unwrap(), CARD)
    }

    #[test]
    fn a_newer_kernel_names_the_address() {
        let text = "  CPU0 CPU1\n 37: 1 0 PCI-MSIX-0000:00:03.0 0-edge virtio2-config\n \
                    38: 0 5408 PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0\n \
                    40: 7 7 PCI-MSIX-0000:00:04.0 0-edge virtio3-config\n";
        assert_eq!(picked(text), Vectors { interrupts: vec![37, 38], counts: vec![1, 5408] });
    }

    #[test]
    fn an_older_kernel_numbers_the_device_at_the_chip() {
        // 49152 = 3 << 3 << 11: function 0 of device 3 of bus 0. 65537 is device 4.
        let text = "  CPU0 CPU1\n 24: 1 2 PCI-MSI 49152-edge virtio2-config\n \
                    25: 3 4 PCI-MSI 49153-edge virtio2-input.0\n \
                    26: 9 9 PCI-MSI 65537-edge virtio3-input.0\n";
        assert_eq!(picked(text), Vectors { interrupts: vec![24, 25], counts: vec![4, 6] });
    }

    #[test]
    fn a_name_counts_as_a_whole_word_only_where_no_address_is_found() {
        let text = "  CPU0\n 24: 1 GICv3 36 Level eth0\n 25: 2 GICv3 37 Level eth01\n \
                    26: 4 GICv3 38 Level i40e-eth0-TxRx-1\n 27: 8 GICv3 39 Level eth0.5\n";
        assert_eq!(picked(text), Vectors { interrupts: vec![24, 26], counts: vec![5] });
        let mlx = "  CPU0\n 24: 1 IR-PCI-MSI 1-edge mlx5_comp0@pci:0000:00:03.0\n";
        assert_eq!(picked(mlx).interrupts, [24]);
    }

    proptest! {
        #[test]
        fn no_lines_make_it_panic(
            lines in prop::collection::vec("[0-9]{1,2}: [0-9] (PCI-MSI|ITS-MSI|x) [0-9]{1,20}(-edge)? .{0,9}(eth0)?.{0,3}", 0..6)
        ) {
            let text = format!("CPU0\n{}\n", lines.join("\n"));
            let _ = picked(&text);
        }
    }
}
