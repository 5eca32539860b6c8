"""Recursions, each deeper than the one before, whose innermost function naps."""

sys.setrecursionlimit(5000)
def deep(n): deep(n - 1) if n else nap()
for n in (10, 120, 400, 1500): deep(n)
