"""adaptive: a row idle for `page_idle_cycles` is closed.

The time of a bank doubles when that row is asked for again, and halves on a conflict.
"""

from __future__ import annotations

from hwmodel.dram.policy import PAGE_POLICIES, EnginePolicy

POLICY = EnginePolicy(page="adaptive")
PAGE_POLICIES.register("adaptive", summary="idle rows are closed after a time that each bank learns")(POLICY)
