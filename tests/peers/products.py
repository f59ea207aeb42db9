"""Products of `metachare run matmul` against numpy's; `tests/against_numpy` prepares what this needs."""

import hashlib, itertools, json, os, random, subprocess, sys, time
import numpy as np

from brief import some
from mixes import nodes_file

METACHARE = os.environ["METACHARE"]
ALGORITHMS = ["conventional", "cannon", "fox", "fox-hey-otto"]
TOLERANCE = {"f4": 1e-5, "f8": 1e-12}
pick = random.Random(int(os.environ.get("SEED", "1995")))
random_of = np.random.default_rng(int(os.environ.get("SEED", "1995")))

# PEs of each node.
MIXES = [[1], [2], [2, 1], [1, 2, 1], [1, 1, 2, 1], [2, 1, 1, 1, 1], [1, 2, 1, 1, 2, 1], [1, 1, 2, 1, 1, 2, 1]]
# m, k, n: square, ragged, one row or column or product, smaller than most q, primes.
SHAPES = [(64, 64, 64), (96, 96, 96), (37, 51, 5), (5, 64, 90), (1, 40, 30), (30, 40, 1), (20, 1, 25), (1, 1, 1), (1, 33, 1),
          (3, 4, 2), (7, 7, 7), (61, 67, 71), (127, 13, 101), (2, 211, 3), (150, 149, 151), (256, 100, 31)]


def save_market(path, x, kind):
    with open(path, "w") as out:
        layout, symmetry = kind.split("-")
        out.write(f"%%MatrixMarket matrix {layout} real {symmetry}\n% of a test\n")
        rows, cols = x.shape
        lower = symmetry == "symmetric"
        places = [(i, j) for j in range(cols) for i in range(j if lower else 0, rows)]
        if layout == "coordinate":
            places = [p for p in places if x[p] != 0.0]
            pick.shuffle(places)
            out.write(f"{rows} {cols} {len(places)}\n")
            out.writelines(f"{i + 1} {j + 1} {float(x[i, j])!r}\n" for i, j in places)
        else:
            out.write(f"{rows} {cols}\n")
            out.writelines(f"{float(x[p])!r}\n" for p in places)


def matrix(name, rows, cols, kind, form):
    """Makes and saves a matrix; its path and its numbers as the file holds them."""
    x = random_of.standard_normal((rows, cols)).astype(kind)
    if form.startswith("npy"):
        order, endian = form[3], form[4]
        np.save(name + ".npy", np.asarray(x.astype(endian + kind), order=order))
        return name + ".npy", x
    if form.endswith("symmetric"):
        x = np.tril(x) + np.tril(x, -1).T
    if form.startswith("coordinate"):
        mask = random_of.random((rows, cols)) < 0.3
        x = x * (mask & mask.T if form.endswith("symmetric") else mask)
    save_market(name + ".mtx", x, form)
    return name + ".mtx", x


def run(algorithm, mix, q, a, b, *words):
    command = [METACHARE, "run", "matmul", "--algorithm", algorithm, "--a", a, "--b", b, "--out", "C.npy", "--q", str(q),
               "--nodes", nodes_file(mix), "--speed", "file", "--report", "run.json", *words]
    if os.path.exists("C.npy"):
        os.remove("C.npy")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return None, " ".join(command[1:]) + f": exit code {done.returncode}: {done.stderr.strip()[-500:]}"
    return np.load("C.npy"), " ".join(command[1:])


def wrong(c, x, y, kind):
    """Why C is not the product of the two within the tolerance; None if it is."""
    expected = x @ y
    if c.shape != expected.shape or c.dtype != np.dtype("<" + kind) or not c.flags.c_contiguous:
        return f"is {c.dtype} {c.shape} where {kind} {expected.shape} in C order is due"
    exact = x.astype(np.longdouble) @ y.astype(np.longdouble)
    # Relative to what the products of a sum add up to: where they cancel, nobody has more digits, numpy neither.
    size = np.abs(x).astype(np.longdouble) @ np.abs(y).astype(np.longdouble)
    off = np.abs(c - exact) / np.where(size == 0, 1, size)
    beside = np.max(np.abs(c - expected)) / max(np.max(np.abs(expected)), np.finfo(kind).tiny)
    worst = max(float(np.max(off)), float(beside))
    return None if worst <= TOLERANCE[kind] else f"is off by {worst:.2e} relative"


