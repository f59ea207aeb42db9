//! What a store that listens on this machine is asked, and what its answers become.

use super::*;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// A store that has one bucket. It answers so many requests that it is busy, before it does what it is asked.
#[derive(Default)]
struct Fake {
    objects: BTreeMap<String, Vec<u8>>,
    busy: usize,
    asked: Vec<String>,
}

impl Fake {
    fn answer(&mut self, method: &str, target: &str, asker: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
        if let Some(path) = target.strip_prefix("/latest/") {
            return (200, told_of_machine(path).into());
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let of = |name: &str| {
            let value = query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))?;
            Some(value.replace("%2F", "/"))
        };
        self.asked.push(format!("{method} {path}"));
        if self.busy > 0 {
            self.busy -= 1;
            return (
                503,
                b"<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>".into(),
            );
        }
        if !asker.starts_with("AWS4-HMAC-SHA256 Credential=ann/") || !asker.contains("Signature=") {
            return (403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>".into());
        }
        let Some(key) = path.strip_prefix("/runs").filter(|key| key.is_empty() || key.starts_with('/'))
        else {
            return (404, b"<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>".into());
        };
        let key = key.trim_start_matches('/');
        match method {
            "PUT" => {
                self.objects.insert(key.into(), body);
                (200, Vec::new())
            }
            _ if key.is_empty() => {
                let begin = of("prefix").unwrap_or_default();
                let after = of("continuation-token").unwrap_or_default();
                let keys = self.objects.keys().filter(|key| key.starts_with(&begin) && **key > after);
                let keys: Vec<&String> = keys.take(3).collect();
                let page: String =
                    keys.iter().map(|key| format!("<Contents><Key>{key}</Key><LastModified>2026-11-29T21:00:00.000Z</LastModified><Size>{}</Size></Contents>", self.objects[*key].len())).collect();
                let more = match keys.last().filter(|_| keys.len() == 3) {
                    Some(last) => format!(
                        "<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>"
                    ),
                    None => "<IsTruncated>false</IsTruncated>".into(),
                };
                let list = "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
                (200, format!("{list}{page}{more}</ListBucketResult>").into())
            }
            _ => match self.objects.get(key) {
                Some(object) => (200, object.clone()),
                None => (404, b"<Error><Code>NoSuchKey</Code></Error>".into()),
            },
        }
    }
}

/// What Amazon's machines are told of the role that they have.
fn told_of_machine(path: &str) -> &'static str {
    match path {
        "api/token" => "token",
        "meta-data/iam/security-credentials/" => "saver",
        _ => {
            r#"{"AccessKeyId": "ann", "SecretAccessKey": "secret", "Token": "t", "Expiration": "2050-01-01T00:00:00Z"}"#
        }
    }
}

/// Reads one request after the other.
fn serve(stream: TcpStream, fake: &Mutex<Fake>) -> Option<()> {
    let mut from = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if from.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let lower = head.to_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        from.read_exact(&mut body).ok()?;
        let mut words = head.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let asker = head.lines().find_map(|line| {
            line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        });
        let asker = asker.map_or("", |(_, asker)| asker);
        let (status, answer) =
            fake.lock().unwrap_or_else(PoisonError::into_inner).answer(method, target, asker, body);
        let head = format!(
            "HTTP/1.1 {status} it is\r\nETag: \"1\"\r\nLast-Modified: Sun, 29 Nov 2026 21:00:00 GMT\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        from.get_mut().write_all(&[head.as_bytes(), &answer].concat()).ok()?;
    }
}

/// Where the store listens.
fn listen() -> (String, Arc<Mutex<Fake>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let fake = Arc::new(Mutex::new(Fake::default()));
    let of = Arc::clone(&fake);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, of) = (stream.unwrap(), Arc::clone(&of));
            thread::spawn(move || serve(stream, &of));
        }
    });
    (endpoint, fake)
}

fn store(address: &str, endpoint: &str, user: &str) -> Store {
    let who = [("AWS_ACCESS_KEY_ID", user), ("AWS_SECRET_ACCESS_KEY", "secret")];
    store_of(address, &[&[("AWS_ENDPOINT_URL", endpoint)], &who[..]].concat()).expect("a store")
}

fn store_of(address: &str, variables: &[(&str, &str)]) -> Result<Store, String> {
    let environment = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    Store::new(&address.parse()?, environment)
}

#[test]
fn objects_come_back_and_lists_have_as_many_pages_as_it_takes() {
    let (endpoint, fake) = listen();
    let mut store = store("s3://runs/ann/first", &endpoint, "ann");
    let names: Vec<String> = (0..7).map(|n| format!("pieces/{n}")).collect();
    for name in &names {
        store.put(name, bytes::Bytes::from(format!("bytes of {name}"))).unwrap();
    }
    store.put("generation-000001/COMMIT", bytes::Bytes::new()).unwrap();
    assert_eq!(store.names("pieces/").unwrap(), names);
    assert_eq!(store.names("generation-").unwrap(), ["generation-000001/COMMIT"]);
    assert_eq!(store.get("pieces/3", 100).unwrap().unwrap(), "bytes of pieces/3");
    assert_eq!(store.get("pieces/9", 100).unwrap(), None);
    assert!(store.get("pieces/3", 5).is_err(), "longer than it may be");
    assert!(fake.lock().unwrap().objects.contains_key("ann/first/pieces/3"));
}

