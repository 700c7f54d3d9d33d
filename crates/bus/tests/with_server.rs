//! The bus with a real nats-server, each test with one of its own.

use std::time::Duration;

use async_nats::jetstream::stream::Config;
use goodput_bus::{Bus, BusError, Proof, Right, Seed, Server};
use goodput_testing::servers::{Nats, nats, nats_cluster, nats_with};
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(600);
const MOST_BYTES: u64 = 1 << 30;

/// A server, if there is one, and a connection to it.
async fn bus() -> Option<(Bus, Nats, TempDir)> {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let nats = nats(folder.path())?;
    let bus = Bus::connect(server(&nats.url())).await.expect("it listens");
    Some((bus, nats, folder))
}

fn server(url: &str) -> Server<'_> {
    Server { url, proof: Proof::None, authority: None, name: "test", inbox: "_INBOX.test" }
}

#[tokio::test]
async fn a_key_is_made_by_one_and_written_only_by_who_knows_its_revision() {
    let Some((bus, _nats, _folder)) = bus().await else { return };
    let keys = bus.keys("k", None).await.unwrap();
    let first = keys.create("a=2Eb", &1).await.unwrap().unwrap();
    assert_eq!(keys.create("a=2Eb", &2).await.unwrap(), None);
    let second = keys.update("a=2Eb", &3, first).await.unwrap().unwrap();
    assert_eq!(keys.update("a=2Eb", &4, first).await.unwrap(), None);
    let entry = keys.entry("a=2Eb").await.unwrap().unwrap();
    assert_eq!((&*entry.value, entry.revision), (&b"3"[..], second));
    assert!(entry.written_s > 1.7e9, "{entry:?}");
    assert!(keys.remove("a=2Eb", first).await.is_err(), "someone else has written it");
    keys.remove("a=2Eb", second).await.unwrap();
    assert_eq!(keys.entry("a=2Eb").await.unwrap(), None);
    assert!(keys.create("a=2Eb", &5).await.unwrap().is_some(), "it is free again");
    assert_eq!(keys.update("none", &1, 7).await.unwrap(), None);
}

#[tokio::test]
async fn a_key_that_nobody_renews_expires() {
    let Some((bus, _nats, _folder)) = bus().await else { return };
    let keys = bus.keys("k", Some(Duration::from_secs(1))).await.unwrap();
    let revision = keys.create("a", &1).await.unwrap().unwrap();
    while keys.entry("a").await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(keys.update("a", &2, revision).await.unwrap(), None);
    assert!(keys.create("a", &2).await.unwrap().is_some());
}

/// Longer than a busy machine holds a test up between two of its lines.
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_message_comes_again_until_it_is_done_and_one_is_out_at_a_time() {
    let Some((bus, _nats, _folder)) = bus().await else { return };
    let queue = bus.queue("Q", "q", LONG).await.unwrap();
    for id in ["1", "1", "2"] {
        queue.put("a", id, &id).await.unwrap();
    }
    queue.put("b", "of another", &0).await.unwrap();
    assert_eq!(queue.waiting("a", PATIENCE).await.unwrap(), 2);
    let mut inbox = queue.inbox("a", PATIENCE).await.unwrap();
    let first = inbox.next().await.unwrap();
    assert_eq!(first.body(), b"\"1\"");
    assert_eq!(queue.waiting("a", PATIENCE).await.unwrap(), 2, "also the one that is out");
    // A receiver that was killed. Its part is not for others.
    drop((first, inbox));
    let mut inbox = queue.inbox("a", PATIENCE).await.unwrap();
    let again = inbox.next().await.unwrap();
    assert_eq!(again.body(), b"\"1\"", "before the second one");
    again.working().await.unwrap();
    again.done().await.unwrap();
    let second = inbox.next().await.unwrap();
    assert_eq!(second.body(), b"\"2\"", "the same id is stored once");
    second.refuse().await.unwrap();
    assert_eq!(queue.waiting("a", PATIENCE).await.unwrap(), 0);
    queue.put("a", "3", &"3").await.unwrap();
    assert_eq!(inbox.next().await.unwrap().body(), b"\"3\"");
}

