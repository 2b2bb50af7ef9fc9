"""Every mistake in a configuration is named with file, line, column and, where possible, what was meant."""

from pathlib import Path

import pytest

from edgewatt.config.loading import changes_of, complete, read_with_paths
from edgewatt.runs.plan import load_sweep
from traces.base import schema
from traces.base.document import ConfigError
from traces.base.schema import known_keys

GOOD = """\
network: {generate: {kind: random-layered, n_layers: 3, width: 8, density: 0.5}}
orderings: [two-optimal, {kind: random-topological}]
fast_memory: {size: 10}
"""


def load_run(file: object, overrides: tuple[str, ...] | list[str] = ()):
    document = read_with_paths(str(file))
    document.apply(changes_of(overrides, document))
    return complete(document)[0]


def problems(tmp_path: Path, text: str, overrides: tuple[str, ...] = ()) -> list[str]:
    file = tmp_path / "run.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_sweep(file, overrides)
    return str(caught.value).replace(f"{tmp_path}/", "").splitlines()


def test_good(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(GOOD)
    run = load_run(file, ["fast_memory.size=1e2", "strides=[none, 8, {kind: greedy, stride: row}]", "formats=fp16"])
    assert run.fast_memory.size == 100
    assert [ordering.kind for ordering in run.orderings] == ["two-optimal", "random-topological"]
    assert [stride.kind for stride in run.strides] == ["none", "sort", "greedy"]
    assert run.formats == ["fp16"]


def test_all_problems_at_once(tmp_path: Path) -> None:
    (tmp_path / "n.npz").write_bytes(b"x")
    text = """\
network: {file: n.npz}
orderings: [two-optimal, {kind: by-sauce}]
formats: [fp32, fp17, 3]
fast_memory: {size: 2, policy: lur}
cashes: []
caches:
  - {size_bytes: "32768", wayz: 8}
  - {size_bytes: 1000}
engine: {accesses_per_ns: fast}
timing: yes
seed: 1.5
"""
    assert problems(tmp_path, text) == [
        "run.yaml:2:33: unknown ordering 'by-sauce' (did you mean 'by-source'?)",
        "run.yaml:3:17: unknown number format 'fp17' (did you mean 'fp16'?)",
        "run.yaml:3:23: expected text, not 3",
        "run.yaml:4:21: must be at least 3, not 2",
        "run.yaml:4:32: 'policy' cannot be 'lur' (did you mean 'lru'?)",
        "run.yaml:5:1: unknown key 'cashes' (did you mean 'caches'?)",
        "run.yaml:7:18: expected a whole number, not the text '32768' (remove the quotes)",
        "run.yaml:7:27: unknown key 'wayz' (did you mean 'ways'?)",
        "run.yaml:8:5: cache size_bytes 1000 is not a multiple of line_bytes 64",
        "run.yaml:9:27: expected a number, not the text 'fast'",
        "run.yaml:10:9: 'timing' cannot be 'yes' (known: replay, system)",
        "run.yaml:11:7: expected a whole number, not 1.5",
    ]


def test_an_unknown_key_names_all_that_are_known(tmp_path: Path) -> None:
    """Those that the file has, too."""
    (said,) = problems(tmp_path, GOOD.replace("{size: 10}", "{size: 10, wxyz: 1}"))
    assert said.startswith("run.yaml:3:25: unknown key 'wxyz' (known: curve, pinning, policy, size)"), said


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("network.file=absent.npz", "no such file"),
        ("fast_memory.sise=3", "-s fast_memory.sise=3: unknown key 'sise' (did you mean 'size'?)"),
        ("fast_memory.size", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
        ("caches=[l1-99k]", "unknown shipped cache file 'l1-99k'"),
        ("system=nonesuch", "unknown shipped systems file 'nonesuch'"),
        ("system=3", "expected the name of a file under configs/systems"),
        ("bus=[1]", "expected a mapping, not a list"),
        ("orderings=[]", "the list is empty"),
        ("orderings={kind: 3}", "expected the name of one ordering"),
        ("orderings={kind: two-optimal, iterations: 3}", "unknown key 'iterations'"),
        ("encoder=dbi-dc+base-xor", "encoder"),
        ("dram.part=lpddr9", "lpddr9"),
        ("network.prune={density: 0.5, n_connections: 3}", "give either density or n_connections"),
        ("network.prune.density=0", "must be more than 0"),
        ("seed=-1", "must be at least 0, not -1"),
        ("strides=0", "must be at least 1"),
        ("sample=true", "expected a whole number, not true"),
        ("seed.x=1", "seed"),
        ("fast_memory.size=.inf", "expected a whole number"),
    ],
)
def test_override_problems(tmp_path: Path, change: str, expected: str) -> None:
    found = problems(tmp_path, GOOD, (change,))
    assert any(expected in line for line in found), found
    assert all(line.startswith(("-s ", "run.yaml:")) for line in found)


