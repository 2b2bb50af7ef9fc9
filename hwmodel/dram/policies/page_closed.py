"""closed: the last known hit of a row precharges its bank by itself (RDA, WRA)."""

from __future__ import annotations

from hwmodel.dram.policy import PAGE_POLICIES, EnginePolicy

POLICY = EnginePolicy(page="closed")
PAGE_POLICIES.register("closed", summary="auto-precharge with the last known hit")(POLICY)
