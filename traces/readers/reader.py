"""What a reader of networks and operator graphs declares, the registry of readers, and `load`, which chooses one by the
suffix of the file, or by asking where several read one suffix. A member is a module of this folder."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from traces.base.errors import InputError, did_you_mean, shown, unknown_name
from traces.base.files import why_no_file
from traces.base.registry import Registry
from traces.readers.parts.layers import Matrix, check_orientation, claim_matrix, from_layers, natural_key
from traces.readers.parts.model_network import part_of, to_network

if TYPE_CHECKING:
    from traces.networks.network import Network
    from traces.operators.opgraph import OpGraph


Shapes = Mapping[str, Sequence[int]]  # name of an input -> its dimensions


@dataclass(frozen=True)
class ReadOptions:
    orientation: str = "rows-are-outputs"
    names: tuple[str, ...] | None = None
    image: tuple[int, ...] | None = None
    windows: Mapping[str, Mapping[str, int]] | None = None
    batch: int | None = None
    shapes: Shapes | None = None


class NetworkReader:
    """One kind of file. Subclasses declare, and give `network`, `opgraph` or both:

    suffixes: ends of file names, lower case with the dot. chooses_tensors: whether `names` mean something. unrolls:
    whether `image` and `windows` do. sets_shapes: whether `batch` and `shapes` do, as arguments of `opgraph`.
    many_files: whether several files, one per layer, are one network. folder_files: what a folder's files are called,
    for messages, where a whole folder can be one network of this kind.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    chooses_tensors: ClassVar[bool] = False
    unrolls: ClassVar[bool] = False
    sets_shapes: ClassVar[bool] = False
    many_files: ClassVar[bool] = False
    folder_files: ClassVar[str] = ""

    def recognises(self, path: Path) -> bool:
        """Return whether a file with one of the suffixes is of this kind; asked where several readers share one."""
        return True

    def recognises_folder(self, folder: Path) -> bool:
        return False

    def network(self, files: Sequence[Path], options: ReadOptions) -> Network:
        """Read a network; `files` are one file or, where declared, one per layer or one folder."""
        raise InputError(f"{files[0]}: {files[0].suffix} files hold an operator graph, not a network")

    def opgraph(self, file: Path) -> OpGraph:
        raise InputError(f"{file}: {file.suffix} files hold a network, not an operator graph")

    def written(self, file: Path, graph: OpGraph, offsets: Mapping[str, int] | None) -> bytes:
        """Return the file's bytes with the operators of `graph`, in its order.

        Operators of the file are found by their names; others say in their attribute `like` whose kind and attributes
        they have, or are additions and concatenations. offsets: name of a tensor -> its place in the arena, where the
        format has room for it. Raises InputError for other operators, and where no operator writes a result.
        """
        raise InputError(
            f"{file}: {file.suffix} files cannot be written back: `edgewatt schedule MODEL --json FILE` writes the "
            "order and the places of buffers"
        )


class ModelReader(NetworkReader):
    """Files of operators with constants; as a network see traces.readers.parts.model_network.to_network."""

    chooses_tensors = True

    def network(self, files: Sequence[Path], options: ReadOptions) -> Network:
        return to_network(self.part(files[0], options))

    def part(self, file: Path, options: ReadOptions) -> OpGraph:
        more = (options.batch, options.shapes) if self.sets_shapes else ()
        graph = self.opgraph(file, *more)
        return graph if options.names is None else part_of(graph, options.names)


class MatrixReader(NetworkReader):
    """Files of one matrix or more, which are layers from input to output."""

    many_files = True

    @abstractmethod
    def matrices(self, path: Path, names: Sequence[str] | None) -> list[Matrix]:
        """Read the layers of one file. Raises InputError naming file and entry."""

    def matrix_names(self, path: Path) -> list[str]:
        """Return the names among which `matrices` can choose; none where a file holds one matrix."""
        return []

    def network(self, files: Sequence[Path], options: ReadOptions) -> Network:
        layers: list[Matrix] = []
        for file in files:
            layers += self.matrices(file, options.names)
            claim_matrix(sum(len(m.rows) for m in layers), [sum(sum(m.shape) for m in layers)], str(file))
        name = files[0].stem if len(files) == 1 else files[0].resolve().parent.name
        return from_layers(layers, orientation=options.orientation, name=name)


