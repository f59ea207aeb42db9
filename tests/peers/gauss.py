"""Solutions of `metachare run gauss` against LAPACK's (numpy.linalg.solve), both ways and both types of numbers, on 1 to 7
local nodes of unlike fixed speeds: random, symmetric indefinite, zero leading pivots, Hilbert's 8 x 8, rows from 1e-150 to
1e150, ragged sides, many right-hand sides, files of all kinds; and singular matrices, which must be refused with their
column."""

import itertools, json, os, subprocess, sys, time
import numpy as np

from brief import BRIEF, some
from mixes import nodes_file

METACHARE = os.environ["METACHARE"]
rng = np.random.default_rng(int(os.environ.get("SEED", "1995")))
MIXES = [[1], [2, 1], [1, 2, 1], [2, 1, 1, 1, 1], [1, 1, 2, 1, 1, 2, 1]]
ALGORITHMS = ["columns", "blocked"]
failures, runs, began = [], 0, time.time()


def save(name, x, form):
    """Writes a matrix; the name of the file."""
    if form == "mtx":
        with open(name + ".mtx", "w") as out:
            out.write(f"%%MatrixMarket matrix array real general\n{x.shape[0]} {x.shape[1]}\n")
            out.writelines(f"{float(value)!r}\n" for value in x.ravel(order="F"))
        return name + ".mtx"
    np.save(name + ".npy", np.asfortranarray(x) if form == "npyF" else x)
    return name + ".npy"


