//! A login with a file of credentials, at a real nats-server that knows its users by the JWTs of an operator: an operator signs
//! accounts, an account signs users (docs.nats.io, "In Depth JWT Guide").

use base64ct::{Base64UrlUnpadded, Encoding};
use goodput_bus::{Bus, BusError, Proof, Server};
use goodput_testing::servers::nats_with;
use nkeys::KeyPair;
use serde_json::{Value, json};

/// What `issuer` says of `subject`, signed.
fn jwt(issuer: &KeyPair, subject: &KeyPair, says: &Value) -> String {
    let part = |json: Value| Base64UrlUnpadded::encode_string(json.to_string().as_bytes());
    let head = part(json!({ "typ": "JWT", "alg": "ed25519-nkey" }));
    let (by, of) = (issuer.public_key(), subject.public_key());
    let body = json!({ "jti": "x", "iat": 1, "iss": by, "sub": of, "name": "x", "nats": says });
    let signed = format!("{head}.{}", part(body));
    let signature = issuer.sign(signed.as_bytes()).expect("it has a seed");
    format!("{signed}.{}", Base64UrlUnpadded::encode_string(&signature))
}

/// What the operator says of an account that may store, or may not: the server refuses the one of the system if it may.
fn account(operator: &KeyPair, account: &KeyPair, stores: bool) -> String {
    let any = ["subs", "conn", "leaf", "imports", "exports", "data", "payload"];
    let streams = ["mem_storage", "disk_storage", "streams", "consumer"];
    let streams = streams.into_iter().filter(|_| stores);
    let mut limits: Value = any.into_iter().chain(streams).map(|name| (name, -1)).collect();
    limits["wildcards"] = true.into();
    jwt(operator, account, &json!({ "type": "account", "version": 2, "limits": limits }))
}

/// The file that `nsc generate creds` makes for a user of this account.
fn credentials(account: &KeyPair) -> String {
    let user = KeyPair::new_user();
    let says = json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 });
    let (jwt, seed) = (jwt(account, &user, &says), user.seed().expect("it has one"));
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

#[tokio::test]
async fn a_user_of_an_account_that_the_server_knows_gets_in_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let operator = KeyPair::new_operator();
    let [known, system] = [KeyPair::new_account(), KeyPair::new_account()];
    let preload = [(&known, true), (&system, false)].map(|(own, stores)| {
        format!("{}: \"{}\"", own.public_key(), account(&operator, own, stores))
    });
    let own = jwt(&operator, &operator, &json!({ "type": "operator", "version": 2 }));
    let configuration = format!(
        "operator: \"{own}\"\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{ {} }}\n",
        system.public_key(),
        preload.join(", ")
    );
    let Some(nats) = nats_with(folder.path(), &configuration) else { return };
    let url = nats.url();
    let login = async |proof: Proof<'_>| {
        let (name, inbox) = ("test", "_INBOX.test");
        Bus::connect(Server { url: &url, proof, authority: None, name, inbox }).await
    };
    let bus = login(Proof::Credentials(&credentials(&known))).await.unwrap();
    let keys = bus.keys("k", None).await.unwrap();
    assert!(keys.create("a", &1).await.unwrap().is_some());
    let stranger = credentials(&KeyPair::new_account());
    for proof in [Proof::Credentials(&stranger), Proof::None] {
        let why = login(proof).await.map(drop).unwrap_err();
        assert!(matches!(why, BusError::Connect { .. }), "{why}");
        let said = why.to_string();
        assert!(said.contains("the server does not let") && !said.contains("violation"), "{said}");
    }
}
