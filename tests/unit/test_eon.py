"""EON: what the policy may depend on, learning, checkpoints that go on where a run stopped, and what is refused."""

import json
import math

import numpy as np
import pytest
from oracles.eon_oracle import policy
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from traces.base.errors import InputError
from traces.generators.networks import uniform_layers
from traces.readers.native import save

torch = pytest.importorskip("torch", reason="needs torch")

from edgewatt.orders.training import lru_misses, train_seeds  # noqa: E402
from reorder.eon.checkpoint import read, write  # noqa: E402
from reorder.eon.episodes import frontiers, likeliest, observed  # noqa: E402
from reorder.eon.policy import (  # noqa: E402
    NOTHING,
    Graph,
    Tables,
    Worlds,
    _Look,
    forward,
    initial,
    tables,
)
from reorder.eon.training import advantages, begin, train  # noqa: E402

pytestmark = pytest.mark.application


@pytest.fixture(scope="module")
def network():
    return uniform_layers([8] * 5, 0.2, 1)


@pytest.fixture(scope="module")
def trained(network, tmp_path_factory):
    path = tmp_path_factory.mktemp("eon") / "a.safetensors"
    return path, train_seeds(network, memory=6, iterations=3, output=path)[0]


def test_the_policy_does_not_know_the_order_of_frontier_and_cache(network, trained):
    state = trained[1]
    graph, world = Graph(state.features, network.sources, network.targets), frontiers(network, 1, 5)
    for _ in range(10):
        world.step(np.zeros(1, np.int64))
    known, now = tables(state.parameters, graph), observed(world)
    cached = int((now.cache >= 0).sum())
    turned = np.concatenate([now.cache[:, :cached][:, ::-1], now.cache[:, cached:]], axis=1)
    logits, value = forward(state.parameters, known, now)
    flipped, same = forward(state.parameters, known, Worlds(now.frontier[:, ::-1].copy(), now.size, turned))
    assert torch.allclose(logits.flip(1), flipped, atol=1e-5) and torch.allclose(value, same, atol=1e-5)
    padded = Worlds(
        np.pad(now.frontier, ((0, 0), (0, 3))), now.size, np.pad(now.cache, ((0, 0), (0, 2)), constant_values=-1)
    )
    wide, same = forward(state.parameters, known, padded)
    assert torch.allclose(wide[:, : logits.shape[1]], logits, atol=1e-5) and torch.allclose(same, value, atol=1e-5)
    assert (wide.softmax(-1)[:, logits.shape[1] :] == 0).all()


def test_the_network_is_the_oracles(network, trained):
    state = trained[1]
    graph, world = Graph(state.features, network.sources, network.targets), frontiers(network, 3, 5)
    rng = np.random.default_rng(0)
    held = {name: each.numpy() for name, each in state.parameters.items()}
    for _ in range(12):
        now = observed(world)
        logits, value = forward(state.parameters, tables(state.parameters, graph), now)
        chances = logits.softmax(-1).numpy()
        for b, size in enumerate(world.size):
            seen = (now.frontier[b, :size], now.cache[b][now.cache[b] >= 0])
            wanted, worth = policy(held, state.features, network.sources, network.targets, *seen)
            assert chances[b, :size] == pytest.approx(wanted, abs=1e-5) and not chances[b, size:].any()
            assert float(value[b]) == pytest.approx(worth, abs=1e-5)
        world.step(rng.integers(world.size))


