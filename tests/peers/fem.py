"""Solutions of `metachare run fem` against scikit-fem's direct ones: Poisson's equation, with and without wind, and elasticity,
in boxes and in meshes of triangles and tetrahedra, all orders, on local nodes of unlike fixed speeds. With --times how long
both take on one core, and what memory; run that on an otherwise idle machine."""

import json, os, subprocess, sys, time
import numpy as np
from skfem import *
from skfem.helpers import ddot, dot, eye, grad, sym_grad, trace

from brief import BRIEF, some
from mixes import nodes_file

METACHARE = os.environ["METACHARE"]
WITHIN = 1e-9
ELEMENTS = {
    ("box", 2, 1): ElementQuad1, ("box", 2, 2): ElementQuad2, ("box", 3, 1): ElementHex1, ("box", 3, 2): ElementHex2,
    ("msh", 2, 1): ElementTriP1, ("msh", 2, 2): ElementTriP2, ("msh", 3, 1): ElementTetP1, ("msh", 3, 2): ElementTetP2,
}


def basis(mesh, kind, order, vector):
    """The functions of a mesh; integrals are as exact as those of Metachare."""
    element = ELEMENTS[kind, mesh.dim(), order]()
    return Basis(mesh, ElementVector(element) if vector else element, intorder=2 * order + 1)


def solved(v, vector, wind, source, value):
    """The solution with a source of 1 and 0 on the low end of x, and `value` on the high one."""
    if vector:
        mu, lam = 1 / 2.6, 0.3 / (1.3 * 0.4)
        stress = lambda e: 2 * mu * e + lam * eye(trace(e), v.mesh.dim())
        a = BilinearForm(lambda u, w, _: ddot(stress(sym_grad(u)), sym_grad(w))).assemble(v)
        f = LinearForm(lambda w, _: sum(source[c] * w[c] for c in range(v.mesh.dim()))).assemble(v)
    else:
        a = BilinearForm(lambda u, w, _: dot(grad(u), grad(w)) + sum(wind[k] * grad(u)[k] for k in range(len(wind))) * w)
        a, f = a.assemble(v), LinearForm(lambda w, _: source[0] * w).assemble(v)
    x = v.zeros()
    low = v.get_dofs(lambda p: np.isclose(p[0], p[0].min() * 0)).all()
    high = v.get_dofs(lambda p: np.isclose(p[0], 1.0)).all()
    x[high] = value
    return solve(*condense(a, f, x=x, D=np.concatenate([low, high])))


def by_node(v, x, components):
    """Rows of the solution in the order of places: x fastest, then y, then z."""
    kinds = [v.nodal_dofs, v.edge_dofs if v.mesh.dim() == 3 else v.nodal_dofs[:0], v.facet_dofs, v.interior_dofs]
    dofs = [np.concatenate([kind[c] for kind in kinds if len(kind) > c]) for c in range(components)]
    places = np.round(v.doflocs[:, dofs[0]], 9)
    return np.stack([x[of] for of in dofs], 1)[np.lexsort(places)]


