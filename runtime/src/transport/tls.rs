//! Who may speak: the launcher is the certificate authority of its run, every node gets a certificate of
//! it, and every connection is TLS 1.3 with both ends authenticated.
//!
//! The authority's key never leaves the launcher and is forgotten with the run: that is what ends the worth
//! of a certificate. The dates in it are wide, since a run may be long and the clocks of nodes may differ.

use crate::ids::NodeId;
use ::ring::rand::{SecureRandom as _, SystemRandom};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The protocol's name in the handshake.
const ALPN: &[u8] = b"metachare/1";
/// Length of a run's secret.
const SECRET_BYTES: usize = 32;
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How far the clock of a node may be behind the launcher's.
const VALID_BEFORE: Duration = DAY.saturating_mul(7);
/// How long a run may last and still open connections.
const VALID_AFTER: Duration = DAY.saturating_mul(90);

/// Why certificates or connection settings could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A certificate could not be made.
    #[error("a certificate cannot be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The identity is not usable.
    #[error("the identity of this node is not usable: {0}")]
    Identity(String),
}

/// The certificate authority of one run; lives in the launcher.
pub struct RunAuthority {
    run_id: String,
    issuer: Issuer<'static, KeyPair>,
    ca_der: Vec<u8>,
    secret: [u8; SECRET_BYTES],
}

impl fmt::Debug for RunAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunAuthority of {}", self.run_id)
    }
}

/// A node's certificate and key, and the secret of its run. Only ever sent inside ssh or a pipe.
#[derive(Clone, Serialize, Deserialize)]
pub struct NodeIdentity {
    run_id: String,
    cert_der: Vec<u8>,
    key_der: Vec<u8>,
    ca_der: Vec<u8>,
    secret: [u8; SECRET_BYTES],
}

impl fmt::Debug for NodeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeIdentity in {}", self.run_id)
    }
}

impl RunAuthority {
    /// An authority with a fresh key.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn new(run_id: &str) -> Result<Self, TlsError> {
        let run_id = label(run_id);
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.distinguished_name.push(DnType::CommonName, format!("authority of {run_id}"));
        let ca_der = params.self_signed(&key)?.der().to_vec();
        let mut secret = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut secret).map_err(|_| rcgen::Error::RingUnspecified)?;
        Ok(Self { run_id, issuer: Issuer::new(params, key), ca_der, secret })
    }

    /// A certificate and key for a node of the run, valid from a week ago for three months.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn issue(&self, node: NodeId) -> Result<NodeIdentity, TlsError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.issue_for(node, now.saturating_sub(VALID_BEFORE)..now + VALID_AFTER)
    }

    /// A certificate that is valid for a span of the time since 1970.
    pub(super) fn issue_for(&self, node: NodeId, valid: Range<Duration>) -> Result<NodeIdentity, TlsError> {
        let key = KeyPair::generate()?;
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        let mut params = CertificateParams::new(vec![name_of(node, &self.run_id)])?;
        params.distinguished_name.push(DnType::CommonName, format!("{node:?} of {}", self.run_id));
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        (params.not_before, params.not_after) = (epoch + valid.start, epoch + valid.end);
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(NodeIdentity {
            run_id: self.run_id.clone(),
            cert_der: certificate.der().to_vec(),
            key_der: key.serialize_der(),
            ca_der: self.ca_der.clone(),
            secret: self.secret,
        })
    }
}

