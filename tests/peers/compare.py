"""Runs Metachare and its peers in turn and compares them; `tests/against_peers` prepares what this needs."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

import kernels
from mpi import mpirun

METACHARE, WORK = os.environ["METACHARE"], os.environ["WORK"]
CORES = len(os.sched_getaffinity(0))
# As the benchmarks of Metachare name them.
SIZES = {8: "8B", 64: "64B", 1 << 10: "1KiB", 4 << 10: "4KiB", 16 << 10: "16KiB", 64 << 10: "64KiB", 1 << 20: "1MiB",
         4 << 20: "4MiB", 16 << 20: "16MiB"}
# Processes of one core each, and the grids and block sizes of which ScaLAPACK gets the best.
PROCESSES = 4 if CORES >= 4 else 2
GRIDS = [(2, 2)] if PROCESSES == 4 else [(1, 2), (2, 1)]
BLOCKS = [64, 128, 256]
# Other work of up to so many cores is taken for none.
QUIET = 0.1
# Side of the blocks in the benchmark of one core's product, `kernel/*/gemm`.
KERNEL_SIDE = 1024
# Ways of Open MPI's messages between processes of one machine; the first is the one with a network's protocol.
WAYS = {"over TCP": ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"],
        "over shared memory": []}


def options():
    parser = argparse.ArgumentParser(prog="tests/against_peers")
    parser.add_argument("--json", metavar="FILE", help="write all figures; also a file for `metachare bench --peers`")
    parser.add_argument("--only", default="gemm,cannon,gauss,messages", help="some of gemm, cannon, gauss, messages")
    parser.add_argument("--repeats", type=int, default=5, help="turns")
    parser.add_argument("--brief", action="store_true", help="only go through everything once, with small sizes")
    chosen = parser.parse_args()
    chosen.only = chosen.only.split(",")
    if unknown := set(chosen.only) - {"gemm", "cannon", "gauss", "messages"}:
        parser.error(f"--only {', '.join(sorted(unknown))}: give some of gemm, cannon, gauss, messages")
    chosen.repeats = 1 if chosen.brief else max(chosen.repeats, 1)
    return chosen


def output(command, **env):
    """What a command prints; if it fails, the run ends with its last words."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **env}, cwd=WORK)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {(done.stderr + done.stdout).strip()[-800:]}")
    return done.stdout


def version(package):
    text = output(["dpkg-query", "-W", "-f", "${Version}", package])
    return re.match(r"(?:\d+:)?([\d.]+)", text)[1]


class OpenBlas:
    """The library beneath the C programs of this folder, which tell its version and its kernel before their seconds."""

    def __init__(self):
        self.version, self.kernel, _ = self.run(["./gemm", "f64", "8", "1"], 1)
        widest = kernels.widest(kernels.cpu_flags())
        if self.objection() and widest:
            # It does not know this CPU: it ran kernels for AVX2 on an AMD CPU of 2024, at half of the speed.
            os.environ["OPENBLAS_CORETYPE"] = widest
            self.version, self.kernel, _ = self.run(["./gemm", "f64", "8", "1"], 1)

    @staticmethod
    def run(command, threads, **env):
        config, kernel, *seconds = output(command, OPENBLAS_NUM_THREADS=str(threads), **env).splitlines()
        return config.split()[1], kernel, [float(text) for text in seconds]

    def times(self, command, threads):
        """Seconds of each repetition, by the same library and kernel as those of all others."""
        version, kernel, seconds = self.run(command, threads)
        if (version, kernel) != (self.version, self.kernel):
            sys.exit(f"{' '.join(command)}: ran on OpenBLAS {version} ({kernel}), other programs on {self}")
        return seconds

    def objection(self):
        return kernels.objection(self.kernel, kernels.cpu_flags())

    def __str__(self):
        return f"OpenBLAS {self.version} ({self.kernel})"


def refuses_narrow_kernels():
    """Whether a kernel for narrow vectors, on which the library is made to run here, would be noticed."""
    _, kernel, _ = OpenBlas.run(["./gemm", "f64", "8", "1"], 1, OPENBLAS_CORETYPE="Nehalem")
    return kernel == "Nehalem" and kernels.objection(kernel, kernels.cpu_flags()) is not None


def nodes_file(name, pes):
    path = os.path.join(WORK, name)
    with open(path, "w") as out:
        out.writelines(f'[[node]]\nname = "n{at + 1}"\npes = {count}\n' for at, count in enumerate(pes))
    return path


