"""Fits the cost of a request against a size, so that a table says how it grows."""

import math

# Costs that are at most this much of the first one are flat.
FLAT = 1.10


class Fit:
    """A cost relative to that of the first size: a constant and a slope, for each unit or for each doubling."""

    def __init__(self, is_logarithm, constant, slope, worst):
        self.is_logarithm, self.constant, self.slope, self.worst = is_logarithm, constant, slope, worst

    def at(self, size):
        return self.constant + self.slope * scaled(size, self.is_logarithm)

    def text(self, label):
        if self.worst <= FLAT:
            return f"flat (at most {self.worst:.3f} of the first)"
        unit = "each doubling" if self.is_logarithm else "each more"
        return f"{self.constant:.3f} and {self.slope:+.2g} for {unit}"


def scaled(size, is_logarithm):
    # A size of 0 is where a logarithm begins.
    return math.log2(max(size, 1)) if is_logarithm else size


def fit(points):
    """The better of two regressions by least squares."""
    best = None
    for is_logarithm in (False, True):
        xs = [scaled(size, is_logarithm) for size, _ in points]
        ys = [cost for _, cost in points]
        mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
        spread = sum((x - mean_x) ** 2 for x in xs)
        slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / spread if spread else 0.0
        found = Fit(is_logarithm, mean_y - slope * mean_x, slope, max(ys) / ys[0])
        error = sum((found.at(size) - cost) ** 2 for size, cost in points)
        if best is None or error < best[0]:
            best = (error, found)
    return best[1]