impl NodeIdentity {
    /// What all nodes of the run know and nobody else.
    pub(super) fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// Settings for dialling and for listening.
    ///
    /// # Errors
    /// If the identity holds no valid certificate and key.
    pub(super) fn configs(&self) -> Result<(QuicClientConfig, QuicServerConfig), TlsError> {
        let wrong = |error: &dyn fmt::Display| TlsError::Identity(error.to_string());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.ca_der.clone())).map_err(|e| wrong(&e))?;
        let roots = Arc::new(roots);
        let provider = Arc::new(provider());
        let chain = vec![CertificateDer::from(self.cert_der.clone())];
        let key = || PrivatePkcs8KeyDer::from(self.key_der.clone()).into();
        let versions = &[&rustls::version::TLS13];
        let client = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider));
        let client = client.with_protocol_versions(versions).map_err(|e| wrong(&e))?;
        let mut client = client
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key())
            .map_err(|e| wrong(&e))?;
        client.alpn_protocols = vec![ALPN.to_vec()];
        client.resumption = rustls::client::Resumption::disabled();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
        let server = rustls::ServerConfig::builder_with_provider(provider);
        let server = server.with_protocol_versions(versions).map_err(|e| wrong(&e))?;
        let mut server = server
            .with_client_cert_verifier(verifier.map_err(|e| wrong(&e))?)
            .with_single_cert(chain, key())
            .map_err(|e| wrong(&e))?;
        server.alpn_protocols = vec![ALPN.to_vec()];
        server.send_tls13_tickets = 0;
        server.max_early_data_size = 0;
        let client = QuicClientConfig::try_from(client).map_err(|e| wrong(&e))?;
        let server = QuicServerConfig::try_from(server).map_err(|e| wrong(&e))?;
        Ok((client, server))
    }

    /// What somebody who knows the run but has no certificate of it would dial with.
    #[cfg(test)]
    pub(super) fn anonymous_client(&self) -> QuicClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.ca_der.clone())).unwrap();
        let client = rustls::ClientConfig::builder_with_provider(Arc::new(provider()));
        let client = client.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = vec![ALPN.to_vec()];
        QuicClientConfig::try_from(client).unwrap()
    }

    /// The name that the certificate of `node` carries.
    #[must_use]
    pub fn name_of(&self, node: NodeId) -> String {
        name_of(node, &self.run_id)
    }

    /// The node that a certificate, already verified by its chain, was issued to.
    ///
    /// What looks like a node's name anywhere in it is only a candidate; whether the certificate is valid
    /// for that name is for the verifier of names to say.
    pub(super) fn node_of(&self, certificate: &CertificateDer<'_>) -> Option<NodeId> {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        let places = certificate.windows(NAME_START.len()).enumerate();
        let places = places.filter(|(_, window)| *window == NAME_START.as_bytes());
        let candidates = places.filter_map(|(at, _)| number_at(&certificate[at + NAME_START.len()..]));
        candidates.map(NodeId).find(|node| {
            let name = ServerName::try_from(self.name_of(*node));
            name.is_ok_and(|name| rustls::client::verify_server_name(&parsed, &name).is_ok())
        })
    }
}

/// What the names of nodes begin with.
const NAME_START: &str = "node-";

/// The decimal number at the beginning of `bytes`.
fn number_at(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.iter().take(6).take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(&bytes[..digits]).ok()?.parse().ok()
}

fn name_of(node: NodeId, run_id: &str) -> String {
    format!("{NAME_START}{}.{run_id}.metachare", node.0)
}

/// The run's name as a label of a DNS name.
fn label(run_id: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let label: String = run_id.chars().map(allowed).take(60).collect();
    format!("r{}", label.trim_matches('-'))
}

/// Ring with AES-128 first: the fastest on machines with AES instructions (measured), and no weaker in use.
fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            ring::cipher_suite::TLS13_AES_128_GCM_SHA256,
            ring::cipher_suite::TLS13_AES_256_GCM_SHA384,
            ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        ..ring::default_provider()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_names_exactly_its_node() {
        let authority = RunAuthority::new("matmul-12ab").unwrap();
        let other = RunAuthority::new("matmul-other").unwrap().issue(NodeId(7)).unwrap();
        for node in [0, 7, 10, 65_535].map(NodeId) {
            let identity = authority.issue(node).unwrap();
            let certificate = CertificateDer::from(identity.cert_der.clone());
            assert_eq!(identity.node_of(&certificate), Some(node));
            assert_eq!(other.node_of(&certificate), None, "a name of another run means nothing");
        }
    }

    #[test]
    fn a_damaged_certificate_names_nobody_else() {
        let identity = RunAuthority::new("run").unwrap().issue(NodeId(7)).unwrap();
        let mut random = 1u64;
        for _ in 0..10_000 {
            let mut bytes = identity.cert_der.clone();
            for _ in 0..3 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = usize::try_from(random >> 33).unwrap() % bytes.len();
                if random & 1 << 32 == 0 {
                    bytes.truncate(at + 1)
                } else {
                    bytes[at] = random.to_be_bytes()[2]
                }
            }
            let named = identity.node_of(&CertificateDer::from(bytes.clone()));
            let is_read_as_issued = named.is_none_or(|node| {
                let name = identity.name_of(node);
                bytes.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name.as_bytes()))
            });
            assert!(is_read_as_issued, "{named:?}");
        }
    }

    #[test]
    fn keys_are_not_printed() {
        let identity = RunAuthority::new("run").unwrap().issue(NodeId(1)).unwrap();
        assert!(format!("{identity:?}").len() < 40);
        assert!(identity.configs().is_ok());
    }
}
