"""`load`: a network or an operator graph from whatever file it is in. One module per format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traces.base.errors import InputError, did_you_mean, unknown_name
from traces.readers.layers import check_orientation

if TYPE_CHECKING:
    from traces.work.network import Network
    from traces.work.opgraph import OpGraph

KINDS = ("network", "opgraph")

# One matrix or more per file: `read(path) -> list[Matrix]`.
MATRIX_READERS = {
    ".mtx": "traces.readers.matrix_market",
    ".npz": "traces.readers.scipy_sparse",
    ".safetensors": "traces.readers.safetensors",
}
# Models and graphs: `read(path) -> OpGraph`, and `read_network(path, orientation=...) -> Network` where the format can.
MODEL_READERS = {
    ".json": "traces.readers.opgraph_json",
    ".onnx": "traces.readers.onnx",
    ".tflite": "traces.readers.tflite",
}


def load(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    kind: str | None = None,
    orientation: str = "rows-are-outputs",
    names: Sequence[str] | None = None,
) -> Network | OpGraph:
    """Read a network or an operator graph.

    path: a file, a folder, or a list of files with one matrix per layer from input to output. Known: our npz, SciPy
        sparse npz, Matrix Market, safetensors, Graph Challenge tsv (file or folder) and the model formats installed.
        Files of a folder are taken in natural order (layer2 before layer10).
    kind: 'network' or 'opgraph', where a model file could be read as either.
    orientation: 'rows-are-outputs' (as PyTorch stores a linear layer) or 'rows-are-inputs'. Our own npz and the Graph
        Challenge's tsv (rows are sources) have their own.
    names: tensors (or patterns) to take from a safetensors file, in order; None takes all two-dimensional ones.

    Raises InputError naming file and line, entry or tensor.
    """
    check_orientation(orientation)
    if kind is not None and kind not in KINDS:
        raise unknown_name("kind", kind, KINDS)
    try:
        return _load(path, kind, orientation, names)
    except OSError as error:  # a folder that may not be listed, a file that vanishes
        raise InputError(f"{error.filename or path}: cannot be read ({error.strerror or error})") from error


def _load(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    kind: str | None,
    orientation: str,
    names: Sequence[str] | None,
) -> Network | OpGraph:
    if isinstance(path, str | os.PathLike) and _is_challenge_folder(Path(path)) and kind != "opgraph":
        from traces.readers import graph_challenge

        return graph_challenge.read(Path(path))
    files = _files(path)
    suffix = files[0].suffix.lower()
    if names is not None and suffix != ".safetensors":
        raise InputError(f"{files[0]}: names choose tensors of a safetensors file only")
    if suffix in MODEL_READERS and len(files) == 1:
        return _load_model(files[0], MODEL_READERS[suffix], kind, orientation)
    if kind == "opgraph":
        raise InputError(f"{files[0]}: {suffix} files hold a network, not an operator graph")
    if suffix == ".tsv":
        from traces.readers import graph_challenge

        return graph_challenge.read(files)
    if suffix == ".npz" and len(files) == 1 and _is_native(files[0]):
        from traces.readers import native

        return native.load(files[0])
    return _load_layers(files, suffix, orientation, names)


def _files(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the files meant: the file itself, those of a folder in natural order, or those of a list as given."""
    if isinstance(path, str | os.PathLike):
        files = _folder_files(Path(path)) if Path(path).is_dir() else [Path(path)]
    else:
        files = [Path(entry) for entry in path]
    if not files:
        raise InputError("no file given: one matrix per layer is needed")
    known = sorted({".tsv", *MATRIX_READERS, *MODEL_READERS})
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: {'is a folder, not a file' if file.is_dir() else 'no such file'}{_near(file)}")
        if file.suffix.lower() not in known:
            raise InputError(f"{file}: unknown kind of file {file.suffix!r}{did_you_mean(file.suffix, known)}")
    suffixes = sorted({file.suffix.lower() for file in files})
    if len(suffixes) > 1:
        raise InputError(f"{files[0].parent}: layers in different kinds of file ({', '.join(suffixes)}): use one kind")
    return files


def _folder_files(folder: Path) -> list[Path]:
    from traces.readers.names import natural_key

    known = {*MATRIX_READERS}
    files = sorted((p for p in folder.iterdir() if p.is_file() and p.suffix.lower() in known), key=natural_key)
    if not files:
        raise InputError(f"{folder}: holds no layer files (known: {', '.join(sorted(known))}, n<neurons>-l<layer>.tsv)")
    return files


def _is_challenge_folder(path: Path) -> bool:
    from traces.readers.graph_challenge import is_folder

    return path.is_dir() and is_folder(path)


def _near(file: Path) -> str:
    """Return a suggestion from the files beside a missing one."""
    try:
        beside = [entry.name for entry in file.parent.iterdir()][:1000]
    except OSError:
        return ""
    hint = did_you_mean(file.name, beside)
    return hint if hint.startswith(" (did") else ""


def _is_native(file: Path) -> bool:
    from traces.base.archive import read_npz
    from traces.readers.native import MARKER

    return MARKER in read_npz(file, (MARKER,))


def _load_model(file: Path, module_name: str, kind: str | None, orientation: str) -> Network | OpGraph:
    reader: Any = import_module(module_name)
    if kind == "network":
        if not hasattr(reader, "read_network"):
            raise InputError(f"{file}: {file.suffix} files hold an operator graph, not a network")
        return reader.read_network(file, orientation=orientation)
    return reader.read(file)


def _load_layers(files: Sequence[Path], suffix: str, orientation: str, names: Sequence[str] | None) -> Network:
    from traces.readers.layers import from_layers

    reader: Any = import_module(MATRIX_READERS[suffix])
    options = {} if names is None else {"names": names}
    layers = [matrix for file in files for matrix in reader.read(file, **options)]
    name = files[0].stem if len(files) == 1 else files[0].resolve().parent.name
    return from_layers(layers, orientation=orientation, name=name)
