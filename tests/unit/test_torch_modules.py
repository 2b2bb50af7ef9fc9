"""PyTorch modules as networks and operator graphs: they compute what the module computes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import edgewatt as ew
from traces.base.errors import InputError
from traces.networks.forward import forward
from traces.networks.network import renumbered
from traces.networks.prune import prune_magnitude
from traces.operators.execute import execute

torch = pytest.importorskip("torch", reason="needs torch")
nn, prune = torch.nn, pytest.importorskip("torch.nn.utils.prune")


class Residual(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.long = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.short = nn.Conv2d(3, 4, 1, stride=2)

    def forward(self, x: Any) -> Any:
        return (self.long(x) + self.short(x)).mean((2, 3))


def convolutions() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8, padding="same"), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip


def drawn(module: Any, seed: int) -> Any:
    """Give all weights and statistics other values than those that they start with."""
    torch.manual_seed(seed)
    for each in module.modules():
        for weight in each.parameters(recurse=False):
            weight.data.normal_()
        if isinstance(each, nn.BatchNorm2d):
            each.running_mean.normal_()
            each.running_var.uniform_(0.5, 2)
    return module.eval()


def unlike() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.PReLU(4, 0.2), nn.MaxPool2d(2), nn.Conv2d(4, 5, 2), nn.LeakyReLU(0.3), nn.Flatten(),
        nn.Linear(20, 6), nn.Tanh(), nn.Linear(6, 5), nn.ReLU6(), nn.Linear(5, 2), nn.SiLU(), nn.Linear(2, 2),
    )  # fmt: skip


@pytest.mark.parametrize("make", [convolutions, Residual, unlike])
@pytest.mark.parametrize("pruned", [False, True])
def test_a_module_computes_the_same_as_a_network(make: Any, pruned: bool) -> None:
    module, x = drawn(make(), 1), torch.randn(1, 3, 8, 8)
    if pruned:
        for each in module.modules():
            if isinstance(each, nn.Conv2d | nn.Linear):
                prune.random_unstructured(each, "weight", 0.5)
    expected = module(x).detach().numpy()
    kept = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    network = ew.from_torch(module, x)
    np.testing.assert_allclose(
        forward(network, x.numpy().reshape(1, -1))[:, network.outputs], expected.reshape(1, -1), rtol=1e-4, atol=1e-5
    )
    assert all(torch.equal(tensor, kept[name]) for name, tensor in module.state_dict().items())  # unchanged


def test_layouts_and_types_of_weights_are_the_same_network() -> None:
    plain = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 4))
    for layer in (plain[0], plain[2]):
        layer.weight.data = torch.randint(-3, 4, layer.weight.shape).float()
    expected = ew.from_torch(plain)
    for make in (lambda w: w.to_sparse(), lambda w: w.to_sparse_csr(), lambda w: w.to(torch.bfloat16)):
        network = ew.from_matrices([make(layer.weight.data) for layer in (plain[0], plain[2])])
        np.testing.assert_array_equal(network.weights, expected.weights)
        np.testing.assert_array_equal(network.sources, expected.sources)
    half = ew.from_torch(copy.deepcopy(plain).to(torch.bfloat16))
    np.testing.assert_array_equal(half.weights, expected.weights)


@pytest.mark.parametrize("bias", [True, False])
def test_a_module_back_in_another_order(bias: bool) -> None:
    module = nn.Sequential(
        nn.Linear(6, 9, bias=bias), nn.ReLU(), nn.Linear(9, 8, bias=bias), nn.ReLU(), nn.Linear(8, 3)
    )
    drawn(module, 3)[2].weight.data[4] = 0  # a neuron of no layer's connections
    network, x = prune_magnitude(ew.from_torch(module), density=0.6), torch.randn(5, 6)
    rng, number = np.random.default_rng(0), np.arange(network.n_neurons)
    for depth in range(1, 3):
        here = np.flatnonzero(network.depth == depth)
        number[here] = rng.permutation(here)
    turned = renumbered(network, number)
    made = ew.to_torch(turned, module)
    assert not torch.equal(made[2].weight, module[2].weight)
    found = made(x).detach().numpy()
    np.testing.assert_allclose(found, forward(network, x.numpy())[:, network.outputs], rtol=1e-5, atol=1e-5)
    again = ew.from_torch(made)
    assert again.n_connections == network.n_connections
    with pytest.raises(InputError, match="is not linear layer 0 of Sequential"):
        ew.to_torch(network, module[2:])


def test_what_is_not_read_is_named() -> None:
    class Gelu(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, how: str = "none") -> None:
            super().__init__()
            self.first, self.last, self.how = nn.Linear(4, 4), nn.Linear(4, 4), how

        def forward(self, x: Any) -> Any:
            return self.last(nn.functional.gelu(self.first(x), approximate=self.how))

    assert ew.from_torch(Gelu()).activation == "gelu"
    with pytest.raises(InputError, match=r"'gelu' \(GELU\) is GELU's approximation by tanh"):
        ew.from_torch(Gelu("tanh"))
    with pytest.raises(InputError, match="an example input is needed"):
        ew.from_torch(convolutions())
    with pytest.raises(InputError, match=r"ew\.from_torch"):
        ew.load(Gelu())
    with pytest.raises(InputError, match=r"ew\.from_matrices"):
        ew.load(torch.eye(3))
    with pytest.raises(InputError, match="not dict"):
        ew.from_torch({})


def test_a_module_as_operators_is_scheduled() -> None:
    from traces.readers.parts.torch_modules import opgraph

    module, x = drawn(convolutions(), 2), torch.randn(1, 3, 8, 8)
    graph = opgraph(module, x)
    found = ew.schedule(graph)
    assert found.proved
    values = execute(graph, {graph.nodes[0].name: x.numpy()}, order=found.order)
    np.testing.assert_allclose(values[graph.outputs[0]], module(x).detach().numpy(), rtol=1e-4, atol=1e-5)
