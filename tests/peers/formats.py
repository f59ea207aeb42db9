"""Files as the formats' documents describe them, read here and by scipy's, numpy's or a plain reader: whatever both read is
the same numbers, and what is wrong is refused in one sentence with exit code 65.

Sources: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats: Initial Design"; numpy's NEP 1; the 9th DIMACS
implementation challenge, "Shortest paths"; J. Leskovec and A. Krevl, "SNAP datasets"."""

import os, re, struct, subprocess, sys, time, warnings
import numpy as np
import scipy.io, scipy.sparse as sp
from scipy.sparse import csgraph

from brief import some
from mixes import nodes_file

METACHARE = os.environ["METACHARE"]
# Numpy warns of what Python 2 wrote.
warnings.simplefilter("ignore")
failures, runs, began = [], 0, time.time()

ARRAY, COORDINATE = "%%MatrixMarket matrix array ", "%%MatrixMarket matrix coordinate "
MARKET = {
    "array": ARRAY + "real general\n3 2\n1\n2\n3\n4\n5\n6\n",
    "words in any case": "%%MatrixMarket MATRIX Array REAL General\n2 1\n1\n2\n",
    "integers": ARRAY + "integer general\n2 2\n1\n-2\n3\n4\n",
    "lower triangle": ARRAY + "real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n",
    "skew lower triangle": ARRAY + "real skew-symmetric\n3 3\n2\n3\n5\n",
    "forms of numbers": ARRAY + "real general\n7 1\n1e5\n1E+05\n.5\n5.\n-0\n-.25e-3\n1e-400\n",
    "digits": ARRAY + "real general\n3 1\n0.1000000000000000055511151231257827\n4.9406564584124654e-324\n1.7976931348623157e308\n",
    "coordinates": COORDINATE + "real general\n%===\n%\n% text\n%\n5 5 4\n    1     1   1.000e+00\n    4     2   2.505e+02\n    4     4  -2.8e2\n 5 5 12\n",
    "pattern": COORDINATE + "pattern general\n3 3 2\n1 2\n3 1\n",
    "symmetric pattern": COORDINATE + "pattern symmetric\n3 3 3\n1 1\n2 1\n3 2\n",
    "symmetric": COORDINATE + "real symmetric\n3 3 4\n1 1 2\n2 1 -1\n2 2 2\n3 3 2.5\n",
    "skew integers": COORDINATE + "integer skew-symmetric\n3 3 2\n2 1 4\n3 1 -7\n",
    "places named twice": COORDINATE + "real general\n2 2 3\n1 2 3\n1 2 4.5\n2 2 1\n",
    "no entries": COORDINATE + "real general\n2 3 0\n",
    "empty lines": COORDINATE + "real general\n% c\n\n  \n2 2 2\n\n1 2 3\n\n2 2 4\n\n",
    "tabs and spaces": "%%MatrixMarket\tmatrix\tcoordinate\treal\tgeneral\n  2\t2 1\n   1   2\t 3  \n",
    "ends of lines": (COORDINATE + "real general\n% c\n2 2 1\n1 2 3\n").replace("\n", "\r\n"),
    "no last end": ARRAY + "real general\n2 1\n3\n4",
    "zeros before": COORDINATE + "real general\n2 2 1\n001 02 03\n",
    "a comment in Latin 1": (ARRAY + "real general\n% J\xe4cobi \xff\n1 1\n3\n").encode("latin1"),
}
WRONG_MARKET = {
    "complex": ARRAY + "complex general\n1 1\n1 0\n", "array pattern": ARRAY + "pattern general\n2 2\n",
    "skew with diagonal": ARRAY + "real skew-symmetric\n2 2\n0\n2\n0\n", "missing": ARRAY + "real general\n2 2\n1\n2\n3\n",
    "too many": COORDINATE + "real general\n2 2 1\n1 2 3\n2 2 4\n", "row 0": COORDINATE + "real general\n2 2 1\n0 2 3\n",
    "row 2^32 + 1": COORDINATE + "real general\n2 2 1\n4294967297 2 3\n",
    "row 2^64 + 1": COORDINATE + "real general\n2 2 1\n18446744073709551617 2 3\n",
    "four words": COORDINATE + "real general\n2 2 1\n1 2 3 4\n", "no number": COORDINATE + "real general\n2 2 1\n1 2\n",
    "fraction": ARRAY + "integer general\n1 1\n1.5\n", "not square": COORDINATE + "real symmetric\n3 2 1\n1 1 7\n",
    "huge": ARRAY + "real general\n1000000000000 1000000000000\n1\n", "a zero byte": ARRAY + "real general\n1 1\n3\0\n",
    "one percent sign": "%MatrixMarket matrix array real general\n1 1\n3\n", "nothing": "",
}