NETWORK_READERS: Registry[NetworkReader] = Registry(
    "network reader", "edgewatt.network_readers", folder="traces.readers", instances_of=NetworkReader
)


_LONGEST_MESSAGE = 1000
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def load(
    path: Paths | Any,
    *,
    kind: str | None = None,
    orientation: str = "rows-are-outputs",
    names: Sequence[str] | None = None,
    image: Sequence[int] | None = None,
    windows: Mapping[str, Mapping[str, int]] | None = None,
    batch: int | None = None,
    shapes: Shapes | None = None,
) -> Network | OpGraph:
    """Read a network or an operator graph.

    path: a file, a folder, or a list of files with one matrix per layer from input to output. Known are
        the members of NETWORK_READERS: our npz, SciPy sparse npz, Matrix Market, safetensors, Graph Challenge tsv (file
        or folder), ONNX, TensorFlow Lite, operator graphs in JSON, and what plug-ins bring.
        Files of a folder are taken in natural order (layer2 before layer10).
    kind: 'network' or 'opgraph', where a model file could be read as either.
    orientation: 'rows-are-outputs' (as PyTorch stores a linear layer) or 'rows-are-inputs'. Our own npz and the Graph
        Challenge's tsv (rows are sources) have their own.
    names: tensors (or patterns) to take from a safetensors file, in order (None takes all two-dimensional ones), or
        operators of a model: what they read from others are inputs then.
    image: (height, width) of the input, or (channels, height, width): convolutions of a safetensors file are unrolled
        over it, layer after layer. windows: tensor name or pattern -> stride, padding, dilation, pool (side of a mean
        that follows), where they are not 1, (side - 1) // 2, 1 and 1.
    batch: value of the inputs' first dimension, where an ONNX file leaves it open (1). shapes: name of an input -> all
        its dimensions.

    Returns a Network or an OpGraph; `notes` says what was read and what was left. Raises InputError naming file and
    line, entry or tensor.
    """
    if not isinstance(path, str | os.PathLike | list | tuple):
        taker = "from_torch" if hasattr(path, "parameters") else "from_matrices"
        raise InputError(f"load reads files, not a {type(path).__name__}: what is in memory is taken by ew.{taker}")
    check_orientation(orientation)
    if kind not in (None, "network", "opgraph"):
        raise unknown_name("kind", kind, ("network", "opgraph"))
    if names is not None and not list(names):
        raise InputError("names: an empty list means no tensor; None means all")
    if shapes is not None and not all(isinstance(sizes, list | tuple) for sizes in shapes.values()):
        raise InputError("shapes: name of an input -> all its dimensions, such as {'image': [1, 3, 224, 224]}")
    chosen, size = None if names is None else tuple(names), None if image is None else tuple(image)
    try:
        return _load(path, kind, ReadOptions(orientation, chosen, size, windows, batch, shapes))
    except OSError as error:  # a folder that may not be listed, a file that vanishes
        raise InputError(f"{error.filename or path}: cannot be read ({error.strerror or error})") from error
    except MemoryError as error:
        raise InputError(f"{path}: takes more memory than there is") from error
    except InputError as error:
        text = str(error)
        if len(text) <= _LONGEST_MESSAGE and "\n" not in text:
            raise
        raise InputError(" ".join(text.split())[:_LONGEST_MESSAGE]) from error  # names in the file may hold anything