def test_trace_makes_other_keys_unused(tmp_path: Path) -> None:
    (tmp_path / "t.npz").write_bytes(b"x")
    assert "unused key 'formats'" in problems(tmp_path, "trace: {file: t.npz}\nformats: [fp16]\n")[0]
    assert "give a network or a trace" in problems(tmp_path, "seed: 1\n")[0]


def test_errors_in_a_named_piece_point_into_it(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("caches:\n  - {size_bytes: 4096, ways: 3}\nencoder: raw\n")
    found = problems(tmp_path, GOOD + "system: mine.yaml\n")
    assert found == [
        "mine.yaml:2:5: cache of 4096 bytes, 64-byte lines and 3 ways has 21.3333 sets: "
        "the number of sets must be a power of two"
    ]


def test_own_keys_win_over_the_system(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "caches: [{size_bytes: 4096}]\nencoder: dbi-dc\nfast_memory: {size: 50, policy: lru}\n"
    )
    file = tmp_path / "run.yaml"
    file.write_text(GOOD + "system: mine.yaml\n")
    run = load_run(file)
    assert (run.caches[0].size_bytes, run.encoder) == (4096, "dbi-dc")
    assert (run.fast_memory.size, run.fast_memory.policy) == (10, "lru")


@pytest.mark.parametrize("words", ["*a, " * 30_000, "{" * 3, "? x, " * 5000])
def test_very_many_problems_are_counted(tmp_path: Path, words: str) -> None:
    """100,000 aliases without an anchor were 100,000 lines."""
    (tmp_path / "c.yaml").write_text(f"network: [{words}]\n" if words[0] == "*" else f"network: {words}\n")
    with pytest.raises(ConfigError) as found:
        load_sweep(tmp_path / "c.yaml")
    lines = str(found.value).splitlines()
    assert len(lines) <= 51 and all(f"{tmp_path / 'c.yaml'}:" in line for line in lines)
    if words[0] == "*":
        assert lines[-1].endswith("more problems from here on") and len(found.value.problems) > 20_000


def test_what_was_meant_is_sought_for_the_keys_that_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was for each of 30,000 unknown keys: 46 s."""
    sought = []
    monkeypatch.setattr(schema, "known_keys", lambda *at: sought.append(at) or known_keys(*at))
    found = problems(tmp_path, GOOD + "".join(f"fast_memry{k}: 1\n" for k in range(1000)))
    assert len(sought) == 50
    assert found[:50] == [
        f"run.yaml:{4 + k}:1: unknown key 'fast_memry{k}' (did you mean 'fast_memory'?)" for k in range(50)
    ]
    assert found[50:] == ["run.yaml:54:1: and 950 more problems from here on"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD + "engine: {clock_ghz: 1e-30}", "4:1: engine clock_ghz must be from 1e-05 to 1e+06, not 1e-30"),
        (GOOD + "engine: {values_per_cycle: 1e-12}", "4:1: engine values_per_cycle must be from 0.001 to 1e+06"),
        (GOOD + "engine: {instruction_pj: 1e308}", "4:1: engine instruction_pj must be from 0 to 1e+06, not 1e+308"),
        (GOOD.replace("0.5", "0"), "1:11: density is above 0 and at most 1, not 0"),
        ("network: {generate: {kind: bert-ffn, density: 1.5}}", "1:11: density is above 0 and at most 1, not 1.5"),
        ("network: {generate: {kind: uniform-layers, widths: [], density: 1}}", "1:11: a network needs at least two"),
        ("network: {file: .}", "1:17: "),
        ("network: {files: [.]}", "1:19: "),
    ],
)
def test_what_no_run_can_be_made_of(tmp_path: Path, text: str, expected: str) -> None:
    (said,) = problems(tmp_path, text)
    assert said.startswith(f"run.yaml:{expected}")


def test_a_folder_without_a_network_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "rglob", lambda *_: pytest.fail("walked"))
    (said,) = problems(tmp_path, "network: {file: .}")
    assert "holds no layer files" in said


@pytest.mark.parametrize("name", ["lpddr4-320", "mine.yaml"])
def test_a_part_that_is_none_is_told_of_where_it_is_named(tmp_path: Path, name: str) -> None:
    """Not where the system has what it changes of its own part."""
    (said,) = problems(tmp_path, GOOD + "system: edge\n", (f"dram.part={name}",))
    assert said.startswith(f"-s dram.part={name}: ") and ("did you mean 'lpddr4-3200'" in said or "no such" in said)


def test_a_wrong_constant_among_overrides_is_told_of_there(tmp_path: Path) -> None:
    wrong = "dram:\n  overrides: {timing: {tRP_ns: {value: '18', source: mine}, tRAS_nss: {value: 1, source: mine}}}\n"
    assert problems(tmp_path, GOOD + wrong) == [
        "run.yaml:5:14: part 'lpddr4-3200': timing.tRP_ns: expected a number, not the text '18' (remove the quotes)",
        "run.yaml:5:14: part 'lpddr4-3200': timing: unknown key 'tRAS_nss' (did you mean 'tRAS_ns'?)",
    ]
