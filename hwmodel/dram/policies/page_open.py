"""open: a row stays open until another row of its bank is needed, or a refresh is due."""

from __future__ import annotations

from hwmodel.dram.policy import PAGE_POLICIES, EnginePolicy

POLICY = EnginePolicy(page="open")
PAGE_POLICIES.register("open", summary="rows stay open")(POLICY)
