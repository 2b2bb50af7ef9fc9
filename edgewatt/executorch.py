"""Exact arenas inside ExecuTorch: a member of its `MemoryPlanningAlgorithmSuite` (extra `executorch`).

    from executorch.exir import ExecutorchBackendConfig, memory_planning
    from executorch.exir.passes import MemoryPlanningPass
    from edgewatt.executorch import ArenaPlanner

    planner = ArenaPlanner()
    suite = memory_planning.MemoryPlanningAlgorithmSuite([memory_planning.greedy, planner])
    program = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(suite)))
    planner.proved  # no plan of these lifetimes is lower

The suite keeps the lower of the two plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from reorder.operators.arena.allocate import allocate
from reorder.operators.arena.banks import Bank
from traces.base.errors import InputError, MissingExtraError

DEFAULT_MEMORY = 1  # ExecuTorch's number of a tensor's memory where nobody chose; 0 holds constants


class ArenaPlanner:
    """Place the tensors of an ExecuTorch program by `ew.allocate`.

    time_limit_s: of each memory; None: the number of steps decides, which gives the same plan on every run.
    banks: memories from number 1 on. Without them every tensor stays in the memory that a pass chose for it (1 where
    none did). With them those that no pass chose are put so that reading and writing each once takes least; such a
    planner is the only one of its suite.

    proved: whether no plan is lower, after a program was planned (banks: whether no choice is faster). heights: bytes
    of each memory from 0 on, without padding.
    """

    __name__ = "edgewatt"  # how the suite tells its members apart

    def __init__(self, *, time_limit_s: float | None = None, banks: Sequence[Bank] | None = None) -> None:
        self.time_limit_s, self.banks = time_limit_s, banks
        self.proved, self.heights = False, [0, 0]

    def __call__(
        self, alignment: int, specs: Iterable[Any], graph_module: Any, graph_signature: Any = None,
        extra_padding: int = 0,
    ) -> Any:  # fmt: skip
        """Return ExecuTorch's `MemoryAlgoResult`: memory and offset of each tensor, bytes of each memory."""
        try:
            from executorch.exir import memory_planning
        except ImportError as error:
            raise MissingExtraError("executorch", "executorch") from error
        every = sorted(specs, key=lambda spec: (spec.lifetime, spec.allocated_memory))
        for spec in every:
            spec.realign(alignment)
        whole = [spec for spec in every if spec.storage_base is None]
        life = {id(spec): list(spec.lifetime) for spec in whole}
        views = [(spec, *_base_of(spec)) for spec in every if spec.storage_base is not None]
        for spec, base, _ in views:  # what lies inside another tensor keeps that one's storage alive
            own = life[id(base)]
            own[:] = min(own[0], spec.lifetime[0]), max(own[1], spec.lifetime[1])
        given = list(getattr(graph_module, "input_mem_buffer_sizes", None) or ())
        result = memory_planning.MemoryAlgoResult({}, [0, 0])
        memories, offsets = self._placed(whole, life, alignment, given)
        for number, (spec, memory, offset) in enumerate(zip(whole, memories, offsets, strict=True)):
            result.spec_dict[spec] = memory_planning.SpecAllocResult(memory, number, offset)
        for spec, base, inside in views:
            at = result.spec_dict[base]
            result.spec_dict[spec] = memory_planning.SpecAllocResult(at.mem_id, at.mem_obj_id, at.mem_offset + inside)
        result.bufsizes = [height + (extra_padding if height else 0) for height in self.heights]
        return result

    def _placed(
        self, whole: Sequence[Any], life: dict[int, list[int]], alignment: int, given: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        lower = [life[id(spec)][0] for spec in whole]
        upper = [life[id(spec)][1] + 1 for spec in whole]  # ExecuTorch counts the last user in
        size = [max(1, spec.allocated_memory) for spec in whole]
        how: dict[str, Any] = {"alignment": alignment, "time_limit_s": self.time_limit_s}
        if self.banks is not None:
            pinned = {k: self._bank(spec.mem_id) for k, spec in enumerate(whole) if spec.mem_id is not None}
            placed = allocate(lower, upper, size, banks=self.banks, pinned=pinned, **how)
            self.proved, self.heights = bool(placed.proved), [0, *map(int, placed.heights)]
            return [int(bank) + 1 for bank in placed.bank], [int(offset) for offset in placed.offset]
        memories = [DEFAULT_MEMORY if spec.mem_id is None else spec.mem_id for spec in whole]
        offsets = [0] * len(whole)
        self.proved, self.heights = True, [0] * (max(memories, default=1) + 1)
        for memory in sorted(set(memories)):
            chosen = [k for k, each in enumerate(memories) if each == memory and whole[k].allocated_memory]  # not empty
            one = allocate(*([column[k] for k in chosen] for column in (lower, upper, size)), **how)
            first = given[memory] if memory < len(given) else 0
            first += -first % alignment
            self.proved &= bool(one.proved)
            self.heights[memory] = first + int(one.height)
            for k, offset in zip(chosen, one.offset, strict=True):
                offsets[k] = first + int(offset)
        return memories, offsets

    def _bank(self, memory: int) -> str:
        assert self.banks is not None
        if not 1 <= memory <= len(self.banks):
            raise InputError(f"a tensor is in memory {memory}: there are {len(self.banks)} banks, numbered from 1")
        return self.banks[memory - 1].name


def _base_of(spec: Any) -> tuple[Any, int]:
    inside, base = spec.storage_base_offset, spec.storage_base
    while base.storage_base is not None:
        inside, base = inside + base.storage_base_offset, base.storage_base
    return base, inside
