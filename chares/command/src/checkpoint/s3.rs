//! Object stores that speak as S3 does, as places of checkpoints.

use runtime::checkpoint::Objects;
use runtime::failure::{Failure, Kind};
use rusty_s3::actions::ListObjectsV2;
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

/// What places in an object store begin with.
const SCHEME: &str = "s3://";
/// For how long a signed request can be made.
const VALID: Duration = Duration::from_secs(3600);
/// A store that is busy, or a line that breaks, is asked again after these times.
const WAITS: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(3)];
/// For so long nothing may come or go.
const PATIENCE: Duration = Duration::from_secs(60);
/// A page of a list has a thousand names, and other answers are shorter.
const ANSWER_MAX_BYTES: u64 = 4 << 20;

/// `s3://BUCKET/PREFIX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    bucket: String,
    /// Empty, or with a slash at its end.
    prefix: String,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (bucket, prefix) =
            text.strip_prefix(SCHEME).map(|rest| rest.split_once('/').unwrap_or((rest, ""))).ok_or("")?;
        let names: Vec<&str> = prefix.split('/').filter(|name| !name.is_empty()).collect();
        if bucket.is_empty() || names.iter().any(|name| matches!(*name, "." | "..")) {
            return Err(format!(
                "`{text}` is no place in an object store: write {SCHEME}BUCKET or {SCHEME}BUCKET/PREFIX"
            ));
        }
        let prefix = names.iter().map(|name| format!("{name}/")).collect();
        Ok(Self { bucket: bucket.into(), prefix })
    }
}

impl Address {
    /// Whether that is the address of something in an object store, right or wrong.
    pub(super) fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The same failure, which says where it was.
    pub(super) fn named(&self, failure: Failure) -> Failure {
        let Failure { kind, sentence } = failure;
        let Self { bucket, prefix } = self;
        let sentence = if sentence.contains(SCHEME) {
            sentence
        } else {
            format!("{SCHEME}{bucket}/{prefix}: {sentence}")
        };
        Failure::new(kind, sentence)
    }

    /// The store, as the usual variables of the environment say how to reach it.
    ///
    /// # Errors
    /// If they do not say enough, or something that cannot be.
    pub(super) fn open(&self) -> Result<Store, Failure> {
        Store::new(self, |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
            .map_err(|sentence| Failure::new(Kind::Usage, sentence))
    }
}

/// A bucket, or what has one prefix there.
pub(super) struct Store {
    agent: Agent,
    bucket: Bucket,
    credentials: Credentials,
    address: Address,
}

impl Store {
    fn new(address: &Address, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| "us-east-1".into());
        let endpoint = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
        // Other stores than Amazon's have no names of hosts for buckets, and its certificates are for no dots in them.
        let style = if endpoint.is_some() || address.bucket.contains('.') {
            UrlStyle::Path
        } else {
            UrlStyle::VirtualHost
        };
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let url = endpoint
            .parse()
            .map_err(|error| format!("AWS_ENDPOINT_URL: `{endpoint}` is no address: {error}"))?;
        let bucket = Bucket::new(url, style, address.bucket.clone(), region)
            .map_err(|error| format!("bucket {} at {endpoint}: {error}", address.bucket))?;
        let credentials = credentials(&variable)?;
        let tls = match variable("AWS_CA_BUNDLE") {
            Some(file) => TlsConfig::builder().root_certs(certificates(&file)?).build(),
            None => TlsConfig::default(),
        };
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .timeout_per_write(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .tls_config(tls)
            .build();
        Ok(Self { agent: agent.into(), bucket, credentials, address: address.clone() })
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.address.prefix)
    }

    fn failure(&self, name: &str, sentence: impl std::fmt::Display) -> Failure {
        let Address { bucket, prefix } = &self.address;
        Failure::new(Kind::Unavailable, format!("{SCHEME}{bucket}/{prefix}{name}: {sentence}"))
    }

    /// The bytes of the answer to what is asked, and whether there is such an object. Asks again what may have failed by chance.
    fn ask(
        &self,
        name: &str,
        max_bytes: u64,
        ask: impl Fn() -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let mut waits = WAITS.iter();
        loop {
            let answer = ask().and_then(|mut answer| {
                let limit = if answer.status().is_success() { max_bytes } else { ANSWER_MAX_BYTES };
                Ok((answer.status(), answer.body_mut().with_config().limit(limit).read_to_vec()?))
            });
            let (sentence, may_pass) = match answer {
                Ok((status, bytes)) if status.is_success() => return Ok(Some(bytes)),
                Ok((StatusCode::NOT_FOUND, bytes)) if told(&bytes, "Code") != Some("NoSuchBucket") => {
                    return Ok(None);
                }
                Ok((status, bytes)) => {
                    let is_busy = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                    (refusal(status, &bytes), is_busy)
                }
                Err(error) => {
                    let may_pass = matches!(
                        error,
                        ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::Protocol(_)
                    );
                    (format!("{} cannot be asked: {error}", self.bucket.base_url()), may_pass)
                }
            };
            match waits.next().filter(|_| may_pass) {
                Some(wait) => thread::sleep(*wait),
                None => return Err(self.failure(name, sentence)),
            }
        }
    }
}