failures, runs, began = [], 0, time.time()


def check(algorithm, mix, q, shape, kind, forms, *words):
    global runs
    m, k, n = shape
    (a, x), (b, y) = matrix("A", m, k, kind, forms[0]), matrix("B", k, n, kind, forms[1])
    c, command = run(algorithm, mix, q, a, b, *words)
    runs += 1
    reason = command if c is None else wrong(c, x, y, kind)
    if reason:
        failures.append(f"{command}: {m} x {k} x {n}, {kind}, {forms}: {reason}")
        print("WRONG", failures[-1], flush=True)
    if c is not None and abs(sum(node["share"] for node in json.load(open("run.json"))["nodes"]) - 1) > 1e-9:
        failures.append(f"{command}: the shares do not add up to 1")
        print("WRONG", failures[-1], flush=True)


NPY = ["npyC<", "npyF<", "npyC>", "npyF>"]

# Every shape with every algorithm and both types; mixes, q and forms of files in turn, so that all meet.
mixes, qs, forms = itertools.cycle(MIXES), itertools.cycle(range(1, 10)), itertools.cycle(itertools.product(NPY, NPY))
for shape, algorithm, kind in some(itertools.product(SHAPES, ALGORITHMS, ["f4", "f8"]), 12):
    check(algorithm, next(mixes), next(qs), shape, kind, next(forms))
    if pick.random() < 0.2:
        next(mixes)
print(f"{runs} runs: shapes, in {time.time() - began:.0f} s", flush=True)

# Every q with every count of nodes, on a shape that neither divides.
for (q, mix), algorithm in some(zip(itertools.product(range(1, 10), MIXES), itertools.cycle(["cannon", "fox-hey-otto", "cannon"])), 4):
    check(algorithm, mix, q, (61, 67, 71), pick.choice(["f4", "f8"]), ("npyC<", "npyC<"))
for grain, mix, algorithm in some(itertools.product([1, 7, 61, 100], MIXES[::2], ["conventional", "fox"]), 2):
    check(algorithm, mix, 1, (61, 67, 71), "f8", ("npyC<", "npyC<"), "--grain", str(grain))
print(f"{runs} runs: and every q, grains, in {time.time() - began:.0f} s", flush=True)

# MatrixMarket, alone and mixed with .npy; such files hold f64, unless --dtype says otherwise.
MARKET = ["array-general", "coordinate-general", "array-symmetric", "coordinate-symmetric"]
for algorithm, (form, other) in some(itertools.product(ALGORITHMS, [*zip(MARKET, MARKET[1:] + MARKET[:1]), *zip(MARKET, NPY)]), 8):
    side = 23 if form.endswith("symmetric") else 31
    inner = side if form.endswith("symmetric") or other.endswith("symmetric") else 19
    last = inner if other.endswith("symmetric") else 29
    check(algorithm, pick.choice(MIXES), pick.randint(1, 9), (side, inner, last), "f8", (form, other))
print(f"{runs} runs: and MatrixMarket, in {time.time() - began:.0f} s", flush=True)

# The same bits on any mix. q is part of the algorithm, not of the mix: it stays.
for algorithm, kind, shape in some(itertools.product(ALGORITHMS, ["f4", "f8"], [(61, 67, 71), (5, 64, 90)]), 2):
    m, k, n = shape
    (a, x), (b, y) = matrix("A", m, k, kind, "npyC<"), matrix("B", k, n, kind, "npyC<")
    bits = {}
    for mix in some(pick.sample(MIXES, 5), 3):
        c, command = run(algorithm, mix, 5, a, b, "--deterministic")
        runs += 1
        reason = command if c is None else wrong(c, x, y, kind)
        if reason:
            failures.append(f"{command}: {reason}")
            print("WRONG", failures[-1], flush=True)
        else:
            bits.setdefault(hashlib.sha256(c.tobytes()).hexdigest(), []).append(mix)
    if len(bits) > 1:
        failures.append(f"{algorithm} {kind} {shape} --deterministic: {len(bits)} different results: {list(bits.values())}")
        print("WRONG", failures[-1], flush=True)
print(f"{runs} runs in {time.time() - began:.0f} s, {len(failures)} wrong")
sys.exit(1 if failures else 0)
