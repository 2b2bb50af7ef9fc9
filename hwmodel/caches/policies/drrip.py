"""drrip: Jaleel et al., ISCA 2010; cython_ext/cache/policies/policy_drrip.h says how."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register(
    "drrip", summary="static or bimodal re-reference interval prediction by set dueling (Jaleel et al. 2010)"
)
class Drrip(Policy):
    """Static or bimodal re-reference interval prediction by set dueling (Jaleel et al. 2010)."""

    kernel = "drrip"
