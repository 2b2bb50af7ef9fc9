"""What a reader of networks and operator graphs declares, and the registry of readers.

A member is a `NetworkReader` registered under a name, one module of this folder each. `load` chooses it by the suffix
of the file, or by asking where several read one suffix. Files of one matrix per layer need a `MatrixReader` only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traces.base.errors import InputError
from traces.base.registry import Registry
from traces.readers.parts.layers import Matrix, from_layers

if TYPE_CHECKING:
    from traces.work.network import Network
    from traces.work.opgraph import OpGraph


@dataclass(frozen=True)
class ReadOptions:
    """What a user may ask of a reader; see `load`."""

    orientation: str = "rows-are-outputs"
    names: tuple[str, ...] | None = None
    image: tuple[int, ...] | None = None
    windows: Mapping[str, Mapping[str, int]] | None = None
    batch: int | None = None


class NetworkReader:
    """One kind of file. Subclasses declare, and give `network`, `opgraph` or both:

    suffixes: ends of file names, lower case with the dot. chooses_tensors: whether `names` mean something. unrolls:
    whether `image` and `windows` do. sets_batch: whether `batch` does, as a second argument of `opgraph`.
    many_files: whether several files, one per layer, are one network. folder_files: what a folder's files are called,
    for messages, where a whole folder can be one network of this kind.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    chooses_tensors: ClassVar[bool] = False
    unrolls: ClassVar[bool] = False
    sets_batch: ClassVar[bool] = False
    many_files: ClassVar[bool] = False
    folder_files: ClassVar[str] = ""

    def recognises(self, path: Path) -> bool:
        """Return whether a file with one of the suffixes is of this kind; asked where several readers share one."""
        return True

    def recognises_folder(self, folder: Path) -> bool:
        """Return whether a folder as a whole is one network of this kind."""
        return False

    def network(self, files: Sequence[Path], options: ReadOptions) -> Network:
        """Read a network; `files` are one file or, where declared, one per layer or one folder."""
        raise InputError(f"{files[0]}: {files[0].suffix} files hold an operator graph, not a network")

    def opgraph(self, file: Path) -> OpGraph:
        """Read an operator graph."""
        raise InputError(f"{file}: {file.suffix} files hold a network, not an operator graph")

    def written(self, file: Path, graph: OpGraph, offsets: Mapping[str, int] | None) -> bytes:
        """Return the file with the operators of `graph` in its order, and the places of tensors where it has room."""
        raise InputError(
            f"{file}: {file.suffix} files cannot be written back: `edgewatt schedule MODEL --json FILE` writes the "
            "order and the places of buffers"
        )

    @property
    def holds_graphs(self) -> bool:
        """Whether a file is an operator graph first, read where the user does not ask for a network."""
        return type(self).opgraph is not NetworkReader.opgraph


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
        layers = [matrix for file in files for matrix in self.matrices(file, options.names)]
        name = files[0].stem if len(files) == 1 else files[0].resolve().parent.name
        return from_layers(layers, orientation=options.orientation, name=name)


NETWORK_READERS: Registry[NetworkReader] = Registry(
    "network reader", "edgewatt.network_readers", folder="traces.readers", instances_of=NetworkReader
)
