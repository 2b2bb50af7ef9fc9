"""A plain prefetching cache: the plain cache, a set of unused prefetched lines, and a table with a row per entry."""

from __future__ import annotations

from oracles.cache_oracle import PlainCache

# State of a stream -> (next state after a right step, after a wrong one, whether a wrong one changes the stride):
# the automaton of Chen & Baer 1995.
AUTOMATON = {
    "initial": ("steady", "transient", True),
    "transient": ("steady", "no prediction", True),
    "steady": ("steady", "initial", False),
    "no prediction": ("transient", "no prediction", True),
}


class PlainPrefetcher(PlainCache):
    """One level; `access` takes the stream too and returns (address, size, is_write) with the prefetches last."""

    def __init__(self, *arguments, kind, degree, distance, table_entries, footprint):
        super().__init__(*arguments)
        self.kind, self.degree, self.distance = kind, degree, distance
        self.table = [None] * table_entries
        self.footprint = footprint
        self.unused = set()

    def resident(self):
        return {line for ways in self.ways for line in ways if line is not None}

    def look_up(self, op, address, size):
        """Make an access within one line; return (transactions, hit, filled)."""
        before = self.resident()
        out = super().access(op, address, size)
        gone = self.unused & (before - self.resident())
        self.counts["useless"] += len(gone)
        self.unused -= gone
        line = address // self.line_bytes
        return out, line in before, line in self.resident() - before

    def learn(self, stream, line):
        at = stream % len(self.table)
        if self.table[at] is None or self.table[at]["stream"] != stream:
            self.table[at] = {"stream": stream, "last": line, "stride": 0, "state": "initial"}
            return None
        row = self.table[at]
        step = line - row["last"]
        if step == 0:
            return None
        right, wrong, forgets = AUTOMATON[row["state"]]
        if step == row["stride"]:
            row["state"] = right
        else:
            row["state"] = wrong
            if forgets:
                row["stride"] = step
        row["last"] = line
        return row["stride"] if row["state"] == "steady" else None

    def access(self, op, address, size, stream):
        out, wanted = [], []
        n_bytes = self.line_bytes
        for line in self.touched(address, size):
            start, end = max(address, line * n_bytes), min(address + size, (line + 1) * n_bytes)
            transactions, hit, filled = self.look_up(op, start, end - start)
            out += transactions
            first_use = hit and line in self.unused
            if first_use:
                self.unused.discard(line)
                self.counts["useful"] += 1
            next_line = 1 if filled or first_use else None
            stride = next_line if self.kind == "next-line" else self.learn(stream, line)
            if stride is not None:
                wanted += [line + stride * (self.distance + k) for k in range(self.degree)]
        self.counts["stores" if op else "loads"] += 1 - len(self.touched(address, size))
        first, end = self.footprint
        for line in wanted:
            if first // n_bytes <= line <= (end - 1) // n_bytes and line not in self.resident():
                out += self.look_up(0, line * n_bytes, n_bytes)[0]
                self.counts["loads"] -= 1
                self.counts["load_line_misses"] -= 1
                self.counts["prefetches"] += 1
                self.unused.add(line)
        return out

    def run(self, op, address, size, stream):
        out = []
        for i, access in enumerate(zip(op, address, size, stream, strict=True)):
            out += [(*transaction, i) for transaction in self.access(*access)]
        self.counts["resident_at_end"] = len(self.resident())
        self.counts["dirty_at_end"] = len(self.dirty)
        self.counts["unused"] = len(self.unused)
        return out
