"""How long shortest paths take, with scipy and a blocked C version in turn; `tests/against_scipy --times` prepares what
this needs."""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy
import scipy.sparse as sparse
from scipy.sparse import csgraph

import graphs

METACHARE, PEERS = os.environ["METACHARE"], os.environ["PEERS"]
CORES = len(os.sched_getaffinity(0))
BRIEF = "--brief" in sys.argv
TURNS = 1 if BRIEF else 5
# Sides of blocks, of which the C version gets the best.
SIDES = [64, 128, 256]
rng = np.random.default_rng(1)


def ours(*words):
    """Seconds of the timed part on one node with a PE for each core: from the graph in place to the last distance."""
    command = [METACHARE, "run", "apsp", "--nodes", "one.toml", "--speed", "equal", "--quiet", "--report", "run.json", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    with open("run.json") as file:
        return json.load(file)["timed_s"]


def figure(name, seconds):
    print(f"  {name:<66} {statistics.median(seconds):8.3f} s  {min(seconds):8.3f} ..{max(seconds):8.3f}", flush=True)
    return statistics.median(seconds)


def judged(ratio, target):
    verdict = "" if BRIEF else f", target {target:.1f}: {'reached' if ratio >= target else 'MISSED'}"
    print(f"  {ratio:.2f} times as fast{verdict}", flush=True)


def dijkstra(name, graph, sources):
    """Scipy on one core from some sources, spread over all, for a core's part of them; ours on all from all."""
    n, ends, weights = graph
    graphs.write(name + ".gr", n, ends, weights)
    kept, lengths = graphs.lightest(n, ends, weights)
    matrix = sparse.csr_matrix((lengths.astype(float), (kept[:, 0], kept[:, 1])), shape=(n, n))
    sample = np.linspace(0, n - 1, sources, dtype=int)
    peer, own = [], []
    ours("--graph", name + ".gr", "--verify", "--sources", "0..50")
    for _ in range(TURNS):
        start = time.perf_counter()
        csgraph.dijkstra(matrix, indices=sample)
        peer.append((time.perf_counter() - start) / sources * n / CORES)
        own.append(ours("--graph", name + ".gr"))
    print(f"Dijkstra from every vertex, {name}, {n} vertices, {len(kept)} arcs, {weights.dtype}", flush=True)
    theirs = figure(f"scipy {scipy.__version__} on one core, divided by {CORES} cores", peer)
    judged(theirs / figure(f"metachare, {CORES} PEs", own), 2.0)


def floyd_warshall(n, kind, flags):
    program = "./fw" + "".join(flags).replace("-", "").replace("=", "")
    subprocess.run(["gcc", "-O3", *flags, "-fopenmp", "-o", program, os.path.join(PEERS, "floyd_warshall.c")], check=True)

    def theirs(side, repeats):
        command = [program, kind, str(n), str(side), str(repeats)]
        env = {**os.environ, "OMP_NUM_THREADS": str(CORES)}
        lines = subprocess.run(command, capture_output=True, text=True, timeout=600, env=env, check=True).stdout.splitlines()
        return min(float(line.split()[0]) for line in lines)

    best = min(SIDES, key=lambda side: theirs(side, 2))
    words = ["--algorithm", "floyd-warshall", "--n", str(n), "--dtype", kind]
    ours(*words)
    peer, own = [], []
    for _ in range(TURNS):
        peer.append(theirs(best, 2))
        own.append(ours(*words))
    print(f"Floyd-Warshall, {n} vertices, dense, {kind}", flush=True)
    peer_median = figure(f"C, gcc -O3 {' '.join(flags)}, {CORES} threads, blocks of {best}", peer)
    judged(peer_median / figure(f"metachare, {CORES} PEs", own), 1.0)


with open("one.toml", "w") as out:
    out.write(f'[[node]]\nname = "one"\npes = {CORES}\n')
with open("/proc/cpuinfo") as file:
    cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
print(f"{CORES} x {cpu}, {TURNS} turns: median, least .. most{'; --brief: these are no measurements' if BRIEF else ''}", flush=True)
chosen = next((word.split("=")[1] for word in sys.argv if word.startswith("--only=")), "dijkstra,floyd-warshall").split(",")
n = 1024 if BRIEF else 32768
if "dijkstra" in chosen:
    dijkstra("road", graphs.road(n, rng), 100)
    dijkstra("random", graphs.random(n // 4, rng, 8), 100)
    links, ends, weights = graphs.road(n // 2, rng)
    dijkstra("fractions", (links, ends, weights * 0.37), 100)
    # A few weights are very much longer than most.
    dijkstra("unlike", (links, ends, np.where(weights < 500, 1, weights**3)), 100)
if "floyd-warshall" in chosen:
    for kind, flags in [("i32", []), ("i32", ["-march=native"]), ("f64", ["-march=native"])]:
        floyd_warshall(512 if BRIEF else 4096, kind, flags)
