"""closed-strict: every burst precharges its bank by itself (RDA, WRA), even if others for the row are queued."""

from __future__ import annotations

from hwmodel.dram.policy import PAGE_POLICIES, EnginePolicy

POLICY = EnginePolicy(page="strict")
PAGE_POLICIES.register("closed-strict", summary="auto-precharge with every burst")(POLICY)
