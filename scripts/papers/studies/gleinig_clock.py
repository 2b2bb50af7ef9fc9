"""Gleinig et al. 2023, Figures 7 and 8: time of inference of 128 vectors on the processor at hand.

MKL's sparse products layer by layer, against connection by connection: before Connection Reordering (two-optimal) and
after it (MIN, M = 100). The paper does not say how its program treats partial sums, so both readings are timed: every
connection loads and stores its target (Algorithm 1 as printed), or consecutive connections of one target keep the sum
in registers (runs). Beside them: the fastest order that the cost model knows.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import edgewatt as ew
from papers.clocks import Way, this_processor, times_of
from papers.study import STUDIES, Done, Drawing, Job, Study, StudyTable
from traces.generators.networks import bert_ffn, random_layered, uniform_layers
from traces.networks.network import Network

BASE: dict[str, Any] = {"n_layers": 4, "width": 500, "density": 0.1}
VARIES = {"7a": "density", "7b": "n_layers", "7c": "width", "8": "density"}
POINTS = {"7a": (0.001, 0.01, 0.1), "7b": (2,), "7c": (250,), "8": (0.01,)}
MORE = {"7a": (0.001, 0.01, 0.1, 0.5, 1.0), "7b": (2, 4, 8), "7c": (125, 250, 500, 1000), "8": (0.01, 0.05, 0.1)}
SEEDS = (1, 2, 3, 4, 5)
ITERATIONS = 1000
MEMORY, BATCH = 100, 128
READINGS = ("runs", "literal")


def jobs(full: bool) -> list[dict[str, Any]]:
    """Return a job for each network; with `full` more of them, and ten times the iterations."""
    planned = []
    for panel, xs in (MORE if full else POINTS).items():
        for x in xs:
            network = {VARIES[panel]: x} if panel == "8" else BASE | {VARIES[panel]: x}
            job = {"panel": panel, "x": x, "network": network, "iterations": ITERATIONS * (10 if full else 1)}
            planned += [job | {"seed": s, "processor": this_processor()} for s in SEEDS]
    return planned


def _network(job: Job) -> Network:
    values = (BASE if job["panel"] != "8" else {}) | job["network"]
    if job["panel"] == "8":
        return bert_ffn(values["density"], job["seed"])
    if values["density"] > 0.5:  # where the paper's generator ends
        return uniform_layers([values["width"]] * values["n_layers"] + [1], values["density"], job["seed"])
    return random_layered(values["n_layers"], values["width"], values["density"], job["seed"])


def compute(job: Job) -> dict[str, Any]:
    """Time the two orders in both readings, the fastest order, and MKL."""
    network, seed = _network(job), job["seed"]
    orders = {
        "two-optimal": ew.order(network, "two-optimal", memory=MEMORY),
        "reordered": ew.order(
            network, "connection-reordering", memory=MEMORY, policy="min", iterations=job["iterations"], seed=seed
        ),
    }
    ways = {f"{name}, {how}": Way(order, how) for name, order in orders.items() for how in READINGS}
    fastest = ew.fastest_order(network, batch=BATCH)
    ways["fastest"] = Way(fastest.ordering, "runs", fastest.lanes)
    return times_of(network, ways, ["mkl"], BATCH, seed)


def _groups(done: Done) -> dict[tuple[str, float], list[Any]]:
    groups: dict[tuple[str, float], list[Any]] = {}
    for job, result in done:
        groups.setdefault((job["panel"], job["x"]), []).append(result)
    return groups


def _us(results: list[Any], name: str) -> float | None:
    times = [r["us"][name] for r in results if name in r["us"]]
    return median(times) if times else None


def _ratio(results: list[Any], slow: str, fast: str) -> float | None:
    ratios = [r["us"][slow] / r["us"][fast] for r in results if slow in r["us"]]
    return median(ratios) if ratios else None


def _shown(value: float | None, digits: int = 2) -> str:
    return "not here" if value is None else f"{value:.{digits}f}"


def tables(done: Done) -> list[StudyTable]:
    """Return microseconds and ratios, medians over the networks."""
    names = ("mkl", *(f"{name}, {how}" for how in READINGS for name in ("two-optimal", "reordered")), "fastest")
    heads = ("figure", "x", "networks", *names, "MKL / two-optimal", "MKL / fastest",
             *(f"gain by reordering, {how}" for how in READINGS), "A/A")  # fmt: skip
    rows = []
    for (panel, x), results in _groups(done).items():
        control = [r["aa"] for r in results]
        rows.append((
            panel, f"{VARIES[panel]} {x:g}", len(results), *(_shown(_us(results, name), 1) for name in names),
            _shown(_ratio(results, "mkl", "two-optimal, runs")), _shown(_ratio(results, "mkl", "fastest")),
            *(_shown(_ratio(results, f"two-optimal, {how}", f"reordered, {how}")) for how in READINGS),
            f"{min(control):.2f} to {max(control):.2f}",
        ))  # fmt: skip
    where = "; ".join(dict.fromkeys(f"{job.get('processor', '')}, {r['simd']}, {r['date']}" for job, r in done))
    figures = [
        StudyTable(f"Figure {panel}", (), [], Drawing(panel, VARIES[panel], "microseconds", [
            ("", x, name, time) for x, results in _along(done, panel).items() for name in names
            if (time := _us(results, name)) is not None
        ], log="xy" if VARIES[panel] == "density" else "y"))
        for panel in VARIES
    ]  # fmt: skip
    return [*figures, StudyTable(f"Microseconds of one core for {BATCH} vectors ({where})", heads, rows)]


def _mkl(done: Done) -> tuple[str, str]:
    ratios = {key: _ratio(results, "mkl", "two-optimal, runs") for key, results in _groups(done).items()}
    ours = {key: _ratio(results, "mkl", "fastest") for key, results in _groups(done).items()}
    if None in ratios.values():
        return "MKL is not installed here", "MKL is not installed here"
    return _most(ratios), _most(ours)


def _most(ratios: dict[tuple[str, float], float | None]) -> str:
    """The greatest ratio and where, and the least."""
    values = {key: value for key, value in ratios.items() if value is not None}
    panel, x = max(values, key=lambda key: values[key])
    return (
        f"{values[panel, x]:.1f} times at {VARIES[panel]} {x:g} (Figure {panel}); {min(values.values()):.1f} at least"
    )


def _reordered(done: Done) -> tuple[str, str]:
    words = []
    for how in READINGS:
        ratios = {k: _ratio(r, f"two-optimal, {how}", f"reordered, {how}") for k, r in _groups(done).items()}
        values = [value for value in ratios.values() if value is not None]
        words.append(f"{how}: {min(values):.2f} to {max(values):.2f} times as fast")
    fastest = [
        value for r in _groups(done).values() if (value := _ratio(r, "two-optimal, runs", "fastest")) is not None
    ]
    return "; ".join(words), f"{min(fastest):.2f} to {max(fastest):.2f} times"


def _by_density(done: Done) -> tuple[str, str]:
    """What reordering gains along Figure 7a."""
    words = []
    for how in READINGS:
        gains = ((x, _ratio(r, f"two-optimal, {how}", f"reordered, {how}")) for x, r in _along(done, "7a").items())
        words.append(f"{how}: " + ", ".join(f"{_shown(gain)} at {x:g}" for x, gain in gains))
    return "; ".join(words), ""


def _along(done: Done, panel: str) -> dict[float, list[Any]]:
    """Return the results along a panel's axis, with the baseline that Figure 7a has at 10 %."""
    groups = _groups(done)
    base = {} if panel in ("7a", "8") else {BASE[VARIES[panel]]: groups.get(("7a", BASE["density"]), [])}
    by_x = base | {x: results for (name, x), results in groups.items() if name == panel}
    return {x: results for x, results in sorted(by_x.items()) if results}