def msh(name, mesh, order):
    """Writes a mesh of Gmsh with the groups `low` and `high`, the ends along x; its places in the order of numbers."""
    v = basis(mesh, "msh", order, False)
    dim, places = mesh.dim(), v.doflocs
    if order == 1:
        of_element = v.element_dofs.T
        kind, face_kind = {2: (2, 1), 3: (4, 2)}[dim]
    else:
        # Middles by place, whatever order scikit-fem has them in.
        number = {tuple(np.round(p, 9)): at for at, p in enumerate(places.T)}
        edges = [(0, 1), (1, 2), (2, 0), (3, 0), (2, 3), (1, 3)][: 3 if dim == 2 else 6]
        middle = lambda p, a, b: number[tuple(np.round((p[:, a] + p[:, b]) / 2, 9))]
        at = lambda p: number[tuple(np.round(p, 9))]
        corners = [mesh.p[:, t] for t in mesh.t.T]
        of_element = [[at(p[:, k]) for k in range(dim + 1)] + [middle(p, a, b) for a, b in edges] for p in corners]
        kind, face_kind = {2: (9, 8), 3: (11, 9)}[dim]
    ends = []
    for value in [0.0, 1.0]:
        faces = mesh.facets[:, [np.allclose(mesh.p[0, f], value) for f in mesh.facets.T]].T
        if order == 2:
            pairs = [(0, 1)] if dim == 2 else [(0, 1), (1, 2), (2, 0)]
            nodes = lambda f: [at(mesh.p[:, k]) for k in f] + [middle(mesh.p[:, f], a, b) for a, b in pairs]
            faces = [nodes(f) for f in faces]
        ends.append(faces)
    low, body = dim - 1, dim
    with open(name, "w") as out:
        say = lambda *words: print(*words, file=out)
        say("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$PhysicalNames\n2")
        say(f'{low} 1 "low"\n{low} 2 "high"\n$EndPhysicalNames\n$Entities')
        say(*["0 2 1 0" if dim == 2 else "0 0 2 1"])
        for tag in [1, 2]:
            say(f"{tag} 0 0 0 1 1 1 1 {tag} 0")
        say("1 0 0 0 1 1 1 0 0\n$EndEntities\n$Nodes")
        count = places.shape[1]
        say(f"1 {count} 1 {count}\n{dim} 1 0 {count}")
        for node in range(count):
            say(node + 1)
        for place in places.T:
            say(*[repr(float(x)) for x in place], *["0"] * (3 - dim))
        total = len(of_element) + sum(map(len, ends))
        say(f"$EndNodes\n$Elements\n3 {total} 1 {total}")
        next_one = 1
        blocks = [(low, 1, face_kind, ends[0]), (low, 2, face_kind, ends[1]), (body, 1, kind, of_element)]
        for block_dim, tag, of_kind, elements in blocks:
            say(block_dim, tag, of_kind, len(elements))
            for element in elements:
                say(next_one, *[int(node) + 1 for node in element])
                next_one += 1
        say("$EndElements")
    return places