X = np.arange(6.0).reshape(2, 3) + 0.5
HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }"


def npy(header, data=X.tobytes(), version=1, padded=True):
    header = header.encode()
    if padded:
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


NPY = {
    **{f"version {version}": npy(HEADER, version=version) for version in (1, 2, 3)},
    **{f"type {kind}": npy(HEADER.replace("<f8", kind), X.astype(kind).tobytes()) for kind in ("<f4", ">f4", ">f8", "=f8", "f4")},
    "by columns": npy(HEADER.replace("False", "True"), X.tobytes("F")),
    "keys in another order": npy("{'shape': (2, 3), 'fortran_order': False, 'descr': '<f8'}"),
    "no spaces": npy(HEADER.replace(" ", "")), "many": npy("{  'descr' : '<f8' ,\t'fortran_order' :  False , 'shape' : ( 2 , 3 , ) , }"),
    "other quotes": npy(HEADER.replace("'", '"')), "not aligned": npy(HEADER + "\n", padded=False),
    "numbers of Python 2": npy(HEADER.replace("(2, 3)", "(2L, 3L)")),
    "extremes": npy(HEADER, np.array([-0.0, 5e-324, 1.7e308, 2.0**-1022, 1 / 3, -1e-300]).tobytes()),
}
WRONG_NPY = {
    "version 4": npy(HEADER, version=4), "complex": npy(HEADER.replace("<f8", "<c16"), b"\0" * 96),
    "objects": npy(HEADER.replace("<f8", "|O")), "records": npy(HEADER.replace("'<f8'", "[('a', '<f8')]")),
    "a key more": npy(HEADER.replace("}", "'x': 1}")), "a list": npy(HEADER.replace("(2, 3)", "[2, 3]")),
    "negative": npy(HEADER.replace("(2, 3)", "(-2, -3)")), "octal": npy(HEADER.replace("(2, 3)", "(02, 03)")),
    "overflow": npy(HEADER.replace("(2, 3)", "(4294967296, 4294967296)")), "no data": npy(HEADER, b""),
    "cut": npy(HEADER)[:-1], "half a header": npy(HEADER)[:30], "too long a header": b"\x93NUMPY\2\0\xff\xff\xff\xff" + HEADER.encode(),
    "false": npy(HEADER.replace("False", "false")), "more text": npy(HEADER + " foo"),
}

SAMPLE = "c 9th DIMACS\nc\np sp 6 8\nc text\na 1 2 17\nc\na 1 3 10\na 2 4 2\na 3 5 0\na 4 3 0\na 4 6 3\na 5 2 0\na 5 6 20\n"
DIMACS = {
    "sample": SAMPLE, "ends of lines": SAMPLE.replace("\n", "\r\n"), "spaces": SAMPLE.replace(" ", "   "), "tabs": SAMPLE.replace(" ", "\t"),
    "no last end": SAMPLE[:-1], "a comment in Latin 1": ("c J\xe4cobi\np sp 2 1\na 1 2 3\n").encode("latin1"),
    "parallel arcs and loops": "p sp 2 4\na 1 2 9\na 1 2 3\na 1 2 5\na 1 1 9\n", "one vertex": "p sp 1 0\n", "no arcs": "p sp 3 0\n",
    "large": "p sp 3 2\na 1 2 4294967296\na 2 3 1\n", "many zeros": "p sp 2 1\na 1 2 " + "0" * 500 + "7\n",
}
WRONG_DIMACS = {
    "no problem": "a 1 2 3\n", "two": "p sp 2 1\np sp 2 1\na 1 2 3\n", "another": "p max 2 1\na 1 2 3\n", "too few": "p sp 2 2\na 1 2 3\n",
    "vertex 0": "p sp 2 1\na 0 2 3\n", "vertex 2^64 + 1": "p sp 2 1\na 18446744073709551617 2 3\n", "no weight": "p sp 2 1\na 1 2\n",
    "five words": "p sp 2 1\na 1 2 3 4\n", "negative": "p sp 3 2\na 1 2 -1\na 2 3 4\n", "no number": "p sp 2 1\na 1 2 nan\n",
    "2^63": "p sp 3 2\na 1 2 9223372036854775808\na 2 3 1\n", "huge": "p sp 999999999999 1\na 1 2 3\n",
}
HEAD = "# Directed graph (each unordered pair of nodes is saved once): web.txt \n# Nodes: 4 Edges: 5\n# FromNodeId\tToNodeId\n"
LISTS = {
    "sample": HEAD + "0\t1\n0\t2\n1\t3\n2\t3\n3\t0\n", "ends of lines": (HEAD + "0\t1\n1\t2\n").replace("\n", "\r\n"),
    "spaces": "0 1\n0  2\n 1 3\n2 3 \n3 \t 0\n", "gaps": "5 100\n100 7\n7 5\n", "long names": "4294967296 18446744073709551615\n3 4294967296\n",
    "weights": "0 1 5\n1 2 7\n0 2 20\n", "fractions": "0 1 .5\n1 2 7.25\n0 2 2e1\n", "twice and loops": "0 1 9\n0 1 4\n1 0 2\n2 2 1\n",
    "a comment in Latin 1": b"# \xff\xe4\n0 1\n", "empty lines": "0 1\n\n  \n# foo\n1 2\n\n",
}
WRONG_LISTS = {
    "names": "a b\nb c\n", "negative name": "-1 2\n", "2^64": "18446744073709551616 1\n", "one word": "0 1\n2\n", "four words": "0 1 5 9\n",
    "some weights": "0 1 5\n1 2\n", "weight 2^63": "0 1 9223372036854775808\n1 2 3\n", "negative": "0 1 -3\n", "nothing": HEAD, "no number": "0 1 inf\n",
}