def _by_size(done: Done) -> tuple[str, str]:
    """MKL's time over that of the two-optimal order along Figures 7b and 7c."""

    def words(fast: str) -> str:
        return "; ".join(
            f"{VARIES[panel]}: "
            + ", ".join(f"{_shown(_ratio(r, 'mkl', fast), 1)} at {x:g}" for x, r in _along(done, panel).items())
            for panel in ("7b", "7c")
        )

    return words("two-optimal, runs"), words("fastest")


def _dense(done: Done) -> tuple[str, str]:
    """MKL's time over ours on the fully connected network, which takes --full."""
    results = _along(done, "7a").get(1.0)
    if not results:
        return "not run (--full)", ""
    before, ours = (_ratio(results, "mkl", fast) for fast in ("two-optimal, runs", "fastest"))
    return f"{_shown(before)} times", f"{_shown(ours)} times"


def _bert(done: Done) -> tuple[str, str]:
    results = [r for (panel, _), group in _groups(done).items() if panel == "8" for r in group]
    if not results:
        return "not run", ""
    words = []
    for (panel, x), group in _groups(done).items():
        if panel == "8":
            gains = ", ".join(
                f"{how} {_shown(_ratio(group, f'two-optimal, {how}', f'reordered, {how}'))}" for how in READINGS
            )
            words.append(f"density {x:g}: MKL {_shown(_us(group, 'mkl'), 0)} us; reordered against before: {gains}")
    return "; ".join(words), ""


STUDIES.register("gleinig-clock", summary="Figures 7 and 8: time on the processor at hand, against MKL")(
    Study(
        jobs,
        compute,
        tables,
        {
            "mkl": _mkl,
            "reordered": _reordered,
            "by-density": _by_density,
            "by-size": _by_size,
            "dense": _dense,
            "bert": _bert,
        },
        alone=True,
    )
)
