"""What a sweep file may say besides the run configuration it changes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from edgewatt.config.sections import Section


def _costs(names: list[str]) -> list[str]:
    return ["accuracy_loss" if name == "accuracy" else name for name in names]


class OptimizeSection(Section):
    """What to search for."""

    objectives: Annotated[list[str], AfterValidator(_costs)] = Field(
        default=["energy_pj", "time_ns"], min_length=1, description="columns to minimise, or accuracy, to maximise"
    )
    constraints: list[str] = Field(default=[], description="such as 'time_ns <= 1.01 x baseline' or 'io <= 90000'")
    trials: int = Field(
        default=100, ge=1, description="points to try; a space of no more points is searched completely"
    )
    sampler: Literal["tpe", "nsga2", "random"] = Field(default="tpe", description="Optuna sampler")
    batch: int = Field(
        default=8, ge=1, description="points proposed at a time; part of the search's seed, unlike workers"
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="seed of the sampler")


class SweepConfig(Section):
    """A sweep file."""

    name: str = Field(default="", description="label in tables and reports")
    description: str = Field(default="", description="free text")
    base: Any = Field(description="a run configuration, or the path of one")
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
        default={}, description="key: values, every combination"
    )
    side_by_side: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
        default={}, alias="zip", description="key: values, side by side"
    )
    further: list[dict[str, Any]] = Field(default=[], alias="list", description="further points: key: value")
    exclude: list[dict[str, Any]] = Field(
        default=[], description="points to leave out: all the values given must agree"
    )
    optimize: OptimizeSection | None = Field(
        default=None, description="what `edgewatt optimize` searches for; `edgewatt sweep` computes the whole space"
    )
