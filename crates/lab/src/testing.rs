//! Shared by the tests of this crate: whether a scenario can run here, and skipping it if not.

use goodput_netlink::namespace;

use crate::scenario::Scenario;

/// Whether network namespaces can be created and everything that `scenario` needs is here.
pub(crate) fn can_run(scenario: &Scenario) -> bool {
    namespace::create().is_ok() && scenario.obstacle().is_none()
}

/// Reports that this test did not run, or fails if all tests must run.
pub(crate) fn skip(needs: &str) {
    let needs = if needs.is_empty() { "root, or a user namespace" } else { needs };
    goodput_testing::skip(needs);
}

/// A scenario with this body; `None`, after a report, if it can't run here.
pub(crate) fn runnable(body: &str) -> Option<Scenario> {
    let text = format!("name = \"x\"\ntitle = \"X.\"\n{body}");
    let scenario: Scenario = text.parse().expect("a test's scenario is well-formed");
    if can_run(&scenario) {
        return Some(scenario);
    }
    skip(&scenario.obstacle().unwrap_or_default());
    None
}
