"""Shortest paths against scipy's; `tests/against_scipy` prepares what this needs."""

import itertools
import json
import os
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sparse
from scipy.sparse import csgraph

import graphs
from brief import some
from mixes import nodes_file

METACHARE = os.environ["METACHARE"]
rng = np.random.default_rng(int(os.environ.get("SEED", "1995")))
# PEs of each node.
MIXES = [[1], [2, 1], [1, 1, 2, 1], [2], [1, 2, 1], [1, 1, 1, 1, 2, 1]]
UNREACHABLE = {"int32": 2**31 - 1, "int64": 2**63 - 1}
failures, runs, began = [], 0, time.time()


def found(path, algorithm, mix, *words):
    """Distances (infinity where there is no path), predecessors and statistics; or why there are none."""
    global runs
    runs += 1
    command = [METACHARE, "run", "apsp", "--graph", path, "--algorithm", algorithm, "--out", "D.npy", "--predecessors", "P.npy",
               "--statistics", "S.csv", "--nodes", nodes_file(mix), "--speed", "file", "--report", "run.json", "--verify", *words]
    for name in ["D.npy", "P.npy", "S.csv"]:
        if os.path.exists(name):
            os.remove(name)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    said = " ".join(command[1:])
    if done.returncode != 0:
        return None, said + f": exit code {done.returncode}: {done.stderr.strip()[-500:]}"
    d = np.load("D.npy")
    distances = np.where(d == UNREACHABLE.get(str(d.dtype), np.inf), np.inf, d.astype(float))
    return (distances, np.load("P.npy"), np.genfromtxt("S.csv", delimiter=",", names=True), d.tobytes()), said


def check(name, graph, algorithm, mix, *words, suffix=".gr", sources=None):
    """One run; its distances in bytes."""
    n, ends, weights = graph
    path = name + suffix
    graphs.write(path, n, ends, weights)
    if "--undirected" in words:
        ends, weights = np.concatenate([ends, ends[:, ::-1]]), np.concatenate([weights, weights])
    kept, lengths = graphs.lightest(n, ends, weights)
    # An explicit 0 stays an edge of weight 0.
    matrix = sparse.csr_matrix((lengths.astype(float), (kept[:, 0], kept[:, 1])), shape=(n, n))
    result, said = found(path, algorithm, mix, *words)
    if result is None:
        failures.append(said)
        print("WRONG", said, flush=True)
        return None
    d, before, table, raw = result
    method = csgraph.bellman_ford if (lengths < 0).any() else csgraph.dijkstra
    expected = method(matrix, indices=sources)
    reason = wrong(d, before, table, expected, matrix, sources, 2e-5 if "f32" in words else 1e-12)
    if reason:
        failures.append(f"{said}: {reason}")
        print("WRONG", failures[-1], flush=True)
    return raw


def wrong(d, before, table, expected, matrix, sources, tolerance):
    if d.shape != expected.shape or before.shape != expected.shape or before.dtype != np.int32:
        return f"is {d.shape}, {before.dtype} {before.shape} where {expected.shape} is due"
    if not (np.isinf(d) == np.isinf(expected)).all():
        return "other pairs have paths"
    finite = np.isfinite(expected)
    size = max(np.abs(expected[finite]).max(initial=0.0), 1.0)
    off = np.abs(np.where(finite, d, 0) - np.where(finite, expected, 0)).max() / size
    if off > tolerance:
        return f"distances are off by {off:.2e}"
    starts = np.arange(len(expected)) if sources is None else np.asarray(sources)
    has_one = before >= 0
    if (has_one != (finite & (np.arange(d.shape[1]) != starts[:, None]))).any():
        return "predecessors are missing, or there are too many"
    rows, columns = np.nonzero(has_one)
    last = before[rows, columns]
    steps = np.asarray(matrix[last, columns]).ravel()
    if np.abs(d[rows, last] + steps - d[rows, columns]).max(initial=0.0) > tolerance * size * 4:
        return "a predecessor is on no shortest path"
    # So many steps back, every path has come to its source.
    at, own = np.tile(np.arange(d.shape[1]), (len(d), 1)), np.arange(len(d))[:, None]
    for _ in range(int(np.ceil(np.log2(d.shape[1] + 1))) + 1):
        if _ == 0:
            jump = np.where(has_one, before, at)
        else:
            jump = np.take_along_axis(jump, jump, 1)
    if (np.take_along_axis(has_one, jump, 1)).any():
        return "predecessors go round in a circle"
    table = np.atleast_1d(table)
    reached = finite.sum(1)
    eccentricity = np.where(finite, d, -np.inf).max(1)
    total = np.where(finite, d, 0).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        closeness = np.where(reached > 1, (reached - 1) / total * (reached - 1) / max(d.shape[1] - 1, 1), 0)
    same = (table["reached"] == reached).all() and np.allclose(table["eccentricity"], eccentricity, 1e-9) \
        and np.allclose(table["closeness"], closeness, 1e-9)
    return None if same else "statistics are not those of the distances"


