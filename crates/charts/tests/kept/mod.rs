//! Records of real runs, by name, as JSON.

/// Each with its name.
pub const RECORDS: [(&str, &str); 9] = [
    ("both", include_str!("../records/both.json")),
    ("compare", include_str!("../records/compare.json")),
    ("dose", include_str!("../records/dose.json")),
    ("factors", include_str!("../records/factors.json")),
    ("latency", include_str!("../records/latency.json")),
    ("shaping", include_str!("../records/shaping.json")),
    ("udp", include_str!("../records/udp.json")),
    ("window", include_str!("../records/window.json")),
    ("arms", include_str!("../records/arms.json")),
];
