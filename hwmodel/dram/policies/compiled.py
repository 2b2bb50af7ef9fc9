"""Schedulers, page policies and refresh policies that the compiled engine has settings for."""

from __future__ import annotations

from hwmodel.dram.policy import DRAM_SCHEDULERS, PAGE_POLICIES, REFRESH_POLICIES, EnginePolicy

# The time of a bank doubles when a row closed by it is asked for again, and halves on a conflict.
PAGE_POLICIES.register("adaptive", summary="idle rows are closed after a time that each bank learns")(
    EnginePolicy(page="adaptive")
)
PAGE_POLICIES.register("closed", summary="auto-precharge with the last known hit")(EnginePolicy(page="closed"))
PAGE_POLICIES.register("closed-strict", summary="auto-precharge with every burst")(EnginePolicy(page="strict"))
PAGE_POLICIES.register("open", summary="rows stay open")(EnginePolicy(page="open"))

REFRESH_POLICIES.register("all-bank", summary="all banks of a rank at once")(EnginePolicy(refresh="all-bank"))
REFRESH_POLICIES.register("none", summary="no refresh")(EnginePolicy(refresh="none"))
REFRESH_POLICIES.register("per-bank", summary="each set of banks in turn")(EnginePolicy(refresh="per-bank"))

DRAM_SCHEDULERS.register("fcfs", summary="in the order of arrival, one request at a time")(EnginePolicy(strict_order=1))
# First ready, first come first served: Rixner et al., ISCA 2000.
DRAM_SCHEDULERS.register("fr-fcfs", summary="row hits before older misses, at most hit_cap of them")(
    EnginePolicy(strict_order=0)
)