def ran(*words):
    """Exit code and the lines of standard error that are not the table."""
    global runs
    runs += 1
    if os.path.exists("out.npy"):
        os.remove("out.npy")
    command = [METACHARE, "run", *words, "--out", "out.npy", "--nodes", nodes_file([1]), "--speed", "file", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    return done.returncode, done.stderr.strip()


def wrong(what):
    failures.append(what)
    print("WRONG", what, flush=True)


def save(name, content):
    with open(name, "wb") as out:
        out.write(content if isinstance(content, bytes) else content.encode())


def check(name, case, expected, words):
    """What is read is what is expected; with nothing expected it is refused."""
    code, said = ran(*words)
    if other := re.search(r" is \d+ x (\d+) and .*: columns of A must be rows of B", said):
        np.save("eye.npy", np.eye(int(other[1])))
        code, said = ran(*words)
    if expected is None:
        if code != 65 or len(said.splitlines()) != 1 or os.path.exists("out.npy"):
            wrong(f"{name}, {case}: exit code {code}, one sentence is due: {said}")
        return
    if code != 0:
        return wrong(f"{name}, {case}: exit code {code}: {said}")
    found = np.load("out.npy")
    found = np.where(found == np.iinfo(found.dtype).max, np.inf, found.astype(float)) if found.dtype.kind == "i" else found
    if found.shape != expected.shape or not np.array_equal(found, expected):
        wrong(f"{name}, {case}: {found.tolist()} where {expected.tolist()} is due")


def matrix(name, case, content, read):
    save(name, content)
    expected = None if read is None else np.asarray(read(name))
    # A product with the identity is the matrix itself.
    np.save("eye.npy", np.eye(1 if expected is None else expected.shape[1], dtype="f8" if expected is None else expected.dtype.newbyteorder("=")))
    check(name, case, expected, ["matmul", "--a", name, "--b", "eye.npy"])


def market(name):
    read = scipy.io.mmread(name)
    return (read.toarray() if sp.issparse(read) else read).astype(float)


def distances(name):
    """By the formats' rules in a few words, and Dijkstra's algorithm."""
    lines = [line.split() for line in open(name, encoding="latin1")]
    lines = [line for line in lines if line and line[0][0] not in "c#"]
    if name.endswith(".gr"):
        n, edges = int(lines[0][2]), [(int(u) - 1, int(v) - 1, float(w)) for _, u, v, w in lines[1:]]
    else:
        names = sorted({int(word) for line in lines for word in line[:2]})
        n, at = len(names), {vertex: place for place, vertex in enumerate(names)}
        edges = [(at[int(line[0])], at[int(line[1])], float(line[2]) if len(line) > 2 else 1.0) for line in lines]
    least = {}
    for u, v, w in edges:
        least[u, v] = min(w, least.get((u, v), np.inf))
    places = np.array(list(least) or np.zeros((0, 2)), int)
    return csgraph.dijkstra(sp.csr_matrix((list(least.values()), (places[:, 0], places[:, 1])), shape=(n, n)))


def graph(name, case, content, read):
    save(name, content)
    check(name, case, None if read is None else read(name), ["apsp", "--graph", name])


KINDS = [(matrix, "a.mtx", market, MARKET, WRONG_MARKET), (matrix, "a.npy", np.load, NPY, WRONG_NPY),
         (graph, "g.gr", distances, DIMACS, WRONG_DIMACS), (graph, "g.txt", distances, LISTS, WRONG_LISTS)]
for look, name, read, right, refused in KINDS:
    for case, content in some(right.items(), 5):
        look(name, case, content, read)
    for case, content in some(refused.items(), 3):
        look(name, case, content, None)
print(f"{runs} runs: files of the formats' documents, in {time.time() - began:.0f} s, {len(failures)} wrong")
sys.exit(1 if failures else 0)
