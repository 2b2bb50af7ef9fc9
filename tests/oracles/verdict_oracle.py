"""Verdicts by brute force: plain loops over points, and a Monte Carlo of the constants with random draws."""

from collections import defaultdict
from statistics import fmean

import numpy as np


def cards(points):
    """Return hardware -> (choice, gains) of points (hardware, order, stride, format, seed, energy, time).

    gains: name -> (energy, time) as shares; each of two points that differ in what it names alone. Every software has
    every seed.
    """
    found = {}
    for hardware in dict.fromkeys(point[0] for point in points):
        energies, times, first = defaultdict(list), defaultdict(list), []
        for where, order, stride, form, _, energy, time in points:
            if where == hardware:
                energies[order, stride, form].append(energy)
                times[order, stride, form].append(time)
                first.append((order, stride, form))
        energy = {key: fmean(values) for key, values in energies.items()}
        time = {key: fmean(values) for key, values in times.items()}
        best = min(energy, key=energy.get)
        base = next((key for key in first if key[0] == "two-optimal"), first[0])

        def gain(other, best=best, energy=energy, time=time):
            return energy[best] / energy[other] - 1, time[best] / time[other] - 1

        gains = {}
        alike = [key for key in energy if key[1:] == best[1:]]
        for name, wanted in (("row by row", "two-optimal"), ("blocking", "tiles")):
            like = [key for key in alike if key[0] == wanted]
            if like and like[0] != best:
                gains[name] = gain(like[0])
        for name, other in (("stride", (best[0], base[1], best[2])), ("format", (best[0], best[1], base[2]))):
            if other in energy and other != best:
                gains[name] = gain(other)
        if base != best:
            gains["all"] = gain(base)
        found[hardware] = best, gains
    return found


def certainty(sources, one, other, draws=100_000, seed=1):
    """Return, of points' energies by source (float[points, sources, 3]: nominal, low, high), the share of random draws
    in which point `one` needs least, the share in which its change against `other` has the nominal sign, and the 5 and
    95 % ends of that change. Each source moves by itself, from its low to its high end, nominal in the middle."""
    rng = np.random.default_rng(seed)
    total = np.zeros((len(sources), draws))
    for source in range(sources.shape[1]):
        z = rng.uniform(-1, 1, draws)
        for k, (nominal, low, high) in enumerate(sources[:, source]):
            if nominal > 0:
                total[k] += nominal * np.where(z > 0, (high / nominal) ** z, (low / nominal) ** -z)
    change = total[one] / total[other] - 1
    nominal = sources[one, :, 0].sum() / sources[other, :, 0].sum() - 1
    best = np.mean(total[one] <= total.min(axis=0))
    return best, np.mean(np.sign(change) == np.sign(nominal)), *np.quantile(change, (0.05, 0.95))