#[test]
fn a_busy_store_is_asked_again_and_a_refusal_is_told() {
    let (endpoint, fake) = listen();
    let mut busy = store("s3://runs", &endpoint, "ann");
    fake.lock().unwrap().busy = 1;
    busy.put("pieces/1", bytes::Bytes::from_static(b"one")).unwrap();
    assert_eq!(fake.lock().unwrap().asked, ["PUT /runs/pieces/1"; 2]);
    let said = |outcome: Result<Vec<String>, Failure>| outcome.unwrap_err().sentence;
    let denied = said(store("s3://runs/a", &endpoint, "bob").names("generation-"));
    assert_eq!(
        denied,
        "s3://runs/a/generation-: the store answers 403 Forbidden, AccessDenied, Access Denied"
    );
    let none = said(store("s3://walks", &endpoint, "ann").names(""));
    assert!(none.contains("404 Not Found, NoSuchBucket"), "{none}");
}

#[test]
fn addresses_are_buckets_and_prefixes() {
    let address = |bucket: &str, prefix: &str| Ok(Address { bucket: bucket.into(), prefix: prefix.into() });
    assert_eq!("s3://runs".parse(), address("runs", ""));
    assert_eq!("s3://runs/".parse(), address("runs", ""));
    assert_eq!("s3://runs/ann//first/".parse(), address("runs", "ann/first/"));
    for wrong in ["s3://", "s3:///ann", "s3://runs/../other", "s3://my runs/a", "s3://runs:a"] {
        assert!(wrong.parse::<Address>().unwrap_err().contains("write s3://BUCKET"), "{wrong}");
    }
}

#[test]
fn who_asks_is_in_the_environment_or_in_the_file_of_profiles() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    fs::write(
        &file,
        "[default]\naws_access_key_id = a\naws_secret_access_key = b\n\n[lab]\naws_access_key_id=c\n",
    )
    .unwrap();
    let file = file.display().to_string();
    let of = |profile: &str| {
        let variables = BTreeMap::from([
            ("AWS_SHARED_CREDENTIALS_FILE".into(), file.clone()),
            ("AWS_PROFILE".into(), profile.into()),
        ]);
        credentials(&variables)
    };
    assert_eq!(
        of("default").unwrap(),
        [("AWS_ACCESS_KEY_ID".into(), "a".into()), ("AWS_SECRET_ACCESS_KEY".into(), "b".into())]
    );
    let said = of("lab").unwrap_err();
    assert!(said.contains("Set AWS_ACCESS_KEY_ID") && said.contains("profile lab in "), "{said}");
}

#[test]
fn a_machine_with_a_role_needs_no_key_and_one_without_is_told_what_to_set() {
    let (endpoint, _fake) = listen();
    let variables = [("AWS_ENDPOINT_URL", &endpoint[..]), ("AWS_METADATA_ENDPOINT", &endpoint)];
    let mut of_role = store_of("s3://runs/ann", &variables).unwrap();
    of_role.put("pieces/1", Bytes::from_static(b"one")).unwrap();
    assert_eq!(of_role.get("pieces/1", 3).unwrap().unwrap(), "one");
    let closed = [("AWS_ENDPOINT_URL", &endpoint[..]), ("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")];
    let said = store_of("s3://runs/ann", &closed).unwrap().get("pieces/1", 3).unwrap_err();
    assert_eq!(said.kind, Kind::Unavailable);
    assert!(said.sentence.contains("Set AWS_ACCESS_KEY_ID"), "{}", said.sentence);
}

#[test]
fn variables_that_cannot_be_are_refused_by_name() {
    let who = [("AWS_ACCESS_KEY_ID", "ann"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let wrong = [
        ("AWS_ENDPOINT_URL", "store.lab:9000/a b"),
        ("AWS_ENDPOINT_URL_S3", "store"),
        ("AWS_ENDPOINT_URL_STS", "a b"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://a b"),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/a b"),
        ("AWS_METADATA_ENDPOINT", "machine"),
        ("AWS_REGION", "eu west"),
        ("AWS_SESSION_TOKEN", "a\nb"),
        ("AWS_CA_BUNDLE", "/no/such/file"),
        ("AWS_SKIP_SIGNATURE", "perhaps"),
    ];
    for (name, value) in wrong {
        let said = store_of("s3://runs", &[&who[..], &[(name, value)]].concat()).err();
        let said = said.unwrap_or_else(|| panic!("{name}={value} passes"));
        assert!(said.contains(name) || name == "AWS_SKIP_SIGNATURE", "{name}: {said}");
    }
    let half = store_of("s3://runs", &who[..1]).err().unwrap();
    assert!(half.contains("SecretAccessKey"), "{half}");
}
