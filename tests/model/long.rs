//! One message that is far longer than what links hold of it, to a node that is busy while it comes.

use chares::{Array, Bulk, Callback, Chare, Ctx, Cx, Driver, Element, Entry, Placement, RunError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{Duration, Instant};

const LEN: usize = 100 << 20;
/// As long as it may take while the receiver looks at nothing.
const BUSY: Duration = Duration::from_millis(400);

/// Sends it, or receives it.
#[derive(Serialize, Deserialize)]
pub(crate) struct End {
    /// Bytes of memory that the process had before it came.
    before: u64,
    told: Callback<u64>,
}
/// Get ready, have this one send it, and be busy meanwhile.
#[derive(Clone, Serialize, Deserialize)]
struct Prepare(Element<End>, Callback<u64>);
#[derive(Clone, Serialize, Deserialize)]
struct Send(Element<End>);
#[derive(Clone, Serialize, Deserialize)]
struct Work;
#[derive(Clone, Serialize, Deserialize)]
struct Long(Bulk<u8>);
chares::entries!(End: Prepare, Send, Work, Long);

impl Chare for End {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { before: 0, told: Callback::ignore() }
    }
}
impl Entry<Prepare> for End {
    fn receive(&mut self, Prepare(from, told): Prepare, ctx: &mut Ctx<'_, Self>) {
        // The kernel forgets the old peak.
        if let Err(error) = fs::write("/proc/self/clear_refs", "5") {
            return ctx.fail(&format!("/proc/self/clear_refs: {error}"));
        }
        (self.before, self.told) = (memory("VmRSS"), told);
        let me = ctx.this();
        from.send(ctx, Send(me));
        me.send(ctx, Work);
    }
}
impl Entry<Send> for End {
    fn receive(&mut self, Send(to): Send, ctx: &mut Ctx<'_, Self>) {
        to.send(ctx, Long((0..LEN).map(byte).collect::<Vec<_>>().into()));
    }
}
impl Entry<Work> for End {
    fn receive(&mut self, Work: Work, _: &mut Ctx<'_, Self>) {
        let began = Instant::now();
        while began.elapsed() < BUSY {
            std::hint::spin_loop();
        }
    }
}
impl Entry<Long> for End {
    fn receive(&mut self, Long(bytes): Long, ctx: &mut Ctx<'_, Self>) {
        let peak = memory("VmHWM");
        if bytes.len() != LEN || !bytes.iter().enumerate().all(|(at, found)| *found == byte(at)) {
            return ctx.fail("the long message is not what was sent");
        }
        self.told.send(ctx, peak - self.before);
    }
}

fn byte(at: usize) -> u8 {
    (at * 31 + (at >> 16)) as u8
}

/// Bytes, as the kernel counts them for this process.
fn memory(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.and_then(|line| line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}

/// Says how many bytes the receiver's process took at most for it.
pub(crate) fn drive(main: &mut Driver) -> Result<(), RunError> {
    let last = main.pe_count() - 1;
    let ends: Array<End> = main.array_placed(2, (), Placement::on_pes([0, last]));
    let (to, told) = main.pending();
    ends.at(1).send(main, Prepare(ends.at(0), to));
    println!("{} bytes for a message of {LEN}", told.wait(main)?);
    Ok(())
}
