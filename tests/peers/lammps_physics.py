"""Energies, forces, pressures and properties of materials by Metachare and by LAMMPS, from the same potential files.

Atoms that Metachare makes and shakes go to LAMMPS with all their digits, or both read the same file. Nothing is
compared with numbers from before.
"""

import itertools
import json
import math
import os
import random
import re
import sys

POTENTIALS = "/usr/share/lammps/potentials"
# Relative to the largest of its kind; LAMMPS adds in another order.
SINGLE_POINT = 1e-10
STYLES = {".eam.alloy": "eam/alloy", ".eam.fs": "eam/fs", ".eam": "eam"}
# LAMMPS' own constant, bar in an eV/A^3; ours is that of 2019, GPa.
BAR, GPA = 1.6021765e6, 160.2176634

# Name, potential files, elements, [crystal], ends, shake in A, atoms of a block.
CASES = [
    ("fcc", "Cu_mishin1.eam.alloy", "Cu", 'lattice = "fcc"\na = 3.615\nsize = [6, 6, 6]', "", 0.1, 4096),
    ("fcc, funcfl", "Ni_u3.eam", "Ni", 'lattice = "fcc"\na = 3.52\nsize = [6, 5, 4]', "", 0.1, 60),
    ("bcc, Finnis-Sinclair", "Fe_mm.eam.fs", "Fe", 'lattice = "bcc"\na = 2.8553\nsize = [6, 6, 6]', "", 0.1, 100),
    ("hcp", "Mg_mm.eam.fs", "Mg", 'lattice = "hcp"\na = 3.18\nc_over_a = 1.62\nsize = [6, 4, 4]', "", 0.1, 100),
    ("diamond", "Cu_mishin1.eam.alloy", "Cu", 'lattice = "diamond"\na = 5.7\nsize = [4, 4, 3]', "", 0.1, 100),
    ("B2", "NiAlH_jea.eam.alloy", "Ni Al", 'lattice = "b2"\na = 2.863\nsize = [6, 6, 5]', "", 0.1, 100),
    ("B2, Finnis-Sinclair", "AlFe_mm.eam.fs", "Al Fe", 'lattice = "b2"\na = 2.9\nsize = [6, 5, 6]', "", 0.1, 100),
    ("B2, two funcfl", "Cu_u3.eam Ni_u3.eam", "Cu Ni", 'lattice = "b2"\na = 2.85\nsize = [5, 5, 5]', "", 0.1, 60),
    ("L1_2", "NiAlH_jea.eam.alloy", "Ni Al", 'lattice = "l1_2"\na = 3.568\nsize = [5, 5, 5]', "", 0.1, 100),
    ("L1_2, Finnis-Sinclair", "CuZr_mm.eam.fs", "Cu Zr", 'lattice = "l1_2"\na = 3.9\nsize = [5, 4, 5]', "", 0.1, 100),
    ("one cell thick", "Cu_mishin1.eam.alloy", "Cu", 'lattice = "fcc"\na = 3.615\nsize = [6, 6, 1]', "", 0.1, 50),
    ("one cell in all", "Fe_mm.eam.fs", "Fe", 'lattice = "bcc"\na = 2.8553\nsize = [1, 1, 1]', "", 0.1, 4096),
    ("one and two cells thick", "CuZr_mm.eam.fs", "Cu Zr", 'lattice = "l1_2"\na = 3.9\nsize = [1, 7, 2]', "", 0.1, 20),
    ("two surfaces", "Cu_mishin1.eam.alloy", "Cu", 'lattice = "fcc"\na = 3.615\nsize = [4, 4, 6]', "z", 0.1, 100),
    ("a free cluster", "Fe_mm.eam.fs", "Fe", 'lattice = "bcc"\na = 2.8553\nsize = [6, 6, 6]', "xyz", 0.1, 100),
    ("turned", "Cu_mishin1.eam.alloy", "Cu",
     'lattice = "fcc"\na = 3.615\norient = { x = [1, 1, -2], y = [1, 1, 1], z = [1, -1, 0] }\nsize = [4, 3, 5]', "", 0.1,
     100),
    ("a third at random", "CuNi.eam.alloy", "Cu Ni", 'file = "random.data"', "", 0.0, 100),
]

