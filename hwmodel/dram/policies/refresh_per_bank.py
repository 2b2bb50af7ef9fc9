"""per-bank: REFpb, each set of banks in turn, all of them once in tREFI."""

from __future__ import annotations

from hwmodel.dram.policy import REFRESH_POLICIES, EnginePolicy

POLICY = EnginePolicy(refresh="per-bank")
REFRESH_POLICIES.register("per-bank", summary="each set of banks in turn")(POLICY)
