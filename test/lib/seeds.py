"""Seeds of random choices. A test prints its seed, which pytest shows if the test fails; a variable sets the seed.

The seed repeats what a test chooses, not the order in which the kernel runs threads. A test that chooses moments says so,
and what it prints does.
"""

import os
import random

PRINTED = r"^seed \d+: (\w+)=(\d+)"


def seed(variable="SEED", default=None, moments=False):
    """Prints and gives the number in that variable, else `default`, else a random one."""
    chosen = int(os.environ.get(variable) or default or random.SystemRandom().randrange(1, 1 << 30))
    print(f"seed {chosen}: {variable}={chosen} repeats it{' (moments differ)' * moments}")
    return chosen


def seeded(variable="SEED", default=None, of="", moments=False):
    """A source of random choices with that seed; runs of a test with other parameters, in `of`, choose otherwise."""
    return random.Random(f"{seed(variable, default, moments)}{of}")
