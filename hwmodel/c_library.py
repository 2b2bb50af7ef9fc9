"""The file of the C library (cython_ext/dram/edgewatt_dram.h): a part and its controller, resolved to clocks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hwmodel.dram.engine import ControllerSpec, controller_spec, load_part
from hwmodel.dram.memory_kernel import kernel_tables
from hwmodel.parts.part import Part

# In the order in which edgewatt_dram.h reads them.
SETTINGS = (
    "faw", "refresh_interval", "refresh_cycles", "refresh_bank_cycles", "read_data_end", "write_data_end", "rp", "rtp",
    "write_recovery", "cke", "ranks", "groups", "banks_per_group", "command_buses", "strict_order", "hit_cap",
    "hit_cap_strict", "page", "page_idle", "read_entries", "write_entries", "bank_entries", "write_high", "write_low",
    "write_idle", "latency", "refresh", "precharge_all", "refresh_sets", "power_down", "watchdog", "pooled", "posted",
    "sync_cycles", "sync_after_read", "sync_after_write", "second_act",
    "second_starts_rcd", "postpone", "pull_in", "pull_in_idle", "self_refresh", "rfm_limit", "rfm_cycles", "age_cap",
    "masked", "offset_bits",
)  # fmt: skip


def include_folder() -> Path:
    """Return the folder to include from: `#include "dram/edgewatt_dram.h"`."""
    import cython_ext

    return Path(cython_ext.__path__[0])


def write_library_file(
    path: str | Path,
    part: str | Path | Mapping[str, Any] | Part,
    controller: ControllerSpec | Mapping[str, Any] | None = None,
) -> None:
    """Write the file that edgewatt_dram_open reads. Raises InputError as load_part and simulate_dram do."""
    from traces.base.files import whole_file

    loaded, spec = load_part(part), controller_spec(controller)
    tables = kernel_tables(loaded, spec)
    numbers = [loaded.organisation.channels, spec.requests_per_clock, *(tables.settings[name] for name in SETTINGS)]
    numbers += [*tables.wire_cycles.tolist(), *tables.gap.reshape(-1).tolist()]
    numbers += [len(tables.fields), *tables.fields.reshape(-1).tolist()]
    with whole_file(Path(path)) as stream:
        stream.write(f"edgewatt-dram 2 {loaded.tck_ns!r}\n{' '.join(map(str, numbers))}\n".encode())
