//! `cargo xtask kills`: kills runs that change settings at random moments, and compares the whole
//! network namespace with its former state. Or kills the parts of a fleet, and judges what became of its tasks.

use anyhow::Result;

use goodput_tools::shell;

/// How many kills, and of what.
#[derive(clap::Args)]
pub struct Options {
    /// Runs that are killed, half of them together with their guard
    #[arg(default_value_t = 1000)]
    kills: u32,
    /// Instead kill comparisons that change a host by SSH: goodput, its ssh, the host's sshd or shell, or goodput
    /// together with the process of that host that would put back
    #[arg(long)]
    ssh: bool,
    /// Instead kill comparisons whose arms take turns within one connection: goodput, or goodput together with its
    /// guard
    #[arg(long, conflicts_with = "ssh")]
    alternate: bool,
    /// Instead kill parts of a fleet of twelve sites: any agent, the coordinator, any of three NATS servers, the database.
    /// Each task then has one record or a reason, and no test is begun twice
    #[arg(long, conflicts_with_all = ["ssh", "alternate"])]
    fleet: bool,
}

/// Runs the test with this many kills, and shows its counts or the differences.
pub fn run(options: &Options) -> Result<()> {
    let program = |tests| ["--package", "goodput", "--test", tests, "--"];
    let (target, test) = match options {
        Options { ssh: true, .. } => {
            (program("e2e"), "killed_by_ssh::killed_at_any_moment_the_whole_host_comes_back")
        }
        Options { alternate: true, .. } => {
            (program("lab"), "turns::killed_at_any_moment_the_whole_namespace_comes_back")
        }
        Options { fleet: true, .. } => (
            program("e2e"),
            "fleet_kills::killed_at_any_moment_each_task_has_one_outcome_and_no_test_is_begun_twice",
        ),
        _ => (
            ["--package", "goodput-settings", "--lib", "--", "--quiet"],
            "conformance::killed_at_any_moment_the_whole_namespace_comes_back",
        ),
    };
    let mut cargo = shell::cargo(["test"]);
    cargo.args(target).args(["--exact", test, "--nocapture"]);
    cargo.env("GOODPUT_KILLS", options.kills.to_string()).env("GOODPUT_REQUIRE", "all");
    shell::run(&mut cargo)
}
