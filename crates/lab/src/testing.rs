//! What the tests of this crate share: whether a scenario can run here, and skipping if not.

use goodput_netlink::namespace;

use crate::scenario::Scenario;

/// Whether network namespaces can be made and all that `scenario` needs is here.
pub(crate) fn can_run(scenario: &Scenario) -> bool {
    namespace::create().is_ok() && scenario.obstacle().is_none()
}

/// Says that this test did not run, or fails if everything must.
pub(crate) fn skip(needs: &str) {
    let needs = if needs.is_empty() { "root, or a user namespace" } else { needs };
    goodput_testing::skip(needs);
}

/// A scenario of this body, or `None`, having said so, if it cannot run here.
pub(crate) fn runnable(body: &str) -> Option<Scenario> {
    let text = format!("name = \"x\"\ntitle = \"X.\"\n{body}");
    let scenario: Scenario = text.parse().expect("a test's scenario is well-formed");
    if can_run(&scenario) {
        return Some(scenario);
    }
    skip(&scenario.obstacle().unwrap_or_default());
    None
}
