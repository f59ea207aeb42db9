//! Object stores that speak as S3 does, as places of checkpoints.

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore as _};
use object_store::path::Path as Key;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, GetOptions, ObjectStore as _, ObjectStoreExt as _,
    RetryConfig,
};
use runtime::checkpoint::Objects;
use runtime::failure::{Failure, Kind};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use ureq::Agent;
use ureq::http::{Method, Request, StatusCode, Uri, request, response};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// What places in an object store begin with.
const SCHEME: &str = "s3://";
/// A store that is busy, or a line that breaks, is asked again so often,
const RETRIES: usize = 3;
/// first after this time, and later after longer ones.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// For so long nothing may come or go.
const PATIENCE: Duration = Duration::from_secs(60);
/// A page of a list has a thousand names, and other answers are shorter.
const ANSWER_MAX_BYTES: u64 = 4 << 20;
/// Who asks: a key, its secret, and a token that some have.
const WHAT_IS_SENT: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
/// Each of these says who asks, or that nobody in particular does.
const WHO: [&str; 6] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
];

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
        if bucket.is_empty() || !is_name(bucket) || names.iter().any(|name| matches!(*name, "." | "..")) {
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
        let texts = std::env::vars_os().map(|(name, value)| (name.into_string(), value.into_string()));
        let environment = texts.filter_map(|(name, value)| Some((name.ok()?, value.ok()?)));
        Store::new(self, environment).map_err(|sentence| Failure::new(Kind::Usage, sentence))
    }
}

/// A bucket, or what has one prefix there.
pub(super) struct Store {
    objects: AmazonS3,
    /// Waits between attempts.
    runtime: Runtime,
    address: Address,
    refusal: Arc<Mutex<Option<Refusal>>>,
    /// What to set, if nothing that was set says who asks.
    missing: Option<String>,
}

impl Store {
    /// # Errors
    /// If the variables say something that cannot be.
    fn new(address: &Address, environment: impl Iterator<Item = (String, String)>) -> Result<Self, String> {
        let set = environment.filter(|(name, _)| name.starts_with("AWS_") || name == "HOME");
        let trimmed = set.map(|(name, value)| (name, value.trim().to_owned()));
        let mut variables: BTreeMap<String, String> =
            trimmed.filter(|(_, value)| !value.is_empty()).collect();
        let mut missing = None;
        if !WHO.iter().any(|name| variables.contains_key(*name)) {
            match credentials(&variables) {
                Ok(found) => variables.extend(found),
                Err(sentence) => missing = Some(sentence),
            }
        }
        check(&variables)?;
        let refusal = Arc::default();
        let tls = match variables.get("AWS_CA_BUNDLE") {
            Some(file) => TlsConfig::builder().root_certs(certificates(file)?).build(),
            None => TlsConfig::default(),
        };
        let mut builder = AmazonS3Builder::new()
            .with_client_options(ClientOptions::new().with_connect_timeout(PATIENCE))
            .with_http_connector(Connector { tls, refusal: Arc::clone(&refusal) });
        for (name, value) in &variables {
            if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
                builder = builder.with_config(key, value);
            }
        }
        let backoff = BackoffConfig { init_backoff: FIRST_WAIT, ..BackoffConfig::default() };
        let retry = RetryConfig { backoff, max_retries: RETRIES, ..RetryConfig::default() };
        let objects = builder.with_bucket_name(&address.bucket).with_retry(retry).build();
        let objects = objects
            .map_err(|error| format!("the variables AWS_... of the environment: {}", reason(&error)))?;
        let runtime =
            Builder::new_current_thread().enable_time().build().map_err(|error| error.to_string())?;
        Ok(Self { objects, runtime, address: address.clone(), refusal, missing })
    }

    fn key(&self, name: &str) -> Result<Key, Failure> {
        let key = format!("{}{name}", self.address.prefix);
        Key::parse(&key).map_err(|error| self.failure(name, error))
    }

    fn failure(&self, name: &str, sentence: impl std::fmt::Display) -> Failure {
        let Address { bucket, prefix } = &self.address;
        Failure::new(Kind::Unavailable, format!("{SCHEME}{bucket}/{prefix}{name}: {sentence}"))
    }

    /// What came of a request; none if there is no such object.
    fn ask<T>(
        &self,
        name: &str,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<Option<T>, Failure> {
        let error = match self.runtime.block_on(request) {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) => error,
        };
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        let has_bucket = refusal.as_ref().is_none_or(|refusal| !refusal.is_of_bucket);
        if matches!(error, object_store::Error::NotFound { .. }) && has_bucket {
            return Ok(None);
        }
        let said = refusal.map_or_else(|| reason(&error), |refusal| refusal.sentence);
        Err(match &self.missing {
            Some(missing) => self.failure(name, format_args!("{missing} ({said})")),
            None => self.failure(name, said),
        })
    }
}

