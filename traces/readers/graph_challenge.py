"""Sparse DNN Graph Challenge files: tab-separated `row column value`, 1-based; rows are source neurons.

A folder holds ``n1024-l1.tsv``, ``n1024-l2.tsv``, ..., and optionally images ``sparse-images-1024.tsv`` (row = sample)
and the true categories ``neuron1024-l120-categories.tsv`` (one 1-based sample number per line).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.base.memory import claim
from traces.networks.forward import default_bias
from traces.networks.network import Network
from traces.readers.parts.layers import Matrix, from_layers, natural_key
from traces.readers.parts.triplets import read_triplets
from traces.readers.reader import NETWORK_READERS, NetworkReader, ReadOptions

_LAYER_FILE = re.compile(r"n(\d{1,9})-l(\d{1,9})\.tsv")
_MAX_BATCH_VALUES = 1 << 28


def read_images(path: str | Path, n_inputs: int) -> npt.NDArray[np.float32]:
    """Return float32[B, n_inputs] from an image file; B is the largest sample number in it."""
    table = read_triplets(path, skip=0, has_values=True, shape=None)
    outside = np.flatnonzero(table.columns >= n_inputs)
    if outside.size:
        k = int(outside[0])
        raise InputError(f"{table.line(k)}: column {table.columns[k] + 1} is out of range: there are {n_inputs} inputs")
    n_samples = int(table.rows.max(initial=-1)) + 1
    if n_samples * n_inputs > _MAX_BATCH_VALUES:
        raise InputError(f"{path}: {n_samples} samples of {n_inputs} values are too many at once: give fewer samples")
    claim(4 * n_samples * n_inputs, str(path), "the batch")
    assert table.values is not None
    images = np.zeros((n_samples, n_inputs), np.float32)
    images[table.rows, table.columns] = table.values
    return images


def _layer_files(folder: Path) -> list[Path]:
    matches = {path: match for path in folder.iterdir() if (match := _LAYER_FILE.fullmatch(path.name))}
    if len({match[1] for match in matches.values()}) > 1:
        raise InputError(f"{folder}: holds layer files of several networks (different n<neurons>): keep one per folder")
    files = sorted(matches, key=natural_key)
    for expected, path in enumerate(files, 1):
        if int(matches[path][2]) != expected:
            raise InputError(f"{folder}: layer file {files[0].name.split('-')[0]}-l{expected}.tsv is missing")
    return files


def _layers(files: Sequence[Path]) -> list[Matrix]:
    layers = []
    for path in files:
        named = _LAYER_FILE.fullmatch(path.name)
        shape = (int(named[1]),) * 2 if named else None
        table = read_triplets(path, skip=0, has_values=True, shape=shape)
        if shape is None:
            shape = (int(table.rows.max(initial=0)) + 1, int(table.columns.max(initial=0)) + 1)
        layers.append(Matrix(table.rows, table.columns, table.values, shape, str(path), entry=table.line))
    for k in range(len(layers) - 1):
        width = max(layers[k].shape[1], layers[k + 1].shape[0])
        layers[k] = replace(layers[k], shape=(layers[k].shape[0], width))
        layers[k + 1] = replace(layers[k + 1], shape=(width, layers[k + 1].shape[1]))
    return layers


class GraphChallenge(NetworkReader):
    suffixes = (".tsv",)
    many_files = True
    folder_files = "n<neurons>-l<layer>.tsv"

    def recognises_folder(self, folder: Path) -> bool:
        return any(_LAYER_FILE.fullmatch(path.name) for path in folder.iterdir())

    def network(self, files: Sequence[Path], options: ReadOptions) -> Network:
        """Images in the folder become the batch; all neurons but inputs have the challenge's bias for the width."""
        name, images = files[0].stem, list[Path]()
        if files[0].is_dir():
            folder = files[0]
            files, name = _layer_files(folder), folder.resolve().name
            images = sorted(folder.glob("sparse-images-*.tsv"))
            if len(images) > 1:
                raise InputError(f"{folder}: holds {len(images)} image files: keep the one that belongs to the network")
        network = from_layers(_layers(files), orientation="rows-are-inputs", activation="clipped-relu", name=name)
        width = len(network.inputs)
        biases = np.where(network.in_degree > 0, default_bias(width), 0.0)
        return network.with_(biases=biases, batch=read_images(images[0], width) if images else None)


NETWORK_READERS.register("graph-challenge", summary="Sparse DNN Graph Challenge tsv: a folder, or files in order")(
    GraphChallenge()
)