def _load(path: Paths, kind: str | None, options: ReadOptions) -> Network | OpGraph:
    reader, files = _choose(path, kind)
    if files[0].is_dir():
        return reader.network(files, options)
    abilities = {
        "chooses_tensors": (options.names is not None, "names choose tensors and operators of {} files only"),
        "unrolls": (
            options.image is not None or bool(options.windows),
            "image and windows are for weights without a model, {} files",
        ),
        "sets_shapes": (
            options.batch is not None or bool(options.shapes),
            "batch and shapes are for {} files, whose dimensions may be open",
        ),
    }
    for able, (given, rule) in abilities.items():
        if given and not getattr(reader, able):
            known = _suffixes(each for each in _readers().values() if getattr(each, able))
            raise InputError(f"{files[0]}: {rule.format(' and '.join(known))}")
    if options.windows and options.image is None:
        raise InputError(f"{files[0]}: windows need the size of the input image: image=(height, width)")
    for name, shape in (options.shapes or {}).items():
        if any(type(side) is not int or not 1 <= side <= 2**31 for side in shape):
            raise InputError(f"shape of {name!r}: {shape}: whole numbers of at least 1 are needed")
    if options.batch is not None and (isinstance(options.batch, bool) or not 1 <= options.batch <= 2**31):
        raise InputError(f"batch is {options.batch}: a whole number of at least 1")
    if kind == "opgraph" or (kind is None and type(reader).opgraph is not NetworkReader.opgraph):
        if len(files) > 1:
            raise InputError(f"{files[0]}: one file holds an operator graph, {len(files)} were given")
        return reader.part(files[0], options) if isinstance(reader, ModelReader) else reader.opgraph(files[0])
    return reader.network(files, options)


def written(path: str | os.PathLike[str], graph: OpGraph, offsets: Mapping[str, int] | None = None) -> bytes:
    reader, files = _choose(path, "opgraph")
    return reader.written(files[0], graph, offsets)


def reader_name(path: Paths, kind: str | None = None) -> str:
    chosen, _ = _choose(path, kind)
    return next(name for name, reader in _readers().items() if reader is chosen)


def _readers() -> dict[str, NetworkReader]:
    return {name: entry.item for name, entry in NETWORK_READERS.loadable().items()}


def _suffixes(readers: Iterable[NetworkReader]) -> list[str]:
    return sorted({suffix for reader in readers for suffix in reader.suffixes})


def _choose(path: Paths, kind: str | None) -> tuple[NetworkReader, list[Path]]:
    readers = _readers().values()
    if not isinstance(path, str | os.PathLike):
        path = list(path)
        if not all(isinstance(entry, str | os.PathLike) for entry in path):
            raise InputError(f"path: {shown(path)} is no list of files")
        files = [Path(entry) for entry in path]
    elif Path(path).is_dir():
        for reader in readers if kind != "opgraph" else ():
            if reader.recognises_folder(Path(path)):
                return reader, [Path(path)]
        files = _folder_files(Path(path), readers)
    else:
        files = [Path(path)]
    if not files:
        raise InputError("no file given: one matrix per layer is needed")
    known = _suffixes(readers)
    for file in files:
        if not file.is_file():
            why = why_no_file(file)
            raise InputError(f"{file}: {why}{_near(file) if why == 'no such file' else ''}")
        if file.suffix.lower() not in known:
            if file.suffix.lower() in (".yaml", ".yml"):
                raise InputError(f"{file}: this is a configuration, no network: `edgewatt run {file}` computes it")
            raise InputError(f"{file}: unknown kind of file {file.suffix!r}{did_you_mean(file.suffix, known)}")
    suffixes = sorted({file.suffix.lower() for file in files})
    if len(suffixes) > 1:
        raise InputError(f"{files[0].parent}: layers in different kinds of file ({', '.join(suffixes)}): use one kind")
    able = [reader for reader in readers if suffixes[0] in reader.suffixes and (len(files) == 1 or reader.many_files)]
    if not able:
        raise InputError(f"{files[0]}: {suffixes[0]} files hold a whole model each: give one file, not {len(files)}")
    for reader in able:
        if len(able) == 1 or reader.recognises(files[0]):
            return reader, files
    raise InputError(
        f"{files[0]}: no {suffixes[0]} file of a kind that is known here (`edgewatt list network-readers`)"
    )


def _folder_files(folder: Path, readers: Iterable[NetworkReader]) -> list[Path]:
    known = _suffixes(reader for reader in readers if reader.many_files and not reader.folder_files)
    files = sorted((p for p in folder.iterdir() if p.is_file() and p.suffix.lower() in known), key=natural_key)
    if not files:
        named = [reader.folder_files for reader in readers if reader.folder_files]
        raise InputError(f"{folder}: holds no layer files (known: {', '.join([*known, *named])})")
    return files


def _near(file: Path) -> str:
    try:
        others = [entry.name for entry in file.parent.iterdir()][:1000]
    except OSError:
        return ""
    hint = did_you_mean(file.name, others)
    return hint if hint.startswith(" (did") else ""
