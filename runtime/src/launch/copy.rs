//! Copying the executable to a host through the input of a script there, which tells how much it has. However slow
//! the line is, the copy goes on as long as something arrives.

use super::child::Lines;
use super::options::Copying;
use super::ssh;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

/// Bytes that are handed to ssh at once.
const PIECE_BYTES: usize = 64 << 10;

/// Why a copy was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotCopied {
    /// The other end is gone.
    Ended,
    /// Nothing more has arrived for too long.
    Stalled,
}

/// Who is told of a copy.
pub(super) struct Told<'a> {
    pub(super) node: &'a str,
    pub(super) total_bytes: u64,
    pub(super) by: Option<&'a Sender<Copying>>,
}

impl Told<'_> {
    fn tell(&self, done_bytes: u64) {
        if let Some(by) = self.by {
            let node = self.node.to_string();
            // It does not matter if nobody listens.
            let _ = by.send(Copying { node, done_bytes, total_bytes: self.total_bytes });
        }
    }
}

/// Hands `bytes` to a script and waits until it says that the executable is stored. Gives up when for `limit`
/// neither a byte was taken nor another one has arrived.
pub(super) async fn copy<R: AsyncRead + Unpin>(
    bytes: &[u8],
    to: &mut (impl AsyncWrite + Unpin),
    lines: &mut Lines<R>,
    limit: Duration,
    told: Told<'_>,
) -> Result<(), NotCopied> {
    let (mut rest, mut there, mut moved_at) = (bytes, 0, Instant::now());
    told.tell(0);
    loop {
        let piece = &rest[..rest.len().min(PIECE_BYTES)];
        tokio::select! {
            line = lines.next() => {
                let line = line.ok_or(NotCopied::Ended)?;
                if line == ssh::STAGED {
                    told.tell(told.total_bytes);
                    return Ok(());
                }
                let now_there = line.strip_prefix(ssh::HAS).and_then(|count| count.trim().parse().ok());
                if let Some(count) = now_there.filter(|count| *count > there) {
                    (there, moved_at) = (count, Instant::now());
                    told.tell(there.min(told.total_bytes));
                }
            }
            written = to.write(piece), if !piece.is_empty() => {
                // A host that takes no more bytes has said why by the time its output ends.
                rest = written.map_or(&[], |count| &rest[count..]);
                moved_at = Instant::now();
            }
            () = tokio::time::sleep_until(moved_at + limit) => return Err(NotCopied::Stalled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex, split};

    const LIMIT: Duration = Duration::from_secs(20);

    /// Copies `count` bytes to `host`, in virtual time; the outcome, and how long it took.
    fn copied<F: Future<Output = ()> + Send + 'static>(
        count: usize,
        host: impl FnOnce(DuplexStream) -> F,
    ) -> (Result<(), NotCopied>, Duration, Vec<u64>) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (sender, told) = std::sync::mpsc::channel();
        let (result, lasted) = runtime.block_on(async {
            let (here, there) = duplex(4096);
            let (from, mut to) = split(here);
            tokio::spawn(host(there));
            let began = Instant::now();
            let told = Told { node: "a", total_bytes: count as u64, by: Some(&sender) };
            let result = copy(&vec![7; count], &mut to, &mut Lines::new(from), LIMIT, told).await;
            (result, began.elapsed())
        });
        drop(sender);
        (result, lasted, told.into_iter().map(|copying| copying.done_bytes).collect())
    }

    #[test]
    fn a_slow_line_is_no_failure() {
        let (result, lasted, told) = copied(1 << 20, |mut host| async move {
            let mut piece = vec![0; 32 << 10];
            for number in 1..=32u64 {
                tokio::time::sleep(LIMIT / 2).await;
                host.read_exact(&mut piece).await.unwrap();
                let has = number * piece.len() as u64;
                host.write_all(format!("{}{has}\n", ssh::HAS).as_bytes()).await.unwrap();
            }
            host.write_all(format!("{}\n", ssh::STAGED).as_bytes()).await.unwrap();
        });
        assert_eq!(result, Ok(()));
        assert!(lasted > LIMIT * 10, "{lasted:?}");
        assert_eq!((told.first(), told.last()), (Some(&0), Some(&(1 << 20))));
        assert!(told.len() > 30 && told.is_sorted(), "{told:?}");
    }

    #[test]
    fn bytes_under_way_still_count_when_all_have_been_handed_over() {
        let (result, lasted, _) = copied(4096, |mut host| async move {
            for number in 1..=4 {
                tokio::time::sleep(LIMIT / 2).await;
                host.write_all(format!("{} {}\n", ssh::HAS, number * 1024).as_bytes()).await.unwrap();
            }
            tokio::time::sleep(LIMIT / 2).await;
            host.write_all(format!("{}\n", ssh::STAGED).as_bytes()).await.unwrap();
        });
        assert_eq!(result, Ok(()));
        assert!(lasted > LIMIT * 2, "{lasted:?}");
    }

    #[test]
    fn a_line_on_which_nothing_moves_is_given_up_though_the_host_goes_on_talking() {
        let (result, lasted, _) = copied(1 << 20, |mut host| async move {
            host.read_exact(&mut [0; 1000]).await.unwrap();
            while host.write_all(format!("{}1000\n", ssh::HAS).as_bytes()).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        assert_eq!(result, Err(NotCopied::Stalled));
        assert!(lasted >= LIMIT && lasted < LIMIT * 2, "{lasted:?}");
    }

    #[test]
    fn a_host_that_is_gone_ends_it_at_once() {
        let (result, lasted, _) = copied(1 << 20, |host| async move { drop(host) });
        assert_eq!(result, Err(NotCopied::Ended));
        assert!(lasted < Duration::from_secs(1), "{lasted:?}");
    }
}
