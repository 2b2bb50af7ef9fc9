"""Figures of the pages about networks and orders of their work."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from drawing import Picture, bars, lines

import edgewatt as ew
from traces.generators.networks import uniform_layers

METHODS = ("two-optimal", "output-stationary", "learned")


def tiny() -> ew.Network:
    """Return the network of the pages' examples: three inputs, three hidden neurons, two outputs."""
    return ew.Network(
        sources=[0, 1, 0, 2, 1, 2, 3, 4, 4, 5],
        targets=[3, 3, 4, 4, 5, 5, 6, 6, 7, 7],
        n_neurons=8,
        inputs=[0, 1, 2],
        outputs=[6, 7],
        weights=[0.5, -1.0, 2.0, 0.25, 1.0, -0.5, 1.5, 1.0, -2.0, 0.75],
        activation="relu",
        batch=[[1.0, 2.0, 4.0]],
    )


def networks() -> str:
    """Draw the example with its weights and the values of its neurons."""
    from traces.networks.forward import forward

    network = tiny()
    values = forward(network)[0]
    picture = Picture("Ten connections with their weights, and the values of a forward pass", 300)
    at = {i: (90 + 270 * (i // 3), 80 + 80 * (i % 3) + (40 if i > 5 else 0)) for i in range(8)}
    assert network.weights is not None
    for k, (a, b, weight) in enumerate(zip(network.sources, network.targets, network.weights, strict=True)):
        (x, y), (u, v) = at[int(a)], at[int(b)]
        picture.line([(x + 22, y), (u - 22, v)])
        share = 0.3 if k % 2 else 0.7
        picture.text(x + share * (u - x), y + share * (v - y) - 6, f"{weight:g}", "t", 12, "middle")
    for i, (x, y) in at.items():
        picture.dot(x, y, ("c0", "c4", "c1")[i // 3 if i < 6 else 2], 19)
        picture.text(x, y + 5, i, "w", 15, "middle")
        picture.text(x, y - 25, f"{values[i]:g}", "s", 13, "middle")
    for x, words in ((90, "inputs"), (360, "hidden, relu"), (630, "outputs")):
        picture.text(x, 286, words, anchor="middle")
    return str(picture)


def orderings() -> str:
    """Draw three orders of the example: the step at which each connection is processed."""
    network = tiny()
    picture = Picture("Three orders of ten connections: the step of each (row: target)", 262)
    for n, method in enumerate(("two-optimal", "by-source", "depth-first")):
        order = ew.order(network, method, memory=4)
        left, top, side = 44 + 228 * n, 88, 29
        picture.text(left, 62, method, "t")
        total = ew.count_io(network, order, memory=4).total
        picture.text(left, top + 5 * side + 22, f"{total} I/Os with a memory of 4")
        for column in range(6):
            picture.text(left + side * (column + 0.5), 82, column, size=11, anchor="middle")
        for row in range(5):
            picture.text(left - 6, top + side * (row + 0.65), row + 3, size=11, anchor="end")
            for column in range(6):
                picture.rect(left + side * column + 1, top + side * row + 1, side - 2, side - 2, "o", 3)
        for step, edge in enumerate(order.edges):
            x, y = left + side * int(network.sources[edge]), top + side * (int(network.targets[edge]) - 3)
            picture.rect(x + 1, y + 1, side - 2, side - 2, "c0", 3)
            picture.text(x + side / 2, y + 19, step + 1, "w", 13, "middle")
    return str(picture)


def layers() -> ew.Network:
    """Return a random network of 100 neurons in four layers."""
    return uniform_layers([32, 32, 32, 4], 0.3, seed=1)


def io_model() -> str:
    """Draw I/Os over the size of fast memory, and where they must lie."""
    network = layers()
    sizes = [4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48]
    bounds = ew.io_bounds(network)
    found = {
        policy: [
            (m, ew.count_io(network, ew.order(network, "two-optimal", memory=m), memory=m, policy=policy).total)
            for m in sizes
        ]
        for policy in ("min", "lru", "rr")
    }
    return lines(
        f"One order under three policies: {network.n_connections} connections, {network.n_neurons} neurons",
        {**found, "no order does fewer*": [(m, bounds.lower_total) for m in sizes]},
        "values that fit into fast memory, M",
        "I/Os",
    )


def bounds() -> str:
    """Draw both lower bounds and an order."""
    network = layers()
    sizes = [3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16]
    order = [(m, ew.count_io(network, ew.order(network, "learned", memory=m), memory=m).total) for m in sizes]
    return lines(
        "What is proved, and what an order needs",
        {
            "the order 'learned'": order,
            "lower bound": [(m, ew.orders.lower_bound(network, m).total) for m in sizes],
            "Theorem 1*": [(m, ew.io_bounds(network).lower_total) for m in sizes],
        },
        "values that fit into fast memory, M",
        "I/Os",
    )


def reordering_engine() -> str:
    """Draw what the constructions reach on the shipped digits network."""
    network = ew.load("configs/examples/networks/digits_small.npz")
    methods = ("two-optimal", "by-source", "depth-first", "tiles", "blocks", "output-stationary", "learned")
    found = {m: ew.count_io(network, ew.order(network, m, memory=113), memory=113).total for m in methods}
    least = ew.io_bounds(network).lower_total
    return bars(
        "The constructions on a trained network of 8,000 connections",
        found,
        "I/Os of an inference, M = 113, policy min",
        mark=(f"no order does fewer than {least:,}", least),
    )


def learned_orders() -> str:
    """Draw three one-pass orders over the size of fast memory."""
    network = layers()
    sizes = [4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48]
    found = {
        m: [(s, ew.count_io(network, ew.order(network, m, memory=s), memory=s).total) for s in sizes] for m in METHODS
    }
    least = ew.io_bounds(network).lower_total
    return lines(
        "Learned scores against two fixed rules",
        {**found, "no order does fewer*": [(s, least) for s in sizes]},
        "values that fit into fast memory, M",
        "I/Os",
    )


def tuple_orders() -> str:
    """Draw the bits that cross the wires of one row of tuples, before and after."""
    row = scipy.sparse.random(1, 64, density=0.25, format="csr", random_state=3, dtype="float32")
    found = ew.order_tuples(row, value_format="fp16", stride=16)
    picture = Picture("16 numbers (fp16) as Base+XOR sends them: dark squares are ones", 320)
    halves = row.data.astype(np.float16).view(np.uint16)
    for n, (name, order) in enumerate((("as stored", np.arange(16)), ("reordered", found.positions))):
        words = halves[order]
        sent = np.concatenate([words[:1], words[1:] ^ words[:-1]])
        left, side = 40 + 344 * n, 12.5
        picture.text(left, 60, f"{name}: {int(np.bitwise_count(sent).sum())} ones before inversion", "t")
        picture.bits([[int(word) >> (15 - bit) & 1 for bit in range(16)] for word in sent], left, 72, side)
        for i in range(16):
            picture.text(
                left + 16 * (side + 1) + 6, 72 + (side + 1) * i + 10, f"{float(words[i].view(np.float16)):.3f}", size=11
            )
    picture.text(40, 308, "rows: numbers one after the other; columns: sign, exponent, mantissa", size=12)
    return str(picture)


def tuple_efforts() -> str:
    """Draw what effort buys: the means of three matrices measured in docs/performance/wires.md, not measured here."""
    microseconds = [1.67, 3.05, 4.59, 5.83, 9.18, 15.07, 30.88, 58.6, 117.86, 227.38]
    more = [3.29, 2.64, 2.11, 1.78, 1.29, 0.78, 0.31, 0, -0.23, -0.43]
    front = list(zip(np.log10(microseconds), more, strict=True))
    named = {"fast": front[2:3], "default": front[7:8], "best": front[9:]}
    marks = {name: [(x - 0.02, y - 0.1), (x + 0.02, y + 0.1)] for name, [(x, y)] in named.items()}
    return lines(
        "What the search's effort buys (fp16, stride 128; 0.03, 1 and 4 have names)",
        {"efforts 0 to 4": front, **marks},
        "log10 of microseconds a tuple",
        "% more ones than at effort 1",
    )


FIGURES = {
    "networks": networks,
    "orderings": orderings,
    "io-model": io_model,
    "bounds": bounds,
    "reordering-engine": reordering_engine,
    "learned-orders": learned_orders,
    "tuple-orders": tuple_orders,
    "tuple-efforts": tuple_efforts,
}
