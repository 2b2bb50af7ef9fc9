"""Verdicts on random sweeps against brute force, and how sure they are against an independent Monte Carlo."""

import copy
import random

import numpy as np
import pytest
from oracles.verdict_oracle import cards, certainty

import edgewatt as ew
from edgewatt.results.certainty import SOURCES, by_source
from edgewatt.results.record import Record, content_hash
from edgewatt.results.record_rows import row_of
from edgewatt.results.swept import rows_with_axes
from edgewatt.results.verdict import MATTERS, Measured, gain_of, rank_correlation

TINY = {
    "network": {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}},
    "scratchpad": {"size_bytes": 2048, "stream_bytes": 256},
    "technology": "lop-45nm",
}
TERMS = ("read", "dq_read_static", "scratchpad_read", "multiply_add")  # one of each source


@pytest.fixture(scope="module")
def template():
    (record,) = ew.run(TINY)
    return record.canonical


def made(template, rng, hardware, order, stride, form, seed):
    """Return a record of random energy at these settings."""
    canonical = copy.deepcopy(dict(template))
    config, results = canonical["config"], canonical["results"]
    config["scratchpad"]["size_bytes"], config["encoder"] = hardware
    config |= {"ordering": {"kind": order}, "format": form, "seed": seed}
    sort = {"kind": "sort", "stride": stride, "objective": "joint", "stride_restart": "row"}
    config["stride"] = {"kind": "none"} if stride == "none" else sort
    each = [rng.uniform(1.0, 9.0) * rng.choice((1, 1, 3)) for _ in TERMS]
    ranges = ((0.8, 1.1), (0.9, 1.3), (0.5, 2.0), (0.5, 2.0))
    results["energy_pj"] = {
        "io": each[1], "interface": each[1], "dram": each[0], "onchip": each[2], "compute": each[3], "total": sum(each),
        "terms": {name: {"count": 1, "unit": "", "pj": pj, "low": low * pj, "high": high * pj}
                  for name, pj, (low, high) in zip(TERMS, each, ranges, strict=True)},
    }  # fmt: skip
    results["time_ns"] = rng.uniform(10, 90)
    return Record({**canonical, "hash": content_hash(config)})


def random_sweep(template, rng):
    """Return records of a random grid, every software with every seed, in random order of their settings."""
    hardware = [(size * 1024, encoder) for size in rng.sample((2, 4, 8, 16), rng.randint(1, 3))
                for encoder in rng.sample(("raw", "dbi-dc"), rng.randint(1, 2))]  # fmt: skip
    orders = rng.sample(("two-optimal", "tiles", "auto", "by-source"), rng.randint(2, 4))
    strides = rng.sample(("none", 8, 32), rng.randint(1, 3))
    formats = rng.sample(("fp32", "fp16", "int8"), rng.randint(1, 2))
    seeds = range(rng.choice((1, 1, 3)))
    software = [(o, s, f) for o in orders for s in strides for f in formats if rng.random() < 0.9]
    return [made(template, rng, h, *s, seed) for h in hardware for s in software for seed in seeds]


def verdict_on(records):
    rows, measured = [row_of(record) for record in records], Measured()
    for number, (record, row) in enumerate(zip(records, rows, strict=True)):
        measured.take(record, row, number)
    return measured.verdict(rows, rows_with_axes(rows, [record.config for record in records]))


def point_of(record):
    config = record.config
    stride = "none" if config["stride"]["kind"] == "none" else f"sort {config['stride']['stride']}"
    return (
        (config["scratchpad"]["size_bytes"], config["encoder"]), config["ordering"]["kind"], stride, config["format"],
        config["seed"], record.results["energy_pj"]["total"], record.results["time_ns"],
    )  # fmt: skip


