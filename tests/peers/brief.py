"""The brief form of a comparison: of each kind of case a few, the same every time unless SEED says otherwise."""

import os
import random
import sys

BRIEF = "--brief" in sys.argv


def some(cases, count):
    """All cases, in their order; of a brief form `count` of them."""
    cases = list(cases)
    if not BRIEF or len(cases) <= count:
        return cases
    chosen = random.Random(f"{os.environ.get('SEED', '1995')} {len(cases)}").sample(range(len(cases)), count)
    return [cases[at] for at in sorted(chosen)]
