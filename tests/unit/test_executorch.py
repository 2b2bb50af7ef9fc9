"""Plans for ExecuTorch: no two tensors that live together share a byte, views lie in their base, programs run equal."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import edgewatt as ew
from edgewatt.executorch import ArenaPlanner, _base_of
from traces.base.errors import InputError


def spec(first: int, last: int, n_bytes: int, memory: int | None = None, base: Any = None, inside: int = 0) -> Any:
    return SimpleNamespace(
        lifetime=[first, last], allocated_memory=n_bytes, mem_id=memory, storage_base=base, storage_base_offset=inside
    )


tensors = st.lists(
    st.builds(
        lambda first, more, n, memory: spec(first, first + more, 16 * n, memory),
        st.integers(0, 9), st.integers(0, 4), st.integers(1, 9), st.sampled_from([None, 1, 2]),
    ), min_size=1, max_size=8,
)  # fmt: skip


@given(tensors, st.sampled_from([(), (0, 24)]))
def test_what_lives_together_shares_no_byte(specs: list[Any], taken: tuple[int, ...]) -> None:
    planner = ArenaPlanner()
    memories, offsets = planner._placed(specs, {id(s): s.lifetime for s in specs}, 16, taken)
    for a, (s, m, o) in enumerate(zip(specs, memories, offsets, strict=True)):
        assert m == (s.mem_id or 1) and o % 16 == 0 and o >= (24 if taken and m == 1 else 0)
        assert o + s.allocated_memory <= planner.heights[m]
        for other, n, p in list(zip(specs, memories, offsets, strict=True))[:a]:
            together = s.lifetime[0] <= other.lifetime[1] and other.lifetime[0] <= s.lifetime[1]
            apart = o + s.allocated_memory <= p or p + other.allocated_memory <= o
            assert m != n or apart or not together
    assert planner.proved


def test_banks_take_what_no_pass_chose() -> None:
    specs = [spec(0, 2, 64), spec(1, 3, 64), spec(0, 3, 64, memory=2)]
    planner = ArenaPlanner(banks=[ew.operators.Bank("sram", 1000, 128), ew.operators.Bank("dram", 100)])
    memories, _ = planner._placed(specs, {id(s): s.lifetime for s in specs}, 16, ())
    assert memories == [1, 1, 2] and planner.heights == [0, 128, 64] and planner.proved
    with pytest.raises(InputError, match="a tensor is in memory 3: there are 2 banks"):
        planner._bank(3)


def test_an_empty_tensor_takes_no_byte() -> None:
    specs, planner = [spec(0, 2, 64), spec(0, 1, 0)], ArenaPlanner()
    planner._placed(specs, {id(s): s.lifetime for s in specs}, 16, ())
    assert planner.heights == [0, 64] and planner.proved


def test_a_view_of_a_view_lies_in_the_first() -> None:
    base = spec(0, 1, 64)
    inner = spec(1, 2, 32, base=base, inside=16)
    assert _base_of(spec(2, 3, 16, base=inner, inside=8)) == (base, 24)


@pytest.mark.application
def test_a_program_runs_the_same_in_a_smaller_arena(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("executorch")
    from executorch.exir import ExecutorchBackendConfig, memory_planning, to_edge
    from executorch.exir.passes import MemoryPlanningPass
    from executorch.runtime import Runtime

    class Branches(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = (torch.nn.Linear(64, n) for n in (256, 32, 128))

        def forward(self, x: Any) -> Any:
            wide, narrow = torch.relu(self.a(x)), torch.relu(self.b(x))
            return torch.cat([wide[:, :64] + x, narrow, self.c(x)], 1).tanh()

    torch.manual_seed(0)
    model, example = Branches().eval(), (torch.randn(3, 64),)
    outputs, sizes, planner = [], [], ArenaPlanner()
    for planners in ([memory_planning.greedy], [memory_planning.greedy, planner]):
        suite = memory_planning.MemoryPlanningAlgorithmSuite(planners)
        config = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(suite))
        made = to_edge(torch.export.export(model, example)).to_executorch(config)
        sizes.append(made.executorch_program.execution_plan[0].non_const_buffer_sizes[1])
        (tmp_path / "m.pte").write_bytes(made.buffer)
        method = Runtime.get().load_program(str(tmp_path / "m.pte")).load_method("forward")
        outputs.append(method.execute(list(example))[0].clone())
    assert sizes[1] <= sizes[0] and planner.proved and torch.equal(*outputs)
    graph = ew.from_torch(model, example, kind="opgraph")
    assert len(ew.schedule(graph).order) == len(graph.nodes)
