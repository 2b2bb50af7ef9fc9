"""brrip: Jaleel et al., ISCA 2010; cython_ext/cache/policies/policy_brrip.h says how."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register(
    "brrip", summary="bimodal re-reference interval prediction, one line in 32 kept longer (Jaleel et al. 2010)"
)
class Brrip(Policy):
    """Bimodal re-reference interval prediction, one line in 32 kept longer (Jaleel et al. 2010)."""

    kernel = "brrip"
