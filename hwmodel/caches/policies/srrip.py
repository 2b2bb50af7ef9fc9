"""srrip: Jaleel et al., ISCA 2010; cython_ext/cache/policies/policy_srrip.h says how."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register("srrip", summary="static re-reference interval prediction, two bits (Jaleel et al. 2010)")
class Srrip(Policy):
    """Static re-reference interval prediction, two bits (Jaleel et al. 2010)."""

    kernel = "srrip"
