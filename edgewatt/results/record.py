"""What one finished point leaves behind: a canonical part, the same everywhere, and where it came from."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from traces.base.errors import EdgewattError, InputError, brief
from traces.base.reprs import OneLineRepr

SCHEMA = 1
"""Version of the record's layout. A reader of version n reads every version up to n."""


class NewerRecordError(InputError):
    """A record was made by a newer edgewatt, which writes or counts otherwise: it is nobody's to replace."""


HASH_DIGITS = 24

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@contextmanager
def of_our_shape(where: str) -> Iterator[None]:
    """Turn what reading a record's parts raises into an InputError: its checksum may be right, its content not ours."""
    try:
        yield
    except EdgewattError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        what = f"{type(error).__name__}: {brief(error)}"
        raise InputError(f"{where}: its content is not what edgewatt writes ({what})") from error


def canonical_json(value: Any) -> str:
    """Write JSON values in the one form that is hashed and compared: sorted keys, no spaces, shortest floats."""
    return _CANONICAL.encode(value)


def content_hash(value: Any) -> str:
    return hash_of_text(canonical_json(value))


def hash_of_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


@dataclass(frozen=True)
class Record(OneLineRepr):
    """One finished point.

    canonical: config, hash, seed, counts and energies: byte-identical on any machine and for any number of workers.
    provenance: versions, duration, machine, paths: what it takes to repeat the run elsewhere.
    """

    canonical: Mapping[str, Any]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = OneLineRepr.__repr__

    def _repr_fields(self) -> dict[str, object]:
        try:
            with of_our_shape("record"):
                return self._details()
        except InputError:  # to show what is wrong never fails
            return {"point": self.hash[:8], "content": "not edgewatt's"}

    def _details(self) -> dict[str, object]:
        from traces.base.units import duration, energy

        kinds = {key: self.config[key]["kind"] for key in ("ordering", "stride") if key in self.config}
        spent = self.results.get("energy_pj", {}).get("total")
        return {
            "point": self.hash[:8], **kinds, "format": self.config.get("format"),
            "part": self.config.get("dram", {}).get("part"), "I/Os": self.results.get("io", {}).get("total"),
            "energy": None if spent is None else energy(spent),
            "time": duration(self.results["time_ns"]) if "time_ns" in self.results else None,
        }  # fmt: skip

    @property
    def hash(self) -> str:
        return str(self.canonical["hash"])

    @property
    def config(self) -> Mapping[str, Any]:
        config: Mapping[str, Any] = self.canonical["config"]
        return config

    @property
    def results(self) -> Mapping[str, Any]:
        results: Mapping[str, Any] = self.canonical["results"]
        return results

    @property
    def counts_version(self) -> int:
        """By which version of the counts it was made (`edgewatt._version.COUNTS_VERSION`)."""
        return int(self.provenance.get("counts_version", 1))

    def to_bytes(self) -> bytes:
        """Serialise with a checksum over both parts; one line a part, so that `diff` and `grep` help."""
        canonical, provenance = canonical_json(self.canonical), canonical_json(self.provenance)
        return (
            f'{{"schema":{SCHEMA},"sha256":"{_checksum(canonical, provenance)}",\n'
            f'"canonical":{canonical},\n"provenance":{provenance}}}\n'
        ).encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, raw: bytes, where: str) -> Record:
        """Read what `to_bytes` wrote. Raises InputError naming `where` if it is damaged or of a newer version."""
        try:
            text = raw.decode("utf-8", "surrogatepass")
            data = json.loads(text)
            schema, checksum = data["schema"], data["sha256"]
            canonical, provenance = data["canonical"], data["provenance"]
            wrong = "" if isinstance(schema, int) and schema <= SCHEMA else "newer"
            wrong = wrong or _wrong(canonical, provenance, checksum, text)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if error.args == ("schema",) and not {"canonical", "provenance"} & data.keys():
                no_record = "no record, which `run` and `sweep` write: JSON of another command, perhaps"
                raise InputError(f"{where}: {no_record}") from error
            raise InputError(
                f"{where}: the record is damaged ({type(error).__name__}: {error}); "
                "without the file its point is computed again"
            ) from error
        if wrong == "newer":
            raise NewerRecordError(
                f"{where}: record schema {schema!r} is newer than this edgewatt reads ({SCHEMA}): update it"
            )
        if wrong:
            raise InputError(f"{where}: {wrong}")
        return cls(canonical, provenance)


