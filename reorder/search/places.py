"""Where neurons lie in a picture: places that a reader knows, else smooth coordinates of the network itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reorder.search.intervals import Items
from reorder.search.spectrum import coordinates
from traces.work.network import Network

FloatArray = npt.NDArray[np.float64]
NEAR = 0.15  # of a picture; at random a third


def known_places(network: Network) -> FloatArray | None:
    """Return float64[N, 2]: (y, x) of each neuron from 0 to 1 within its layer's picture; None without pictures.

    Neurons of a layer that has none (-1) come last: they need all of the picture before them.
    """
    if network.positions is None:
        return None
    layer, pixels = network.positions[:, 0], network.positions[:, 1:]
    largest = np.full((int(layer.max()) + 1, 2), -1, np.int64)
    np.maximum.at(largest, layer, pixels)
    if (largest < 1).all():
        return None
    return np.where(pixels >= 0, (pixels + 0.5) / (np.maximum(largest, 0)[layer] + 1.0), 1.0)


def places(items: Items) -> FloatArray | None:
    """Return float64[N, 2], the most telling coordinate first: known places or spectral ones; None without locality.

    Known ones where connections join what lies close to each other, on average; layers of all connections do not.
    """
    if "places" not in items.facts:
        network, known = items.network, known_places(items.network)
        if known is not None and np.abs(known[network.sources] - known[network.targets]).max(axis=1).mean() > NEAR:
            known = None
        items.facts["places"] = coordinates(items) if known is None else known
    found: FloatArray | None = items.facts["places"]
    return found
