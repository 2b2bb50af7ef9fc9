"""Odd ONNX and TensorFlow Lite models, made field by field: well-formed files whose contents make no sense.

``python -m fuzz.odd_models COUNT [SEED]`` (from tests/) reads so many of each kind, in processes with limits of memory
and of processor time a model; exit status 1 where one ended by a signal, went past them, or gave a traceback.
"""

from __future__ import annotations

import contextlib
import random
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

MEMORY_BYTES, CPU_S = 3 << 30, 20
A_PROCESS = 2000
SIDES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 8, 16, 17, -1, 255, 65536, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63))
NUMBERS = (*SIDES, -2, -3, -(2**31), 6, 7, 10, 64, 100)
FLOATS = (0.0, 1.0, -1.0, 0.5, 1e30, -1e30, 1e-30, float("inf"), float("nan"))
TEXTS = (
    b"", b"NOTSET", b"SAME_UPPER", b"SAME_LOWER", b"VALID", b"ij,jk->ik", b"...i,...i", b"i->", b"\xff\xfe", b"\0",
    b"\xef\xbf\xbd", b"->", b",,,", b"a" * 5000, b"ij,ij->" + b"k" * 30, b"linear", b"DCR", b"reflect", b"constant",
    b"LINEAR", b"forward", b"bidirectional", b"none", b"add", b"(",
)  # fmt: skip
KINDS = (1, 1, 1, 1, 2, 3, 6, 7, 7, 9, 10, 11, 16, 8, 21, 22, 23, 0, 14, 99)


def odd_onnx(rng: random.Random) -> bytes:
    """Return a model of one to five nodes, any operator of the standard, a tenth of its fields odd."""
    import onnx

    sane = rng.choice((0.5, 0.9, 0.97, 1.0))  # how often a field is what it should be
    schemas = _schemas(rng.random() < 0.95)
    model = onnx.ModelProto(ir_version=rng.choice((3, 4, 7, 8, 10, 10, 11)))
    model.opset_import.add(
        domain="", version=rng.choice((1, 6, 9, 11, 13, 14, 17, 18, 20, 22, 99)) if rng.random() > sane else 23
    )
    if rng.random() < 0.1:
        model.opset_import.add(domain="ai.onnx.ml", version=rng.choice((1, 3, 5)))
    graph = model.graph
    graph.name = "g"

    def described(value: Any) -> Any:
        tensor = value.type.tensor_type
        tensor.elem_type = 1 if rng.random() < sane else rng.choice(KINDS)
        for _ in range(rng.choice((0, 1, 2, 2, 3, 4, 4, 4, 5, 6)) if rng.random() < 0.99 else 2000):
            side = tensor.shape.dim.add()
            if rng.random() < 0.9:
                side.dim_value = rng.choice(SIDES[1:11]) if rng.random() < sane else rng.choice(SIDES)
            elif rng.random() < 0.5:
                side.dim_param = rng.choice(("N", "", "unk__0"))
        return value

    def number() -> int:
        return rng.choice((0, 1, 1, 2, 3, -1)) if rng.random() < sane else rng.choice(NUMBERS)

    def constant(tensor: Any) -> None:
        tensor.data_type = rng.choice((1, 7, 7, 7, 6, 9, 10, 11, 2, 3, 16, 21))
        tensor.dims.extend(
            [rng.choice((1, 2, 3, 4, 4, 0))] if rng.random() < 0.8 else rng.choices((1, 2, 3), k=rng.randrange(6))
        )
        count = 1
        for side in tensor.dims:
            count *= side
        if rng.random() > 0.5 + sane / 2:
            count = rng.randrange(5)
        small = rng.random() < sane
        values = [rng.choice(SIDES[:8]) if small else rng.choice(NUMBERS) for _ in range(count)]
        if tensor.data_type == 7:
            tensor.int64_data.extend(values)
        elif tensor.data_type in (6, 9, 2, 3):
            tensor.int32_data.extend(v % 128 for v in values)
        elif tensor.data_type == 1:
            tensor.float_data.extend(rng.choice(FLOATS[:4]) if small else rng.choice(FLOATS) for _ in values)
        else:
            tensor.raw_data = bytes(
                v % 251 for v in values for _ in range({10: 2, 16: 2, 11: 8, 21: 1}[tensor.data_type])
            )

    names = []
    for k in range(rng.randrange(1, 4)):
        names.append(f"x{k}")
        described(graph.input.add(name=names[-1]))
    for k in range(rng.randrange(5)):
        names.append(f"c{k}")
        tensor = graph.initializer.add(name=names[-1])
        constant(tensor)
    for k in range(rng.choice((1, 1, 2, 3, 5))):
        schema = rng.choice(schemas)
        node = graph.node.add(op_type=schema.name, domain=schema.domain, name=rng.choice(("", f"n{k}")))
        least, most = schema.min_input, min(schema.max_input, 8)
        count = rng.randrange(least, most + 1) if rng.random() < sane else rng.randrange(9)
        node.input.extend(
            rng.choice(names) if rng.random() < 0.95 else rng.choice(("", "nowhere", f"t{k}_0")) for _ in range(count)
        )
        outputs = (
            rng.randrange(max(1, schema.min_output), min(schema.max_output, 4) + 1)
            if rng.random() < sane
            else rng.randrange(6)
        )
        made = [f"t{k}_{i}" for i in range(outputs)]
        node.output.extend(made)
        names += made
        for name, known in schema.attributes.items():
            if known.required or rng.random() < 0.4:
                attribute = node.attribute.add(
                    name=name, type=int(known.type) if rng.random() < 0.95 else rng.randrange(12)
                )
                attribute.i, attribute.f, attribute.s = number(), rng.choice(FLOATS), rng.choice(TEXTS)
                attribute.ints.extend(number() for _ in range(rng.choice((0, 1, 2, 2, 3, 4, 8))))
                attribute.floats.extend(rng.choice(FLOATS) for _ in range(rng.randrange(4)))
                attribute.strings.extend(rng.choice(TEXTS) for _ in range(rng.randrange(3)))
                if attribute.type == onnx.AttributeProto.TENSOR:
                    constant(attribute.t)
        for name in made:
            if rng.random() < 0.2:
                described(graph.value_info.add(name=name))
    for name in rng.sample(names, min(len(names), 2)) if rng.random() > sane else names[-1:]:
        output = graph.output.add(name=name)
        if rng.random() < 0.5:
            described(output)
    return bytes(model.SerializeToString())


