"""`ew.orders.bench`: our inference and the libraries', in one process."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgewatt.checks.peer import PEERS, Float32, MissingPeer, Step, layers_of, table_of
from edgewatt.orders.timed import fastest_order
from hwmodel.processor.inference import CompiledInference, compile_inference
from hwmodel.processor.limits import cpu_name
from traces.base.checks import whole_number
from traces.base.errors import InputError, shown
from traces.base.progress import Progress
from traces.base.units import in_one_unit
from traces.networks.network import Network

OURS, AGAIN, CSR = "edgewatt", "edgewatt, again (A/A)", "edgewatt, target after target"
AA_LIMIT = 0.10
TOLERANCE = 1e-4
LEAST_ROUNDS = 11
WARM_UP = 3


@dataclass(frozen=True, eq=False)
class Rounds:
    """seconds[name]: float64[rounds], thread CPU seconds of one call, one value per round; same length for all.

    other_cpu: CPU time that the process spent outside the measuring thread, as a share of what was measured.
    """

    seconds: Mapping[str, npt.NDArray[np.float64]]
    other_cpu: float

    def median_s(self, name: str) -> float:
        return float(np.median(self.seconds[name]))

    def ratio(self, name: str, to: str) -> float:
        return float(np.median(self.seconds[name] / self.seconds[to]))

    def spread(self, name: str, to: str) -> tuple[float, float]:
        low, high = np.percentile(self.seconds[name] / self.seconds[to], [10, 90])
        return float(low), float(high)


@contextmanager
def one_core() -> Iterator[None]:
    """Pin the process to one of its cores (the last one) for as long as it lasts, where that can be done."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def measure(
    steps: Mapping[str, Step],
    *,
    rounds: int = LEAST_ROUNDS,
    sample_s: float = 0.005,
    seed: int = 0,
    progress: Progress | None = None,
) -> Rounds:
    """Time every step once a round, in a new random order; a sample is as many calls as fill `sample_s`."""
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < LEAST_ROUNDS:
        raise InputError(f"rounds must be an integer of at least {LEAST_ROUNDS}, not {shown(rounds)}")
    if not 0 < sample_s < 60:
        raise InputError(f"sample_s is {sample_s}: a number of seconds above 0 and below 60 is needed")
    names = list(steps)
    calls = {name: _calls(steps[name], sample_s) for name in names}
    seconds = {name: np.empty(rounds) for name in names}
    rng = np.random.default_rng(seed)
    process, measured = time.process_time(), 0.0
    for number in range(rounds):
        for position in rng.permutation(len(names)).tolist():
            name = names[position]
            step, repeat = steps[name], range(calls[name])
            step()  # brings its own data back into the caches
            started = time.thread_time()
            for _ in repeat:
                step()
            seconds[name][number] = (time.thread_time() - started) / len(repeat)
            measured += seconds[name][number] * (len(repeat) + 1)
        if progress:
            progress(number + 1, rounds, "rounds")
    spent = time.process_time() - process
    return Rounds(seconds, max(0.0, spent / measured - 1))


def _calls(step: Step, sample_s: float) -> int:
    for _ in range(WARM_UP):
        step()
    least = float("inf")
    for _ in range(WARM_UP):
        started = time.thread_time()
        step()
        least = min(least, time.thread_time() - started)
    return max(1, min(100_000, round(sample_s / max(least, 1e-7))))


@dataclass(frozen=True)
class Row:
    """One way to compute the network.

    times: how many times longer than ours, the median of the rounds' ratios; low and high: their 10th and 90th
    percentiles. gflops: two operations per connection and vector, zeros of dense products not counted.
    """

    name: str
    microseconds: float
    times: float
    low: float
    high: float
    gflops: float
    largest_error: float


@dataclass(frozen=True)
class BenchComparison:
    """What `bench` measured. aa: ratio of ours to itself; steady: it is within 10 %. missing: peer -> reason."""

    network: str
    connections: int
    batch: int
    order: str
    lanes: int
    simd: str
    runs: int
    stream_bytes: int
    arena_bytes: int
    rows: list[Row]
    missing: dict[str, str]
    aa: float
    other_cpu: float
    machine: str
    date: str
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def steady(self) -> bool:
        """Whether the A/A control is within 10 %: other ratios can be believed."""
        return abs(self.aa - 1) <= AA_LIMIT

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "steady": self.steady}


