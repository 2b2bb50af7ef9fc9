"""none: no refresh, for comparison."""

from __future__ import annotations

from hwmodel.dram.policy import REFRESH_POLICIES, EnginePolicy

POLICY = EnginePolicy(refresh="none")
REFRESH_POLICIES.register("none", summary="no refresh")(POLICY)
