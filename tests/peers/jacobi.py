"""Solutions of `metachare run jacobi` against scipy's direct solvers: matrices as SuiteSparse has them (Poisson in two
and three dimensions, convection, arrows, bands, random ones; general, symmetric and integer files, places named twice) and
dense ones, on 1 to 7 local nodes of unlike fixed speeds; that every mix gives the same bits; and that matrices for which
Jacobi's method converges or not by their spectral radius do so here."""

import hashlib, itertools, json, os, subprocess, sys, time
import numpy as np
import scipy.io, scipy.sparse as sp, scipy.sparse.linalg as sl

from brief import BRIEF, some
from mixes import nodes_file

METACHARE = os.environ["METACHARE"]
rng = np.random.default_rng(int(os.environ.get("SEED", "1995")))
MIXES = [[1], [2, 1], [1, 2, 1], [2, 1, 1, 1, 1], [1, 1, 2, 1, 1, 2, 1]]
failures, runs, began = [], 0, time.time()


def run(mix, *words):
    global runs
    runs += 1
    for old in ["X.npy", "run.json"]:
        if os.path.exists(old):
            os.remove(old)
    command = [METACHARE, "run", "jacobi", "--out", "X.npy", "--nodes", nodes_file(mix), "--speed", "file",
               "--report", "run.json", "--verify", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    report = json.load(open("run.json")) if os.path.exists("run.json") else {"facts": {}}
    return done.returncode, done.stderr.strip(), report


def wrong(what):
    failures.append(what)
    print("WRONG", what, flush=True)


def grid(*sides):
    """The Laplacian of a grid of any dimensions."""
    total = sp.csr_matrix((1, 1))
    for side in sides:
        line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(side, side))
        total = sp.kron(total, sp.identity(side)) + sp.kron(sp.identity(total.shape[0]), line)
    return total.tocsr()


def dominated(a, by):
    """The matrix with a diagonal `by` times what the rest of each row adds up to."""
    a = a.tolil()
    a.setdiag(0)
    a = a.tocsr()
    sums = np.asarray(abs(a).sum(axis=1)).ravel()
    return (a + sp.diags(by * np.where(sums == 0, 1.0, sums))).tocsr()


def arrow(n):
    a = sp.identity(n, format="lil") * 3.0
    a[0, :] = 1.0 / n
    a[:, 0] = 1.0
    a[0, 0] = 5.0
    return a.tocsr()


def radius(a):
    dense = a.toarray() if sp.issparse(a) else a
    return float(max(abs(np.linalg.eigvals(np.eye(len(dense)) - dense / np.diag(dense)[:, None]))))


SPARSE = {
    "poisson2d": grid(31, 27) + 0.4 * sp.identity(31 * 27),
    "poisson3d": grid(9, 8, 7) + 0.6 * sp.identity(9 * 8 * 7),
    "poisson2d as it is": grid(12, 12),
    "convection": dominated(grid(25, 25) + sp.diags([0.7, -0.7], [-1, 1], shape=(625, 625)), 1.05),
    "arrow": arrow(300),
    "band": dominated(sp.diags(list(rng.standard_normal((7, 900))), [-40, -3, -1, 0, 1, 5, 77], shape=(900, 900)), 1.1),
    "random": dominated(sp.random(1000, 1000, density=0.01, random_state=rng), 1.2),
    "long rows": dominated(sp.random(400, 400, density=0.6, random_state=rng), 1.3),
    "scaled": sp.diags(10.0 ** rng.uniform(-6, 6, 500)) @ dominated(sp.random(500, 500, density=0.02, random_state=rng), 1.3),
    "diagonal": sp.diags(rng.uniform(1, 2, 50)).tocsr(),
    "one": sp.csr_matrix([[4.0]]),
    "two": sp.csr_matrix([[4.0, 1.0], [-2.0, 3.0]]),
}