#[tokio::test]
async fn an_id_has_the_outcome_of_whoever_was_first() {
    let Some((bus, mut nats, _folder)) = bus().await else { return };
    let outcomes = bus.outcomes("O", "o", LONG, MOST_BYTES).await.unwrap();
    assert_eq!(outcomes.get("1").await.unwrap(), None);
    assert_eq!(outcomes.get("a.1").await.unwrap(), None);
    let mut heard = outcomes.hear("1").await.unwrap();
    assert!(outcomes.put_once("1", &"one").await.unwrap());
    assert!(!outcomes.put_once("1", &"two").await.unwrap());
    assert_eq!(heard.next().await, b"\"one\"");
    assert!(outcomes.put_once("2", &"two").await.unwrap());
    assert_eq!(outcomes.get("1").await.unwrap().unwrap().body, b"\"one\"");
    nats.kill();
    assert!(outcomes.get("1").await.is_err());
    nats.start();
    while outcomes.get("1").await.is_err() {}
    assert_eq!(outcomes.get("1").await.unwrap().unwrap().body, b"\"one\"", "it was stored");
    assert!(!outcomes.put_once("1", &"three").await.unwrap());
}

#[tokio::test]
async fn a_question_has_an_answer_if_someone_hears_it() {
    let Some((bus, _nats, _folder)) = bus().await else { return };
    assert_eq!(bus.ask("nobody", &1, PATIENCE).await.unwrap(), None);
    let mut questions = bus.questions("somebody").await.unwrap();
    let answers = async {
        let question = questions.next().await.unwrap();
        assert_eq!(question.body(), b"1");
        question.answer("_INBOX.test", &2).await.unwrap();
    };
    let (answer, ()) = tokio::join!(bus.ask("somebody", &1, PATIENCE), answers);
    assert_eq!(answer.unwrap().unwrap(), b"2");
    bus.tell("nobody", &1).await.unwrap();
}

#[tokio::test]
async fn a_question_is_answered_only_where_its_caller_hears_answers() {
    let Some((bus, _nats, _folder)) = bus().await else { return };
    let mut questions = bus.questions("somebody").await.unwrap();
    let refused = async {
        let question = questions.next().await.unwrap();
        question.answer("_INBOX.tes", &2).await.unwrap_err()
    };
    tokio::select! {
        answer = bus.ask("somebody", &1, PATIENCE) => panic!("{answer:?}"),
        why = refused => assert!(why.to_string().contains("wanted at _INBOX.test."), "{why}"),
    }
}

#[tokio::test]
async fn who_can_t_connect_is_told_why() {
    let why = Bus::connect(server("nats://127.0.0.1:1")).await.unwrap_err();
    assert!(matches!(why, BusError::Connect { .. }));
    assert!(why.to_string().contains("nats://127.0.0.1:1"), "{why}");
    let server = Server { proof: Proof::Credentials("no creds"), ..server("nats://127.0.0.1:1") };
    let why = Bus::connect(server).await.unwrap_err();
    assert!(matches!(why, BusError::Credentials(_)), "{why}");
}

#[tokio::test]
async fn what_is_written_to_a_key_is_heard() {
    let Some((bus, _nats, _folder)) = bus().await else { return };
    let keys = bus.keys("k", None).await.unwrap();
    let mut heard = keys.hear("a").await.unwrap();
    keys.put("b", &1).await.unwrap();
    keys.put("a", &2).await.unwrap();
    assert_eq!(heard.next().await, b"2");
}

#[tokio::test]
async fn a_stream_that_the_servers_refuse_is_not_waited_for() {
    let Some((bus, _nats, _folder)) = bus().await else { return };
    bus.queue("Q", "q", LONG).await.unwrap();
    let why = bus.queue("R", "q", LONG).await.unwrap_err();
    assert!(!why.may_pass(), "{why}");
}

#[tokio::test]
async fn what_servers_without_a_leader_do_not_answer_may_pass() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut cluster) = nats_cluster(folder.path()) else { return };
    cluster[1..].iter_mut().for_each(Nats::kill);
    let bus = Bus::connect(server(&cluster[0].url())).await.unwrap();
    let why = bus.keys("k", None).await.unwrap_err();
    assert!(why.may_pass(), "{why}");
    assert!(why.to_string().contains("electing their leader"), "{why}");
    cluster[1..].iter_mut().for_each(Nats::start);
    until(async || bus.keys("k", None).await).await;
}

