//! What a node does with what comes before, with and after its welcome.

use super::*;
use crate::codec::{Header, WorkToNode};
use crate::envelope::{CollectionId, Packed};
use crate::ids::PeId;
use crate::object::ProgramTable;
use crate::proto::membership::{NodeEntry, Welcome, fingerprint};
use crate::saved::{RecordHeader, RecordOf, Sent};
use crate::transport::quic::LinkSettings;
use crate::transport::tls::RunAuthority;
use crate::variable::VariableKind;

/// Node 1 of two, with its network up on loopback.
fn gate() -> Arc<Gate> {
    gate_with(None)
}

fn gate_with(first_core: Option<u32>) -> Arc<Gate> {
    let identity = RunAuthority::new("test-2").unwrap().issue(NodeId(1)).unwrap();
    let bootstrap = Bootstrap {
        node: NodeId(1),
        node_count: 3,
        identity: identity.clone(),
        listen: None,
        first_core,
        nodes_before: 0,
        threads_on_host: 1000,
        used_cores_on_host: 500.0,
        cpu_share: 1.0,
        memory_bytes: None,
        network: crate::config::NetworkConfig::default(),
        always_pup: false,
        balances: false,
        counts_traffic: false,
        detail: crate::monitor::Detail::default(),
        wander: None,
        kernel_arguments: Vec::new(),
    };
    let gate = Arc::new(Gate::new(Arc::new(ProgramTable::default()), bootstrap, None));
    let receiver: Arc<dyn Receiver> = Arc::clone(&gate) as _;
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let fabric = QuicFabric::bind(here, &identity, NodeId(1), receiver, LinkSettings::default()).unwrap();
    assert!(gate.fabric.set(fabric).is_ok());
    gate
}

fn welcome() -> ControlToNode {
    let entry =
        |(name, pe_count): (&str, u32)| NodeEntry { name: name.into(), address: String::new(), pe_count };
    let nodes = [("launcher", 0), ("a", 2), ("b", 1)].map(entry).to_vec();
    let table = ClusterTable::new("test-2", nodes);
    let fingerprint = fingerprint(&ProgramTable::default().lines());
    let welcome = Welcome { wire_version: WIRE_VERSION, fingerprint, table };
    ControlToNode::Order(Order::Welcome(Box::new(welcome)))
}

fn give(gate: &Gate, from: u16, header: &impl Header) {
    gate.receive(NodeId(from), Class::Control, encode(header, Default::default()));
}

fn with_network(test: impl FnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { test() });
}

fn refusal(gate: &Gate) -> &str {
    assert!(gate.node.get().is_none());
    gate.refusal.get().map_or("", String::as_str)
}

#[test]
fn work_before_the_welcome_ends_the_node_and_names_the_sender() {
    with_network(|| {
        let gate = gate();
        give(&gate, 2, &ControlToNode::InitOver(true));
        assert_eq!(
            refusal(&gate),
            "node 2 sent node 1 a message that it refuses: it is work before the launcher's welcome"
        );
        give(&gate, 0, &welcome());
        assert!(gate.node.get().is_none(), "it is ending");
    });
}

/// Classes of messages do not keep their order among each other, and who joins a run is given what nodes share right behind its
/// welcome.
#[test]
fn what_nodes_share_may_overtake_the_launchers_welcome_and_no_others() {
    let id = CollectionId::made_by(PeId::DRIVER, 1).0;
    let record = |body: u8| {
        let of = RecordOf::Variable { id, kind: VariableKind::Once, origin: PeId::DRIVER };
        let packed = Packed { body: vec![body].into(), attachments: Vec::new() };
        let (sent, packed) = Sent::new(RecordHeader { pe: PeId::DRIVER, of }, packed).unwrap();
        encode(&WorkToNode::Record(sent), packed)
    };
    with_network(|| {
        let gate = gate();
        gate.receive(NodeId::LAUNCHER, Class::Small, record(7));
        give(&gate, 0, &welcome());
        assert_eq!(gate.refusal.get(), None);
        let node = Arc::clone(gate.node.get().unwrap());
        let read = node.variables().read(node.colour(), id, |packed| Ok(packed.body[0]), |_, _| false);
        assert_eq!(read.unwrap().as_deref(), Some(&7));
        node.stop_pes().into_iter().for_each(|thread| thread.join().unwrap());
        let other = self::gate();
        other.receive(NodeId(2), Class::Small, record(7));
        assert!(refusal(&other).starts_with("node 2 sent node 1 a message that it refuses: "));
    });
}