def about(library):
    return {"version": library.version, "kernel": library.kernel}


class Side:
    """One way to do some work: a name, and a function that does it and says how many seconds that took."""

    def __init__(self, name, seconds, library=None):
        self.name, self.seconds, self.figures = name, seconds, []
        self.about = about(library) if library else {}

    def turn(self, work):
        self.figures.append(work / self.seconds() / 1e9)

    def line(self, peers):
        median = statistics.median(self.figures)
        ratios = "".join(f"  {median / statistics.median(peer.figures):6.2f} x" for peer in peers)
        return f"  {self.name:<54} {median:7.1f} GFLOP/s  {min(self.figures):7.1f} ..{max(self.figures):7.1f}{ratios}"

    def json(self):
        return {"name": self.name, **self.about, "unit": "GFLOP/s", "median": statistics.median(self.figures),
                "figures": self.figures}


def ours(nodes, n, dtype, *words, app="matmul"):
    """Seconds of the timed part: data in place, until the last number of the result is there."""
    def seconds():
        report = os.path.join(WORK, "run.json")
        output([METACHARE, "run", app, "--nodes", nodes, "--n", str(n), "--dtype", dtype, "--quiet", "--report",
                report, *words])
        with open(report) as file:
            return json.load(file)["timed_s"]
    return seconds


def own_sides(nodes, n, dtype, words, chosen, app="matmul"):
    """First as a user gets it. One verified run before the clock matters: what is compared must be right."""
    run, equal = " ".join([f"metachare run {app}", *words]), ["--speed", "equal"]
    if chosen.brief:
        return [Side(f"{run} --speed equal", ours(nodes, n, dtype, "--verify", *equal, *words, app=app))]
    ours(nodes, n, dtype, "--verify", *words, app=app)()
    return [Side(run, ours(nodes, n, dtype, *words, app=app)),
            Side(f"{run} --speed equal", ours(nodes, n, dtype, *equal, *words, app=app))]


def busy_cores():
    """How many of the cores others keep busy, seen while this script sleeps for a second."""
    def ticks():
        with open("/proc/stat") as file:
            lines = dict(line.split(maxsplit=1) for line in file)
        of_cores = [list(map(int, lines[f"cpu{cpu}"].split())) for cpu in os.sched_getaffinity(0)]
        # The fourth and the fifth count idle time, those after the eighth what is in the first two already.
        return sum(sum(core[:3]) + sum(core[5:8]) for core in of_cores)
    before, began = ticks(), time.monotonic()
    time.sleep(1)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)


def verdict(ratios, target, chosen):
    """Only where the machine was idle and all turns agree there is one."""
    if chosen.busy > QUIET:
        return "open, as other work ran on this machine"
    if min(ratios) >= target:
        return "reached"
    return "MISSED" if max(ratios) < target else "open, as not all turns agree"


def in_turn(title, n, target, peer, own, chosen, work):
    """All sides in turn, so that what slows the machine for a while slows them all."""
    for _ in range(chosen.repeats):
        for side in [peer, *own]:
            side.turn(work)
    print(f"{title}\n{peer.line([])}")
    for side in own:
        print(side.line([] if chosen.brief else [peer]), flush=True)
    ratio = statistics.median(own[0].figures) / statistics.median(peer.figures)
    ratios = [mine / theirs for mine, theirs in zip(own[0].figures, peer.figures)]
    if not chosen.brief:
        print(f"  target {target:.2f} x, turns {min(ratios):.2f} ..{max(ratios):.2f} x: {verdict(ratios, target, chosen)}",
              flush=True)
    return {"title": title, "n": n, "target": target, "ratio": ratio, "ratios": ratios, "peer": peer.json(),
            "own": [side.json() for side in own]}


def product_flops(n):
    return 2.0 * n**3


def system_flops(n):
    return 2 / 3 * n**3 + 2.0 * n**2


def on_one_node(program, app, cases, target, library, chosen):
    """OpenBLAS on as many threads as there are cores, and one node with as many PEs."""
    nodes, compared = nodes_file("one.toml", [CORES]), []
    what, flops = ("product", product_flops) if app == "matmul" else ("system of equations", system_flops)
    for n, dtype in cases:
        command = [f"./{program}", dtype, str(n), "1" if chosen.brief or n > 4096 else "3"]
        peer = Side(f"{library} {program}, {CORES} threads",
                    lambda command=command: statistics.median(library.times(command, CORES)), library)
        own = own_sides(nodes, n, dtype, [], chosen, app)
        title = f"{what}, {dtype}, n = {n}, one process on {CORES} cores"
        compared.append(in_turn(title, n, target, peer, own, chosen, flops(n)))
    return compared


