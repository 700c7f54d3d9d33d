//! A key pair and a user for tests of logins. The key protects nothing.

use crate::login::{Login, Padding, Users};

const PRIVATE: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDBH3sFEcfsfzyp\n\
5ZPMaUvWVGTjYbV8CAE5yXAS6KssIxCFnjqQHCVJFHskKOq1QxypvBjzkkgQU3RJ\n\
7BkTxtO42CxKSKRABnl0QNfsl4fGmXKD1ksvfVu8+4GsLegh0CDkm3qsVmfRZhFz\n\
jX1Ab79wSv48QbRvOknMG0YpXvcFdyQgCbEOOgW8PqloaLh6TejJWx9nliXACIRs\n\
+TnA6hEIPoh91EaeTtflzsr2FTSggQV36L9+WVbC5qs3UMIVOIx/ItVa+meJlgjD\n\
QXjHvnZzUelZyN2/flEj+bsuCm3eSc2xoTUvtMQJG98+BnufVdQH7/5OUGqF4GfC\n\
4Vl1JGzhAgMBAAECggEABLSMZgN4pEO2WepYx0Ryf1KXka2uAwtb4klM5H0MPJtP\n\
Gf5QrXWuF+F6nZcsnsV3k5AcaITSIimyXeG1e7SesHR94cJy1AeEWoeA60gG3Bkd\n\
f+ZO9yV+AHT9RBFrRDWis4cxPjUtut2ag775BAKk/qqpFpVAPOyF40Xv1+6zJIwn\n\
apATjgyV2ruy4RRsuSX42RIbzMso381XEykaohnzysbBEVVsHGAqebiN8f6jKDDl\n\
26b/ZuUZY7qEBifc0gvSqkzd6dA19AbmpC054h84tc99GhU6yNaskTr155BA/WS3\n\
h2bjO3PBQzGENrLkTHe8qAzDVaUhHkoNMY1BaFnaJQKBgQD5RCRoVC/C+RQS8CT5\n\
bBUNY2F8u+5DpD4aaeARBhpnSnRoGlj0LzqP3dYm9YRBjoRF0qC0JpuJyJ5ZLxNC\n\
DsAAUrfS11ZnWAAEzxOoMwVaVdcJB2lJ/AWjem2+DqSgv8mfsynhJs4yUuEnJpJx\n\
GpM6cmAUfxvJS/9uwoGWB9c6/QKBgQDGVxEnhOjjcBGt32zxBn7Cdfl+7v/BP3gG\n\
xTlWY72aeUhys6VqmGYchVdTjQnPi6pp3QSJ215cfyrmd101VAFkRdMRJ7bL2W4l\n\
xSUG/uwKRhc1M+X9ztx0wxMAXYndsHGuwa0OUZxDj7TcsQdCsfdeBHC1W4lR1n1f\n\
g15JcTAYtQKBgQDlBEODC146f8h+wd7mvvP0sgteo/f8c8mPURlJ6taVciXTg+mY\n\
qE/g4Iuijc6uwLcsw6FdA1/CTu2VuReziIPFiDpWX/yFxKd3w54m2oGfhuCj7ghB\n\
rmir049CoIeHHc6siNsAfzvRpq4w31KK0kTU3UMDcelgoA+WfuS6qIeKLQKBgGx0\n\
3eeLUUJVXQWEIHFoSNaTZnwXuvj0ePDS1ji8T8jxu0ElpTW14liEPa1teUjpqaU7\n\
+6hasa3IyC/AY9KufhhT6kf+PIIaApZayJWbvn0buMMZ/xEcFgcvSOuxOptkSbXz\n\
KGulCtsS8SahE0RQRuE9clhplpyOun4JOvzUDSXlAoGBAIEIZNwiyrx12nSDIsBe\n\
R188VXOLPAsUhHYMg1AY/LE6dOQCQHMln16wOiU+fbYuck7S311Sbs67nSWPpy6g\n\
tceYkfxlxKwxO4whmJ6oacWsgc8/FA/MuvhRh2f7Zsp8HC6gYIk2IF1R7Ytl6RbW\n\
IeSwi9LDMynpgP4ALIsSQPif\n\
-----END PRIVATE KEY-----\n\
";

const PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwR97BRHH7H88qeWTzGlL\n\
1lRk42G1fAgBOclwEuirLCMQhZ46kBwlSRR7JCjqtUMcqbwY85JIEFN0SewZE8bT\n\
uNgsSkikQAZ5dEDX7JeHxplyg9ZLL31bvPuBrC3oIdAg5Jt6rFZn0WYRc419QG+/\n\
cEr+PEG0bzpJzBtGKV73BXckIAmxDjoFvD6paGi4ek3oyVsfZ5YlwAiEbPk5wOoR\n\
CD6IfdRGnk7X5c7K9hU0oIEFd+i/fllWwuarN1DCFTiMfyLVWvpniZYIw0F4x752\n\
c1HpWcjdv35RI/m7Lgpt3knNsaE1L7TECRvfPgZ7n1XUB+/+TlBqheBnwuFZdSRs\n\
4QIDAQAB\n\
-----END PUBLIC KEY-----\n\
";

const USERS: &str = "\
# name, SHA-256 of {name}password\n\
mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n\
";

/// A server that knows one user.
pub fn users(padding: Padding) -> Users {
    Users::new(PRIVATE, USERS, padding).expect("the keys and users of the tests are whole")
}

/// A login with that server's key.
pub fn login(username: &str, password: &str, padding: Padding) -> Login {
    Login::new(username.into(), password.into(), PUBLIC, padding)
        .expect("the key of the tests is whole")
}
