//! The table `[network]`.

use super::{File, integer, known};
use crate::config::ConfigError;
use crate::config::network::{CLOSE_IDLE_S, DATAGRAM_BYTES, NetworkConfig, SPIN_US, Transport, WINDOW_BYTES};
use crate::size::Size;
use crate::transport::quic::Congestion;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

const KEYS: [&str; 7] = ["transport", "congestion", "datagram", "window", "spin", "close_idle", "ports"];

pub(super) fn network(
    file: &File<'_>,
    value: Option<&Spanned<DeValue<'_>>>,
) -> Result<NetworkConfig, ConfigError> {
    let mut network = NetworkConfig::default();
    let Some(value) = value else { return Ok(network) };
    let Some(table) = value.get_ref().as_table() else {
        return Err(file.error(value.span().start, "`network` must be a table: write [network]"));
    };
    for (key, value) in table {
        known(file, key, &KEYS, "[network]")?;
        let wrong =
            |what: &str| file.error(value.span().start, format!("[network]: `{}` {what}", key.get_ref()));
        let text = value.get_ref().as_str().unwrap_or_default();
        match key.get_ref().as_ref() {
            "transport" => {
                network.transport = match text {
                    "auto" => Transport::Auto,
                    "quic" => Transport::Quic,
                    _ => return Err(wrong("must be \"auto\" or \"quic\"")),
                };
            }
            "congestion" => {
                network.congestion = match text {
                    "auto" => Congestion::Auto,
                    "cubic" => Congestion::Cubic,
                    "bbr" => Congestion::Bbr,
                    _ => return Err(wrong("must be \"auto\", \"cubic\" or \"bbr\"")),
                };
            }
            "datagram" => {
                let bytes = integer(value).and_then(|n| u16::try_from(n).ok());
                let bytes = bytes.filter(|n| DATAGRAM_BYTES.contains(n));
                network.datagram_bytes =
                    bytes.ok_or_else(|| wrong("must be a whole number of bytes from 1200 to 6500"))?;
            }
            "window" => {
                let bytes = Size::parse(text).and_then(|size| u32::try_from(size.0).ok());
                let bytes = bytes.filter(|n| WINDOW_BYTES.contains(n));
                network.window_bytes =
                    bytes.ok_or_else(|| wrong("must be a size from 64 KiB to 1 GiB, such as \"16MiB\""))?;
            }
            "spin" => {
                let us = time(text).and_then(|t| u32::try_from(t.as_micros()).ok());
                let us = us.filter(|us| SPIN_US.contains(us));
                network.spin_us =
                    us.ok_or_else(|| wrong("must be a time of at most 1 s, such as \"10ms\" or \"0us\""))?;
            }
            "close_idle" => {
                let s = time(text).and_then(|t| u32::try_from(t.as_secs()).ok());
                let s = s.filter(|s| CLOSE_IDLE_S.contains(s));
                let s = s.ok_or_else(|| wrong("must be \"never\" or a time from 1 s on, such as \"60s\""));
                network.close_idle_s = if text == "never" { None } else { Some(s?) };
            }
            "ports" => {
                let ports = text
                    .parse()
                    .map_err(|()| wrong("must be ports from 1 to 65535, such as \"40000-40100\""));
                network.ports = Some(ports?);
            }
            _ => {}
        }
    }
    Ok(network)
}

/// `50us`, `10 ms`, `60s`, `2min`.
fn time(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(split);
    let number: u64 = digits.parse().ok()?;
    Some(match unit.trim() {
        "us" | "µs" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "min" => Duration::from_secs(number.checked_mul(60)?),
        _ => return None,
    })
}
