"""all-bank: REFab, all banks of a rank at once, every tREFI."""

from __future__ import annotations

from hwmodel.dram.policy import REFRESH_POLICIES, EnginePolicy

POLICY = EnginePolicy(refresh="all-bank")
REFRESH_POLICIES.register("all-bank", summary="all banks of a rank at once")(POLICY)
