"""Training inside windows with PyTorch: the mask is exact, what is pruned stays zero, the order is at the bound."""

import numpy as np
import pytest

import edgewatt as ew
from edgewatt.prune import MemoryPruning
from traces.base.errors import InputError
from traces.networks.forward import forward

torch = pytest.importorskip("torch", reason="needs torch")


def test_a_linear_stack_ends_at_the_bound() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(12, 40), torch.nn.ReLU(), torch.nn.Linear(40, 20), torch.nn.ReLU(), torch.nn.Linear(20, 4)
    )
    pruning = MemoryPruning(module, memory=24, connections=200, neurons=60, every=1)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.05)
    x = torch.randn(64, 12)
    left = []
    for step in range(20):
        optimiser.zero_grad()
        module(x).square().mean().backward()
        optimiser.step()
        pruning.step((step + 1) / 20)
        left.append(sum(int((layer.weight != 0).sum()) for layer in pruning.layers))
    assert left[0] > left[-1] == 200 and left == sorted(left, reverse=True) and pruning.done
    network = pruning.network()
    assert network.n_connections == 200 and network.touched.sum() <= 60
    io = ew.count_io(network, pruning.order(network), memory=24)
    assert io.total == ew.io_bounds(network).lower_total
    mine = forward(network, x.numpy())[:, network.outputs]
    np.testing.assert_allclose(mine, module(x).detach().numpy(), atol=1e-5)


def test_convolutions_lose_whole_kernels() -> None:
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 8, 3, padding=1)
    )
    pruning = MemoryPruning(module, memory=500, connections=60, values=(64, 64, 64))
    pruning.step(1.0)
    assert [mask.shape for mask in pruning.masks()] == [(16, 3), (8, 16)]
    assert sum(int(mask.sum()) for mask in pruning.masks()) == 60
    for layer, mask in zip(pruning.layers, pruning.masks(), strict=True):
        assert ((layer.weight.detach().abs().sum(dim=(2, 3)) > 0).numpy() == mask).all()
    with pytest.raises(InputError, match="export it to ONNX"):
        pruning.network()


def test_layers_that_do_not_follow_each_other_are_refused() -> None:
    module = torch.nn.ModuleList([torch.nn.Linear(4, 5), torch.nn.Linear(4, 5)])
    with pytest.raises(InputError, match="layer 0 gives 5 outputs, but layer 1 takes 4"):
        MemoryPruning(module, memory=8, density=0.5)
    with pytest.raises(InputError, match="room for"):
        MemoryPruning(torch.nn.Linear(40, 50), memory=4, density=0.9)
