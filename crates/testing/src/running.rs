//! The test that runs on this thread. Nobody types its name: a typed name would be wrong one day.

use std::cell::RefCell;
use std::thread;

thread_local! {
    static TEST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The test that runs on this thread, with its modules. libtest names each test's thread after the test; our own
/// harness sets the name with [`as_test`].
///
/// # Panics
///
/// On a thread that runs no test.
pub fn running_test() -> String {
    let of_libtest = || thread::current().name().filter(|name| *name != "main").map(String::from);
    let name = TEST.with_borrow(Option::clone).or_else(of_libtest);
    name.expect("only the thread of a test knows which test it is")
}

/// Runs `test` under this name, for a harness that does not name its threads.
pub fn as_test<T>(name: &str, test: impl FnOnce() -> T) -> T {
    /// Restores the previous name, even if the test panics.
    struct Before(Option<String>);
    impl Drop for Before {
        fn drop(&mut self) {
            TEST.set(self.0.take());
        }
    }
    let _before = Before(TEST.replace(Some(name.into())));
    test()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_namespace;

    #[test]
    fn a_test_is_known_by_its_thread_in_a_namespace_too() {
        let name = "running::tests::a_test_is_known_by_its_thread_in_a_namespace_too";
        assert_eq!(running_test(), name);
        in_namespace(|| assert_eq!(running_test(), name));
        as_test("another", || {
            assert_eq!(running_test(), "another");
            in_namespace(|| assert_eq!(running_test(), "another"));
        });
        assert_eq!(running_test(), name);
        let on_another = thread::spawn(running_test).join();
        assert!(on_another.is_err(), "a thread without a name is no test");
    }
}
