"""What a configuration may say of its work: a network with its file or generator, or a recorded trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from edgewatt.config.sections import KindChoice, Named, Section
from traces.base.errors import shown


def _existing(value: str) -> str:
    try:
        there = bool(value) and Path(value).exists()
    except (OSError, ValueError):  # too long, or a NUL in it
        there = False
    if not there:
        raise PydanticCustomError("missing_file", "{message}", {"message": f"no such file: {shown(value, 200)}"})
    return value


FilePath = Annotated[str, AfterValidator(_existing)]
GeneratorChoice = Annotated[Any, KindChoice("generators")]


class Prune(Section):
    """Pruning before anything else: keep a density or a number of connections."""

    density: float | None = Field(default=None, gt=0, le=1, description="share of the connections to keep")
    n_connections: int | None = Field(default=None, ge=1, description="connections to keep")
    scope: Literal["global", "layer"] = Field(default="global", description="one threshold, or one per layer")
    method: Literal["magnitude", "memory"] = Field(
        default="magnitude",
        description="magnitude: the heaviest; memory: in the windows that `memory` has room for, with an order of the "
        "network's own (`orderings: own`) that belongs to them",
    )
    memory: int | None = Field(default=None, ge=3, description="M that `method: memory` prunes for")
    calibration: FilePath | None = Field(
        default=None,
        description="npz with `inputs`: what stays is fitted to what each layer computed on them (needs `density`)",
    )

    @model_validator(mode="after")
    def _one_of(self) -> Prune:
        if (self.density is None) == (self.n_connections is None):
            raise ValueError("give either density or n_connections")
        if (self.method == "memory") != (self.memory is not None):
            raise ValueError("method 'memory' and the key 'memory' belong together: give both or none")
        if self.calibration is not None and self.density is None:
            raise ValueError("with calibration each layer keeps the same share: give density, not n_connections")
        return self


class NetworkSection(Section):
    """The work: a network from files or from a generator, pruned if wished."""

    file: FilePath | None = Field(
        default=None, description="network file or folder, relative to the configuration file"
    )
    files: list[FilePath] | None = Field(default=None, description="one file per layer, first layer first")
    orientation: Literal["rows-are-outputs", "rows-are-inputs"] | None = Field(
        default=None, description="what the rows of matrix files are (default: rows-are-outputs)"
    )
    generate: GeneratorChoice | None = Field(
        default=None, description="generator and its parameters, instead of a file"
    )
    prune: Prune | None = None
    labelled: FilePath | None = Field(
        default=None,
        description="npz with `inputs` and `labels` (positions among the outputs) that `accuracy` is measured on "
        "(default: those of the network's file)",
    )
    activation: Literal["identity", "relu", "clipped-relu"] | None = Field(
        default=None, description="replaces the activation that the file names"
    )

    @model_validator(mode="after")
    def _one_source(self) -> NetworkSection:
        if sum(source is not None for source in (self.file, self.files, self.generate)) != 1:
            raise ValueError("a network needs one of 'file', 'files' and 'generate'")
        if self.generate is not None and self.orientation is not None:
            raise ValueError("unused key 'orientation': a generated network has no matrix files")
        return self


class TraceSection(Section):
    """A recorded memory trace instead of a network; only the machine is simulated."""

    file: FilePath = Field(description="trace file: our npz, or another simulator's (then without data)")
    format: Annotated[str, Named("trace-readers")] | None = Field(
        default=None, description="format of the file (`edgewatt list trace-readers`; default: found by its content)"
    )
    access_bytes: int = Field(default=32, ge=1, le=255, description="size of an access where the file has none")
