"""fcfs: strictly in the order of arrival, one request at a time."""

from __future__ import annotations

from hwmodel.dram.policy import DRAM_SCHEDULERS, EnginePolicy

POLICY = EnginePolicy(strict_order=1)
DRAM_SCHEDULERS.register("fcfs", summary="in the order of arrival, one request at a time")(POLICY)