# Potential, element, lattice, whether fcc's stacking fault is computed too.
MATERIALS = [
    ("Cu_mishin1.eam.alloy", "Cu", "fcc", True),
    ("Ni_u3.eam", "Ni", "fcc", True),
    ("NiAlH_jea.eam.alloy", "Al", "fcc", True),
    ("Fe_mm.eam.fs", "Fe", "bcc", False),
]
# LAMMPS' forces and energies of atoms, with all digits.
DUMP = """compute e all pe/atom
dump d all custom 1 theirs.dump id fx fy fz c_e
dump_modify d sort id format float %.17g
run 0
"""
# Until the norm of all forces is below 1e-8 eV/A.
MINIMIZE = "min_style cg\nmin_modify line quadratic dmax 0.1\nminimize 0 1e-8 5000 50000\n"
SITES = {"fcc": [(0, 0, 0), (0.5, 0.5, 0), (0.5, 0, 0.5), (0, 0.5, 0.5)], "bcc": [(0, 0, 0), (0.5, 0.5, 0.5)]}


class Peers:
    """How to run both: `run(command, name)` gives what a command prints before all else; files go to `folder`."""

    def __init__(self, run, metachare, folder):
        self.run_command, self.metachare_program, self.folder = run, metachare, folder
        self.write("pair.toml", '[[node]]\nname = "n1"\npes = 2\n\n[[node]]\nname = "n2"\npes = 1\n')

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as out:
            out.write(text)
        return self.path(name)

    def metachare(self, *more):
        """The facts of a run on two nodes of unequal size."""
        report = self.path("physics.json")
        command = [self.metachare_program, "run", "statics", "--nodes", self.path("pair.toml"), "--speed", "equal"]
        self.run_command([*command, "--report", report, *more], "metachare.txt")
        with open(report) as text:
            return json.load(text)["facts"]

    def lammps(self, potential, elements, atoms, commands, ends=""):
        """What LAMMPS prints with all digits, for a data file and commands."""
        files = potential.split()
        style = next(style for ending, style in STYLES.items() if files[0].endswith(ending))
        paths = [f"{POTENTIALS}/{file}" for file in files]
        if style == "eam":
            pairs = "".join(f"pair_coeff {n} {n} {path}\n" for n, path in enumerate(paths, 1))
        else:
            pairs = f"pair_coeff * * {paths[0]} {' '.join(elements)}\n"
        boundary = " ".join("f" if axis in ends else "p" for axis in "xyz")
        text = (f"units metal\natom_style atomic\nboundary {boundary}\nbox tilt large\nread_data {atoms}\n"
                f"pair_style {style}\n{pairs}neighbor 0.5 bin\n"
                f"thermo_style custom step pe fmax vol pxx pyy pzz pyz pxz pxy\nthermo_modify format float %.17g\n{commands}")
        return self.run_command(["lmp", "-in", self.write("physics.in", text), "-log", "none"], "lammps.txt")[0]


def data(lengths, atoms, ends="", tilt=0.0):
    """A LAMMPS data file of (id, type, place); beyond ends there is room."""
    types = max(atom[1] for atom in atoms)
    sides = [(-10.0, length + 10.0) if axis in ends else (0.0, length) for axis, length in zip("xyz", lengths)]
    text = [f"atoms\n\n{len(atoms)} atoms\n{types} atom types\n"]
    text += [f"{low!r} {high!r} {axis}lo {axis}hi" for axis, (low, high) in zip("xyz", sides)]
    text += [f"{tilt!r} 0 0 xy xz yz"] if tilt else []
    text += ["\nAtoms # atomic\n"]
    text += [f"{number} {kind} {x!r} {y!r} {z!r}" for number, kind, (x, y, z) in atoms]
    return "\n".join(text) + "\n"


def lattice(kind, a, cells):
    """Places of a perfect cubic crystal."""
    corners = itertools.product(*map(range, cells))
    return [tuple(a * (c + s) for c, s in zip(corner, site)) for corner in corners for site in SITES[kind]]


