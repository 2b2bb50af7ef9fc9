"""best-first: the exact default (reorder.operators.schedule.state_search)."""

from reorder.operators.schedule.base import SCHEDULERS
from reorder.operators.schedule.state_search import BestFirstParameters, best_first

SCHEDULERS.register(
    "best-first", summary="exact search by peak with safe moves, from both ends", parameters=BestFirstParameters
)(best_first)
