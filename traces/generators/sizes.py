"""How large a generated network may be: checked by what its parameters say, before anything is made."""

from __future__ import annotations

import numpy as np

from traces.base.errors import InputError, shown
from traces.base.memory import claim
from traces.work.network import MAX_CONNECTIONS, MAX_NEURONS

_CONNECTION, _NEURON = 120, 180  # bytes of memory at the most while one is made, measured on every generator


def check_size(n_neurons: int, n_connections: int) -> None:
    """Raise InputError for a network that is too large to be numbered, or for the bound of memory."""
    if n_connections > MAX_CONNECTIONS or n_neurons > MAX_NEURONS:
        raise InputError(f"{n_neurons} neurons and {n_connections} connections are too many to be held")
    claim(_CONNECTION * n_connections + _NEURON * n_neurons, "generate", f"a network of {n_connections} connections")


def at_least(what: str, value: int, least: int) -> int:
    """Return a whole number of a generator. Raises InputError naming it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what} must be an integer of at least {least}, not {value!r}")
    if value > MAX_NEURONS:
        raise InputError(f"{what} is at most {MAX_NEURONS}, not {value}")
    return int(value)


def checked_seed(seed: int) -> int:
    """Return a seed of random numbers. Raises InputError for one that is negative or no whole number."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, not {shown(seed)}")
    return int(seed)