@cache
def _schemas(numeric: bool) -> list[Any]:
    """Return ONNX's operators, or those on numbers alone."""
    import onnx

    from traces.readers.parts.onnx_inference import NUMERIC

    return [each for each in onnx.defs.get_all_schemas() if not numeric or (each.name in NUMERIC and not each.domain)]


def odd_tflite(rng: random.Random) -> bytes:
    """Return a model of one to five operators, a tenth of its fields odd."""
    import numpy as np
    import tflite as schema
    from model_files import make_tflite

    sane = rng.choice((0.5, 0.9, 0.97, 1.0))  # how often a field is what it should be
    kinds = [name for name in dir(schema.BuiltinOperator) if name.isupper()]
    dtypes = ["float32", "int8", "int32", "uint8", "int64"]
    n = rng.randrange(2, 9)

    def number() -> int:
        return rng.choice((0, 1, 1, 2, 3)) if rng.random() < sane else rng.choice((-1, -128, 127, 2**31 - 1, -(2**31)))

    def shape() -> tuple[int, ...]:
        sides = SIDES[1:11] if rng.random() < sane else (0, -1, 65536, 2**31 - 1, -(2**31))
        return tuple(rng.choice(sides) for _ in range(rng.choice((0, 1, 2, 3, 4, 4, 4, 5, 40))))

    tensors: list[Any] = []
    for k in range(n):
        name = f"t{k}" if rng.random() < sane else rng.choice(("", "t0", "\n", "n" * 9000, "t#2"))
        sides = shape()
        scale = 0.5 if rng.random() < sane else rng.choice((0.0, float("nan"), [1.0, 2.0] if sides else 1.0))
        more = (rng.choice(dtypes), scale, number() % 100) if rng.random() < 0.5 else ()
        tensors.append((name, sides, *more))
    constants = {}
    for k in rng.sample(range(n), rng.randrange(n)):
        count = int(np.prod([side for side in tensors[k][1]], dtype=object)) if tensors[k][1] else 1
        if 0 <= count <= 4096:
            constants[k] = np.zeros(count if rng.random() < 0.5 + sane / 2 else rng.randrange(9))

    def index() -> int:
        return rng.randrange(n) if rng.random() < 0.5 + sane / 2 else rng.choice((-1, -2, n, 2**31 - 1))

    operators = []
    for _ in range(rng.randrange(1, 6)):
        kind = (
            rng.choice(kinds)
            if rng.random() > sane / 2
            else rng.choice(("CONV_2D", "FULLY_CONNECTED", "ADD", "CONCATENATION"))
        )
        more = ()
        if rng.random() < 0.7:
            option = rng.choice(
                ("Conv2DOptions", "FullyConnectedOptions", "AddOptions", "Pool2DOptions", "ConcatenationOptions")
            )
            fields = [f.removeprefix(f"{option}Add") for f in dir(schema) if f.startswith(f"{option}Add")]
            plain = (
                "Padding",
                "StrideW",
                "StrideH",
                "FusedActivationFunction",
                "Axis",
                "FilterHeight",
                "DilationHFactor",
            )
            more = (
                option,
                {
                    f: number() % 127 if f in ("Padding", "FusedActivationFunction") else number()
                    for f in fields
                    if f in plain
                },
            )
        operators.append(
            (
                kind,
                [index() for _ in range(rng.randrange(5))],
                [index() for _ in range(rng.choice((1, 1, 1, 2, 0)))],
                *more,
            )
        )
    return make_tflite(operators, tensors, constants, [index() for _ in range(rng.randrange(3))], [rng.randrange(n)])


