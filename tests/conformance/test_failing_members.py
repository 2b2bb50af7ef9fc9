"""A member of another distribution whose code fails: one message with its kind, name, distribution and version."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from edgewatt.plugins import registry
from tests.conformance.test_every_kind_from_outside import ROOT, USE, group_of
from tests.outside import run_with, write_distribution
from tests.outside_kinds import CACHE, CASES, Case

pytestmark = pytest.mark.application

CODED = [case for case in CASES if not case.is_file and "def " in case.source and case.kind != "cache-policies"]
NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5, "seed": 1}}


def with_a_bug(source: str) -> str:
    """Return a module in which every function, but none that makes an object, fails with an error of its own."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            node.body[:0] = ast.parse("raise ZeroDivisionError('the bug in it')").body
    return ast.unparse(tree)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each member's uses say: its command line and its program."""
    folder = tmp_path_factory.mktemp("failing")
    site, work = folder / "site", folder / "work"
    (site / "theirs").mkdir(parents=True)
    work.mkdir()
    modules, points = {"theirs/__init__": ""}, ""
    for number, case in enumerate(CODED):
        modules[f"theirs/member_{number}"] = with_a_bug(case.source)
        points += f"[{group_of(case.kind)}]\n{case.name} = theirs.member_{number}\n"
    write_distribution(site, "theirs", "3.4", modules, points)
    cases = [{"kind": c.kind, "name": c.name, "config": {}, "python": c.python, "command": c.command} for c in CODED]
    net = str(ROOT / "configs" / "examples" / "networks" / "digits_small.npz")
    words = {"net": net, "base": {"network": NETWORK}, "cache": CACHE, "cases": cases, "all": True}
    code = USE.replace("done = CliRunner().invoke(app, words)", "done = invoke(words)").replace(
        "def command(", INVOKE + "\n\ndef command("
    )
    done = run_with(site, "-c", code, json.dumps(words), cwd=work)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout[done.stdout.index("FOUND") + 5 :])
    return {case.name: one for case, one in zip(CODED, told, strict=True)}


INVOKE = '''
def invoke(words):
    """The command as a process of its own: what it prints and its status."""
    import subprocess, types
    done = subprocess.run([sys.executable, "-m", "edgewatt", *words], capture_output=True, text=True)
    said = done.stdout + done.stderr
    return types.SimpleNamespace(output=said, stdout=done.stdout, exit_code=done.returncode, exception=None)
'''


@pytest.mark.parametrize("case", CODED, ids=lambda case: f"{case.kind}: {case.name}")
def test_the_message_names_who_brought_it(found: dict[str, dict[str, Any]], case: Case) -> None:
    named = (
        f"the {registry(case.kind).what} {case.name!r} of theirs 3.4 failed: ZeroDivisionError: the bug in it (member_"
    )
    done, program = found[case.name]["command"], found[case.name]["python"]
    said = " ".join(done["said"].split())
    assert "Traceback" not in said
    assert (named in said) == ("the bug in it" in said) == (done["status"] in (1, 2)), said
    assert named in said or named in program
    if "ew." in case.python and program:  # the other programs ask the registry itself, below the facade
        assert f"InputError: {named}" in program, program
        assert "the bug in it" in program.partition("The above exception")[0], "the cause is kept"


def test_a_script_that_fails_and_a_sweep(tmp_path: Path) -> None:
    """A member of no distribution has its file's name; a point that fails says the same; the traceback can be had."""
    modules = {"flipper": with_a_bug(next(case.source for case in CASES if case.name == "flip"))}
    site = write_distribution(tmp_path, "theirs", "3.4", modules, "[edgewatt.encoders]\nflip = flipper\n")
    (tmp_path / "base.yaml").write_text(json.dumps({"network": NETWORK, "encoder": "flip"}))
    (tmp_path / "sweep.yaml").write_text(json.dumps({"base": "base.yaml", "grid": {"fast_memory.size": [5, 6]}}))
    named = "the encoder 'flip' of theirs 3.4 failed: ZeroDivisionError: the bug in it (flipper.py, line "
    for words in (["run", "base.yaml"], ["sweep", "sweep.yaml", "-o", "results", "-j", "2"]):
        done = run_with(site, "-m", "edgewatt", *words, cwd=tmp_path)
        assert done.returncode in (1, 2) and named in " ".join(done.stderr.split()), done.stderr
        assert "Traceback" not in done.stderr
    policy = with_a_bug(next(case.source for case in CASES if case.name == "first-way"))
    use = "import edgewatt as ew, numpy as np\new.simulate_cache(np.zeros(9, 'u1'), 64 * np.arange(9), np.full(9, 4), "
    use += "size_bytes=128, line_bytes=64, ways=2, policy='first-way')\n"
    (tmp_path / "cached.py").write_text(f"{policy}\n{use}")
    done = run_with(tmp_path / "nowhere", "cached.py", cwd=tmp_path)
    assert "InputError: the cache policy 'first-way' of cached.py failed: ZeroDivisionError: the bug in" in done.stderr
    use = "import edgewatt as ew, numpy\new.encode(numpy.zeros(8, 'u1'), 'flip', element_bytes=1)\n"
    (tmp_path / "mine.py").write_text(f"{modules['flipper']}\n{use}")
    done = run_with(tmp_path / "nowhere", "mine.py", cwd=tmp_path)
    assert "InputError: the encoder 'flip' of mine.py failed: ZeroDivisionError: the bug in it (mine.py" in done.stderr


def test_the_traceback_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = with_a_bug(next(case.source for case in CASES if case.name == "last-source"))
    site = write_distribution(tmp_path, "theirs", "3.4", {"ours": bug}, "[edgewatt.orderings]\nlast-source = ours\n")
    net = str(ROOT / "configs" / "examples" / "networks" / "digits_small.npz")
    monkeypatch.setenv("EDGEWATT_TRACEBACK", "1")
    done = run_with(site, "-m", "edgewatt", "order", net, "-m", "last-source", cwd=tmp_path)
    assert done.returncode == 2 and "in last_source" in done.stderr and "Traceback" in done.stderr
    assert "the ordering 'last-source' of theirs 3.4 failed" in done.stderr.splitlines()[-1]