def random_alloy(chance):
    """fcc with a third of its atoms of the second species, all of them shaken, in a box of three unequal edges."""
    a, cells = 3.58, (5, 4, 6)
    places = [tuple(x + chance.uniform(-0.12, 0.12) for x in place) for place in lattice("fcc", a, cells)]
    lengths = [a * n for n in cells]
    inside = [tuple(x % length for x, length in zip(place, lengths)) for place in places]
    return data(lengths, [(n, 2 if chance.random() < 0.34 else 1, at) for n, at in enumerate(inside, 1)])


def dump(path):
    """Lengths of the box and, by column, the values of each atom of a dump, atoms by number."""
    with open(path) as text:
        lines = text.read().splitlines()
    count = int(lines[3])
    box = [[float(word) for word in line.split()] for line in lines[5:8]]
    columns = lines[8].split()[2:]
    rows = sorted((line.split() for line in lines[9:9 + count]), key=lambda row: int(row[columns.index("id")]))
    return [high - low for low, high in box], [dict(zip(columns, row)) for row in rows]


def vector(row, names):
    return [float(row[name]) for name in names]


def apart(mine, theirs):
    """The largest difference, relative to the largest number."""
    scale = max(abs(x) for x in theirs)
    return max(abs(x - y) for x, y in zip(mine, theirs)) / scale if scale > 0 else max(abs(x) for x in mine)


def thermo(text):
    """The last line of LAMMPS' thermodynamic output."""
    return [float(word) for word in re.findall(r"^ *\d+(?: +\S+){9} *$", text, re.M)[-1].split()]


def single_point(peers, case):
    """How far energy, forces and virial are apart."""
    _, potential, elements, crystal, ends, shake, block = case
    elements = elements.split()
    files = ", ".join(f'"{POTENTIALS}/{file}"' for file in potential.split())
    text = (f"[crystal]\n{crystal}\n\n[potential]\nfiles = [{files}]\nelements = {json.dumps(elements)}\n\n"
            f"[relaxation]\nblock = {block}\n\n[[step]]\nrelax = false\ndisturb = [{{ shake = {{ by = {shake} }} }}]\n\n"
            f'[output]\ndump = "ours.dump"\n\n[boundary]\n' + "".join(f'{axis} = "free"\n' for axis in ends))
    toml = peers.write("physics.toml", text)
    energy = peers.metachare(toml)["energy_ev"]
    pressure = peers.metachare("--study", "pressure", toml)
    lengths, mine = dump(peers.path("ours.dump"))
    atoms = [(n, int(row["type"]), vector(row, "xyz")) for n, row in enumerate(mine, 1)]
    source = re.search(r'file = "(.*)"', crystal)
    if not source:
        peers.write("physics.data", data(lengths, atoms, ends))
    out = peers.lammps(potential, elements, source[1] if source else "physics.data", DUMP, ends)
    _, theirs = dump(peers.path("theirs.dump"))
    _, their_energy, _, volume, *their_pressure = thermo(out)
    forces = [[x for row in rows for x in vector(row, ["fx", "fy", "fz"])] for rows in (mine, theirs)]
    energies = [vector(row, [name])[0] for rows, name in ((mine, "c_energy"), (theirs, "c_e")) for row in rows]
    own = math.prod(lengths) / GPA
    virial = [pressure[f"pressure_{k}_gpa"] * own for k in ("xx", "yy", "zz", "yz", "xz", "xy")]
    return {
        "atoms": len(atoms),
        "energy": max(apart([energy], [their_energy]), apart([pressure["energy_ev"]], [their_energy])),
        "energies of atoms": apart(energies[:len(mine)], energies[len(mine):]),
        "forces": apart(*forces),
        "virial": apart(virial, [p * volume / BAR for p in their_pressure]),
    }