def bench(
    network: Network,
    *,
    batch: int = 128,
    order: Any = "time",
    lanes: int | None = None,
    peers: Sequence[str] | None = None,
    rounds: int = LEAST_ROUNDS,
    inputs: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> BenchComparison:
    """Time inference of one batch by our kernel and by every peer that is present, by thread CPU time on one core.

    order: 'time': the fastest of `fastest_order`, with its lanes; None: the network's own; or an Ordering or
    int[W]. lanes: None: those of the fastest (one vector: 1). peers: names of PEERS; None: all. Absent ones are skipped
    and named with the reason. rounds: at least 11, each in a new random order.
    inputs: float[batch, I]; None: the network's batch repeated, or random numbers. All results are compared with ours
    on every neuron. Every peer, ours too, starts from its inputs where and how it reads them ([neuron, vector]).

    Returns a BenchComparison. Raises InputError for a network without layers, a wrong peer name, or
    results that differ.
    """
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= 1 << 20:
        raise InputError(f"batch must be an integer from 1 to {1 << 20}, not {shown(batch)}")
    if lanes is not None:
        whole_number(lanes, "lanes", most=1 << 14)
    layers_of(network)  # refuses what libraries cannot compute, before anything is measured
    vectors = _vectors(network, batch, inputs, seed)
    with one_core():
        chosen, name = order, "as given"
        if isinstance(order, str):
            if order != "time":
                raise InputError(f"order is 'time', None, an Ordering or int[W], not {shown(order)}")
            name = "fastest timed"
            if batch == 1:
                chosen, lanes = None, 1
            else:
                fastest = fastest_order(network, batch=batch, lanes=(lanes,) if lanes else (32, 64, 128))
                chosen, lanes = fastest.ordering, fastest.lanes
                shape = fastest.ordering.parameters.items()
                name += ": " + ", ".join([fastest.ordering.method, *(k if v is True else f"{k} {v}" for k, v in shape)])
                name += "" if fastest.complete else " (of the candidates that the time limit left)"
        elif order is None:
            name = "the network's own"
        lanes = lanes or min(128, batch)
        ours = compile_inference(network, chosen, lanes=lanes)
        again = compile_inference(network, chosen, lanes=lanes)
        plain = compile_inference(network, lanes=min(128, batch))
        steps: dict[str, Step] = {}
        for title, made in ((OURS, ours), (AGAIN, again), (CSR, plain)):
            steps[title] = packed_step(made, vectors)
        expected = ours.neurons(vectors)
        errors = {title: 0.0 for title in steps}
        errors[CSR] = float(np.abs(plain.neurons(vectors) - expected).max())
        their_steps, missing, their_errors = peer_steps(network, vectors, peers, expected)
        steps, errors = steps | their_steps, errors | their_errors
        with one_thread():
            measured = measure(steps, rounds=rounds, seed=seed, progress=progress)
    work = 2 * network.n_connections * batch
    rows = []
    for title in steps:
        took, times = measured.median_s(title), measured.ratio(title, OURS)
        rows.append(Row(title, took * 1e6, times, *measured.spread(title, OURS), work / took / 1e9, errors[title]))
    return BenchComparison(
        network.name, network.n_connections, batch, name, lanes, ours.simd, ours.runs, ours.stream_bytes,
        ours.arena_bytes, sorted(rows, key=lambda r: r.microseconds), missing,
        measured.ratio(AGAIN, OURS), measured.other_cpu, f"{platform.machine()} {cpu_name()}",
        time.strftime("%Y-%m-%d"), {"seconds": {title: measured.seconds[title].tolist() for title in steps}},
    )  # fmt: skip


def peer_steps(
    network: Network, vectors: Float32, peers: Iterable[str] | None, expected: Float32
) -> tuple[dict[str, Step], dict[str, str], dict[str, float]]:
    """Return the steps of the peers that are here, why the others are not, and the largest error of each step.

    peers: None: all, those that cannot be loaded among the absent ones. expected: float32[B, N]. Raises InputError for
    a wrong name and where a peer computes something else.
    """
    layers, row = layers_of(network)
    steps: dict[str, Step] = {}
    missing: dict[str, str] = {}
    errors: dict[str, float] = {}
    for peer in PEERS if peers is None else peers:
        values = table_of(network, row, vectors)
        try:
            steps[peer] = PEERS[peer].item(layers, values)
        except (InputError, MissingPeer) as reason:
            if isinstance(reason, InputError) and peers is not None:
                raise
            missing[peer] = str(reason)
            continue
        with one_thread():
            steps[peer]()
        errors[peer] = _checked(peer, network, values[row].T, expected)
    return steps, missing, errors


def packed_step(made: CompiledInference, vectors: Float32) -> Step:
    packed = made.pack(vectors)
    return lambda: made.run(packed)


def _vectors(network: Network, batch: int, inputs: Any, seed: int) -> Float32:
    if inputs is not None:
        given = np.asarray(inputs, np.float32)
        if given.shape != (batch, len(network.inputs)):
            raise InputError(f"inputs have shape {given.shape}, expected ({batch}, {len(network.inputs)})")
        return given
    if network.batch is not None and len(network.batch):
        return np.resize(network.batch, (batch, len(network.inputs)))
    return np.random.default_rng(seed).random((batch, len(network.inputs)), np.float32)


def _checked(peer: str, network: Network, values: Float32, expected: Float32) -> float:
    error = float(np.abs(values[:, network.touched] - expected[:, network.touched]).max())
    if not error <= TOLERANCE * max(1.0, float(np.abs(expected).max())) * max(1.0, float(network.depth.max())):
        raise InputError(f"{peer} and edgewatt differ by up to {error:.3g} on {network.name}: nothing was timed")
    return error


def one_thread() -> Any:
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    return threadpool_limits(1)


def summary(result: BenchComparison) -> tuple[tuple[str, ...], Sequence[tuple[str, ...]]]:
    unit, times = in_one_unit([row.microseconds for row in result.rows], 1e-6, "s")
    rows = [
        (row.name, time, f"{row.times:.2f} ({row.low:.2f} to {row.high:.2f})", f"{row.gflops:.1f}")
        for row, time in zip(result.rows, times, strict=True)
    ]
    return ("what", unit, "times ours", "GFLOP/s"), rows


def configured(source: Path, overrides: list[str]) -> tuple[Network, Any]:
    from edgewatt.runs.compute import Computation
    from edgewatt.runs.memo import Memo
    from edgewatt.runs.plan import load_sweep

    point = load_sweep(source, overrides).points[0]
    if point.order is None:
        raise InputError(f"{source}: it plays a recorded trace, which holds no network")
    steps = Computation(point, Memo())
    return steps["network"], steps["tuple_order"]["edges"]
