"""Tuple orders: searches on Gaussian layers, and the best known totals of the reference data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import edgewatt as ew
from bench.harness import Case, reference


def gaussian(rows: int, columns: int, density: float, seed: int) -> sp.csr_matrix:
    dense = np.random.default_rng(seed).normal(0, 0.01, (rows, columns)).astype(np.float32)
    return sp.csr_matrix(dense * (np.abs(dense) > np.quantile(np.abs(dense), 1 - density)))


def search(matrix: sp.csr_matrix, best: int = 0, **kind: Any) -> Callable[[], dict[str, Any]]:
    """Return a call that orders a matrix's tuples and says its ones, in per cent above the best known where given."""

    def work() -> dict[str, Any]:
        ones = ew.order_tuples(matrix, bound=False, **kind).ones
        return {"ones": ones, **({"above best, %": round(100 * ones / best - 100, 2)} if best else {})}

    return work


def cases() -> Iterator[Case]:
    layer = gaussian(20, 1500, 0.1, 11)
    for value_format in ("fp16", "int8", "fp32"):
        for stride in (32, 128, "row"):
            name = f"{value_format}, stride {stride}, effort 0.2"
            yield Case(name, search(layer, value_format=value_format, stride=stride, effort=0.2), layer.nnz, "tuple")
    for method in ("greedy", "sort", "popcount"):
        yield Case(method, search(layer, value_format="fp16", stride=128, method=method), layer.nnz, "tuple")
    large = gaussian(512, 5494, 0.5, 3)
    yield Case(
        "1.4 million tuples, effort 0", search(large, value_format="fp16", stride=128, effort=0), large.nnz, "tuple"
    )
    facts = reference("cdr", "best_known.json")
    for name, about in json.loads(facts.read_text()).items() if facts else ():
        with np.load(facts.with_name(f"{name}.npz")) as z:  # type: ignore[union-attr]
            matrix = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))
        for value_format, known in about["formats"].items():
            for stride, best in known["stride"].items():
                kind = {"value_format": value_format, "stride": stride if stride == "row" else int(stride)}
                work = search(matrix, sum(best["best_joint"]), **kind)
                yield Case(f"{name}, {value_format}, stride {stride}", work, matrix.nnz, "tuple", rounds=1)