def shells(peers):
    """A slab held at its ends, with a vacancy: energy of free and buffer atoms, and forces of free ones."""
    text = (f'[crystal]\nlattice = "fcc"\na = 3.615\nsize = [11, 12, 2]\n\n[potential]\n'
            f'files = ["{POTENTIALS}/Cu_mishin1.eam.alloy"]\nelements = ["Cu"]\n\n[relaxation]\nblock = 200\n\n'
            f'[boundary]\nx = {{ shells = {{ buffer = 7.3, fixed = 7.3 }} }}\ny = {{ shells = {{ buffer = 7.3, fixed = 7.3 }} }}\n\n'
            f'[[step]]\nrelax = false\ndisturb = [{{ vacancy = {{ ids = [556] }} }}, {{ shake = {{ by = 0.1 }} }}]\n\n'
            f'[output]\ndump = "ours.dump"\n')
    energy = peers.metachare(peers.write("physics.toml", text))["energy_ev"]
    lengths, mine = dump(peers.path("ours.dump"))
    atoms = [(n, 1, vector(row, "xyz")) for n, row in enumerate(mine, 1)]
    peers.write("physics.data", data(lengths, atoms, "xy"))
    peers.lammps("Cu_mishin1.eam.alloy", ["Cu"], "physics.data", DUMP, "xy")
    _, theirs = dump(peers.path("theirs.dump"))
    pairs = [(ours, other) for ours, other in zip(mine, theirs) if ours["class"] != "2"]
    free = [(ours, other) for ours, other in pairs if ours["class"] == "0"]
    forces = [[x for pair in free for x in vector(pair[side], ["fx", "fy", "fz"])] for side in (0, 1)]
    mine, theirs = ([float(pair[side][name]) for pair in pairs] for side, name in ((0, "c_energy"), (1, "c_e")))
    return {"atoms": len(atoms), "energy": apart([energy], [math.fsum(theirs)]), "energies of atoms": apart(mine, theirs),
            "forces": apart(*forces)}


def relaxed(peers, potential, element, lengths, places, ends=""):
    """Energies of atoms before and after LAMMPS relaxes them."""
    atoms = [(n, 1, place) for n, place in enumerate(places, 1)]
    peers.write("physics.data", data(lengths, atoms, ends))
    out = peers.lammps(potential, [element], "physics.data", f'run 0\n{MINIMIZE}print "RELAXED $(pe:%.14g)"\n', ends)
    before = re.search(r"^ *0 +(\S+)", out, re.M)[1]
    return float(before), float(re.search(r"^RELAXED (\S+)", out, re.M)[1])


def pressures(peers, potential, element, kind, a, stretch, tilt):
    """The pressure tensor of a strained crystal in GPa."""
    cells = (4, 4, 4)
    places = [((1 + stretch) * x + tilt * y, y, z) for x, y, z in lattice(kind, a, cells)]
    lengths = [4 * a * (1 + stretch), 4 * a, 4 * a]
    atoms = [(n, 1, place) for n, place in enumerate(places, 1)]
    peers.write("physics.data", data(lengths, atoms, tilt=tilt * 4 * a))
    return [p * 1e-4 for p in thermo(peers.lammps(potential, [element], "physics.data", "run 0\n"))[4:]]


def stacking_fault(peers, potential, element, a):
    """Unrelaxed and relaxed energy in mJ/m^2 of the intrinsic fault in the middle of a (111) slab."""
    side, high = a / math.sqrt(2), a / math.sqrt(3)
    columns, rows, planes = 4, 3, 36
    lengths = [columns * side, rows * side * math.sqrt(3), (planes - 1) * high]

    # Rows of a plane along x; each plane is shifted along y by a third of two rows against the one below.
    places = []
    for plane, row, column in itertools.product(range(planes), range(2 * rows), range(columns)):
        y = row * side * math.sqrt(3) / 2 + plane * side / math.sqrt(3)
        places.append(((column + row % 2 / 2) * side % lengths[0], y % lengths[1], plane * high))
    peers.write("physics.data", data(lengths, [(n, 1, place) for n, place in enumerate(places, 1)], "z"))
    # The surfaces relax before the upper half goes to the other hollows.
    commands = (f'run 0\n{MINIMIZE}print "AT $(pe:%.14g)"\n'
                f"region up block INF INF INF INF {(planes - 1) / 2 * high!r} INF units box\ngroup up region up\n"
                f"displace_atoms up move 0 {side / math.sqrt(3)!r} 0 units box\nrun 0\n"
                f'print "AT $(pe:%.14g)"\n{MINIMIZE}print "AT $(pe:%.14g)"\n')
    out = peers.lammps(potential, [element], "physics.data", commands, "z")
    perfect, *shifted = [float(energy) for energy in re.findall(r"^AT (\S+)", out, re.M)]
    return [(energy - perfect) / (lengths[0] * lengths[1]) * 16021.76634 for energy in shifted]


