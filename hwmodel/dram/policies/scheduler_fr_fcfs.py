"""fr-fcfs: first ready, first come first served (Rixner et al., ISCA 2000), with a cap on row hits."""

from __future__ import annotations

from hwmodel.dram.policy import DRAM_SCHEDULERS, EnginePolicy

POLICY = EnginePolicy(strict_order=0)
DRAM_SCHEDULERS.register("fr-fcfs", summary="row hits before older misses, at most hit_cap of them")(POLICY)
