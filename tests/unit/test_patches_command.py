"""`edgewatt patches`: fronts, joules, runs and pages; chains out of models."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.operators.patches import plan_energy
from reorder.operators.patches.chain import chain_of, read_chain
from reorder.operators.patches.plans import patch_front, transfers
from tests.property.test_patches import BASIC, INVERTED
from traces.base.errors import InputError

pytestmark = pytest.mark.application

EXAMPLES = Path(__file__).parents[2] / "configs" / "examples" / "chains"


@pytest.mark.parametrize("chain", [INVERTED, BASIC], ids=["inverted", "basic"])
@pytest.mark.parametrize("buffer", [0, 60, 10**6])
def test_transfers_are_what_the_plan_counts(chain, buffer: int) -> None:
    for plan in patch_front(chain, offchip=True, weight_buffer=buffer):
        made = list(transfers(chain, plan, weight_buffer=buffer))
        assert sum(size for _, _, size in made) == plan.offchip_bytes
        outputs = sorted((first, size) for key, first, size in made if key == -2)
        ends = [0, *(first + size for first, size in outputs)]
        assert [first for first, _ in outputs] == ends[:-1] and ends[-1] == chain.layers[-1].out_values


def test_joules_follow_the_bytes() -> None:
    plans = patch_front(INVERTED, offchip=True)
    found = [plan_energy(INVERTED, plan) for plan in plans]
    assert [e["bytes"] for e in found] == [p.offchip_bytes for p in plans]
    by_bytes = sorted(zip((p.offchip_bytes for p in plans), (e["total_pj"] for e in found), strict=True))
    assert by_bytes[0][1] < by_bytes[-1][1]
    assert all(e["total_pj"] == pytest.approx(e["interface_pj"] + e["core_pj"]) for e in found)


@pytest.mark.parametrize("name", ["inverted-residual-96", "basic-residual-64"])
def test_chains_with_residual_additions_run_bit_by_bit(name: str, tmp_path: Path) -> None:
    page = tmp_path / "front.html"
    done = CliRunner().invoke(
        app,
        ["patches", str(EXAMPLES / f"{name}.csv"), "--part", "lpddr4-3200", "--factor", "1.2", "--run", "--plans", "6",
         "--page", str(page), "--json", "-"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["run"]["equal"]
    assert found["run"]["peak_bytes"] == found["chosen"]["peak"]
    assert found["run"]["multiplications"] <= found["chosen"]["multiplications"]
    assert found["run"]["offchip_bytes"] == found["chosen"]["offchip"]
    assert found["chosen"]["factor"] <= 1.2 and all(p["uj"] > 0 for p in found["plans"])
    assert "https:" not in page.read_text() and found["chosen"]["blocks"] in page.read_text()


def test_the_facade_and_its_limits() -> None:
    front = ew.patches(read_chain(EXAMPLES / "inverted-residual-96.csv"), modes=("lines",))
    k = front.best(peak_bytes=30_000)
    assert k is not None and front.plans[k].peak_bytes <= 30_000
    assert front.best(peak_bytes=10) is None
    done = CliRunner().invoke(app, ["patches", str(EXAMPLES / "inverted-residual-96.csv"), "--mode", "lines",
                                    "--peak-bytes", "10"])  # fmt: skip
    assert done.exit_code != 0 and "no plan within the limits: the least peak is" in str(done.exception)


def _graph(tmp_path: Path, residual: bool) -> Path:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    w = {"w0": (4, 3, 3, 3), "w1": (8, 4, 1, 1), "w2": (8, 1, 3, 3), "w3": (4, 8, 1, 1)}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["ar"]),
        helper.make_node("Conv", ["ar", "w1"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1, 1, 1, 1], group=8),
        helper.make_node("Conv", ["c", "w3"], ["d"]),
        *([helper.make_node("Add", ["d", "ar"], ["e"])] if residual else []),
        helper.make_node("GlobalAveragePool", ["e" if residual else "d"], ["y"]),
    ]
    weights = [numpy_helper.from_array(rng.normal(size=s).astype(np.float32), n) for n, s in w.items()]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 12, 10))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 1, 1))], weights,
    )  # fmt: skip
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), file)
    return file


@pytest.mark.parametrize("residual", [False, True])
def test_a_chain_is_read_off_a_model(tmp_path: Path, residual: bool) -> None:
    pytest.importorskip("onnx")
    chain, left = chain_of(ew.load(_graph(tmp_path, residual), kind="opgraph"))
    assert [(a.kind, a.kernel, a.stride, a.padding, a.in_h, a.in_w, a.in_c, a.out_c, a.adds) for a in chain.layers] == [
        ("conv", 3, 2, 1, 12, 10, 3, 4, None), ("conv", 1, 1, 0, 6, 5, 4, 8, None),
        ("depthwise", 3, 1, 1, 6, 5, 8, 8, None), ("conv", 1, 1, 0, 6, 5, 8, 4, 1 if residual else None),
    ]  # fmt: skip
    assert left == ("y",)


def test_what_has_no_chain_is_refused() -> None:
    with pytest.raises(InputError, match="no chain of convolutions to run by patches: it ends at"):
        chain_of(ew.cell("darts_v2"))


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_the_page_draws_without_errors(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["patches", str(EXAMPLES / "inverted-residual-96.csv"), "--page", str(page)])
    assert done.exit_code == 0, done.output
    with browser.page(page, 1280) as shown:
        shown.wait("document.body.dataset.drawn")
        assert shown.failures == [] and "times the multiplications" in shown.document


RUN, PLAYED = ["--run", "--factor", "9"], ["--part", "lpddr4-3200"]
LIMITS = {
    "many layers": ([("conv", 3, 1, 1)] * 100, 64, 64, 4, []),
    "many plans": ([("conv", k % 3 * 2 + 1, 1, k % 3) for k in range(60)], 97, 61, 3, PLAYED),
    "much work": ([("conv", 1, 1, 0), ("conv", 9, 1, 4), ("conv", 1, 1, 0)], 1 << 10, 1 << 10, 100, RUN),
    "one line": ([("conv", 1, 1, 0), ("conv", 1, 1, 0)], 1, 1 << 22, 64, [*PLAYED, *RUN]),
    "large kernels": ([("depthwise", 999, 1, 499)] * 2, 999, 999, 1, RUN),
    "all transfers": ([("conv", 1, 1, 0)] * 3, 1 << 12, 1, 1 << 9, PLAYED),
}  # fmt: skip


def written(path: Path, spec: list[tuple[str, int, int, int]], height: int, width: int, channels: int) -> Path:
    lines = ["kind,kernel,stride,padding,in_h,in_w,in_c,out_h,out_w,out_c,adds"]
    for kind, kernel, stride, padding in spec:
        lines.append(f"{kind},{kernel},{stride},{padding},{height},{width},{channels},{height},{width},{channels},")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", LIMITS)
def test_a_time_limit_holds(name: str, tmp_path: Path) -> None:
    """Of the front, its joules and the run together, on chains that would take minutes to days."""
    spec, height, width, channels, more = LIMITS[name]
    file = written(tmp_path / "c.csv", spec, height, width, channels)
    began = time.process_time()
    done = CliRunner().invoke(app, ["patches", str(file), *more, "--time-limit", "1", "--json", "-"])
    assert time.process_time() - began < 4
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["truncated"] or found["run"] is None
    assert found["plans"][-1]["factor"] <= 1  # layer by layer is there at least


def test_a_limit_that_is_not_met_changes_nothing() -> None:
    chain = read_chain(EXAMPLES / "basic-residual-64.csv")
    for part in (None, "lpddr4-3200"):
        free, limited = (
            ew.patches(chain, modes=("lines", "rows"), part=part, most=3, time_limit_s=s) for s in (None, 1e6)
        )
        assert free.plans == limited.plans and free.energy == limited.energy and not limited.truncated
    with pytest.raises(InputError, match="a time limit of 0 s: it must be above 0"):
        ew.patches(chain, time_limit_s=0)


@pytest.mark.parametrize("mode", ["rows", "lines", "mixed"])
def test_heights_are_counted_not_walked(mode: str, tmp_path: Path) -> None:
    """9 x 10^11 rows of one value: the front needs none of them; running them is refused for its memory."""
    file = written(tmp_path / "c.csv", [("conv", 1, 1, 0)] * 3, 9 * 10**11, 1, 1)
    front = ew.patches(str(file), modes=(mode,))
    assert front.plans[-1].multiplications == 27 * 10**11
    for more in (RUN, PLAYED):
        done = CliRunner().invoke(app, ["patches", str(file), "--mode", mode, *more])
        assert isinstance(done.exception, InputError) and "bytes of memory, more than the bound" in str(done.exception)
