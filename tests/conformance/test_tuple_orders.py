"""What every registered tuple order owes its users."""

import numpy as np
import pytest
import scipy.sparse

from reorder.tuples import TUPLE_ORDERS, order_tuples
from reorder.tuples.matrix import LAYOUTS
from reorder.tuples.tuple_problem import OBJECTIVES
from traces.base.errors import InputError

MATRIX = scipy.sparse.random(9, 30, density=0.4, format="csr", random_state=3, dtype=np.float32)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", list(TUPLE_ORDERS))
def test_an_order_is_a_permutation_inside_its_strides(method: str, layout: str) -> None:
    if layout not in TUPLE_ORDERS[method].item.layouts:
        with pytest.raises(InputError, match=f"does not order for layout '{layout}': use 'greedy'"):
            order_tuples(MATRIX, value_format="fp16", stride=6, layout=layout, method=method)
        return
    found = order_tuples(MATRIX, value_format="fp16", stride=6, layout=layout, method=method, effort=0.1)
    assert sorted(found.positions.tolist()) == list(range(MATRIX.nnz))
    assert (found.matrix() != MATRIX).nnz == 0
    again = order_tuples(MATRIX, value_format="fp16", stride=6, layout=layout, method=method, effort=0.1)
    assert again.positions.tolist() == found.positions.tolist()
    for name in TUPLE_ORDERS[method].item.guards:
        other = found.original_cost
        if name != "given":
            other = order_tuples(MATRIX, value_format="fp16", stride=6, layout=layout, method=name).cost
        assert found.cost <= other


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("method", list(TUPLE_ORDERS))
def test_the_bound_holds(method: str, objective: str) -> None:
    if objective not in TUPLE_ORDERS[method].item.objectives:
        pytest.skip("declared not to serve it")
    found = order_tuples(MATRIX, value_format="fp16", stride=6, method=method, objective=objective, effort=0.1)
    assert found.lower_bound is not None and found.lower_bound <= found.cost