impl Objects for Store {
    fn names(&mut self, begin: &str) -> Result<Vec<String>, Failure> {
        let begins = format!("{}{begin}", self.address.prefix);
        let mut names = Vec::new();
        let mut options = PaginatedListOptions::default();
        loop {
            let page = self.ask(begin, self.objects.list_paginated(Some(&begins), options))?;
            let PaginatedListResult { result, page_token } =
                page.ok_or_else(|| self.failure("", "there is no such bucket"))?;
            let keys = result.objects.iter().map(|object| object.location.as_ref());
            names.extend(keys.filter_map(|key| key.strip_prefix(&self.address.prefix)).map(String::from));
            if page_token.is_none() {
                return Ok(names);
            }
            options = PaginatedListOptions { page_token, ..PaginatedListOptions::default() };
        }
    }

    fn get(&mut self, name: &str, max_bytes: u64) -> Result<Option<Bytes>, Failure> {
        let key = self.key(name)?;
        let mut options = GetOptions::default();
        options.extensions.insert(AtMost(max_bytes));
        self.ask(name, async { self.objects.get_opts(&key, options).await?.bytes().await })
    }

    fn put(&mut self, name: &str, bytes: Bytes) -> Result<(), Failure> {
        let key = self.key(name)?;
        let done = self.ask(name, self.objects.put(&key, bytes.into()))?;
        done.map(drop).ok_or_else(|| self.failure(name, "the store does not take it"))
    }
}

/// Why there was no answer, or none that is a success.
#[derive(Debug)]
struct Refusal {
    sentence: String,
    is_of_bucket: bool,
}

impl Refusal {
    fn of(status: StatusCode, answer: &[u8]) -> Self {
        let of = |name| told(answer, name).map(|told| format!(", {told}")).unwrap_or_default();
        Self {
            sentence: format!("the store answers {status}{}{}", of("Code"), of("Message")),
            is_of_bucket: told(answer, "Code") == Some("NoSuchBucket"),
        }
    }
}

/// A limit of the bytes of an answer, which a request carries with it.
#[derive(Clone, Copy)]
struct AtMost(u64);

/// Makes lines to the store, and to what says who asks.
#[derive(Debug)]
struct Connector {
    tls: TlsConfig,
    refusal: Arc<Mutex<Option<Refusal>>>,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let connect = options.get_config_value(&ClientConfigKey::ConnectTimeout);
        let connect = connect.and_then(|text| humantime::parse_duration(&text).ok());
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(connect.or(Some(PATIENCE)))
            .timeout_per_read(Some(PATIENCE))
            .timeout_per_write(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .tls_config(self.tls.clone())
            .build();
        Ok(HttpClient::new(Line { agent: agent.into(), refusal: Arc::clone(&self.refusal) }))
    }
}

/// Carries requests, one at a time: each holds up the thread that waits for it, which has nothing else to do.
#[derive(Debug)]
struct Line {
    agent: Agent,
    refusal: Arc<Mutex<Option<Refusal>>>,
}