MAKERS = {"onnx": odd_onnx, "tflite": odd_tflite}


class _TooLong(BaseException):
    pass


def read_all(kind: str, seeds: range, folder: Path, said: Path) -> Counter[str]:
    """Read the models of the seeds as graphs and networks, and write them back; note each seed in `said` before."""
    import signal

    from traces.base.errors import InputError
    from traces.readers.reader import load, written

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    signal.signal(signal.SIGPROF, stop)
    counts: Counter[str] = Counter()
    path = folder / f"m.{kind}"
    for seed in seeds:
        said.write_text(str(seed))
        path.write_bytes(MAKERS[kind](random.Random(f"{kind} {seed}")))
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        try:
            graph = load(path, kind="opgraph")
            counts["read"] += 1
            with contextlib.suppress(InputError):
                load(path, kind="network")
            written(path, graph)
        except InputError as error:
            counts[
                "ended inference" if "does not survive" in str(error) or "no answer" in str(error) else "refused"
            ] += 1
        except _TooLong:
            counts[f"too long: {seed}"] += 1
        except BaseException as error:  # whatever a user would see as a traceback
            counts[f"{type(error).__name__}: {seed}: {str(error)[:80]}"] += 1
        signal.setitimer(signal.ITIMER_PROF, 0)
    return counts


def main() -> int:
    """Read models in processes of A_PROCESS each, which begin anew behind a model that ended one."""
    if sys.argv[1] == "read":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        with tempfile.TemporaryDirectory() as folder:
            seeds = range(int(sys.argv[3]), int(sys.argv[4]))
            for what, count in read_all(sys.argv[2], seeds, Path(folder), Path(sys.argv[5])).items():
                print(f"{count} {what}")
        return 0
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    finds = 0
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "seed"
        for kind in MAKERS:
            counts: Counter[str] = Counter()
            at, end = first, first + count
            while at < end:
                stop = min(at + A_PROCESS, end)
                command = [sys.executable, "-m", "fuzz.odd_models", "read", kind, str(at), str(stop), str(said)]
                done = subprocess.run(command, capture_output=True, text=True)
                for line in done.stdout.splitlines():
                    number, what = line.split(" ", 1)
                    counts[what] += int(number)
                at = stop
                if done.returncode:
                    at = int(said.read_text()) + 1
                    counts[f"process ended with {done.returncode}: {at - 1} {done.stderr[-200:]}"] += 1
            print(f"{kind}: {count} models from seed {first}: {dict(counts)}", flush=True)
            finds += sum(n for what, n in counts.items() if what not in ("read", "refused", "ended inference"))
    return int(finds > 0)


if __name__ == "__main__":
    sys.exit(main())