def save_sparse(a, form):
    """Writes A.mtx; A as a reader has it."""
    a = a.tocoo()
    rows, cols, values = a.row, a.col, a.data
    symmetry, field = "general", "real"
    if form == "symmetric":
        keep = rows >= cols
        rows, cols, values, symmetry = rows[keep], cols[keep], values[keep], "symmetric"
    if form == "twice":
        half = values * 0.25
        rows, cols, values = np.tile(rows, 2), np.tile(cols, 2), np.concatenate([half, values - half])
    if form == "integer":
        field = "integer"
    order = rng.permutation(len(values))
    with open("A.mtx", "w") as out:
        out.write(f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% of a test\n{a.shape[0]} {a.shape[1]} {len(values)}\n")
        for k in order:
            value = int(values[k]) if field == "integer" else repr(float(values[k]))
            out.write(f"{rows[k] + 1} {cols[k] + 1} {value}\n")
    return scipy.io.mmread("A.mtx").tocsr()


def compare(name, a, b, bits, kind="f8"):
    """All mixes: near the direct solution, and the same bits."""
    wide = a.astype(float)
    exact = np.asarray(sl.spsolve(wide.tocsc(), b.astype(float)) if sp.issparse(a) else np.linalg.solve(wide, b)).reshape(b.shape)
    tolerance = 1e-13 if kind == "f8" else 1e-6
    first = np.max(abs(b.astype(float) / np.asarray(wide.diagonal())[:, None]))
    rho = radius(wide)
    hashes = set()
    for mix in bits:
        code, error, report = run(mix, "--a", "A.mtx" if sp.issparse(a) else "A.npy", "--b", "B.npy",
                                  "--tolerance", repr(tolerance), "--max-iterations", "100000")
        if code != 0:
            wrong(f"{name} on {mix}: exit code {code}: {error[-300:]}")
            continue
        x = np.load("X.npy")
        # What is left after a change of `tolerance` of the first is a geometric series of such, about.
        allowed = 20 * tolerance * first / (1 - rho) + (1e-11 if kind == "f8" else 1e-4) * np.max(abs(exact))
        off = np.max(abs(x - exact))
        if x.shape != b.shape or x.dtype != np.dtype("<" + kind) or not off <= allowed:
            wrong(f"{name} on {mix}: {x.dtype} {x.shape} is off by {off:.2e}, {allowed:.2e} allowed")
        hashes.add((hashlib.sha256(x.tobytes()).hexdigest(), report["facts"]["iterations"]))
    if len(hashes) > 1:
        wrong(f"{name}: {len(hashes)} different results on {bits}")


mixes = itertools.cycle(itertools.combinations(MIXES, 2))
# Spectral radii take most of the time.
LARGEST = 400 if BRIEF else 2000
for name, a in some([(name, a) for name, a in SPARSE.items() if a.shape[0] <= LARGEST], 4):
    forms = ["general", "twice"] + (["symmetric"] if abs(a - a.T).max() == 0 else [])
    if name == "poisson2d as it is":
        forms.append("integer")
    for form in some(forms, 1):
        read = save_sparse(a, form)
        b = rng.standard_normal((a.shape[0], int(rng.integers(1, 4))))
        np.save("B.npy", b)
        compare(f"{name}, {form}", read, b, next(mixes))
print(f"{runs} runs: sparse, in {time.time() - began:.0f} s", flush=True)

DENSE = [(1, 1, "f8"), (2, 3, "f8"), (37, 1, "f4"), (257, 2, "f8"), (700, 1, "f8"), (1500, 1, "f8"), (1100, 2, "f4")]
for n, rhs, kind in some([sides for sides in DENSE if sides[0] <= LARGEST], 2):
    a = rng.standard_normal((n, n))
    np.fill_diagonal(a, 0)
    np.fill_diagonal(a, np.where(np.arange(n) % 2, 1, -1) * 1.4 * np.maximum(abs(a).sum(axis=1), 1))
    a, b = a.astype(kind), rng.standard_normal((n, rhs)).astype(kind)
    np.save("A.npy", np.asfortranarray(a) if n % 2 else a)
    np.save("B.npy", b)
    compare(f"dense {n} {kind}", a, b, next(mixes), kind)
print(f"{runs} runs: and dense, in {time.time() - began:.0f} s", flush=True)

# No diagonal dominates here; the spectral radius decides.
for at in some(range(12), 2):
    n = 60
    a = rng.standard_normal((n, n))
    np.fill_diagonal(a, rng.choice([-1, 1], n) * (4.0 if at % 2 else 11.0) * rng.uniform(1, 1.3, n))
    np.save("A.npy", a)
    np.save("B.npy", rng.standard_normal((n, 1)))
    rho, (code, error, report) = radius(a), run(MIXES[at % len(MIXES)], "--a", "A.npy", "--b", "B.npy")
    converges = report["facts"].get("converged", False)
    if 0.99 < rho < 1.05:
        continue
    if converges != (rho < 1) or (code == 0) != (rho < 1) or (rho > 1 and "runs away" not in error):
        wrong(f"spectral radius {rho:.3f}: exit code {code}: {error[-300:]}")
    if not report["facts"].get("rows_not_dominant", 0) > 0:
        wrong("rows without a dominant diagonal are not counted")
print(f"{runs} runs in {time.time() - began:.0f} s, {len(failures)} wrong")
sys.exit(1 if failures else 0)
