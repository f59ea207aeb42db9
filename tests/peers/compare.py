"""Runs Metachare and its peers in turn and compares them; `tests/against_peers` prepares what this needs."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

METACHARE, WORK = os.environ["METACHARE"], os.environ["WORK"]
CORES = len(os.sched_getaffinity(0))
# As the benchmarks of Metachare name them.
SIZES = {8: "8B", 64: "64B", 1 << 10: "1KiB", 4 << 10: "4KiB", 16 << 10: "16KiB", 64 << 10: "64KiB", 1 << 20: "1MiB",
         4 << 20: "4MiB", 16 << 20: "16MiB"}
# Processes along a side of the grid, ScaLAPACK's and Cannon's, and block sizes of which ScaLAPACK gets the best.
GRID = 2
BLOCKS = [64, 128, 256]
MPIRUN = ["mpirun", "--allow-run-as-root", "--bind-to", "core", "-np"]
# Ways of Open MPI's messages between processes of one machine; the first is the one with a network's protocol.
WAYS = {"over TCP": ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"], "over shared memory": []}


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


def nodes_file(name, pes):
    path = os.path.join(WORK, name)
    with open(path, "w") as out:
        out.writelines(f'[[node]]\nname = "n{at + 1}"\npes = {count}\n' for at, count in enumerate(pes))
    return path


class Side:
    """One way to do some work: a name, and a function that does it and says how many seconds that took."""

    def __init__(self, name, seconds):
        self.name, self.seconds, self.figures = name, seconds, []

    def turn(self, work):
        self.figures.append(work / self.seconds() / 1e9)

    def line(self, peers):
        median = statistics.median(self.figures)
        ratios = "".join(f"  {median / statistics.median(peer.figures):6.2f} x" for peer in peers)
        return f"  {self.name:<54} {median:7.1f} GFLOP/s  {min(self.figures):7.1f} ..{max(self.figures):7.1f}{ratios}"

    def json(self):
        return {"name": self.name, "unit": "GFLOP/s", "median": statistics.median(self.figures), "figures": self.figures}


def ours(nodes, n, dtype, *words, app="matmul"):
    """Seconds of the timed part: data in place, until the last number of the result is there."""
    def seconds():
        report = os.path.join(WORK, "run.json")
        output([METACHARE, "run", app, "--nodes", nodes, "--n", str(n), "--dtype", dtype, "--quiet", "--report",
                report, *words])
        with open(report) as file:
            return json.load(file)["timed_s"]
    return seconds


def in_turn(title, n, target, peer, own, chosen, work=None):
    """All sides in turn, so that what slows the machine for a while slows them all. The work is a product's, if none is
    given."""
    for _ in range(chosen.repeats):
        for side in [peer, *own]:
            side.turn(work or 2.0 * n**3)
    print(f"{title}\n{peer.line([])}")
    for side in own:
        print(side.line([peer]), flush=True)
    ratio = statistics.median(own[0].figures) / statistics.median(peer.figures)
    if not chosen.brief:
        print(f"  target {target:.2f} x: {'reached' if ratio >= target else 'MISSED'}", flush=True)
    return {"title": title, "n": n, "target": target, "ratio": ratio, "peer": peer.json(), "own": [s.json() for s in own]}


def ours_by_speeds(nodes, n, dtype, words, app="matmul"):
    """First as a user gets it. One verified run before the clock matters: what is compared must be right."""
    ours(nodes, n, dtype, "--verify", *words, app=app)()
    run = " ".join([f"metachare run {app}", *words])
    return [Side(run, ours(nodes, n, dtype, *words, app=app)),
            Side(f"{run} --speed equal", ours(nodes, n, dtype, "--speed", "equal", *words, app=app))]


def gemm(chosen):
    """OpenBLAS on as many threads as there are cores, and one node with as many PEs."""
    n = 512 if chosen.brief else 4096
    nodes, name = nodes_file("one.toml", [CORES]), f"OpenBLAS {version('libopenblas-dev')}"
    core = subprocess.run(["./gemm", "f64", "8", "1"], capture_output=True, text=True, cwd=WORK,
                          env={**os.environ, "OPENBLAS_VERBOSE": "2"}).stderr.strip()
    name += f" ({core.removeprefix('Core: ')})" if core else ""
    compared = []
    for dtype in ["f64", "f32"]:
        def seconds(dtype=dtype):
            times = output(["./gemm", dtype, str(n), "3"], OPENBLAS_NUM_THREADS=str(CORES)).split()
            return statistics.median(map(float, times))
        own = ours_by_speeds(nodes, n, dtype, [])
        compared.append(in_turn(f"product, {dtype}, n = {n}, one process on {CORES} cores", n, 0.95,
                                Side(name, seconds), own, chosen))
    return compared


def cannon(chosen):
    """ScaLAPACK on 2 x 2 processes, and Cannon's algorithm on as many nodes with one PE each."""
    processes = GRID * GRID
    if CORES < processes:
        print(f"cannon: skipped: {processes} processes need as many cores, and here are {CORES}")
        return []
    nodes, compared = nodes_file("grid.toml", [1] * processes), []
    for n in [512] if chosen.brief else [4096, 8192]:
        def of(block, repeats, n=n):
            command = [*MPIRUN, str(processes), "./pdgemm", str(GRID), str(n), str(block), str(repeats)]
            return statistics.median(map(float, output(command, OPENBLAS_NUM_THREADS="1").split()))
        best = min(BLOCKS, key=lambda block: of(block, 1))
        name = f"ScaLAPACK {version('libscalapack-openmpi-dev')} pdgemm, blocks of {best}"
        peer = Side(name, lambda of=of, best=best: of(best, 1 if n > 4096 else 3))
        own = ours_by_speeds(nodes, n, "f64", ["--algorithm", "cannon"])
        compared.append(in_turn(f"product, f64, n = {n}, {processes} processes of one core", n, 1.2, peer, own,
                                chosen))
    return compared