def test_cards_of_100_random_sweeps_are_those_of_brute_force(template):
    rng, seen = random.Random(4), 0
    for _ in range(100):
        records = random_sweep(template, rng)
        expected = cards([point_of(record) for record in records])
        expected = {where: each for where, each in expected.items()
                    if len({p[1:4] for p in map(point_of, records) if p[0] == where}) > 1}  # fmt: skip
        verdict = verdict_on(records)
        assert len(verdict.cards) == len(expected)
        for card, (best, gains) in zip(verdict.cards, expected.values(), strict=True):
            choice = card.choice
            assert (choice.order, choice.stride, choice.format) == best
            shown = {name: gain for name, gain in card.gains.items() if name != "first order"}
            assert set(shown) == set(gains)
            for name, (energy, time) in gains.items():
                assert shown[name].energy == pytest.approx(energy, abs=1e-12)
                assert shown[name].time == pytest.approx(time, abs=1e-12)
                seen += 1
    assert seen > 500


def test_effects_compare_points_that_differ_in_one_axis_alone(template):
    rng = random.Random(5)
    for _ in range(40):
        records = random_sweep(template, rng)
        points = [point_of(record) for record in records]
        place = {"ordering": 1, "format": 3}
        for effect in verdict_on(records).effects:
            if effect.axis not in place:
                continue
            k = place[effect.axis]
            changes = [
                a[5] / b[5] - 1
                for a in points if a[k] == effect.value
                for b in points if b[k] == effect.first and a[:k] + a[k + 1 : 5] == b[:k] + b[k + 1 : 5]
            ]  # fmt: skip
            assert effect.pairs == len(changes)
            assert effect.energy == pytest.approx((float(np.median(changes)), min(changes), max(changes)))


def test_certainty_is_that_of_an_independent_monte_carlo(template):
    rng, worst = random.Random(6), 0.0
    for _ in range(25):
        records = random_sweep(template, rng)
        verdict = verdict_on(records)
        for card in verdict.cards[:2]:
            mine = [r for r in records if len(verdict.cards) == 1 or _in(card, r)]
            software = list(dict.fromkeys(point_of(r)[1:4] for r in mine))
            sums = np.stack([
                np.mean([by_source(r.results["energy_pj"]) for r in mine if point_of(r)[1:4] == s], axis=0)
                for s in software
            ])  # fmt: skip
            one = software.index((card.choice.order, card.choice.stride, card.choice.format))
            base = software.index((card.baseline.order, card.baseline.stride, card.baseline.format))
            holds, sure, low, high = certainty(sums, one, base)
            worst = max(worst, abs(card.holds - holds))
            if gain := card.gains.get("all"):
                worst = max(worst, abs(gain.sure - sure), abs(gain.low - low), abs(gain.high - high))
    assert worst < 0.01


def _in(card, record):
    return f"{record.config['scratchpad']['size_bytes'] // 1024} KiB" in card.hardware and (
        ("raw" not in card.hardware and "dbi" not in card.hardware) or record.config["encoder"] in card.hardware
    )


def test_a_gain_whose_sign_the_ranges_turn_is_not_decided():
    one, other = np.zeros((len(SOURCES), 3)), np.zeros((len(SOURCES), 3))
    one[0], one[2] = (6, 6, 6), (3.9, 1.95, 7.8)  # less DRAM, more on chip
    other[0], other[2] = (8, 8, 8), (2, 1, 4)
    gain = gain_of(one, other, (1.0, 1.0))
    assert gain.energy < 0 and not gain.decided and "not decided" in gain.words
    assert 0.5 < gain.sure < 1
    assert gain_of(other, other, (1.0, 1.0)).words == "irrelevant (+0.0 .. +0.0 %)"


def test_an_order_that_changes_little_is_irrelevant(template):
    rng = random.Random(7)
    records = [made(template, rng, (2048, "raw"), order, "none", "fp32", 0) for order in ("two-optimal", "auto")]
    for record, factor in zip(records, (1.0, 1 - 0.9 * MATTERS), strict=True):
        for term, pj in zip(TERMS, (4, 3, 2, 1), strict=True):
            record.results["energy_pj"]["terms"][term] |= {"pj": factor * pj, "low": factor * pj, "high": factor * pj}
    (card,) = verdict_on(records).cards
    assert not card.order_matters and "irrelevant" in " ".join(card.sentences())


def test_rank_correlation_has_mean_ranks_for_ties():
    from scipy.stats import spearmanr

    a, b = [1, 2, 2, 3, 9, 4], [3, 1, 4, 4, 9, 0]
    assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)