def on_processes(program, app, words, target, library, chosen):
    """ScaLAPACK on four processes, or two, and as many nodes with one PE each."""
    if CORES < PROCESSES:
        print(f"{program}: skipped: {PROCESSES} processes need as many cores, and here is one")
        return []
    nodes, compared = nodes_file("grid.toml", [1] * PROCESSES), []
    what, flops = ("product", product_flops) if app == "matmul" else ("system of equations", system_flops)
    for n in [512] if chosen.brief else [4096, 8192]:
        def of(grid, block, repeats, n=n):
            numbers = [*grid, n, block, repeats]
            command = [*mpirun(PROCESSES), f"./{program}", *map(str, numbers)]
            return statistics.median(library.times(command, 1))
        shapes = [(grid, block) for grid in GRIDS for block in BLOCKS[:1 if chosen.brief else None]]
        grid, block = min(shapes, key=lambda shape: of(*shape, 1))
        scalapack = version("libscalapack-openmpi-dev")
        name = f"ScaLAPACK {scalapack} {program}, {grid[0]} x {grid[1]}, blocks of {block}"
        repeats = 1 if chosen.brief or n > 4096 else 3
        peer = Side(name, lambda of=of, shape=(grid, block), repeats=repeats: of(*shape, repeats), library)
        own = own_sides(nodes, n, "f64", words, chosen, app)
        title = f"{what}, f64, n = {n}, {PROCESSES} processes of one core"
        compared.append(in_turn(title, n, target, peer, own, chosen, flops(n)))
    return compared


def gemm(library, chosen):
    n = 512 if chosen.brief else 4096
    return on_one_node("gemm", "matmul", [(n, "f64"), (n, "f32")], 0.97, library, chosen)


def cannon(library, chosen):
    return on_processes("pdgemm", "matmul", ["--algorithm", "cannon"], 1.2, library, chosen)


def gauss(library, chosen):
    cases = [(512, "f64")] if chosen.brief else [(4096, "f64"), (8192, "f64"), (8192, "f32")]
    return [*on_one_node("getrf", "gauss", cases, 0.95, library, chosen),
            *on_processes("pdgesv", "gauss", [], 1.3, library, chosen)]


def one_core_products(library, chosen):
    """Figures of OpenBLAS for `bench --peers`: the product that `kernel/*/gemm` measures."""
    n = 64 if chosen.brief else KERNEL_SIDE
    rates = {dtype: [product_flops(n) / seconds / 1e9 for seconds in library.times(["./gemm", dtype, str(n), "9"], 1)]
             for dtype in ["f64", "f32"]}
    return [{"peer": f"{library}", **about(library), "operation": f"kernel/{dtype}/gemm",
             "value": statistics.median(figures), "unit": "GFLOP/s", "source": source(chosen), "figures": figures}
            for dtype, figures in rates.items()]


def source(chosen):
    """What `bench --peers` is told about figures: it compares only with measured ones."""
    return "recorded" if chosen.brief else "measured"


def mpi_messages(name, chosen):
    """Figures by operation of the benchmarks, in their units."""
    keys = {"rtt": ("round-trip", "µs", 1.0), "bandwidth": ("flood", "GB/s", 1e-9), "rate": ("rate", "million/s", 1e-6)}
    seconds = "0.001" if chosen.brief else "0.1"
    figures = {}
    for line in output([*mpirun(2), *WAYS[name], "./messages", seconds]).splitlines():
        kind, size, value = line.split()
        key, unit, factor = keys[kind]
        figures[f"link/{key}/{SIZES[int(size)]}", unit] = float(value) * factor
    return figures


def our_messages(chosen):
    results = os.path.join(WORK, "bench.json")
    words = ["--brief"] if chosen.brief else ["--repeats", "3"]
    output([METACHARE, "bench", "--only", "link/", "--json", results, *words])
    with open(results) as file:
        return {(o["key"], o["unit"]): o["median"] for o in json.load(file)["operations"]}