/// A server that is killed takes nothing with it, whichever of the three it is. One server alone, as all other tests have, says
/// that it keeps no copies, and gets one.
#[tokio::test]
async fn a_cluster_keeps_what_a_killed_server_had() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut cluster) = nats_cluster(folder.path()) else { return };
    let urls = cluster.each_ref().map(Nats::url).join(",");
    let bus = Bus::connect(server(&urls)).await.unwrap();
    // They elect a leader first, and it learns of all servers.
    let jetstream =
        async_nats::jetstream::new(async_nats::connect(cluster[0].url()).await.unwrap());
    let copied = Config { name: "C".into(), num_replicas: 3, ..Config::default() };
    until(async || jetstream.create_stream(copied.clone()).await).await;
    let keys = until(async || bus.keys("k", None).await).await;
    let outcomes = until(async || bus.outcomes("O", "o", LONG, MOST_BYTES).await).await;
    until(async || keys.create("a", &1).await).await;
    until(async || outcomes.put_once("t", &1).await).await;
    for (number, killed) in cluster.iter_mut().enumerate() {
        killed.kill();
        // A copy that is behind has nothing yet.
        let entry = until(async || match keys.entry("a").await {
            Ok(found) => found.ok_or_else(|| String::from("nothing")),
            Err(why) => Err(why.to_string()),
        });
        let entry = entry.await;
        assert_eq!(entry.value, b"1", "{number} was killed");
        assert_eq!(until(async || keys.create("a", &2).await).await, None, "it is there");
        assert!(!until(async || outcomes.put_once("t", &2).await).await, "there is one");
        killed.start();
    }
}

#[tokio::test]
async fn who_has_no_right_is_told_which_at_once_and_what_may_still_come_is_waited_for() {
    let (folder, key) = (tempfile::tempdir().unwrap(), Seed::user());
    let configuration = format!(
        "authorization {{ users = [ {{ nkey: {}, permissions: {{ publish: {{ allow: [ \"$JS.API.STREAM.INFO.KV_k\" ] }}, \
         subscribe: {{ allow: [ \"_INBOX.a.>\" ] }} }} }} ] }}\n",
        key.public()
    );
    let Some(nats) = nats_with(folder.path(), &configuration) else { return };
    let url = nats.url();
    let login = async |inbox: &str| {
        let proof = Proof::Nkey(&key);
        Bus::connect(Server { url: &url, proof, authority: None, name: "test", inbox }).await
    };
    let own = login("_INBOX.a").await.unwrap();
    let why = own.keys("k", None).await.unwrap_err();
    assert!(matches!(&why, BusError::NotThere { stream, .. } if stream == "KV_k"), "{why}");
    assert!(why.may_pass() && why.to_string().contains(&key.public()), "{why}");
    let why = own.keys("l", None).await.unwrap_err();
    let BusError::Forbidden { refusal, .. } = &why else { panic!("{why}") };
    assert_eq!(refusal.right, Right::Publish);
    assert_eq!(refusal.subject, "$JS.API.STREAM.INFO.KV_l");
    assert!(!why.may_pass(), "{why}");
    let why = own.ask("somebody", &1, PATIENCE).await.unwrap_err().to_string();
    assert!(why.contains("does not let the key") && why.contains("publish to somebody"), "{why}");
    let mut questions = own.questions("somebody").await.unwrap();
    let why = questions.next().await.map(drop).unwrap_err();
    assert!(why.to_string().contains("hear somebody"), "{why}");
    let other = login("_INBOX.b").await.unwrap();
    let why = other.keys("k", None).await.unwrap_err();
    let BusError::Forbidden { refusal, .. } = &why else { panic!("{why}") };
    assert_eq!(refusal.right, Right::Subscribe, "it hears no answer");
}