def material(peers, potential, element, kind, has_fault):
    """Rows of a property, LAMMPS' number, ours, and how far they may be apart."""
    words = ["--potential", f"{POTENTIALS}/{potential}", "--element", element, "--lattice", kind]
    study = {name: peers.metachare("--study", name, *words) for name in ("elastic", "vacancy")}
    a = study["elastic"]["a"]
    perfect = lattice(kind, a, (4, 4, 4))
    at_rest = pressures(peers, potential, element, kind, a, 0.0, 0.0)
    energy, _ = relaxed(peers, potential, element, [4 * a] * 3, perfect)
    rows = [("pressure at Metachare's lattice constant, GPa", at_rest[0], 0.0, 1e-6),
            ("cohesive energy, eV", energy / len(perfect), study["elastic"]["cohesive_energy_ev"], 1e-9)]
    strain = 1e-4
    ends = [pressures(peers, potential, element, kind, a, sign * strain, 0.0) for sign in (1, -1)]
    sheared = [pressures(peers, potential, element, kind, a, 0.0, sign * strain) for sign in (1, -1)]
    for name, (plus, minus), k in (("c11", ends, 0), ("c12", ends, 1), ("c44", sheared, 5)):
        theirs = (minus[k] - plus[k]) / (2 * strain)
        rows.append((f"{name.upper()}, GPa", theirs, study["elastic"][f"{name}_gpa"], 1e-4))
    places = lattice(kind, a, (6, 6, 6))
    whole, _ = relaxed(peers, potential, element, [6 * a] * 3, places)
    hole = relaxed(peers, potential, element, [6 * a] * 3, places[1:])
    share = whole * (len(places) - 1) / len(places)
    for name, key, theirs in (("unrelaxed", "vacancy_unrelaxed_ev", hole[0]), ("relaxed", "vacancy_ev", hole[1])):
        rows.append((f"vacancy, {name}, eV", theirs - share, study["vacancy"][key], 1e-6))
    if has_fault:
        fault = peers.metachare("--study", "fault", *words)
        theirs = stacking_fault(peers, potential, element, a)
        for name, key, number in zip(("unrelaxed", "relaxed"), ("fault_unrelaxed_mj_per_m2", "fault_mj_per_m2"), theirs):
            rows.append((f"stacking fault, {name}, mJ/m^2", number, fault[key], 1e-4))
    return rows


def compare(peers, brief):
    """Prints both tables, the second not if `brief`; gives all rows. Ends the program if something is too far apart."""
    peers.write("random.data", random_alloy(random.Random(7)))
    kinds = ("energy", "energies of atoms", "forces", "virial")
    print(f"\n| largest relative difference | atoms | {' | '.join(kinds)} |\n|---|--:|{'--:|' * len(kinds)}")
    points = {case[0]: single_point(peers, case) for case in CASES} | {"held at its ends": shells(peers)}
    for name, found in points.items():
        shown = " | ".join(f"{found[kind]:.1e}" if kind in found else "" for kind in kinds)
        print(f"| {name} | {found['atoms']} | {shown} |", flush=True)
    far = [name for name, found in points.items() if max(found.get(kind, 0.0) for kind in kinds) > SINGLE_POINT]
    rows = []
    if not brief:
        print("\n| property | LAMMPS | Metachare | apart |\n|---|--:|--:|--:|")
        for potential, element, kind, has_fault in MATERIALS:
            for name, theirs, mine, most in material(peers, potential, element, kind, has_fault):
                name = f"{potential}, {element}: {name}"
                print(f"| {name} | {theirs:.7f} | {mine:.7f} | {abs(theirs - mine):.1e} |", flush=True)
                rows.append({"name": name, "lammps": theirs, "metachare": mine})
                if not abs(theirs - mine) <= most:
                    far.append(f"{name} (more than {most:g})")
    if far:
        sys.exit(f"too far from LAMMPS: {'; '.join(far)}")
    return {"single_points": points, "properties": rows}
