"""How long an iteration of `metachare run jacobi` takes on one PE and on all cores, in turn with scipy's product with the same
matrix, in one process and in a process for each core at once, each with a copy; `tests/against_scipy jacobi --times`
prepares what this needs. Rows of grids, with numbers that are all the same and with numbers of their own."""

import json, multiprocessing, os, statistics, subprocess, sys, time
import numpy as np
import scipy.io, scipy.sparse as sp
from mixes import nodes_file

METACHARE = os.environ["METACHARE"]
CORES = len(os.sched_getaffinity(0))
BRIEF = "--brief" in sys.argv
TURNS, ITERATIONS = (1, 5) if BRIEF else (5, 60)
SIDE = 60 if BRIEF else 1000
rng = np.random.default_rng(1)


def ours(pes, *words):
    """Seconds of an iteration."""
    if os.path.exists("run.json"):
        os.remove("run.json")
    command = [METACHARE, "run", "jacobi", "--nodes", nodes_file([pes]), "--speed", "equal", "--quiet", "--report", "run.json",
               "--max-iterations", str(ITERATIONS), "--tolerance", "1e-300", *words]
    # Nothing is as small as that: the run ends after so many iterations, and says so.
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 1 or "no convergence in" not in done.stderr:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.load(open("run.json"))["timed_s"] / ITERATIONS


def multiply(matrix, together, seconds):
    copy, x = matrix.copy(), np.ones(matrix.shape[1])
    copy @ x
    together.wait()
    begin = time.perf_counter()
    for _ in range(ITERATIONS):
        copy @ x
    seconds.put((time.perf_counter() - begin) / ITERATIONS)


def theirs(processes, matrix):
    """Seconds of a product in each of so many processes, in the mean."""
    forked = multiprocessing.get_context("fork")
    together, seconds = forked.Barrier(processes), forked.Queue()
    workers = [forked.Process(target=multiply, args=(matrix, together, seconds)) for _ in range(processes)]
    [worker.start() for worker in workers]
    taken = [seconds.get(timeout=600) for _ in workers]
    [worker.join() for worker in workers]
    return statistics.mean(taken)


def compared(name, rows, matrix, *words):
    one, all_cores, alone, together = ([] for _ in range(4))
    for _ in range(TURNS):
        one.append(ours(1, *words))
        all_cores.append(ours(CORES, *words))
        alone.append(theirs(1, matrix))
        together.append(theirs(CORES, matrix))
    print(f"{name}, ns a row and iteration or product, medians and spreads of {TURNS}")
    for who, seconds in [("one PE", one), (f"{CORES} PEs", all_cores), ("scipy, one process", alone),
                         (f"scipy, each of {CORES} at once", together)]:
        of_row = sorted(1e9 * second / rows for second in seconds)
        print(f"  {who:<28} {statistics.median(of_row):9.2f}  {of_row[0]:9.2f} ..{of_row[-1]:9.2f}")
    ratio = statistics.median(alone) / CORES / statistics.median(all_cores)
    verdict = "" if BRIEF else f", target 0.9: {'reached' if ratio >= 0.9 else 'MISSED'}"
    print(f"  scipy's time in one process, divided by {CORES}: {ratio:.2f} times ours{verdict}", flush=True)


def grid(of_links):
    """A five-point matrix whose links have these numbers, and whose diagonal is a tenth larger than they are together."""
    line = sp.diags([-1.0, -1.0], [-1, 1], shape=(SIDE, SIDE))
    links = sp.csr_matrix(sp.kron(sp.eye(SIDE), line) + sp.kron(line, sp.eye(SIDE)))
    links.data *= of_links(links.nnz)
    return sp.csr_matrix(links + sp.diags(1.1 * np.asarray(abs(links).sum(axis=1)).ravel()))


rows = SIDE * SIDE
compared("five-point", rows, grid(np.ones), "--generate", "laplace2d", "--n", str(rows))
own = grid(lambda count: rng.uniform(0.5, 1.5, count))
scipy.io.mmwrite("own.mtx", own, symmetry="general")
np.save("b.npy", rng.standard_normal((rows, 1)))
compared("five-point, each number its own", rows, own, "--a", "own.mtx", "--b", "b.npy")
