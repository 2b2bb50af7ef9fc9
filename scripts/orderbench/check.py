"""Count what an answer to a task costs, the less the better: python check.py TASK.json ANSWER.json, with Python alone.

connections (source, target), {"order": their numbers}: reads and writes by Gleinig et al. 2023, Algorithm 1. Fast
    memory holds M - 1 values. For each (a, b): read it (1); access a, then b. What is not there is read (1), if memory
    is full after one value is evicted; then b is updated. An evicted value is written (1) if it was updated since it
    was read and is accessed again or an output; at the end updated outputs are. Evicted is, never a for b: min: whose
    next access is farthest; lru: whose last is longest ago; rr: at a pointer over the places, which then moves on.
entries (row, value, id), {"order"}: ones on the wires, 16-bit words in blocks of 16 entries, Base+XOR, then DBI-DC by
    bytes with its flag (Feinberg et al. 2020). Rows follow each other as in the task.
operators (bytes, inputs), {"order"}: most bytes live at once; inputs go after their last use, outputs never.
buffers (first, end, bytes), {"offsets"}: bytes of an arena; a buffer is live from first up to, not including, end.
"""

import json
import sys
from collections import Counter
from pathlib import Path


def ios(task: dict, order: list) -> int:
    pairs, room, outputs = task["connections"], task["memory"] - 1, set(task["outputs"])
    left, accesses = Counter(b for _, b in pairs), []
    for k in order:
        if left[pairs[k][0]]:
            raise ValueError(f"connection {k} comes before its source is complete")
        left[pairs[k][1]] -= 1
        accesses += pairs[k]
    never, following, seen = len(accesses), {}, {}
    for at, value in reversed([*enumerate(accesses)]):
        following[at], seen[value] = seen.get(value, never), at
    places, pointer, updated, total = [-1 - k for k in range(room)], 0, set(), len(order)  # below 0: nothing yet
    upcoming, latest = dict.fromkeys(places, never), dict.fromkeys(places, -1)
    ranks = {"min": lambda v: -upcoming[v], "lru": latest.get, "rr": lambda v: (places.index(v) - pointer) % room}
    for at, value in enumerate(accesses):
        if value not in places:
            gone = min((v for v in places if at % 2 == 0 or v != accesses[at - 1]), key=ranks[task["policy"]])
            place = places.index(gone)
            places[place], pointer = value, (place + 1) % room
            total += 1 + (gone in updated and (upcoming[gone] < never or gone in outputs))
            updated.discard(gone)
        upcoming[value], latest[value] = following[at], at
        updated.update({value} if at % 2 else ())
    return total + len(updated & outputs)


def ones(task: dict, order: list) -> int:
    entries, total = task["entries"], 0
    for slot, k in enumerate(order):
        if entries[k][0] != entries[slot][0]:
            raise ValueError(f"entry {k} is of row {entries[k][0]}, but place {slot} of row {entries[slot][0]}")
        before = entries[order[slot - 1]] if slot % 16 else (0, 0, 0)
        for word, last in zip(entries[k][1:], before[1:], strict=True):
            total += sum(min(byte.bit_count(), 9 - byte.bit_count()) for byte in divmod(word ^ last, 256))
    return total


def peak(task: dict, order: list) -> int:
    operators, done, live, most = task["operators"], set(), 0, 0
    readers = Counter(task["outputs"] + [v for _, inputs in operators for v in inputs])
    for k in order:
        n_bytes, inputs = operators[k]
        if not done.issuperset(inputs):
            raise ValueError(f"operator {k} comes before one of its inputs")
        done.add(k)
        most = max(most, live := live + n_bytes)
        readers.subtract(inputs)
        live -= sum(operators[v][0] for v in (k, *inputs) if not readers[v])
    return most


def height(task: dict, offsets: list) -> int:
    placed = [(low, low + n_bytes, *life) for low, (*life, n_bytes) in zip(offsets, task["buffers"], strict=True)]
    for k, (low, high, first, end) in enumerate(placed):
        for j, (bottom, top, begin, last) in enumerate(placed[:k]):
            if low < top and bottom < high and first < last and begin < end:
                raise ValueError(f"buffers {j} and {k} share bytes while both are live")
    return max(high for _, high, _, _ in placed)


MEASURES = {"connections": ios, "entries": ones, "operators": peak, "buffers": height}  # by what a task has


def count(task: dict, answer: dict | list) -> int:
    things, n = next((name, len(task[name])) for name in MEASURES if name in task)
    numbers = answer.get("offsets" if things == "buffers" else "order") if isinstance(answer, dict) else answer
    wrong = [k for k in numbers if type(k) is not int or k >> 63] if isinstance(numbers, list) else [numbers]
    if wrong or len(numbers) != n:
        raise ValueError(f"wanted: order or offsets, {n} whole numbers from 0, not {wrong[:1] or len(numbers)!s:.40}")
    twice = [(k, times) for k, times in Counter(numbers).items() if times > 1 or k >= n]
    if twice and things != "buffers":
        raise ValueError("number {} occurs {} times, of 0 to {} each once".format(*twice[0], n - 1))
    return MEASURES[things](task, numbers)


if __name__ == "__main__":
    try:
        task, given = (json.loads(Path(name).read_text()) for name in sys.argv[1:])
        print(task["name"], count(task, given))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        sys.exit(f"{type(error).__name__}: {error}"[:500] if len(sys.argv) == 3 else __doc__)
