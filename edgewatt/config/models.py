"""What a configuration may say. Field descriptions here become the configuration reference and the JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, create_model, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

from edgewatt.config.kinds import AS_GIVEN
from edgewatt.config.sections import KindChoice, Named, NamedFile, section_for
from edgewatt.config.source import READING
from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.controller import ControllerSpec
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import EngineSpec
from traces.base.errors import InputError, shown, unknown_name
from traces.base.schema import Section
from traces.layout.settings import AUTO, BEST, BOTH_INT8, INT8, Layout
from traces.networks.network import ACTIVATIONS
from traces.readers.reader import reader_name
from traces.trace.partition import EnginesSpec

M = TypeVar("M", bound="OnChipSection | RunConfig")


def _existing(value: str) -> str:
    try:
        there = bool(value) and Path(value).exists()
    except (OSError, ValueError):  # too long, or a NUL in it
        there = False
    if not there:
        raise PydanticCustomError("missing_file", "{message}", {"message": f"no such file: {shown(value, 200)}"})
    return value


def _no_folder(value: str) -> str:
    if Path(value).is_dir():
        raise InputError(f"{value}: is a folder, not a file")
    return value


def _no_other_folder(value: str) -> str:
    if Path(value).is_dir():
        reader_name(value, "network")  # refuses a folder without a network, all of which would be read otherwise
    return value


Existing = Annotated[str, AfterValidator(_existing)]
FilePath = Annotated[Existing, AfterValidator(_no_folder)]
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

    file: Annotated[Existing, AfterValidator(_no_other_folder)] | None = Field(
        default=None, description="network file or folder, relative to the configuration file"
    )
    files: list[FilePath] | None = Field(default=None, description="one file per layer, first layer first")
    orientation: Literal["rows-are-outputs", "rows-are-inputs"] | None = Field(
        default=None, description="what the rows of matrix files are (default: rows-are-outputs)"
    )
    names: list[str] | None = Field(
        default=None,
        min_length=1,
        description="tensors of a safetensors file, in order, operators of a model; or patterns (default: all)",
    )
    image: list[int] | None = Field(
        default=None,
        description="height and width of the input (channels before them): unrolls convolutions of safetensors",
    )
    windows: dict[str, dict[str, int]] | None = Field(
        default=None, description="tensor or pattern -> stride, padding, dilation, pool of a convolution"
    )
    shapes: dict[str, list[int]] | None = Field(
        default=None, description="input of an ONNX model -> its dimensions, where the file leaves them open"
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
    activation: Literal[ACTIVATIONS] | None = Field(  # type: ignore[valid-type]
        default=None, description="instead of what the file names, or of relu where it names none"
    )

    @model_validator(mode="after")
    def _one_source(self) -> NetworkSection:
        if sum(source is not None for source in (self.file, self.files, self.generate)) != 1:
            raise ValueError("a network needs one of 'file', 'files' and 'generate'")
        for key in READING:
            if self.generate is not None and getattr(self, key) is not None:
                raise ValueError(f"unused key {key!r}: a generated network has no files")
        return self


class TraceSection(Section):
    """A recorded memory trace instead of a network; only the machine is simulated."""

    file: FilePath = Field(description="trace file: our npz, or another simulator's (then without data)")
    format: Annotated[str, Named("trace-readers")] | None = Field(
        default=None, description="format of the file (`edgewatt list trace-readers`; default: found by its content)"
    )
    access_bytes: int = Field(default=32, ge=1, le=255, description="size of an access where the file has none")


def _one_or_many(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _not_empty(value: list[Any]) -> list[Any]:
    if not value:
        raise PydanticCustomError("empty", "{message}", {"message": "the list is empty: name at least one"})
    return value


def _known_encoder(value: str) -> str:
    from hwmodel.coding.chain import parse_chain

    parse_chain(value)
    return value


def _known_technology(value: str) -> str | None:
    from hwmodel.energy.technology import load_technology

    if value == "none":
        return None
    load_technology(value)
    return value


def _known_objective(value: Any) -> Any:
    from reorder.edges.search.objectives import machine_objective, make_objective

    if value is None:
        return None
    named = machine_objective(value)
    if named is None:
        make_objective(value)
    return named or value


def _stride(value: Any) -> Any:
    if value == AS_GIVEN:
        return {"kind": AS_GIVEN}
    if isinstance(value, bool) or not (isinstance(value, int) or value == "row"):
        return value
    return {"kind": "sort", "stride": value}


class NoTupleOrder(Section):
    """The tuples stay as the edge ordering gives them."""

    kind: Literal["none"] = AS_GIVEN


class _StrideChoice(KindChoice):
    def section(self, kind: str) -> type[Section]:
        return NoTupleOrder if kind == AS_GIVEN else super().section(kind)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        kinds = super().__get_pydantic_json_schema__(schema, handler)
        none = {"type": "object", "properties": {"kind": {"const": AS_GIVEN}}, "additionalProperties": False}
        return {"anyOf": [{"enum": [AS_GIVEN, "row"]}, {"type": "integer", "minimum": 1}, none, *kinds["anyOf"]]}


Format = Annotated[str, Named("formats")]
Encoder = Annotated[str, Named("encoders", chain=True), AfterValidator(_known_encoder)]
Stride = Annotated[int, Field(ge=1)] | Literal["row", "io-neutral"]
_ORDERING = KindChoice("orderings")
_STRIDE = _StrideChoice(
    "tuple-orders",
    (
        ("stride", Stride, "row"),  # tuples that may change places; io-neutral: without one more I/O
        ("stride_restart", Literal["row", "continuous"], "row"),  # at each run, or counted through the whole order
        ("objective", Literal["joint", "values", "ids"], "joint"),  # whose ones count
    ),
)
OrderingChoice = Annotated[Any, _ORDERING]
StrideChoice = Annotated[Any, _STRIDE, BeforeValidator(_stride)]


def ordering_section(kind: str) -> type[Section]:
    return _ORDERING.section(kind)


def stride_section(kind: str) -> type[Section]:
    return _STRIDE.section(kind)


class FastMemory(Section):
    """The fast memory of the I/O model (Gleinig et al. 2023)."""

    size: int = Field(
        default=100,
        ge=3,
        description="M: neuron values plus the connection in hand (default: the rows that the machine's on-chip memory "
        "holds; 100 without a machine)",
    )
    policy: Literal["lru", "rr", "min"] = Field(default="min", description="eviction policy")
    pinning: Literal["literal", "pin_both"] = Field(default="literal", description="reading of Algorithm 1's pinning")
    curve: list[Annotated[int, Field(ge=3)]] = Field(
        default=[], description="sizes at which the I/Os are counted besides `size`, for the curve in the report"
    )


if TYPE_CHECKING:  # made at run time from the dataclasses they fill
    LayoutSection: TypeAlias = Any
    CacheSection: TypeAlias = Any
    EngineSection: TypeAlias = Any
    ControllerSection: TypeAlias = Any
    ScratchpadSection: TypeAlias = Any
    EnginesSection: TypeAlias = Any
else:
    LayoutSection = section_for(
        Layout, name="LayoutSection", omit=("value_format",), named=(("kind", Named("layouts", AUTO, BEST)),)
    )
    CacheSection = section_for(CacheSpec, name="CacheSection", named=(("policy", Named("cache-policies")),))
    EngineSection = section_for(EngineSpec, name="EngineSection")
    ControllerSection = section_for(
        ControllerSpec,
        name="ControllerSection",
        named=(
            ("scheduler", Named("dram-schedulers")),
            ("page_policy", Named("page-policies")),
            ("refresh", Named("refresh-policies")),
        ),
    )
    ScratchpadSection = section_for(ScratchpadSpec, name="ScratchpadSection")
    EnginesSection = section_for(EnginesSpec, name="EnginesSection")


LayoutItem = Annotated[LayoutSection, BeforeValidator(lambda v: {"kind": v} if isinstance(v, str) else v)]


class OnChipSection(Section):
    """One of several on-chip memories to compare: caches or a scratchpad."""

    caches: list[CacheSection] = Field(default=[], description="cache levels from the engine outward")
    scratchpad: ScratchpadSection | None = Field(default=None, description="memory that software manages")

    @model_validator(mode="after")
    def _one(self) -> OnChipSection:
        return _one_memory(self)


def _count_alone(value: Any) -> Any:
    return {"count": value} if isinstance(value, int) and not isinstance(value, bool) else value


def _one_memory(section: M) -> M:
    if section.scratchpad is not None and section.caches and {"caches"} & section.model_fields_set:
        raise ValueError("a machine has caches or a scratchpad, not both: leave one out")
    return section


def _known_stream(value: str) -> str:
    from traces.trace.chunks import STREAMS

    if value not in STREAMS:
        raise unknown_name("stream", value, STREAMS)
    return value


StreamName = Annotated[str, AfterValidator(_known_stream)]
ElementBytes = Annotated[int, Field(ge=1, le=8)]


class BusSection(Section):
    """The data bus between the last cache and memory."""

    bus_bytes: int | None = Field(default=None, ge=1, le=64, description="byte lanes (default: those of the DRAM part)")
    block_bytes: int | None = Field(
        default=None, ge=1, description="bytes encoded together (default: the part's burst)"
    )
    element_bytes: ElementBytes | dict[StreamName, Annotated[int, Field(ge=1, le=64)]] | None = Field(
        default=None,
        description="bytes of one element for Base+XOR: of all streams, or by stream, such as {ids: 2} (default: each "
        "stream's own)",
    )
    metadata: int | None = Field(
        default=None,
        ge=0,
        description="word that every burst carries beside its data, on a part with metadata in its bursts (LPDDR6)",
    )


class SearchSection(Section):
    """What ordering methods that search are asked for."""

    objective: Annotated[Any, AfterValidator(_known_objective)] = Field(
        default=None,
        description="what to lower: energy, time or bytes of the machine, io, runs, or "
        "{kind: weighted, a: 1.0, b: 0.5} (a x runs + b x I/Os), "
        "{kind: memories, sizes: [50, 100]}, {kind: io, policy: lru} "
        "(default: energy where a machine is measured, else io)",
    )
    time_limit_s: float | None = Field(
        default=None, gt=0, description="wall-clock limit of each search; the record then says `truncated`"
    )


class DramSection(Section):
    """The memory part and its controller."""

    part: Annotated[str, NamedFile("dram")] = Field(
        default="lpddr4-3200", description="shipped part (`edgewatt list parts`) or a YAML file"
    )
    overrides: dict[str, Any] = Field(default={}, description="fields of the part to replace, as in its own file")
    controller: ControllerSection = ControllerSection()


class RunConfig(Section):
    """One `edgewatt run`: a network, one machine, and the small grid of orderings, strides and formats."""

    name: str = Field(default="", description="label in tables and reports")
    description: str = Field(default="", description="free text")
    network: NetworkSection | None = Field(default=None, description="the work: this or `trace` is required")
    trace: TraceSection | None = Field(default=None, description="a recorded memory trace instead of a network")
    orderings: Annotated[list[OrderingChoice], BeforeValidator(_one_or_many), AfterValidator(_not_empty)] = Field(
        default=["two-optimal"], description="edge orderings (`edgewatt list orderings`)", validate_default=True
    )
    strides: Annotated[list[StrideChoice], BeforeValidator(_one_or_many), AfterValidator(_not_empty)] = Field(
        default=["none"],
        description="tuple orders: none, a stride (sorted), or {kind: greedy, stride: 32}",
        validate_default=True,
    )
    formats: Annotated[list[Format], BeforeValidator(_one_or_many), AfterValidator(_not_empty)] = Field(
        default=["fp32"],
        description="number formats of weights (`edgewatt list formats`); activations: `layout.neuron_format`",
    )
    fast_memory: FastMemory = FastMemory()
    search: SearchSection = SearchSection()
    layout: Annotated[list[LayoutItem], BeforeValidator(_one_or_many), AfterValidator(_not_empty)] = Field(
        default=[LayoutSection()],
        description="how connections lie in memory, one for all orderings; a list gives each ordering in each of them",
    )
    sample: int = Field(default=0, ge=0, description="which input vector of the network's batch fills the payload")
    batch: int | None = Field(
        default=None,
        ge=1,
        description="input vectors, from `sample` on (default: one for each of the layout's lanes); "
        "more than the network has are drawn from them",
    )
    caches: list[CacheSection] = Field(
        default=[CacheSection.model_validate({"size_bytes": 32768})],
        description="cache levels from the engine outward: shipped names (`edgewatt list caches`) or mappings",
    )
    scratchpad: ScratchpadSection | None = Field(
        default=None, description="memory that software manages, instead of caches"
    )
    onchip: list[OnChipSection] | None = Field(
        default=None, min_length=1, description="several memories to compare, each with `caches` or a `scratchpad`"
    )
    technology: Annotated[str, NamedFile("onchip", "none"), AfterValidator(_known_technology)] | None = Field(
        default=None,
        description="what on-chip memory and arithmetic cost (`edgewatt list technologies`, or a YAML file); "
        "none: the energy of memory alone",
    )
    idle: Literal["all", "none", "capacity", "bandwidth"] | Annotated[float, Field(ge=0, le=1)] = Field(
        default="all",
        description="how much of the DRAM's static energy (background, refresh, clocks) the work is billed: all; none "
        "(no leakage on chip either: dynamic energy alone); capacity: the share of the device that its data fill; "
        "bandwidth: the share of the peak that it uses; or a share from 0 to 1",
    )
    bus: BusSection = BusSection()
    encoder: Encoder = Field(default="raw", description="encoder chain on the bus, such as base-xor+dbi-dc")
    dram: DramSection = DramSection()
    engine: EngineSection = EngineSection()
    engines: Annotated[EnginesSection, BeforeValidator(_count_alone)] = Field(
        default=EnginesSection(), description="engines that share caches and memory: a number, or {count: 4, cut: runs}"
    )
    timing: Literal["replay", "system"] = Field(
        default="system",
        description="system: SimPy processes with waiting and contention; replay: issue time, array kernels alone",
    )
    measure: Literal["io", "all"] = Field(
        default="all", description="io: the I/O model's counts alone, without trace and machine; all: also the machine"
    )
    accuracy: bool = Field(
        default=False,
        description="measure the accuracy of each format as executed: against the labels in the network's file, and "
        "against float64",
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of every random choice")

    @property
    def on_a_machine(self) -> bool:
        """Whether a machine is measured whose on-chip memory sees the order of the work."""
        return self.measure == "all" and self.has_memories

    @property
    def has_memories(self) -> bool:
        on_chip = [(each.caches, each.scratchpad) for each in self.onchip or ()] or [(self.caches, self.scratchpad)]
        return all(map(any, on_chip))

    @model_validator(mode="after")
    def _one_work(self) -> RunConfig:
        if (self.network is None) == (self.trace is None):
            raise ValueError("give a network or a trace" + (", not both" if self.network else ""))
        if self.trace is not None:
            work = ["orderings", "strides", "formats", "fast_memory", "search", "layout", "sample", "batch", "accuracy"]
            unused = self.model_fields_set.intersection(work)
            if unused:
                raise ValueError(f"unused key {sorted(unused)[0]!r}: a recorded trace fixes it already")
            if self.scratchpad is not None or any(each.scratchpad is not None for each in self.onchip or ()):
                raise ValueError(
                    "a scratchpad moves rows by the order of work, which a recorded trace does not hold: give the "
                    "network and its order ('orderings: {kind: file, path: ...}') instead of 'trace', or use caches"
                )
        if self.onchip is not None and {"caches", "scratchpad"} & self.model_fields_set:
            raise ValueError("`onchip` lists the memories: leave `caches` and `scratchpad` out")
        _engines_fit(self)
        _formats_fit(self)
        _objective_fits(self)
        return _one_memory(self)


def _objective_fits(run: RunConfig) -> None:
    from reorder.edges.search.objectives import machine_objective

    named = run.search.objective is not None and machine_objective(run.search.objective)
    if named and not run.has_memories:
        raise ValueError(f"objective {named!r} needs caches or a scratchpad: without, every order moves the same bytes")


def _formats_fit(run: RunConfig) -> None:
    others = [name for name in run.formats if name != INT8]
    if others and any(layout.neuron_format == INT8 for layout in run.layout):
        raise ValueError(f"neuron_format int8 needs formats int8, not {others[0]}: {BOTH_INT8}")


def _engines_fit(run: RunConfig) -> None:
    if run.engines.count == 1:
        return
    if run.trace is not None:
        raise ValueError("several engines share the work by its order, which a recorded trace does not hold: engines 1")
    memories: list[Any] = [*run.onchip] if run.onchip else [run]
    if any(each.scratchpad is not None for each in memories):
        raise ValueError("a scratchpad belongs to one engine: set engines 1, or give the machine caches")
    future = [c.policy for each in memories for c in each.caches if c.build().policy_type.needs_future]
    if future and run.timing == "system":
        raise ValueError(
            f"cache policy {future[0]!r} needs the future, which several engines decide together: use another policy"
        )


SYSTEM_KEYS = (
    "fast_memory", "caches", "scratchpad", "technology", "idle", "bus", "encoder", "dram", "engine", "engines",
)  # fmt: skip
_SYSTEM: dict[str, Any] = {"description": (str, ""), "source": (str, ""), **dict.fromkeys(SYSTEM_KEYS, (Any, None))}
SystemFile = create_model(
    "SystemFile", __base__=Section, __doc__="A machine under configs/systems: defaults of `system: NAME`.", **_SYSTEM
)


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
