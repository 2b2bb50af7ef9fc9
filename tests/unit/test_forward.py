"""The forward pass: rules that a small example shows, and refusals."""

import numpy as np
import pytest

from traces.base.errors import InputError
from traces.networks.forward import forward
from traces.networks.network import Network


def chain(n: int = 3, **fields: object) -> Network:
    given = {"weights": np.ones(n - 1), "batch": [[1.0]], **fields}
    return Network(np.arange(n - 1), np.arange(1, n), n, inputs=[0], outputs=[n - 1], **given)  # type: ignore[arg-type]


def test_outputs_stay_linear_under_relu_and_are_clipped_under_the_graph_challenge_rule() -> None:
    assert forward(chain(biases=[0, -3, -4])).tolist() == [[1, 0, -4]]
    clipped = chain(weights=[50.0, 2.0], biases=[0, -1, 0], activation="clipped-relu")
    assert forward(clipped).tolist() == [[1, 32, 32]]


def test_graph_challenge_adds_the_bias_only_where_the_sum_is_not_zero() -> None:
    clipped = chain(biases=[0, 5, 5], activation="clipped-relu")
    assert forward(clipped, [[0.0]]).tolist() == [[0, 0, 0]]
    assert forward(clipped, [[1.0]]).tolist() == [[1, 6, 11]]
    assert forward(clipped.with_(activation="relu"), [[0.0]]).tolist() == [[0, 5, 10]]


def test_a_hidden_neuron_without_incoming_connections_holds_its_activated_bias() -> None:
    network = Network([0, 1], [2, 2], 3, inputs=[0], outputs=[2], weights=[1, 1], biases=[9, -2, 0], batch=[[5.0]])
    assert forward(network).tolist() == [[5, 0, 5]]
    assert forward(network.with_(activation="identity")).tolist() == [[5, -2, 3]]


def test_batches_larger_than_a_slice_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    network, batch = chain(5), np.arange(7.0).reshape(7, 1)
    whole = forward(network, batch)
    monkeypatch.setattr("traces.networks.forward._SLICE", 2)
    assert np.array_equal(forward(network, batch), whole)


def test_a_long_chain_is_not_quadratic() -> None:
    assert forward(chain(20_000))[0, -1] == 1.0


def test_refusals() -> None:
    with pytest.raises(InputError, match="no weights"):
        forward(chain(weights=None))
    with pytest.raises(InputError, match=r"carries no inputs: give a batch of shape \(B, 1\)"):
        forward(chain(batch=None))
    with pytest.raises(InputError, match="one column per input"):
        forward(chain(), [[1.0, 2.0]])
    with pytest.raises(InputError, match="not finite"):
        forward(chain(), [[np.nan]])
    with pytest.raises(InputError, match="neuron 2 is beyond the range of float32"):
        forward(chain(weights=[1e30, 1e30]))
    with pytest.raises(InputError, match="weights must be whole numbers"):
        forward(chain(weights=[0.5, 1]), dtype=np.int64)
    with pytest.raises(InputError, match="would leave 64 bits"):
        forward(chain(5, weights=np.full(4, 2.0**20)), dtype=np.int64)
    with pytest.raises(InputError, match="float32, float64 or int64"):
        forward(chain(), dtype=np.float16)