#[test]
fn garbage_and_a_welcome_from_another_node_are_refused() {
    with_network(|| {
        let pretended = gate();
        give(&pretended, 2, &welcome());
        assert!(refusal(&pretended).contains("node 2 speaks as if it were the launcher"));
        let garbled = gate();
        let garbage = Frame { body: vec![0xff; 9].into(), attachments: Vec::new() };
        garbled.receive(NodeId::LAUNCHER, Class::Control, garbage);
        assert!(
            refusal(&garbled)
                .contains("node 0 sent node 1 a message that it refuses: it is nothing that is known")
        );
    });
}

#[test]
fn a_second_welcome_starts_nothing_again() {
    with_network(|| {
        let gate = gate();
        give(&gate, 0, &welcome());
        assert!(gate.refusal.get().is_none());
        let node = Arc::clone(gate.node.get().unwrap());
        give(&gate, 0, &welcome());
        assert!(Arc::ptr_eq(&node, gate.node.get().unwrap()));
        let threads = node.stop_pes();
        assert_eq!(threads.len(), 2, "a thread for each PE");
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn nodes_of_two_runs_pin_their_pes_to_different_cores() {
    with_network(|| {
        let (one, other) = (gate_with(Some(0)), gate_with(Some(0)));
        let (of_one, of_other) = (one.settings(1).cores, other.settings(1).cores);
        assert!(of_one.iter().all(|core| !of_other.contains(core)), "{of_one:?} and {of_other:?}");
        assert!(gate().settings(1).cores.is_empty(), "who is not to pin takes no core");
    });
}

#[test]
fn threads_stay_awake_also_where_they_outnumber_cores_but_not_at_the_cost_of_a_quota() {
    assert!(may_stay_awake(2, 2, 3, 1.0), "two PEs and the network on two cores");
    assert!(may_stay_awake(2, 2, 9, 1.0) && may_stay_awake(2, 8, 2, 1.0));
    assert!(!may_stay_awake(1, 2, 2, 1.0), "a quota of one core for a PE and the network");
    assert!(!may_stay_awake(8, 8, 2, 0.5), "a share");
}

/// Whose turn it is when a task of the network panics; only in a process of its own, which ends.
const WHO: &str = "METACHARE_TEST_PANICS";

#[test]
fn a_network_that_panics_ends_its_node_and_a_chare_does_not() {
    if let Some(who) = std::env::var_os(WHO) {
        panic_in_turn(who == "pe");
    }
    let this = "job::node_process::tests::a_network_that_panics_ends_its_node_and_a_chare_does_not";
    for who in ["pe", "thread"] {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let done = again.args(["--exact", this, "--nocapture"]).env(WHO, who).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(launch::PANICKED_CODE), "{who}: {said}");
        assert!(
            said.contains("a chare has panicked") && said.contains("a task has panicked"),
            "{who}: {said}"
        );
        assert!(!said.contains("it went on"), "{who}: {said}");
    }
}

fn panic_in_turn(is_pe: bool) -> ! {
    panics::end_this_node();
    let progress = Progress::new(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());
    assert!(std::panic::catch_unwind(|| panic!("a chare has panicked")).is_err());
    progress.runtime().spawn(async { panic!("a task has panicked") });
    let limit = Duration::from_secs(5);
    if is_pe {
        let since = std::time::Instant::now();
        progress.turn().unwrap().run(|| since.elapsed() > limit);
    } else {
        progress.serve(async { tokio::time::sleep(limit).await });
    }
    eprintln!("it went on");
    std::process::exit(1)
}