def gauss(chosen):
    """Systems of linear equations: OpenBLAS on as many threads as there are cores and one node with as many PEs, and
    ScaLAPACK on 2 x 2 processes and as many nodes with one PE each."""
    compared, one = [], nodes_file("one.toml", [CORES])
    blas = f"OpenBLAS {version('libopenblas-dev')} getrf"
    for n, dtype in [(512, "f64")] if chosen.brief else [(4096, "f64"), (8192, "f64"), (8192, "f32")]:
        def factored(n=n, dtype=dtype):
            times = output(["./getrf", dtype, str(n), "1" if n > 4096 else "3"], OPENBLAS_NUM_THREADS=str(CORES)).split()
            return statistics.median(map(float, times))
        title = f"system of equations, {dtype}, n = {n}, one process on {CORES} cores"
        own = ours_by_speeds(one, n, dtype, [], app="gauss")
        compared.append(in_turn(title, n, 1 / 1.3, Side(blas, factored), own, chosen, 2 / 3 * n**3 + 2.0 * n**2))
    processes = GRID * GRID
    if CORES < processes:
        print(f"gauss: {processes} processes need as many cores, and here are {CORES}")
        return compared
    nodes = nodes_file("grid.toml", [1] * processes)
    for n in [512] if chosen.brief else [4096, 8192]:
        def of(block, repeats, n=n):
            command = [*MPIRUN, str(processes), "./pdgesv", str(GRID), str(n), str(block), str(repeats)]
            return statistics.median(map(float, output(command, OPENBLAS_NUM_THREADS="1").split()))
        best = min(BLOCKS, key=lambda block: of(block, 1))
        name = f"ScaLAPACK {version('libscalapack-openmpi-dev')} pdgesv, blocks of {best}"
        peer = Side(name, lambda of=of, best=best: of(best, 1 if n > 4096 else 3))
        own = ours_by_speeds(nodes, n, "f64", [], app="gauss")
        title = f"system of equations, f64, n = {n}, {processes} processes of one core"
        compared.append(in_turn(title, n, 1.0, peer, own, chosen, 2 / 3 * n**3 + 2.0 * n**2))
    return compared


def mpi_messages(name, chosen):
    """Figures by operation of the benchmarks, in their units."""
    keys = {"rtt": ("round-trip", "µs", 1.0), "bandwidth": ("flood", "GB/s", 1e-9), "rate": ("rate", "million/s", 1e-6)}
    seconds = "0.001" if chosen.brief else "0.1"
    figures = {}
    for line in output([*MPIRUN, "2", *WAYS[name], "./messages", seconds]).splitlines():
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
        peers += [{"peer": f"{mpi} {way}", "operation": key, "value": statistics.median(of[way]), "unit": unit,
                   "source": "measured", "figures": of[way]} for way in ways]
        mine = [turn[key, unit] for turn in own if (key, unit) in turn]
        cells = [*of.values(), *([mine] if mine else [])]
        text = "".join(f"{statistics.median(c):14.2f} {f'{min(c):.2f} .. {max(c):.2f}':>17}" for c in cells)
        ratio = statistics.median(mine) / statistics.median(of[ways[0]]) if mine else None
        print(f"  {key:<24}{text} {unit}" + (f" {ratio:6.2f} x" if mine else ""), flush=True)
        rows.append({"operation": key, "unit": unit, "figures": mine, "ratio": ratio})
    return rows, peers


def main():
    chosen, began = options(), time.time()
    with open("/proc/cpuinfo") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    brief = "; --brief: gone through once, these are no measurements" if chosen.brief else ""
    print(f"{CORES} x {cpu}, {chosen.repeats} turns: median, least .. most{brief}", flush=True)
    results = {"schema": 1, "cpu": cpu, "cores": CORES, "repeats": chosen.repeats, "brief": chosen.brief,
               "products": [], "messages": [], "peers": []}
    if "gemm" in chosen.only:
        results["products"] += gemm(chosen)
    if "cannon" in chosen.only:
        results["products"] += cannon(chosen)
    if "gauss" in chosen.only:
        results["systems"] = gauss(chosen)
    if "messages" in chosen.only:
        results["messages"], results["peers"] = messages(chosen)
    print(f"{time.time() - began:.0f} s")
    if chosen.json:
        with open(chosen.json, "w") as out:
            json.dump(results, out, indent=1, ensure_ascii=False)


main()