mixes = itertools.cycle(MIXES)
suffixes = itertools.cycle([".gr", ".txt", ".mtx"])
BOTH = ["dijkstra", "floyd-warshall"]


def without_gaps(graph):
    """An edge list has no vertices without edges, and numbers the others: here all have one, a loop."""
    n, ends, weights = graph
    loops = np.stack([np.arange(n), np.arange(n)], 1)
    return n, np.concatenate([ends, loops]), np.concatenate([weights, np.ones(n, weights.dtype)])


FAMILIES = {
    "road": lambda n: graphs.road(n, rng), "grid": lambda n: graphs.grid(n, rng), "random": lambda n: graphs.random(n, rng),
    "sparse": lambda n: graphs.random(n, rng, 1), "law": lambda n: graphs.power_law(n, rng),
    "dense": lambda n: graphs.random(n, rng, n), "zeros": lambda n: graphs.random(n, rng, 4, 3),
    "wide": lambda n: graphs.random(n, rng, 3, 10**12),
}
for (name, make), n in some(itertools.product(FAMILIES.items(), [1, 2, 7, 60, 210]), 8):
    if name == "road" and n == 1:
        continue
    n_, ends, weights = without_gaps(make(n))
    if name == "zeros":
        weights = weights - 1
    kinds = [weights] if name == "wide" else [weights, weights * 0.37 + rng.random(len(weights)) * (name != "zeros")]
    for w, algorithm in some(itertools.product(kinds, BOTH), 1):
        words = [["--undirected"], []][rng.integers(2)]
        check(name, (n, ends, w), algorithm, next(mixes), *words, suffix=next(suffixes))
print(f"{runs} runs: families, in {time.time() - began:.0f} s", flush=True)

# Types of distances, blocks of every kind, some sources only, vertices without edges.
for dtype, algorithm in some(itertools.product(["i32", "i64", "f32", "f64"], BOTH), 3):
    check("typed", graphs.random(90, rng, 2), algorithm, next(mixes), "--dtype", dtype)
for block in some([1, 2, 3, 16, 50, 89, 90, 91], 2):
    check("blocks", graphs.random(90, rng, 4), "floyd-warshall", next(mixes), "--block", str(block))
for first, end in some([(0, 1), (13, 14), (5, 77), (89, 90)], 1):
    check("some", graphs.road(90, rng), "dijkstra", next(mixes), "--sources", f"{first}..{end}", sources=range(first, end))

# Negative weights: differences of heights are added, so that no cycle becomes negative.
for n, degree, kind in some(itertools.product([2, 40, 130], [2, 12], [int, float]), 3):
    n_, ends, weights = graphs.random(n, rng, degree, 50)
    height = rng.integers(0, 60, n)
    loops = ends[:, 0] == ends[:, 1]
    weights = (weights - 1 + np.where(loops, 0, height[ends[:, 0]] - height[ends[:, 1]])).astype(kind)
    # With fractions, cycles of weight 0 are a matter of rounding to everybody.
    weights = weights + (0.25 * rng.random(len(ends)) + 1e-3 if kind is float else 0)
    check("negative", (n, ends, weights), "floyd-warshall", next(mixes), suffix=next(suffixes) if degree == 12 and n > 2 else ".gr")
print(f"{runs} runs: types, blocks, sources, negative weights, in {time.time() - began:.0f} s", flush=True)

# The same bits on any mix.
for algorithm, kind in some(itertools.product(BOTH, [int, float]), 2):
    n, ends, weights = graphs.random(120, rng, 3)
    weights = weights if kind is int else weights * 0.1
    bits = {check("bits", (n, ends, weights), algorithm, mix) for mix in some(MIXES, 2)}
    if len(bits) > 1:
        failures.append(f"{algorithm} {kind}: {len(bits)} different results")
        print("WRONG", failures[-1], flush=True)
print(f"{runs} runs in {time.time() - began:.0f} s, {len(failures)} wrong")
sys.exit(1 if failures else 0)
