"""A plain set-associative cache: lists of dictionaries, one look-up at a time, every policy spelled out."""

from __future__ import annotations

from collections import Counter

MASK = 2**64 - 1


def draw(state: int, n: int) -> tuple[int, int]:
    """splitmix64, top 32 bits scaled to [0, n): returns (new state, number)."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    z ^= z >> 31
    return state, ((z >> 32) * n) >> 32


class PlainCache:
    """One level. `access` returns its transactions as (address, size, is_write); `counts` tells what happened."""

    def __init__(self, sets, ways, line_bytes, policy, write="back", allocate=True, seed=0):
        self.n_sets, self.n_ways, self.line_bytes, self.policy = sets, ways, line_bytes, policy
        self.back, self.allocate, self.state = write == "back", allocate, seed
        self.ways = [[None] * ways for _ in range(sets)]  # way -> line number
        self.recency = [[] for _ in range(sets)]  # ways, most recent last
        self.fill_order = [[] for _ in range(sets)]
        self.tree = [{} for _ in range(sets)]  # path so far ("", "0", "01", ...) -> side of the next victim
        self.prediction = [[0] * ways for _ in range(sets)]  # re-reference interval prediction values
        self.selector = 512  # ten bits, of set dueling
        self.dirty = set()
        self.counts = Counter()
        self.future = None
        self.time = 0

    def touched(self, address, size):
        return range(address // self.line_bytes, (address + size - 1) // self.line_bytes + 1)

    def victim(self, s):
        ways = self.ways[s]
        if None in ways:
            return ways.index(None)
        if self.policy == "lru":
            return self.recency[s][0]
        if self.policy in ("fifo", "rr"):
            return self.fill_order[s][0]
        if self.policy == "random":
            self.state, way = draw(self.state, self.n_ways)
            return way
        if self.policy == "plru":
            path, low, high = "", 0, self.n_ways
            while high - low > 1:
                side = self.tree[s].get(path, 0)
                middle = (low + high) // 2
                low, high = (middle, high) if side else (low, middle)
                path += str(side)
            return low
        if self.policy.endswith("rrip"):
            while 3 not in self.prediction[s]:
                self.prediction[s] = [value + 1 for value in self.prediction[s]]
            return self.prediction[s].index(3)
        uses = []
        for line in ways:  # Belady: the line looked up latest again; ties to the lowest way
            later = [t for t in self.future.get(line, ()) if t > self.time]
            uses.append(later[0] if later else float("inf"))
        return uses.index(max(uses))

    def insert(self, s, way):
        """Predict when a new line is used again: 2 is long, 3 far."""
        if not self.policy.endswith("rrip"):
            return
        bimodal = self.policy == "brrip"
        if self.policy == "drrip":
            place = s % max(2, self.n_sets // 32)
            if place == 0:
                self.selector = min(self.selector + 1, 1023)
            elif place == 1:
                self.selector = max(self.selector - 1, 0)
            bimodal = place == 1 or (place > 1 and self.selector > 512)
        self.prediction[s][way] = 2
        if bimodal:
            self.state, number = draw(self.state, 32)
            self.prediction[s][way] = 2 if number == 0 else 3

    def touch(self, s, way):
        if way in self.recency[s]:
            self.recency[s].remove(way)
        self.recency[s].append(way)
        if self.policy == "plru":
            path, low, high = "", 0, self.n_ways
            while high - low > 1:
                middle = (low + high) // 2
                side = int(way >= middle)
                self.tree[s][path] = 1 - side
                low, high = (middle, high) if side else (low, middle)
                path += str(side)

    def access(self, op, address, size):
        out = []
        self.counts["stores" if op else "loads"] += 1
        for line in self.touched(address, size):
            s = line % self.n_sets
            hit = line in self.ways[s]
            self.counts[f"{'store' if op else 'load'}_line_{'hits' if hit else 'misses'}"] += 1
            start = max(address, line * self.line_bytes)
            part = (start, min(address + size, (line + 1) * self.line_bytes) - start, 1)
            if not hit and op and not self.allocate:
                out.append(part)
                self.time += 1
                continue
            if not hit:
                way = self.victim(s)
                old = self.ways[s][way]
                if old is not None:
                    self.counts["evictions"] += 1
                    if old in self.dirty:
                        self.counts["writebacks"] += 1
                        out.append((old * self.line_bytes, self.line_bytes, 1))
                        self.dirty.discard(old)
                out.append((line * self.line_bytes, self.line_bytes, 0))
                self.ways[s][way] = line
                if way in self.fill_order[s]:
                    self.fill_order[s].remove(way)
                self.fill_order[s].append(way)
                self.insert(s, way)
            else:
                self.prediction[s][self.ways[s].index(line)] = 0
            self.touch(s, self.ways[s].index(line))
            if op and self.back:
                self.dirty.add(line)
            elif op:
                out.append(part)
            self.time += 1
        return out

    def run(self, op, address, size):
        lines = [line for a, n in zip(address, size, strict=True) for line in self.touched(a, n)]
        self.future = {}
        for t, line in enumerate(lines):
            self.future.setdefault(line, []).append(t)
        out = []
        for i, access in enumerate(zip(op, address, size, strict=True)):
            out += [(*transaction, i) for transaction in self.access(*access)]
        self.counts["resident_at_end"] = sum(line is not None for ways in self.ways for line in ways)
        self.counts["dirty_at_end"] = len(self.dirty)
        return out