def messages(chosen):
    """Open MPI between two processes, and messages between chares of two nodes. Figures of peers for `bench --peers`."""
    if CORES < 2:
        print("messages: skipped: two processes need as many cores, and here is one")
        return [], []
    mpi, sides = f"Open MPI {version('openmpi-bin')}", {f"Open MPI {way}": [] for way in WAYS}
    has_bench = subprocess.run([METACHARE, "bench", "--list"], capture_output=True).returncode == 0
    if not has_bench:
        print("messages of Metachare: skipped: this program has no `bench`")
    own = []
    for _ in range(chosen.repeats):
        for way, turns in zip(WAYS, sides.values()):
            turns.append(mpi_messages(way, chosen))
        if has_bench:
            own.append(our_messages(chosen))
    ways, peers, rows = list(WAYS), [], []
    print(f"messages between two processes: {mpi}" + "".join(f", {way}" for way in ways) + "; metachare, and its ratio to"
          f" the first\n  {'operation':<24}" + "".join(f"{way:>32}" for way in [*ways, "metachare"][: 2 + has_bench]))
    for key, unit in sides[f"Open MPI {ways[0]}"][0]:
        of = {way: [turn[key, unit] for turn in sides[f"Open MPI {way}"]] for way in ways}
        peers += [{"peer": f"{mpi} {way}", "version": mpi.split()[-1], "operation": key,
                   "value": statistics.median(of[way]), "unit": unit, "source": source(chosen), "figures": of[way]}
                  for way in ways]
        mine = [turn[key, unit] for turn in own if (key, unit) in turn]
        cells = [*of.values(), *([mine] if mine else [])]
        text = "".join(f"{statistics.median(c):14.2f} {f'{min(c):.2f} .. {max(c):.2f}':>17}" for c in cells)
        ratio = statistics.median(mine) / statistics.median(of[ways[0]]) if mine else None
        print(f"  {key:<24}{text} {unit}" + (f" {ratio:6.2f} x" if mine and not chosen.brief else ""),
              flush=True)
        rows.append({"operation": key, "unit": unit, "figures": mine, "ratio": ratio})
    return rows, peers


def compare_with_blas(results, chosen):
    library = OpenBlas()
    if chosen.brief and not refuses_narrow_kernels():
        sys.exit("a kernel for SSE on this CPU was not noticed: tests/peers/kernels.py")
    if why := library.objection():
        results["refused"] = f"OpenBLAS {library.version} and ScaLAPACK are not compared with: {why}"
        print(results["refused"])
        return
    if "gemm" in chosen.only:
        results["products"] += gemm(library, chosen)
        results["peers"] += one_core_products(library, chosen)
    if "cannon" in chosen.only:
        results["products"] += cannon(library, chosen)
    if "gauss" in chosen.only:
        results["systems"] += gauss(library, chosen)


def write(path, results):
    with open(path, "w") as out:
        json.dump(results, out, indent=1, ensure_ascii=False)


def is_read_by_bench(results):
    """Ends the run with the program's own words if `bench --peers` does not take the figures."""
    path = os.path.join(WORK, "peers.json")
    write(path, results)
    output([METACHARE, "bench", "--brief", "--only", "kernel/f64/gemm", "--peers", path])


def main():
    chosen, began = options(), time.time()
    with open("/proc/cpuinfo") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    brief = "; --brief: gone through once, these are no measurements" if chosen.brief else ""
    print(f"{CORES} x {cpu}, {chosen.repeats} turns: median, least .. most{brief}", flush=True)
    chosen.busy = 0.0 if chosen.brief else busy_cores()
    if chosen.busy > QUIET:
        print(f"other work keeps {chosen.busy:.1f} of these {CORES} cores busy, and spoils the figures", flush=True)
    results = {"schema": 1, "cpu": cpu, "cores": CORES, "repeats": chosen.repeats, "brief": chosen.brief,
               "busy_cores": chosen.busy, "products": [], "systems": [], "messages": [], "peers": [], "refused": None}
    if set(chosen.only) & {"gemm", "cannon", "gauss"}:
        compare_with_blas(results, chosen)
    if "messages" in chosen.only:
        results["messages"], peers = messages(chosen)
        results["peers"] += peers
    if chosen.brief:
        is_read_by_bench(results)
    print(f"{time.time() - began:.0f} s")
    if chosen.json:
        write(chosen.json, results)


if __name__ == "__main__":
    main()