@pytest.mark.parametrize("width", [5, 16, 33])
def test_the_compiled_gradient_is_that_of_automatic_differentiation(network, width):
    graph = Graph(begin(network, memory=6).features, network.sources, network.targets)
    generator = torch.Generator().manual_seed(1)
    known = tables(initial(graph.features.shape[1], width, generator), graph)
    known = Tables(*(torch.randn(each.shape, generator=generator).requires_grad_() for each in known))
    world, rng = frontiers(network, 4, 5), np.random.default_rng(0)
    for step in range(12):
        now = observed(world)
        if step in (0, 3, 11):
            plain = [attended(known, *each) for each in zip(now.frontier, now.size, now.cache, strict=True)]
            logits, summary = _Look.apply(now, *known)
            of, to = torch.randn(logits.shape, generator=generator), torch.randn(summary.shape, generator=generator)
            wanted = sum((one * of[b, : len(one)]).sum() + (two * to[b]).sum() for b, (one, two) in enumerate(plain))
            found = torch.where(logits > NOTHING, logits * of, 0).sum() + (summary * to).sum()
            assert found.item() == pytest.approx(wanted.item(), rel=1e-4, abs=1e-4)
            pairs = zip(torch.autograd.grad(found, known), torch.autograd.grad(wanted, known), strict=True)
            assert all(
                torch.allclose(one, two, rtol=1e-3, atol=1e-4 * float(two.abs().max() + 1)) for one, two in pairs
            )
        world.step(rng.integers(world.size))


def attended(known, frontier, size, cache):
    """The attention of one world in plain PyTorch: logits of its connections and the summary for the critic."""
    of, held = torch.from_numpy(frontier[:size]).long(), torch.from_numpy(cache[cache >= 0]).long()
    mixed = (known.query[of] @ known.key[of].T).softmax(-1) @ known.value[of]
    edge = torch.nn.functional.layer_norm(known.edge[of] + mixed, mixed.shape[-1:], known.weight, known.bias)
    seen = torch.cat([held, torch.tensor([len(known.node)])])
    logits = (edge @ known.offer[seen].T + known.offer_bias[seen]).max(-1).values
    both = torch.cat([edge, known.node[held]])
    return logits, (both @ known.sentinel).softmax(-1) @ both


def test_advantages_are_discounted_sums_of_what_came_unexpected():
    misses, value = np.array([[2], [0], [1]]), np.array([[0.5], [0.0], [-1.0]], np.float32)
    reward = [-1.0, 1.0, 0.0]  # less their mean
    delta = [reward[0] + 0.95 * 0.0 - 0.5, reward[1] + 0.95 * -1.0 - 0.0, reward[2] + 1.0]
    found, target = advantages(misses, value)
    assert found[:, 0].tolist() == pytest.approx(
        [delta[0] + 0.95**2 * (delta[1] + 0.95**2 * delta[2]), delta[1] + 0.95**2 * delta[2], delta[2]], rel=1e-5
    )
    assert (target == found + value).all()


def test_misses_fall_with_training():
    network = uniform_layers([8] * 4, 0.25, 3)
    state = train(network, begin(network, memory=6), iterations=20)
    first, last = state.curve[0], state.curve[-1]
    assert last.mean < 0.95 * first.mean and last.best <= last.best_likeliest < first.likeliest
    assert lru_misses(network, state.best, 6) == last.best


def test_a_run_in_two_pieces_is_the_run_in_one(network, tmp_path):
    whole = train(network, begin(network, memory=6, seed=5), iterations=3)
    write(tmp_path / "half", network, train(network, begin(network, memory=6, seed=5), iterations=1))
    again = train(network, read(tmp_path / "half", network), iterations=3)
    assert [look.mean for look in again.curve] == [look.mean for look in whole.curve]
    assert all(torch.equal(again.parameters[name], each) for name, each in whole.parameters.items())
    assert all(torch.equal(again.best_parameters[name], each) for name, each in whole.best_parameters.items())
    assert (again.best == whole.best).all() and len(again.curve) == 3


def test_the_ordering_takes_the_best_of_policy_and_training(network, trained):
    path, state = trained
    graph = Graph(state.features, network.sources, network.targets)
    greedy, misses = likeliest(state.best_parameters, graph, network, 5)
    assert misses == lru_misses(network, greedy, 6) == min(look.likeliest for look in state.curve)
    only = ew.order(network, "eon", memory=6, policy="lru", checkpoint=str(path), greedy_only=True)
    assert (only.edges == greedy).all()
    both = ew.order(network, "eon", memory=6, policy="lru", checkpoint=str(path), samples=4)
    best = min(lru_misses(network, edges, 6) for edges in (greedy, state.best))
    assert lru_misses(network, both.edges, 6) <= best
    again = ew.order(network, "eon", memory=6, policy="lru", checkpoint=str(path), samples=4)
    assert (again.edges == both.edges).all()


