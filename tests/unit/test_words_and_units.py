"""What people write and read: sizes with units, names in any case, engineering notation, keys at the wrong place."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from traces.base.document import ConfigError
from traces.base.errors import InputError
from traces.base.units import duration, energy, engineering, in_one_unit, significant, size_in_bytes

pytestmark = pytest.mark.application

BASE: dict[str, Any] = {
    "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}},
    "fast_memory": {"size": 8},
    "caches": [{"size_bytes": 512, "ways": 2}],
}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *((text, 8192) for text in ("8192", "8 KiB", "8KiB", "8kib")),
        ("1.5 MiB", 3 << 19), ("64 kB", 64000), ("2g", 2 * 10**9),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "8 KiX", "-1 KiB", "0.3 B", "1e3"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a (size|whole number)"):
        size_in_bytes(text)


@given(st.integers(1, 10**15), st.integers(1, 5))
def test_engineering_notation_keeps_the_value(value: int, digits: int) -> None:
    number, unit = engineering(value * 1e-12, "J", digits).split(" ")
    scale = {"p": 1, "n": 1e3, "µ": 1e6, "m": 1e9, "": 1e12, "k": 1e15}[unit[:-1]]
    assert float(number) * scale == pytest.approx(value, rel=0.5001 * 10.0 ** (1 - digits))
    assert 1 <= float(number) < 1000 or value * 1e-12 >= 999


def test_engineering_notation() -> None:
    assert energy(105e6) == "105 µJ" and energy(104_000e3) == "104 µJ" and energy(999.96) == "1.00 nJ"
    assert duration(49_600) == "49.6 µs" and engineering(None, "J") == "-" and energy(0.0) == "0 J"
    assert significant(-1234.4) == "-1234"
    assert in_one_unit([1204e3, 739e3, None], 1e-12, "J") == ("µJ", ["1.20", "0.739", "-"])


def test_sizes_and_names_as_people_write_them() -> None:
    plain = ew.config.load_sweep(
        {**BASE, "caches": [{"size_bytes": 8192, "ways": 4, "policy": "plru"}], "encoder": "dbi-dc"}
    )
    meant = ew.config.load_sweep(
        {**BASE, "caches": [{"size_bytes": "8KiB", "ways": 4, "policy": "PLRU"}], "encoder": "DBI-DC",
         "formats": "FP32", "orderings": ["Two-Optimal"], "dram": {"part": "LPDDR4-3200"}}
    )  # fmt: skip
    assert [point.hash for point in meant.points] == [point.hash for point in plain.points]
    swept = ew.config.load_sweep(
        {"base": BASE, "grid": {"caches": [[{"size_bytes": "1 KiB"}], [{"size_bytes": "2 KiB"}]]}}
    )
    assert [point.config["caches"][0]["size_bytes"] for point in swept.points] == [1024, 2048]
    with pytest.raises(ConfigError, match="expected a whole number"):
        ew.config.load_sweep({**BASE, "caches": [{"size_bytes": "8 KiX"}]})


def test_a_key_at_the_wrong_place_says_where_it_belongs() -> None:
    places = {
        "time_limit_s": "search.time_limit_s", "time_limit": "search.time_limit_s", "part": "dram.part",
        "curve": "fast_memory.curve", "--objective": "search.objective",
    }  # fmt: skip
    for key, place in places.items():
        with pytest.raises(ConfigError, match="unknown key") as caught:
            ew.config.load_sweep({**BASE, key: 1})
        assert f"did you mean '{place}'" in str(caught.value), str(caught.value)


def test_a_configuration_given_as_a_network_is_named(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("network: {}")
    with pytest.raises(InputError, match=r"this is a configuration, no network: `edgewatt run "):
        ew.load(tmp_path / "my.yaml")


def test_measured_times_have_prefixes(tmp_path: Path) -> None:
    scipy.sparse.save_npz(tmp_path / "w.npz", scipy.sparse.random(30, 20, density=0.2, random_state=0))
    command = ["order", str(tmp_path / "w.npz"), "-M", "9", "-m", "two-optimal", "--objective", "time"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert re.search(r"of 64 vectors takes [\d.]+ [nµm]s, target after target \(CSR\) [\d.]+ [nµm]s: ", said)


def test_no_prefix_is_written_by_hand() -> None:
    """Every energy and time that people read goes through `traces.base.units`."""
    by_hand = re.compile(r"\} ?([pnuµm]J|[nuµm]s|[kM]B)\b|\"[ ]?([nuµ]J|[nuµ]s|kB)\"")
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for folder in ("cli", "evaluation", "operators", "orders", "pages", "bench", "runs", "results")
        for path in (Path(__file__).parents[2] / "edgewatt" / folder).rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if by_hand.search(line) and path.name != "swept.py"
    ]
    assert not found, "\n".join(found)


def test_gap_is_per_cent_in_every_table(tmp_path: Path) -> None:
    from oracles.theory import dense_layers

    from traces.readers.native import save

    save(dense_layers([12, 10, 8]), tmp_path / "net.npz")
    file = str(tmp_path / "net.npz")
    done = CliRunner().invoke(app, ["order", file, "-m", "by-source", "--memory", "7", "--json", str(tmp_path / "o")])
    share = json.loads((tmp_path / "o").read_text())["gap"]
    assert f"gap: {100 * share:.1f} % to" in done.output, done.output


def test_every_cache_level_and_the_total_energy_are_shown(tmp_path: Path) -> None:
    config = {**BASE, "caches": [{"size_bytes": 256, "ways": 2}, {"size_bytes": 2048, "ways": 4}]}
    (tmp_path / "c.json").write_text(json.dumps(config))
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    done = CliRunner().invoke(app, ["run", str(tmp_path / "c.yaml"), "-o", str(tmp_path / "r")])
    assert done.exit_code == 0, done.output
    assert "L2" in done.output and "hit" in done.output and "total" in done.output
    (record,) = ew.results.load_records(tmp_path / "r")
    level = record.results["cache"][1]
    assert f"{100 * level['hits'] / (level['hits'] + level['misses']):.1f}" in done.output
    assert energy(record.results["energy_pj"]["total"]).split(" ")[0] in done.output
