"""The definition of `refreshed`, with lists: an order for LRU that uses early what would go too soon."""

from __future__ import annotations

LOOKED_AT, BEHIND = 64, 2


def refreshed(sources: list[int], targets: list[int], memory: int, horizon: int) -> list[int]:
    """Return the places of the order in the order in which they are done."""
    room, held, done = memory - 1, [], []  # held: the value touched longest ago first
    touched: dict[int, int] = {}  # how many connections had been done

    def uses(x: int, now: int) -> list[int]:
        """Connections of x within the horizon, the first that is left and those behind it, LOOKED_AT in all."""
        known = [k for k in range(len(sources)) if x in (sources[k], targets[k])]
        left = [k for k in known if k not in done]
        return [k for k in known[known.index(left[0]) :][:LOOKED_AT] if k < now + horizon] if left else []

    def early(x: int, now: int, may_begin: bool) -> int | None:
        best = begins = None
        for k in uses(x, now):
            complete = all(j in done for j in range(len(targets)) if targets[j] == sources[k])
            if k in done or not complete:
                continue
            other = targets[k] if sources[k] == x else sources[k]
            if other in held:
                if best is None or touched[other] < best[0]:
                    best = touched[other], k
            elif begins is None and sources[k] == x:
                begins = k
        return best[1] if best else begins if may_begin else None

    def before(now: int) -> int | None:
        missing = [x for x in (sources[now], targets[now]) if x not in held]
        if not missing or len(held) + len(missing) <= room:
            return None
        to_go = [x for x in held if x != sources[now]][: len(missing) + BEHIND]
        found = [early(x, now, x == to_go[0]) for x in to_go if uses(x, now)]
        return next((k for k in found if k is not None), None)

    def do(k: int) -> None:
        for x in (sources[k], targets[k]):
            if x in held:
                held.remove(x)
            elif len(held) == room:
                held.pop(0)
            held.append(x)
            touched[x] = len(done)
        done.append(k)

    for k in range(len(sources)):
        while k not in done:
            found = before(k)
            do(k if found is None else found)
    return done