impl Line {
    /// What a store answers, whatever it is.
    fn ask(&self, head: request::Parts, body: &[u8]) -> Result<(response::Parts, Vec<u8>), ureq::Error> {
        let most = head.extensions.get().map_or(ANSWER_MAX_BYTES, |AtMost(bytes)| *bytes);
        let answer = if body.is_empty() && head.method != Method::PUT {
            self.agent.run(Request::from_parts(head, ()))
        } else {
            self.agent.run(Request::from_parts(head, body))
        };
        let (head, mut body) = answer?.into_parts();
        let limit = if head.status.is_success() { most } else { ANSWER_MAX_BYTES };
        let bytes = body.with_config().limit(limit).read_to_vec()?;
        Ok((head, bytes))
    }
}

#[async_trait]
impl HttpService for Line {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let port = head.uri.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = format!("{}{port}", head.uri.host().unwrap_or_default());
        let answer = self.ask(head, &body);
        let refusal = match &answer {
            Ok((head, bytes)) => (!head.status.is_success()).then(|| Refusal::of(head.status, bytes)),
            Err(error) => {
                Some(Refusal { sentence: format!("{host} cannot be asked: {error}"), is_of_bucket: false })
            }
        };
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
        match answer {
            Ok((head, bytes)) => Ok(HttpResponse::from_parts(head, bytes.into())),
            Err(error) => {
                let kind = match &error {
                    ureq::Error::Io(_) | ureq::Error::Protocol(_) => HttpErrorKind::Interrupted,
                    ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
                    _ => HttpErrorKind::Unknown,
                };
                Err(HttpError::new(kind, error))
            }
        }
    }
}

/// What a failed request says first: what is around it repeats addresses, times and settings.
fn reason(error: &object_store::Error) -> String {
    let mut reason: &dyn Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

/// Whether what is part of addresses and of heads of requests can be.
///
/// # Errors
/// The variable, and what it should be.
fn check(variables: &BTreeMap<String, String>) -> Result<(), String> {
    let is_address = |uri: &Uri| uri.scheme().is_some() && uri.authority().is_some();
    for (name, value) in variables {
        let (can_be, wanted) = match &name[..] {
            "AWS_REGION" | "AWS_DEFAULT_REGION" => (is_name(value), "no region such as eu-central-1"),
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI" => {
                (value.starts_with('/') && value.parse::<Uri>().is_ok(), "no path such as /v2/credentials")
            }
            "AWS_ENDPOINT"
            | "AWS_ENDPOINT_URL"
            | "AWS_ENDPOINT_URL_S3"
            | "AWS_ENDPOINT_URL_STS"
            | "AWS_METADATA_ENDPOINT"
            | "AWS_CONTAINER_CREDENTIALS_FULL_URI" => {
                (value.parse().is_ok_and(|uri| is_address(&uri)), "no address such as https://minio.lab:9000")
            }
            _ if WHAT_IS_SENT.contains(&&name[..]) => {
                (value.bytes().all(|letter| letter.is_ascii_graphic()), "no key: those are ASCII letters")
            }
            _ => (true, ""),
        };
        if !can_be {
            return Err(format!("{name}: `{}` is {wanted}", value.escape_debug()));
        }
    }
    Ok(())
}

/// What can be part of the name of a host.
fn is_name(text: &str) -> bool {
    text.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'.' | b'_'))
}

/// Who asks, as the file says that other programs for S3 read: as variables.
///
/// # Errors
/// If it does not: what to set.
fn credentials(variables: &BTreeMap<String, String>) -> Result<Vec<(String, String)>, String> {
    let home = || variables.get("HOME").map(|home| PathBuf::from(home).join(".aws/credentials"));
    let file = variables.get("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from).or_else(home);
    let profile = variables.get("AWS_PROFILE").map_or("default", |profile| profile);
    let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let mut values = values_of(&text, profile);
    let found =
        WHAT_IS_SENT.map(|name| values.remove(&name.to_lowercase()).map(|value| (name.into(), value)));
    if found[..2].iter().all(Option::is_some) {
        return Ok(found.into_iter().flatten().collect());
    }
    let place = file.map_or_else(String::new, |file| format!(", or profile {profile} in {}", file.display()));
    Err(format!("who asks the object store? Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY{place}"))
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

#[cfg(test)]
mod tests;