def _ill_typed(config: Any, canonical: Mapping[str, Any], provenance: Any) -> str:
    if not all(isinstance(part, dict) for part in (config, canonical.get("results", {}), provenance)):
        return "config, results and provenance are objects"
    return "" if type(provenance.get("counts_version", 1)) is int else "counts_version is a whole number"


def _wrong(canonical: Any, provenance: Any, checksum: Any, text: str) -> str:
    name, written = canonical["hash"], _parts(text)
    if ill := _ill_typed(canonical.get("config", {}), canonical, provenance):
        raise TypeError(ill)
    if checksum != _checksum(*written) and checksum != _checksum(canonical_json(canonical), canonical_json(provenance)):
        return "the record is damaged (its checksum does not fit its content)"
    if _is_of(written[0], name) or name == content_hash(canonical.get("config")):
        return ""
    return "the record's hash does not fit its configuration"


def _is_of(canonical: str, config_hash: str) -> bool:
    """Whether the canonical part is as `to_bytes` wrote it and its configuration has that hash: parsing takes longer,
    and to write it again longer still."""
    config, _, rest = canonical.removeprefix('{"config":').partition(f',"hash":"{config_hash}"')
    return config_hash == hash_of_text(config) and '"config":' not in rest and "\\u" not in rest  # an escaped key


def version_as_written(raw: bytes, config_hash: str) -> int | None:
    """Return by which version of the counts that point's record was made, without a look at its results; None if it is
    not as `to_bytes` wrote it."""
    with suppress(ValueError, RecursionError):
        text = raw.decode("utf-8", "surrogatepass")
        canonical, provenance = _parts(text)
        head = f'{{"schema":{SCHEMA},"sha256":"{_checksum(canonical, provenance)}",\n'
        if text.startswith(head) and _is_of(canonical, config_hash):
            made = json.loads(provenance)
            return None if _ill_typed({}, {}, made) else made.get("counts_version", 1)
    return None


def _parts(text: str) -> tuple[str, str]:
    lines = text.split("\n")
    if len(lines) != 4 or not lines[1].startswith('"canonical":') or not lines[2].startswith('"provenance":'):
        return "", ""
    if not lines[1].endswith(",") or not lines[2].endswith("}") or lines[3]:
        return "", ""
    return lines[1][len('"canonical":') : -1], lines[2][len('"provenance":') : -1]


def _checksum(canonical: str, provenance: str) -> str:
    return hashlib.sha256(f"{canonical}\n{provenance}".encode("utf-8", "surrogatepass")).hexdigest()


_LIBRARIES = ("numpy", "scipy", "simpy", "ml_dtypes", "ortools", "pydantic", "PyYAML")


def environment() -> dict[str, Any]:
    made = _environment()
    return {**made, "libraries": dict(made["libraries"])}


@cache
def _environment() -> dict[str, Any]:
    import platform
    from importlib import import_module

    from edgewatt._version import COUNTS_VERSION, __version__
    from edgewatt.installation import platform_name, version_of

    cpu = import_module("cython_ext.common.cpu")

    return {
        "edgewatt": __version__,
        "counts_version": COUNTS_VERSION,
        "python": platform.python_version(),
        "libraries": {name: version_of(name) for name in _LIBRARIES},
        "platform": platform_name(),
        "machine": platform.machine(),
        "host": platform.node(),
        "simd": cpu.simd_level(),
        "debug_kernels": bool(cpu.debug_build()),
    }


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
