//! A key pair and a user that tests of logins are made of. The key protects nothing.

use crate::login::{Accounts, Login, Padding};

const PRIVATE: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MIICdwIBADANBgkqhkiG9w0BAQEFAASCAmEwggJdAgEAAoGBAKnCiGYf8UqoH9fM\n\
GNN4cpYYTF6keCABkVfOo3Aqb0bLkW2ncGFFvs4iglrqEPAJzC4SulhslQM8C6uF\n\
+ySQ8G5B5CrjbmPxpKeXX2kqj3hL6zXe+jiEu5x/n4bcSLE3HCn0umh56OCL34yh\n\
AJAaofyqE5ATr/e7e1lcGGHYaG3vAgMBAAECgYEAkh2fu48459KH/f1tTO+6aRim\n\
+ztDLgFLcbGpmYzc1Km5FhHtt7wJfHHVk50uUP2N4gY6oIttQyh2vv8GaLXcSxLZ\n\
0rqZXjtu0rbteN9WH8qtFD2duChlEZr54hXuMF7PRjIKj3HwJrEDx39K/UYIxb0I\n\
htzhvqYIjiQzF29fHHkCQQDgJP2wjfmmb/eqMoJI2OUmiACEdSzl8fAkVMfvOSJA\n\
AeQvwRLAJf4DfgnWenCpMYLZrjfVILzaum4kF5DBnF1LAkEAweLgaLkQhLN4+TlD\n\
272mPnnKkbW/Kc2uOebQAktNt+ZKgF2FERWOUdHMn8VlxKvXludZTMjEurL8SdHG\n\
SlX/bQJBALm8jWhXTc+oqr8jWajJ6qFSQ7N/cbQeFtPUWVUXsBUAPDmCMWp+UQ5N\n\
zBMppN/fQkHlxyhaF4TcxdYsnOyDCR8CQGixVXO22pCNSLlqjpXNJkN+CD/936d3\n\
BKkHVTKn7uNqWrhNx1ieRycvHkr3kChOki9N5Q5tKq2VkF1cBLKHFVECQH81Ns6k\n\
jI1LGN2zFSpx7J5A67MGw309zHGjzmmetEIWPoNg5FAM7k8Akhlx6RexWZkRZNR1\n\
RlbVKaKeDaAN5kA=\n\
-----END PRIVATE KEY-----\n\
";

const PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCpwohmH/FKqB/XzBjTeHKWGExe\n\
pHggAZFXzqNwKm9Gy5Ftp3BhRb7OIoJa6hDwCcwuErpYbJUDPAurhfskkPBuQeQq\n\
425j8aSnl19pKo94S+s13vo4hLucf5+G3EixNxwp9Lpoeejgi9+MoQCQGqH8qhOQ\n\
E6/3u3tZXBhh2Ght7wIDAQAB\n\
-----END PUBLIC KEY-----\n\
";

/// The user "mario" with the password "rossi".
const USERS: &str = "\
# name, SHA-256 of {name}password\n\
mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n\
";

/// A server that knows one user.
pub fn accounts() -> Accounts {
    Accounts::new(PRIVATE, USERS).expect("the keys and users of the tests are whole")
}

/// A login with that server's key.
pub fn login(username: &str, password: &str, padding: Padding) -> Login {
    Login::new(username.into(), password.into(), PUBLIC, padding)
        .expect("the key of the tests is whole")
}