def test_what_is_no_checkpoint_of_this_network_is_refused(network, trained, tmp_path):
    path, _ = trained
    other = uniform_layers([8] * 5, 0.2, 2)
    with pytest.raises(InputError, match="trained for another network"):
        ew.order(other, "eon", memory=6, checkpoint=str(path))
    good = path.read_bytes()
    for number, at in enumerate((0, 9, 200, len(good) // 2)):
        (tmp_path / f"cut{number}").write_bytes(good[:at])
        with pytest.raises(InputError, match=f"cut{number}"):
            read(tmp_path / f"cut{number}", network)
    rng = np.random.default_rng(0)
    for number in range(200):  # a damaged file is refused by name, or is a run whose numbers are all in range
        damaged = bytearray(good)
        damaged[int(rng.integers(len(good)))] ^= 1 << int(rng.integers(8))
        (tmp_path / f"bit{number}").write_bytes(bytes(damaged))
        try:
            state = read(tmp_path / f"bit{number}", network)
        except InputError as error:
            assert f"bit{number}" in str(error) or "order" in str(error)
        else:
            assert all(torch.isfinite(each).all() for each in state.parameters.values())
    size = int.from_bytes(good[:8], "little")
    header = json.loads(good[8 : 8 + size])
    about = json.loads(header["__metadata__"]["eon"])
    for name, value in (
        ("seconds", math.nan),
        ("seconds", math.inf),
        ("seconds", -1.0),
        ("iteration", 2**63),
        ("memory", 2**63),
    ):
        header["__metadata__"]["eon"] = json.dumps({**about, name: value})
        made = json.dumps(header).encode()
        (tmp_path / "odd").write_bytes(len(made).to_bytes(8, "little") + made + good[8 + size :])
        with pytest.raises(InputError, match="odd: no checkpoint of `edgewatt learn eon`, or damaged"):
            read(tmp_path / "odd", network)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none", network)
    with pytest.raises(InputError, match="memory must be at least 3"):
        train_seeds(network, memory=2, iterations=1)
    with pytest.raises(InputError, match="trained with memory 6, not 9"):
        train_seeds(network, memory=9, iterations=1, resume=path)


def test_the_command_trains_and_resumes(network, tmp_path):
    save(network, tmp_path / "net.npz")
    call = ["learn", "eon", str(tmp_path / "net.npz"), "-M", "6", "-o", str(tmp_path / "a.safetensors"), "--json", "-"]
    first = CliRunner().invoke(app, [*call, "--iterations", "1", "--seeds", "0,1"])
    assert first.exit_code == 0, first.output
    assert len(json.loads(first.stdout)["runs"]) == 2
    more = [*call, "--force", "--iterations", "2", "--resume", str(tmp_path / "a.safetensors")]
    second = CliRunner().invoke(app, more)
    assert second.exit_code == 0, second.output
    found = json.loads(second.stdout)
    assert found["runs"][0]["iterations"] == 2 and found["misses"]["ego"] > 0
    bad = CliRunner().invoke(app, [*call, "--iterations", "1", "--seconds", "1"])
    assert isinstance(bad.exception, InputError) and "not both" in str(bad.exception)


def test_a_description_nested_without_end_is_refused(network, trained, tmp_path):
    from safetensors.numpy import load, save_file

    save_file(load(trained[0].read_bytes()), tmp_path / "deep.safetensors", {"eon": "[" * 50_000})
    with pytest.raises(InputError, match=r"deep.safetensors: no checkpoint of `edgewatt learn eon`, or damaged"):
        read(tmp_path / "deep.safetensors")


def test_parameters_that_overflow_are_an_error_and_leave_the_file(network, trained, tmp_path):
    """Weights of 3e38 are finite in the file; one step of training makes them none."""
    held, path = read(trained[0]), tmp_path / "huge.safetensors"
    for each in held.parameters.values():
        each.data.fill_(3e38)
    write(path, network, held)
    before = path.read_bytes()
    with pytest.raises(InputError, match="no longer finite; go on from another checkpoint"):
        train_seeds(network, memory=6, iterations=4, resume=path, output=path)
    assert path.read_bytes() == before
