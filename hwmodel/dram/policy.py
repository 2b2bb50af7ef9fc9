"""What a scheduler, page policy or refresh policy of the DRAM controller is: settings of the compiled engine.

A member stands in `policies/` (or in another distribution) and says by which settings of cython_ext/dram/tables.h
the engine behaves so. They stand above those of the controller: a scheduler with another `hit_cap` is a member, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from traces.base.registry import Registry


class EnginePolicy:
    """settings: value by name; `page` and `refresh` have names for values (cython_ext.dram.engine.CODES)."""

    def __init__(self, **settings: int | str) -> None:
        self.settings: Mapping[str, int | str] = settings


def _kind(what: str, group: str) -> Registry[EnginePolicy]:
    return Registry(what, f"edgewatt.{group}", folder="hwmodel.dram.policies", instances_of=EnginePolicy)


DRAM_SCHEDULERS = _kind("DRAM scheduler", "dram_schedulers")
PAGE_POLICIES = _kind("page policy", "page_policies")
REFRESH_POLICIES = _kind("refresh policy", "refresh_policies")
