"""Count the I/Os of an order: python check.py INSTANCE.json ORDER.json. Needs Python alone.

The model is that of Gleinig et al. 2023 (section II, Algorithm 1). Fast memory holds M - 1 values, and the connection
in hand. In turn for each connection (a, b) of the order: one read of the connection; access a, then b. A value that is
not there is read (one read); if memory is full, one value is evicted first. Then b is updated. An evicted value costs
one write if it was updated since it was read or written and is accessed again, or is an output; what is in memory at
the end is written if it is an updated output. Evicted is, but never a while b is read:
  min  the value whose next access is farthest (what is never accessed again before all others);
  lru  the value whose last access is longest ago;
  rr   the value in the place under a pointer over the M - 1 places, which then moves on (and first over a).
"""

import json
import sys


def count(
    n_neurons: int,
    connections: list[tuple[int, int]],
    outputs: list[int],
    memory: int,
    policy: str,
    order: list[int],
) -> int:
    """Return the reads and writes of an order (indices of connections); ValueError for what is not an order."""
    if sorted(order) != list(range(len(connections))):
        raise ValueError("the order is not a permutation of the connections")
    left = [0] * n_neurons
    for _, b in connections:
        left[b] += 1
    accesses = []
    for k in order:
        a, b = connections[k]
        if left[a]:
            raise ValueError(f"connection {k} comes before its source is complete")
        left[b] -= 1
        accesses += [a, b]
    never = len(accesses)
    following, seen = [never] * never, dict[int, int]()
    for at in range(never - 1, -1, -1):
        following[at] = seen.get(accesses[at], never)
        seen[accesses[at]] = at
    places, pointer, total = list[int](), 0, len(order)
    is_output, updated = set(outputs), set[int]()
    upcoming, latest = dict[int, int](), dict[int, int]()
    for at, value in enumerate(accesses):
        pinned = accesses[at - 1] if at % 2 else None
        if value not in places:
            total += 1
            if len(places) < memory - 1:
                places.append(value)
            else:
                if policy == "rr":
                    while places[pointer] == pinned:
                        pointer = (pointer + 1) % len(places)
                    gone = places[pointer]
                elif policy == "lru":
                    gone = min((v for v in places if v != pinned), key=lambda v: latest[v])
                else:
                    gone = max((v for v in places if v != pinned), key=lambda v: upcoming[v])
                if gone in updated and (upcoming[gone] < never or gone in is_output):
                    total += 1
                updated.discard(gone)
                places[places.index(gone)] = value
                if policy == "rr":
                    pointer = (pointer + 1) % len(places)
            updated.discard(value)
        upcoming[value], latest[value] = following[at], at
        if at % 2:
            updated.add(value)
    return total + len(updated & is_output & set(places))


def main() -> None:
    """Print the total, or why the order is none."""
    with open(sys.argv[1]) as file:
        task = json.load(file)
    with open(sys.argv[2]) as file:
        found = json.load(file)
    order = found["order"] if isinstance(found, dict) else found
    try:
        network = task["n_neurons"], task["connections"], task["outputs"]
        print(task["name"], count(*network, task["memory"], task["policy"], order))
    except ValueError as error:
        sys.exit(f"{task['name']}: {error}")


if __name__ == "__main__":
    main()
