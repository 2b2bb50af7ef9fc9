"""ExecuTorch's planned memory for torchvision models with random weights: its greedy beside `ArenaPlanner`.

Each model is exported in a process of its own, planned twice, and both programs run on ExecuTorch's runtime.

    python scripts/executorch_models.py FOLDER [--size PIXELS] [--model NAME]
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODELS = (
    "alexnet", "densenet121", "efficientnet_b0", "efficientnet_b1", "googlenet", "inception_v3", "mnasnet0_5",
    "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf",
    "resnet18", "resnet34", "resnet50", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "squeezenet1_0", "squeezenet1_1",
)  # fmt: skip
HEADS = ("model", "tensors", "greedy KiB", "ours KiB", "less %", "proved", "ms", "equal")


def plan_and_run(name: str, size: int, folder: Path) -> dict[str, Any]:
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
    given = (torch.randn(1, 3, size, size),)
    row: dict[str, Any] = {"model": name}
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
    equal = torch.equal(*outputs)
    return {**row, "tensors": ours.tensors, "proved": ours.proved, "ms": ours.ms, "equal": equal}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table in Markdown."""
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    for row in rows:
        less = 100 * (1 - row["ours"] / row["greedy"])
        sizes = (f"{row[which] / 1024:,.0f}" for which in ("greedy", "ours"))
        marks = ("yes" if row[key] else "no" for key in ("proved", "equal"))
        proved, equal = marks
        cells = (row["model"], row["tensors"], *sizes, f"{less:.1f}", proved, f"{row['ms']:.0f}", equal)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=224, help="pixels of a side of the image")
    parser.add_argument("--model", choices=MODELS, help="only this one, as JSON")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.model:
        print(json.dumps(plan_and_run(given.model, given.size, given.folder)))
        return
    rows = []
    for name in MODELS:
        command = [sys.executable, __file__, str(given.folder), "--size", str(given.size), "--model", name]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(name, done.stderr[-300:], file=sys.stderr, flush=True)
            continue
        rows.append(json.loads(done.stdout.strip().splitlines()[-1]))
        print(rows[-1], file=sys.stderr, flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