def run(mix, *words):
    command = [METACHARE, "run", "fem", *words, "--nodes", nodes_file(mix), "--speed", "file", "--out", "U.npy",
               "--report", "run.json", "--verify"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return np.load("U.npy"), json.load(open("run.json"))


def compare():
    cases = [(kind, dim, order, vector, wind)
             for kind in ["box", "msh"] for dim in [2, 3] for order in [1, 2] for vector in [False, True]
             for wind in [[], [3.0, -2.0, 1.0][:dim]] if not (vector and wind)]
    failures = 0
    for kind, dim, order, vector, wind in some(cases, 8):
        sides = [11, 8] if dim == 2 else [5, 4, 3]
        lines = [np.linspace(0, 1, side + 1) for side in sides]
        made = {("box", 2): MeshQuad, ("box", 3): MeshHex, ("msh", 2): MeshTri, ("msh", 3): MeshTet}[kind, dim]
        mesh = made.init_tensor(*lines)
        each = dim if vector else 1
        source, value = [1.0, -0.5, 0.25][:each], 0.1
        text = f"physics = \"{'elasticity' if vector else 'poisson'}\"\nsource = {source}\n"
        text += f"wind = {wind}\n" if wind else ""
        if kind == "box":
            text += f"[mesh]\nsize = {[1] * dim}\nelements = {sides}\norder = {order}\n"
            ends = ["x-", "x+"]
        else:
            places = msh("mesh.msh", mesh, order)
            text += '[mesh]\nfile = "mesh.msh"\n'
            ends = ["low", "high"]
        for name, fixed in zip(ends, [0.0, value]):
            text += f'[[boundary]]\non = "{name}"\nfixed = {[fixed] * each}\n'
        open("in.toml", "w").write(text)
        of_multigrid = ["--coarsest", "40"] if kind == "box" and not wind else []
        found, report = run([2, 1], "in.toml", "--tolerance", "1e-13", "--subdomains", "5", *of_multigrid)
        v = basis(mesh, kind, order, vector)
        expected = by_node(v, solved(v, vector, wind, source, value), each)
        if kind == "msh":
            found = found[np.lexsort(np.round(places, 9))]
        apart = abs(found - expected).max() / abs(expected).max()
        what = f"{kind} {dim}-D order {order} {'elasticity' if vector else 'poisson'} wind {wind}"
        print(f"{'WRONG ' if not apart < WITHIN else ''}{what}: {apart:.1e}", flush=True)
        failures += not apart < WITHIN
    return failures


def times():
    """Poisson's equation on a square, Q1, to a residual of 1e-8: conjugate gradients of scipy with the diagonal, the direct
    solver, and Metachare with multigrid and with the diagonal, on one PE. Seconds of processor time, MB."""
    for side in [100] if BRIEF else [500, 1000]:
        for how in ["cg", "direct"]:
            script = [sys.executable, __file__, "--one", str(side), how]
            env = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
            print(subprocess.run(script, capture_output=True, text=True, env=env).stdout, end="", flush=True)
        for preconditioner in ["jacobi", "multigrid"]:
            _, report = run([1], "--elements", str(side), "--preconditioner", preconditioner)
            pes = [pe for node in report["nodes"] for pe in node["pes"]]
            facts = report["facts"]
            print(f"{side} x {side}, Metachare {preconditioner}: {facts['iterations']} iterations, "
                  f"{facts['assembling_s'] + facts['subdomains_s'] + facts['coarsest_s']:.2f} s, of which "
                  f"{facts['assembling_s']:.2f} s assemble, {facts['subdomain_bytes'] / 1e6:.0f} MB, L2 {facts['l2_error']:.3e}",
                  flush=True)


def one(side, how):
    """One run of scikit-fem in a process of its own."""
    import resource
    from scipy.sparse.linalg import LinearOperator, cg
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    u = lambda x: np.sin(2.5 * x[0] + 0.4) * np.sin(1.7 * x[1] + 0.9)
    begun = time.process_time()
    v = basis(MeshQuad.init_tensor(np.linspace(0, 1, side + 1), np.linspace(0, 1, side + 1)), "box", 1, False)
    a = BilinearForm(lambda u, w, _: dot(grad(u), grad(w))).assemble(v)
    f = LinearForm(lambda w, at: (2.5**2 + 1.7**2) * u(at.x) * w).assemble(v)
    x, ends = v.zeros(), v.get_dofs().all()
    x[ends] = u(v.doflocs[:, ends])
    k, b, whole, inner = condense(a, f, x=x, D=ends)
    assembled, count = time.process_time(), [0]
    if how == "direct":
        from scipy.sparse.linalg import spsolve
        x[inner] = spsolve(k, b)
    else:
        inverse = 1 / k.diagonal()
        m = LinearOperator(k.shape, lambda r: inverse * r)
        step = lambda _: count.__setitem__(0, count[0] + 1)
        x[inner] = cg(k, b, rtol=1e-8, M=m, maxiter=100_000, callback=step)[0]
    ended = time.process_time()
    error = Functional(lambda w: (w["x0"] - u(w.x)) ** 2).assemble(v, x0=v.interpolate(x)) ** 0.5
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{side} x {side}, scikit-fem {how}: {count[0]} iterations, {ended - begun:.2f} s, of which {assembled - begun:.2f} s "
          f"assemble, {most / 1000:.0f} MB, L2 {error:.3e}")


if "--one" in sys.argv:
    one(int(sys.argv[2]), sys.argv[3])
elif "--times" in sys.argv:
    times()
else:
    sys.exit(compare() > 0)
