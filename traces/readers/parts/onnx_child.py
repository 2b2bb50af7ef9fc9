"""The process that infers shapes of ONNX models: a script of the standard library and ONNX's compiled part alone.

``python -I -S onnx_child.py EXTENSION BYTES SECONDS`` reads questions from standard input, each behind its length (8
bytes, little endian): a byte, 1 where any error counts, and a model. It answers each in the same way: a 0 and the model
with the types that follow, or a 1 and what is wrong.
BYTES: of address space above what it starts with. SECONDS: of processor time, in all.
"""

import os
import resource
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader


def main() -> None:
    loader = ExtensionFileLoader("onnx_cpp2py_export", sys.argv[1])
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    inference = module_from_spec(spec)
    loader.exec_module(inference)
    _limit(int(sys.argv[2]), int(sys.argv[3]))
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is not an answer
    while len(size := requests.read(8)) == 8:
        question = requests.read(int.from_bytes(size, "little"))
        try:
            answer = b"\0" + inference.shape_inference.infer_shapes(question[1:], False, question[0] == 1, False)
        except Exception as error:
            answer = b"\1" + str(error)[:1000].encode("utf-8", "replace")
        answers.write(len(answer).to_bytes(8, "little") + answer)
        answers.flush()


def _limit(n_bytes: int, seconds: int) -> None:
    limits = {resource.RLIMIT_CPU: seconds, resource.RLIMIT_CORE: 0}
    try:
        with open("/proc/self/statm") as stream:
            limits[resource.RLIMIT_AS] = int(stream.read().split()[0]) * resource.getpagesize() + n_bytes
    except OSError:
        pass  # no Linux: the limits of processor time and of waiting hold
    for kind, value in limits.items():
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


if __name__ == "__main__":
    main()
