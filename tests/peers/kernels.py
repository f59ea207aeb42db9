"""Whether OpenBLAS runs a kernel that is made for this CPU, and which one it should run. One that is too narrow is several
times slower, and a comparison with it says nothing."""

import platform

# Widest first: what the vectors are called, the flags of /proc/cpuinfo that OpenBLAS asks for before it takes kernels for
# them, and the names of these kernels, first the one that runs on all such CPUs. AMD's CPUs with AVX-512 run Intel's
# kernels for it; "Zen" stands for AVX2.
WIDTHS = [
    ("AVX-512", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, ["SkylakeX", "Cooperlake", "SapphireRapids"]),
    ("AVX2", {"avx2", "fma"}, ["Haswell", "Zen"]),
    ("AVX", {"avx"}, ["Sandybridge", "Bulldozer", "Piledriver", "Steamroller", "Excavator"]),
]


def cpu_flags():
    with open("/proc/cpuinfo") as file:
        return next((set(line.split(":")[1].split()) for line in file if line.startswith("flags")), set())


def widest(flags):
    """A kernel for the widest vectors of a CPU with these flags; None if that is not known."""
    return next((kernels[0] for _, needed, kernels in WIDTHS if needed <= flags), None)


def objection(kernel, flags):
    """Why a kernel of OpenBLAS is not one for a CPU with these flags; None if it is."""
    for vectors, needed, kernels in WIDTHS:
        if needed <= flags:
            return None if kernel in kernels else (
                f"this CPU has {vectors}, for which OpenBLAS has the kernels {', '.join(kernels)}, but it runs "
                f"{kernel}")
    return f"which of OpenBLAS's kernels fits this CPU ({platform.machine()}, without AVX) is not known; it runs {kernel}"