impl Objects for Store {
    fn names(&mut self, begin: &str) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        let mut token = None::<String>;
        loop {
            let mut list = self.bucket.list_objects_v2(Some(&self.credentials));
            list.with_prefix(self.key(begin));
            if let Some(token) = token {
                list.with_continuation_token(token);
            }
            let page =
                self.ask(begin, ANSWER_MAX_BYTES, || self.agent.get(list.sign(VALID).as_str()).call())?;
            let page = page.ok_or_else(|| self.failure("", "there is no such bucket"))?;
            let page = ListObjectsV2::parse_response(&String::from_utf8_lossy(&page));
            let page = page
                .map_err(|error| self.failure("", format!("its list of objects cannot be read: {error}")))?;
            let keys =
                page.contents.iter().filter_map(|object| object.key.strip_prefix(&self.address.prefix));
            names.extend(keys.map(String::from));
            token = page.next_continuation_token;
            if token.is_none() {
                return Ok(names);
            }
        }
    }

    fn get(&mut self, name: &str, max_bytes: u64) -> Result<Option<bytes::Bytes>, Failure> {
        let key = self.key(name);
        let get = self.bucket.get_object(Some(&self.credentials), &key);
        let got = self.ask(name, max_bytes, || self.agent.get(get.sign(VALID).as_str()).call())?;
        Ok(got.map(Into::into))
    }

    fn put(&mut self, name: &str, bytes: bytes::Bytes) -> Result<(), Failure> {
        let key = self.key(name);
        let put = self.bucket.put_object(Some(&self.credentials), &key);
        let done =
            self.ask(name, ANSWER_MAX_BYTES, || self.agent.put(put.sign(VALID).as_str()).send(&bytes[..]))?;
        done.map(drop).ok_or_else(|| self.failure(name, "the store does not take it"))
    }
}

/// Who asks: by the environment, or by the file that other programs for S3 read.
fn credentials(variable: &impl Fn(&str) -> Option<String>) -> Result<Credentials, String> {
    let of = |key: Option<String>, secret: Option<String>, token: Option<String>| match (key?, secret?, token)
    {
        (key, secret, Some(token)) => Some(Credentials::new_with_token(key, secret, token)),
        (key, secret, None) => Some(Credentials::new(key, secret)),
    };
    let named =
        of(variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN"));
    if let Some(credentials) = named {
        return Ok(credentials);
    }
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".aws/credentials"));
    let file = variable("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from).or_else(home);
    let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".into());
    let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let mut values = values_of(&text, &profile);
    let mut value = |name: &str| values.remove(name);
    let found = of(value("aws_access_key_id"), value("aws_secret_access_key"), value("aws_session_token"));
    found.ok_or_else(|| {
        let place =
            file.map_or_else(String::new, |file| format!(", or profile {profile} in {}", file.display()));
        format!("who asks the object store? Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY{place}")
    })
}

/// What a file of profiles says of one.
fn values_of(text: &str, profile: &str) -> BTreeMap<String, String> {
    let header = format!("[{profile}]");
    let lines = text.lines().map(str::trim).skip_while(|line| *line != header).skip(1);
    let pairs = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned())).collect()
}

fn certificates(file: &str) -> Result<RootCerts, String> {
    let bad = |why: String| format!("AWS_CA_BUNDLE: {file}: {why}");
    let pem = fs::read(file).map_err(|error| bad(error.to_string()))?;
    let read =
        parse_pem(&pem).collect::<Result<Vec<PemItem<'_>>, _>>().map_err(|error| bad(error.to_string()))?;
    let certificates = read.into_iter().filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<Certificate<'static>> = certificates.collect();
    if certificates.is_empty() {
        Err(bad("it has no certificate".into()))
    } else {
        Ok(RootCerts::Specific(Arc::new(certificates)))
    }
}

/// What an answer in XML says under that name.
fn told<'a>(answer: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(answer).ok()?;
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once("</").map(|(told, _)| told)
}

fn refusal(status: StatusCode, answer: &[u8]) -> String {
    let of = |name| told(answer, name).map(|told| format!(", {told}")).unwrap_or_default();
    format!("the store answers {status}{}{}", of("Code"), of("Message"))
}

#[cfg(test)]
mod tests;
