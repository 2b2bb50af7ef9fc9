"""No name, path or description reaches a terminal as a control sequence, whatever the command prints of it."""

import contextlib
import io
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from fuzz.machine_samples import COUNTS, DRAMSYS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from typer.main import get_command

import edgewatt as ew
from edgewatt.cli import app, main
from traces.generators.networks import random_layered
from traces.readers.native import save

CLI = Path(__file__).parents[2] / "edgewatt" / "cli"
EVIL = "w\x1b]0;owned\x07\x1b[8m\x9b2J\u202e\r[/b][red]"  # titles, hidden text, C1, right-to-left, Rich's markup
NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def printed(*arguments: str) -> tuple[int, str]:
    """Run a command in this process; return its exit status and what a terminal would get."""
    out, before = Terminal(), warnings.showwarning
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        patch.setenv("TERM", "dumb")  # Rich writes no colours then: what is left is not its own
        patch.setenv("COLUMNS", "100")
        patch.setattr(sys, "argv", ["edgewatt", *arguments])
        try:
            main()
            status: int | str | None = 0
        except SystemExit as error:
            status = error.code
        finally:
            warnings.showwarning = before
    return int(status or 0), out.getvalue()


def harmless(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose files, and what is named inside them, all hold the text."""
    top = tmp_path_factory.mktemp("t")
    folder = top / f"d{EVIL.replace('/', '')}"
    folder.mkdir()
    network = random_layered(n_layers=2, width=8, density=0.5).with_(name=EVIL)
    save(network, folder / "n.npz")
    order = ew.order(network, "two-optimal", memory=5)
    np.save(folder / "o.npy", order.edges)
    np.save(folder / "p.npy", ew.order(network, "by-source", memory=5).edges)
    ew.cache.save_trace(ew.build_trace(network, order), folder / "t.npz")
    matrix = scipy.sparse.random(6, 6, 0.5, "csr", random_state=np.random.default_rng(0))
    scipy.sparse.save_npz(folder / "m.npz", matrix)
    save_file({f"{EVIL}.weight": np.eye(6, dtype=np.float32), f"c{EVIL}": np.ones(3)}, folder / "w.safetensors")
    node = {"shape": [4], "bytes": 4}
    nodes = [{"name": "a" + EVIL, **node}, {"name": "b" + EVIL, "op": EVIL, "inputs": ["a" + EVIL], **node}]
    graph = {"name": EVIL, "nodes": nodes, "outputs": ["b" + EVIL]}
    (folder / "g.json").write_text(json.dumps(graph))
    (folder / "b.csv").write_text(f'id,lower,upper,size\n"a{EVIL}",0,2,64\nb,1,3,32\n', newline="")
    (folder / "banks.yaml").write_text(json.dumps({"banks": [{"name": "s" + EVIL, "mb_per_s": 4000}]}))
    (folder / "c.csv").write_text("kind,kernel\nconv,3\n")
    (folder / "p.json").write_text(json.dumps(DRAMSYS).replace('"ours"', json.dumps(EVIL)))
    (folder / "counts.csv").write_text(COUNTS)
    np.savez(folder / "tensors.npz", layer0_ifmap=np.ones((3, 3, 1), np.int8),
             layer0_filter=np.ones((1, 2, 2, 1), np.int8), layer0_ofmap=np.ones((2, 2, 1), np.int8))  # fmt: skip
    (folder / "r.trc").write_text("0x40 R\n0x80 W\n")
    run = {"name": EVIL, "network": NETWORK, "fast_memory": {"size": 5}}
    (folder / "run.yaml").write_text(json.dumps(run))
    (folder / "wrong.yaml").write_text(json.dumps({**run, "seed" + EVIL: EVIL, "encoder": EVIL}))
    sweep = {"name": EVIL, "base": {k: v for k, v in run.items() if k != "name"}, "grid": {"seed": [0, 1]}}
    (folder / "sweep.yaml").write_text(json.dumps(sweep))
    (folder / "best.yaml").write_text(
        json.dumps({"base": {k: v for k, v in run.items() if k != "name"}, "optimize": {"grid": {"seed": [0, 1]}}})
    )
    ew.run(str(folder / "sweep.yaml"), results=folder / "r")
    ew.run(str(folder / "sweep.yaml"), results=folder / f"s{EVIL.replace('/', '')}")
    return folder


# A call of every command: names of the files above are put in their folder.
CALLS = [
    "run run.yaml", "run wrong.yaml", "run n.npz", "run no.yaml", "run m.npz", "run w.safetensors",
    "sweep sweep.yaml -r +x --executor inline", "sweep sweep.yaml -r +x --dry-run", "sweep wrong.yaml -r +x",
    "init n.npz", "init n.npz -o +i.yaml", "show r", "show s*", "show n.npz", "collect r -o +c.csv",
    "collect n.npz -o +c.csv", "rerun r", "bench n.npz --rounds 1", "bench g.json", "order n.npz -M 5",
    "order n.npz -M 5 -o +o.npz", "order w.safetensors -M 5", "order o.npy -M 5",
    "order w.safetensors --names EVIL -M 5", "order n.npz -m EVIL -M 5", "order n.npz -M 5 -m file -s path=no.npy",
    "order n.npz -s EVIL=EVIL -M 5", "pays n.npz o.npy -M 5 --against p.npy", "break-even n.npz no.npy -M 5",
    "order-tuples m.npz --stride 2", "order-tuples w.safetensors --stride 2",
    "order-tuples w.safetensors --names EVIL", "order-tuples n.npz", "schedule g.json",
    "schedule g.json --page +s.html", "schedule g.json --banks banks.yaml", "schedule b.csv", "arena b.csv",
    "arena b.csv --page +a.html", "arena b.csv --banks banks.yaml", "arena b.csv --capacity 1", "arena c.csv",
    "report r -o +r.html",
    "report r -o +r.html", "report n.npz -o +r.html", "report r --title EVIL -o +r.html",
    "compare r s*", "compare r n.npz", "optimize best.yaml -r +y --executor inline", "optimize wrong.yaml",
    "validate o.npy n.npz", "validate p.json n.npz",
    "validate --matrix m.npz --reordered m.npz",
    "export t.npz -o +t.din -f dinero", "export n.npz -o +n.txt -f EVIL", "export run.yaml -o +m.npz -f matrices",
    "dram r.trc", "dram r.trc --explain", "dram r.trc --part p.json", "dram n.npz", "dram r.trc --part EVIL",
    "cache t.npz", "cache t.npz --level EVIL", "cache m.npz",
    "accelerator counts.csv tensors.npz", "accelerator b.csv tensors.npz", "accelerator s* tensors.npz", "list EVIL",
    "list formats", "doctor", 
    "learn eon no.npz -M 5 -o +e.safetensors", "part library ddr4-3200-x8 +l.edram", "part library EVIL +l.edram",
    "part import p.json -o +p.yaml", "part import run.yaml -o +p.yaml", "EVIL", "run EVIL --EVIL",
    "run --system EVIL run.yaml", "sweep --executor EVIL sweep.yaml", "order n.npz -M EVIL",
    "schedule g.json --method EVIL", "prune n.npz --memory 12 --density 0.5 --calibration no.npz -o +q.npz",
    "prune n.npz --memory 12 --density 0.5 --calibration m.npz -o +q.npz", "token w.safetensors --page +t.html",
    "token w.safetensors --part EVIL", "token n.npz",
]  # fmt: skip


def arguments(call: str, folder: Path, new: Path) -> list[str]:
    """Return a call's words: +NAME is a new file, a name in the folder that file, EVIL the text."""
    found = []
    for word in call.split():
        if word.startswith("+"):
            found.append(str(new / (EVIL.replace("/", "") + word[1:])))
        elif word == "s*":
            found.append(str(next(folder.glob("sw*"))))
        elif re.fullmatch(r"[\w]+\.(npz|npy|yaml|json|csv|safetensors|trc)|r", word):
            found.append(str(folder / word))
        else:
            found.append(word.replace("EVIL", EVIL))
    return found


@pytest.mark.parametrize("call", CALLS)
def test_no_command_lets_a_control_sequence_through(call: str, place: Path, tmp_path: Path) -> None:
    status, text = printed(*arguments(call, place, tmp_path))
    assert status in (0, 1, 2) and text
    assert harmless(text), re.findall(r".{0,40}[^ -~\n].{0,20}", text)[:3]


def test_a_configuration_for_a_hostile_name_is_written_and_runs(place: Path, tmp_path: Path) -> None:
    status, text = printed(*arguments("init n.npz", place, tmp_path))
    assert status == 0 and harmless(text)
    assert harmless(Path("edgewatt.yaml").read_text())
    status, text = printed("run", "edgewatt.yaml")
    assert status == 0 and harmless(text)


def test_every_command_is_called() -> None:
    def names(command: object, before: str = "") -> list[str]:
        inside = getattr(command, "commands", None)
        return [before] if inside is None else [n for name, c in inside.items() for n in names(c, f"{before} {name}")]

    missing = [
        name for name in names(get_command(app)) if not any(f" {call} ".startswith(f"{name} ") for call in CALLS)
    ]
    assert not missing


def test_who_prints_prints_by_the_few_functions() -> None:
    """print, typer.echo and consoles know nothing of hostile names: `say`, `put` and `show_table` do."""
    for path in CLI.rglob("*.py"):
        if path.name != "output.py":
            assert not re.search(r"(?<![\w.])print\(|\becho\(|console\.print\(", path.read_text()), path


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.characters(codec="utf-8", min_codepoint=1), min_size=1, max_size=12),
    call=st.sampled_from(["order n.npz -m {}", "run {}", "list {}", "{}", "show {}", "dram r.trc --part {}"]),
)
def test_any_text(place: Path, tmp_path: Path, text: str, call: str) -> None:
    """Words of the command line itself, which a shell may have taken from file names."""
    words = arguments(call.replace("{}", "@"), place, tmp_path)
    assert harmless(printed(*(word.replace("@", text) for word in words))[1])