def run(mix, algorithm, a, b, *words):
    global runs
    runs += 1
    for old in ["X.npy", "run.json"]:
        if os.path.exists(old):
            os.remove(old)
    command = [METACHARE, "run", "gauss", "--algorithm", algorithm, "--a", a, "--b", b, "--out", "X.npy", "--verify",
               "--nodes", nodes_file(mix), "--speed", "file", "--report", "run.json", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr.strip()


def wrong(what):
    failures.append(what)
    print("WRONG", what, flush=True)


def reference(a, b):
    """LAPACK's solution in f64, of rows that are scaled by powers of two, which changes no solution; and the condition
    of that matrix."""
    wide = a.astype(np.float64)
    scale = 2.0 ** -np.frexp(np.max(abs(wide), axis=1))[1]
    scaled, right = wide * scale[:, None], b.astype(np.float64) * scale[:, None]
    return np.linalg.solve(scaled, right), np.linalg.cond(scaled, np.inf)


def compare(name, a, b, kind, mix, algorithm, form="npyC", words=()):
    a, b = a.astype(kind), b.astype(kind).reshape(len(a), -1)
    files = save("A", a, form), save("B", b, form)
    code, error = run(mix, algorithm, *files, *words)
    what = f"{name}, {kind}, {algorithm} on {mix}, {form}"
    if code != 0:
        return wrong(f"{what}: exit code {code}: {error[-300:]}")
    x, (expected, condition) = np.load("X.npy"), reference(a, b)
    kind = "f8" if form == "mtx" else kind
    # Both are near a solution of a system whose numbers are wrong in the last place.
    allowed = 4 * np.finfo(kind).eps * condition * max(1.0, np.sqrt(len(a)))
    off = float(np.max(np.max(abs(x - expected), axis=0) / np.maximum(np.max(abs(expected), axis=0), 1e-300)))
    residual = json.load(open("run.json"))["facts"]["scaled_residual"]
    if x.shape != b.shape or x.dtype != np.dtype("<" + kind) or not off <= max(allowed, 1e-15) or not residual < 16:
        wrong(f"{what}: {x.dtype} {x.shape} is off by {off:.1e}, {allowed:.1e} allowed, residual {residual:.2f}")


def symmetric(n):
    a = rng.standard_normal((n, n))
    return a + a.T


def zero_leading(n):
    a = rng.standard_normal((n, n))
    np.fill_diagonal(a, 0.0)
    a[: n // 2, : n // 3] = 0.0
    a[: n // 3, n // 2 :] = rng.standard_normal((n // 3, n - n // 2))
    return a


KINDS = {
    "random": (rng.standard_normal((200, 200)), ["f4", "f8"]),
    "symmetric indefinite": (symmetric(150), ["f4", "f8"]),
    "zero diagonal": (rng.standard_normal((120, 120)) * (1 - np.eye(120)), ["f4", "f8"]),
    "zero leading pivot": (np.array([[0.0, 1.0], [1.0, 1.0]]), ["f4", "f8"]),
    "zero leading block": (np.block([[np.zeros((30, 30)), np.eye(30)], [rng.standard_normal((30, 60))]]), ["f4", "f8"]),
    "permutation": (np.eye(77)[rng.permutation(77)] * 3.0, ["f4", "f8"]),
    "hilbert 8": (1.0 / (np.arange(8)[:, None] + np.arange(8)[None, :] + 1.0), ["f8"]),
    "rows 1e-150 to 1e150": (10.0 ** np.linspace(-150, 150, 101)[:, None] * rng.standard_normal((101, 101)), ["f8"]),
    "rows 1e150 to 1e-150": (10.0 ** np.linspace(150, -150, 101)[:, None] * rng.standard_normal((101, 101)), ["f8"]),
    "rows 1e-15 to 1e15": (10.0 ** np.linspace(-15, 15, 90)[:, None] * rng.standard_normal((90, 90)), ["f4", "f8"]),
    "wilkinson 30": (np.tril(-np.ones((30, 30)), -1) + np.eye(30) + np.eye(30)[:, -1:] @ np.ones((1, 30)), ["f8"]),
    "tridiagonal": (np.diag(np.full(99, 1.0), -1) + np.diag(np.full(99, 1.5), 1) + np.eye(100) * 0.1, ["f8"]),
}

mixes = itertools.cycle(MIXES)
for (name, (a, kinds)), algorithm in some(itertools.product(KINDS.items(), ALGORITHMS), 7):
    for kind in some(kinds, 1):
        # Right-hand sides in the units of the rows, where these are very unlike.
        b = a @ rng.standard_normal((len(a), int(rng.integers(1, 4))))
        compare(name, a, b, kind, next(mixes), algorithm, words=["--block", str(rng.integers(1, 60))] if algorithm == "blocked" else [])
print(f"{runs} runs: kinds, in {time.time() - began:.0f} s", flush=True)

for n, algorithm, kind in some(itertools.product([1, 2, 7, 1000] + [2049] * (not BRIEF), ALGORITHMS, ["f4", "f8"]), 3):
    if n == 2049 and algorithm == "columns" and kind == "f4":
        continue
    compare(f"random {n}", rng.standard_normal((n, n)), rng.standard_normal((n, 3)), kind, next(mixes), algorithm)
for rhs, algorithm in some(itertools.product([1, 130, 400], ALGORITHMS), 2):
    compare(f"{rhs} right-hand sides", rng.standard_normal((130, 130)), rng.standard_normal((130, rhs)), "f8", next(mixes), algorithm)
for form, algorithm in some(itertools.product(["npyF", "mtx"], ALGORITHMS), 2):
    compare("form", rng.standard_normal((61, 61)), rng.standard_normal((61, 2)), "f8", next(mixes), algorithm, form)
print(f"{runs} runs: and sides, in {time.time() - began:.0f} s", flush=True)

r = rng.standard_normal
copied = r((300, 300))
copied[:, 211] = copied[:, 17] * 2.0 - copied[:, 5]
low = r((90, 40)) @ r((40, 90))
zero_column = r((50, 50))
zero_column[:, 31] = 0.0
singular = [("a sum of others", copied, "column 211,"), ("low rank", low, "column 4"), ("zeros", zero_column, "column 31,"),
            ("all zeros", np.zeros((4, 4)), "row 0,"), ("ones", np.ones((9, 9)), "column 1,"),
            ("magic", np.array([[16.0, 2, 3, 13], [5, 11, 10, 8], [9, 7, 6, 12], [4, 14, 15, 1]]), "column 3,"),
            ("numbers 1 to 9", np.arange(1.0, 10).reshape(3, 3), "column 2,"),
            ("hilbert 20", 1.0 / (np.arange(20)[:, None] + np.arange(20)[None, :] + 1.0), "column 1")]
for (name, a, words), algorithm, mix in some(itertools.product(singular, ALGORITHMS, MIXES[:2]), 4):
    code, error = run(mix, algorithm, save("A", a, "npyC"), save("B", np.ones((len(a), 1)), "npyC"))
    last = error.splitlines()[-1] if error else ""
    if code != 65 or words not in last or os.path.exists("X.npy"):
        wrong(f"{name}, {algorithm} on {mix}: exit code {code}, {words!r} is due: {error[-300:]}")
print(f"{runs} runs in {time.time() - began:.0f} s, {len(failures)} wrong")
sys.exit(1 if failures else 0)