#[tokio::test]
async fn a_user_that_the_server_no_longer_knows_is_not_let_wait_for_ever() {
    let (folder, key, other) = (tempfile::tempdir().unwrap(), Seed::user(), Seed::user());
    let users =
        |key: &Seed| format!("authorization {{ users = [ {{ nkey: {} }} ] }}\n", key.public());
    let Some(mut nats) = nats_with(folder.path(), &users(&key)) else { return };
    let url = nats.url();
    let server = Server { proof: Proof::Nkey(&key), ..server(&url) };
    let bus = Bus::connect(server).await.unwrap();
    let keys = bus.keys("k", None).await.unwrap();
    keys.create("a", &1).await.unwrap();
    nats.kill();
    std::fs::write(folder.path().join("nats.conf"), users(&other)).unwrap();
    nats.start();
    let why = until(async || match keys.entry("a").await {
        Err(why @ BusError::Forbidden { .. }) => Ok(why),
        other => Err(format!("{other:?}")),
    });
    let why = why.await.to_string();
    assert!(why.contains("can't read the key a of the bucket k"), "{why}");
    assert!(why.contains(&format!("does not let the key {} in any more", key.public())), "{why}");
}

#[tokio::test]
async fn a_server_without_room_says_so_and_what_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let small = "jetstream { max_memory_store: 1MB, max_file_store: 100KB }\n";
    let Some(nats) = nats_with(folder.path(), small) else { return };
    let bus = Bus::connect(server(&nats.url())).await.unwrap();
    let queue = bus.queue("Q", "q", LONG).await.unwrap();
    let long = "x".repeat(10_000);
    let mut refused = None;
    for number in 0..50 {
        if let Err(why) = queue.put("a", &number.to_string(), &long).await {
            refused = Some(why);
            break;
        }
    }
    let why = refused.expect("100 kB have no room for 500");
    let said = why.to_string();
    assert!(said.contains("the queue of a (stream Q)"), "{said}");
    assert!(said.contains("no room left") && said.contains("max_file_store"), "{said}");
    assert!(why.may_pass(), "someone may make room");
}

#[tokio::test]
async fn outcomes_that_fill_their_room_lose_the_oldest_and_take_new_ones() {
    let Some((bus, _nats, _folder)) = bus().await else { return };
    let outcomes = bus.outcomes("O", "o", LONG, 100_000).await.unwrap();
    let room = outcomes.room().await.unwrap();
    assert_eq!((room.bytes, room.most_bytes, room.is_full()), (0, Some(100_000), false));
    let long = "x".repeat(10_000);
    for number in 0..30 {
        assert!(outcomes.put_once(&number.to_string(), &long).await.unwrap(), "{number}");
    }
    assert_eq!(outcomes.get("0").await.unwrap(), None);
    assert!(outcomes.get("29").await.unwrap().is_some());
    let room = outcomes.room().await.unwrap();
    assert!(room.is_full() && room.bytes <= 100_000 && room.oldest_s > 0.0, "{room:?}");
}

#[tokio::test]
async fn a_server_with_little_room_reserves_less_or_nothing() {
    for (store, most) in [("100MB", Some(MOST_BYTES / 16)), ("1MB", None)] {
        let folder = tempfile::tempdir().unwrap();
        let configuration = format!("jetstream {{ max_file_store: {store} }}\n");
        let Some(nats) = nats_with(folder.path(), &configuration) else { return };
        let bus = Bus::connect(server(&nats.url())).await.unwrap();
        let outcomes = bus.outcomes("O", "o", LONG, MOST_BYTES).await.unwrap();
        assert_eq!(outcomes.room().await.unwrap().most_bytes, most, "{store}");
        assert!(outcomes.put_once("1", &1).await.unwrap());
    }
}

/// What is tried until it goes well.
async fn until<T, E: std::fmt::Display>(mut tried: impl AsyncFnMut() -> Result<T, E>) -> T {
    let began = std::time::Instant::now();
    loop {
        match tried().await {
            Ok(done) => return done,
            Err(why) => assert!(began.elapsed() < LONG, "{why}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// As if its host was replaced: the connection is made again, and nothing is there.
#[tokio::test]
async fn streams_of_a_server_that_was_set_up_anew_are_lost_and_can_be_made_again() {
    let Some((bus, mut nats, _folder)) = bus().await else { return };
    bus.keys("B", None).await.unwrap();
    nats.kill();
    nats.lose_storage();
    nats.start();
    assert_eq!(bus.lost().await, "KV_B");
    let again = bus.keys("B", None).await.unwrap();
    assert!(again.create("k", &1).await.unwrap().is_some());
}
