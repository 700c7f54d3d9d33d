//! Speed and width of a PCI Express link, as /sys/bus/pci/devices/* reports them
//! (Documentation/ABI/testing/sysfs-bus-pci; drivers/pci/pci-sysfs.c).

/// Transfers per second, in billions: "8.0 GT/s PCIe", "5 GT/s"; `None` if unknown.
pub fn parse_speed(text: &str) -> Option<f64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let speed: f64 = number.parse().ok()?;
    (unit.starts_with("GT/s") && speed.is_finite() && speed > 0.0).then_some(speed)
}

/// Lanes: "8"; `None` if unknown, which the kernel writes as 0 or 255.
pub fn parse_width(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|lanes| (1..=32).contains(lanes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn old_and_new_kernels_are_understood_and_unknown_is_none() {
        assert_eq!(parse_speed("8.0 GT/s PCIe\n"), Some(8.0));
        assert_eq!(parse_speed("2.5 GT/s\n"), Some(2.5));
        for unknown in ["Unknown speed\n", "Unknown\n", "", "8.0\n", "NaN GT/s\n", "-1 GT/s\n"] {
            assert_eq!(parse_speed(unknown), None, "{unknown:?}");
        }
        assert_eq!(
            (parse_width("16\n"), parse_width("0\n"), parse_width("255\n")),
            (Some(16), None, None)
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}") {
            let _ = (parse_speed(&text), parse_width(&text));
        }
    }
}
