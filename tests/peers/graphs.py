"""Graphs as lists of edges, and files of them; for `tests/against_scipy`."""

import numpy as np


def road(n, rng, heaviest=1000):
    """As a road network: a lattice with gaps, all in one piece, both ways; 2.4 arcs a vertex."""
    width = int(np.ceil(n**0.5))
    to = np.arange(1, n)
    left, up = np.where(to % width > 0, to - 1, -1), np.where(to >= width, to - width, -1)
    both, takes_left = rng.random(n - 1) < 0.2, (rng.random(n - 1) < 0.5) & (left >= 0) | (up < 0)
    pairs = [(left, (both | takes_left) & (left >= 0)), (up, (both | ~takes_left) & (up >= 0))]
    ends = np.concatenate([np.stack([start[chosen], to[chosen]], 1) for start, chosen in pairs])
    weights = rng.integers(1, heaviest + 1, len(ends))
    return n, np.concatenate([ends, ends[:, ::-1]]), np.concatenate([weights, weights])


def grid(n, rng, heaviest=1000):
    width = int(np.ceil(n**0.5))
    at = np.arange(n)
    right, down = at[(at % width < width - 1) & (at + 1 < n)], at[at + width < n]
    ends = np.concatenate([np.stack([right, right + 1], 1), np.stack([down, down + width], 1)])
    weights = rng.integers(1, heaviest + 1, len(ends))
    return n, np.concatenate([ends, ends[:, ::-1]]), np.concatenate([weights, weights])


def random(n, rng, degree=8, heaviest=1000):
    """Arcs between any vertices: loops and parallel ones come by themselves."""
    return n, rng.integers(0, n, (n * degree, 2)), rng.integers(1, heaviest + 1, n * degree)


def power_law(n, rng, heaviest=1000):
    """As a network of links: few vertices have most of the edges."""
    ends = np.minimum((n * rng.random((4 * n, 2)) ** 3).astype(int), n - 1)
    return n, ends, rng.integers(1, heaviest + 1, len(ends))


def write(path, n, ends, weights):
    """A file of the kind that its name says; whole weights are written so."""
    word = (lambda w: str(int(w))) if weights.dtype.kind == "i" else (lambda w: repr(float(w)))
    kind = "integer" if weights.dtype.kind == "i" else "real"
    with open(path, "w") as out:
        if path.endswith(".gr"):
            out.write(f"c of a test\np sp {n} {len(ends)}\n")
            out.writelines(f"a {u + 1} {v + 1} {word(w)}\n" for (u, v), w in zip(ends, weights))
        elif path.endswith(".mtx"):
            out.write(f"%%MatrixMarket matrix coordinate {kind} general\n% of a test\n{n} {n} {len(ends)}\n")
            out.writelines(f"{u + 1} {v + 1} {word(w)}\n" for (u, v), w in zip(ends, weights))
        else:
            out.write("# of a test\n")
            out.writelines(f"{u}\t{v}\t{word(w)}\n" for (u, v), w in zip(ends, weights))


def lightest(n, ends, weights):
    """Of parallel edges the lightest, as scipy wants them: it would add them. Loops are left out."""
    order = np.lexsort((weights, ends[:, 1], ends[:, 0]))
    ends, weights = ends[order], weights[order]
    first = np.ones(len(ends), bool)
    first[1:] = (ends[1:] != ends[:-1]).any(1)
    first &= ends[:, 0] != ends[:, 1]
    return ends[first], weights[first]
