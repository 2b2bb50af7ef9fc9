"""A forward pass on a scratchpad: what DMA brings and takes (trace/transfers.h)."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport within32, within64
from cython_ext.trace.ports cimport ew_ports, open_ports
from cython_ext.trace.walk cimport ForwardWalk, ew_sink, ew_walk, open_sink

import numpy as np


cdef extern from "trace/transfers.h" nogil:
    ctypedef struct ew_array:
        pass
    ctypedef struct ew_transfers:
        ew_walk *walk
        const int32_t *move_step, *move_neuron
        const uint8_t *move_kind
        const int64_t *move_scalar
        int64_t n_moves
        const ew_array *arrays
        int64_t n_arrays, scalar_array, descriptor_array
        const int64_t *element_array, *event_array
        const uint8_t *is_computed
        int64_t pointers, n_neurons, row_accesses, sum_accesses
        ew_ports ports
        int64_t *fetched
        uint8_t *finished
        int64_t row_reads, row_writes, sum_reads, sum_writes, connection_accesses, instructions, multiply_adds
        double cycles
    void ew_start_arrays(ew_transfers *transfers)
    int64_t ew_engine_accesses(const ew_transfers *transfers)
    void ew_fill_transfers(ew_transfers *transfers, ew_sink *out)


cdef int64_t _check(plan, const int32_t[::1] step, const int32_t[::1] neuron, const uint8_t[::1] kind,
                    const int64_t[::1] scalar, const int64_t[:, ::1] arrays, const int64_t[::1] of_element,
                    const int64_t[::1] of_event, int64_t scalar_array, int64_t descriptor_array, int64_t image) except -1:
    """Raise ValueError for moves and arrays that lead out of others; return the bytes of the widest piece."""
    cdef int64_t k, n = step.shape[0], widest = 0, last
    cdef const int64_t[::1] event_offset = plan.event_offset
    cdef const uint8_t[::1] event_size = plan.event_size
    cdef bint inside = True
    need(neuron.shape[0] == n and kind.shape[0] == n and scalar.shape[0] == n, "columns of one length")
    need(within32(neuron, 0, len(plan.bias)) and len(plan.is_computed) == len(plan.bias), "neurons that are there")
    need(arrays.shape[0] == 0 or arrays.shape[1] == 4, "arrays of four numbers")
    for k in range(arrays.shape[0]):
        need(0 <= arrays[k, 0] <= arrays[k, 1] <= image and 0 < arrays[k, 2] <= 65535, "arrays inside the image, in pieces")
        widest = max(widest, arrays[k, 2])
    need(of_element.shape[0] == len(plan.element) and of_event.shape[0] == event_offset.shape[0],
         "an array for each element and structure load")
    need(within64(of_element, 0, arrays.shape[0]) and within64(of_event, 0, arrays.shape[0]), "arrays that are there")
    for k, (at, bits, _, row) in enumerate(plan.element.tolist()):
        need(at + (int(plan.slot[row].max(initial=0)) * bits >> 3) + (bits + 7 >> 3) <= arrays[of_element[k], 1],
             "elements inside their array")
    for k in range(event_offset.shape[0]):
        inside &= event_offset[k] + event_size[k] <= arrays[of_event[k], 1]
    last = np.max(scalar) if n else -1
    if last >= 0:
        inside &= 0 <= scalar_array < arrays.shape[0] and last <= arrays[scalar_array, 1] - 4
    if descriptor_array >= 0:
        inside &= descriptor_array < arrays.shape[0] and n <= (arrays[descriptor_array, 1] - arrays[descriptor_array, 0]) // 4
    need(inside, "structure loads, biases and descriptors inside their array")
    return widest


cdef class TransferWalk(ForwardWalk):
    """The walk of a plan on a scratchpad.

    moves: arrays step (ascending), neuron, kind (0 load; 1, 2 stores) of the neuron rows that move; scalars: for loads
    that bring a bias as a scalar, the image offset to read it from (else -1). arrays: int64[P, 4] rows of (image
    offset, end, bytes of a piece, stream), each read from its start to its end, piece by piece. element_array,
    event_array: which array an element or structure load lies in; scalar_array: the one with bias scalars;
    descriptor_array: the one with 4 bytes for each move, -1 for none. row_accesses: engine accesses that a row, and a
    row of partial sums, takes. engine: hwmodel.machine.EngineSpec, whose time is counted. pointers: the stream whose
    loads are operations of their own; other structure loads are of the next connection.
    """

    cdef ew_transfers transfers
    cdef object kept_too

    def __init__(self, plan, uint8_t[::1] image, streams, moves, scalars, arrays, element_array, event_array,
                 int64_t scalar_array, int64_t descriptor_array, row_accesses, engine, int64_t pointers):
        cdef const int32_t[::1] step, neuron
        cdef const uint8_t[::1] kind, is_computed = plan.is_computed.astype(np.uint8)
        cdef const int64_t[::1] scalar = scalars, of_element = element_array, of_event = event_array
        cdef const int64_t[:, ::1] pieces = arrays
        cdef int64_t[::1] fetched = np.zeros(len(arrays), np.int64)
        cdef uint8_t[::1] finished = np.zeros(len(plan.is_computed), np.uint8)
        cdef ew_transfers *transfers = &self.transfers
        step, neuron, kind = moves
        ForwardWalk.__init__(self, plan, image, streams)
        self.widest = max(self.widest, _check(
            plan, step, neuron, kind, scalar, pieces, of_element, of_event, scalar_array, descriptor_array,
            image.shape[0]))
        self.kept_too = step, neuron, kind, scalar, pieces, of_element, of_event, is_computed, fetched, finished
        transfers.walk = &self.walk
        transfers.n_moves, transfers.n_arrays, transfers.n_neurons = len(step), len(arrays), len(is_computed)
        if transfers.n_moves:
            transfers.move_step, transfers.move_neuron = &step[0], &neuron[0]
            transfers.move_kind, transfers.move_scalar = &kind[0], &scalar[0]
        if transfers.n_arrays:
            transfers.arrays, transfers.fetched = <const ew_array *>&pieces[0, 0], &fetched[0]
        if len(of_element):
            transfers.element_array = &of_element[0]
        if len(of_event):
            transfers.event_array = &of_event[0]
        if transfers.n_neurons:
            transfers.is_computed, transfers.finished = &is_computed[0], &finished[0]
        transfers.scalar_array, transfers.descriptor_array = scalar_array, descriptor_array
        transfers.row_accesses, transfers.sum_accesses = row_accesses
        transfers.ports, transfers.pointers = open_ports(engine), pointers
        ew_start_arrays(transfers)

    @property
    def counts(self):
        """Engine accesses so far: rows read and written, those of partial sums among them, and connections."""
        cdef ew_transfers *t = &self.transfers
        return t.row_reads, t.row_writes, t.sum_reads, t.sum_writes, t.connection_accesses

    @property
    def cycles(self):
        """Cycles of the engine so far."""
        return self.transfers.cycles

    @property
    def multiply_adds(self):
        """Multiply-adds so far: those of skipped connections are not made."""
        return self.transfers.multiply_adds

    @property
    def instructions(self):
        """Instructions of the engine so far (see `EngineClock`)."""
        return self.transfers.instructions

    @property
    def accesses(self):
        """Engine accesses so far, a row counted as often as it takes."""
        return ew_engine_accesses(&self.transfers)

    def fill_transfers(self, uint64_t[::1] address, size, uint8_t[::1] op, uint8_t[::1] stream,
                       int64_t[::1] payload_offset, uint8_t[::1] payload, double[::1] work):
        """Write the next transfers into the buffers; return their number. work: cycles of the engine before each."""
        cdef ew_sink out
        need(work.shape[0] >= address.shape[0], "room for the cycles of each transfer")
        open_sink(&out, self.widest, address, size, op, stream, payload_offset, payload)
        out.work = &work[0]
        with nogil:
            ew_fill_transfers(&self.transfers, &out)
        return out.n


def first_loads(const int32_t[::1] step, const int32_t[::1] neuron, const uint8_t[::1] kind,
                const int32_t[::1] source, const int32_t[::1] target, int64_t n_neurons, uint8_t load, uint8_t live):
    """Return (uint8[E]: whether a move is the first load of its neuron, what is wrong with the moves or "").

    Every row loaded is used by the connection of its step; every live row stored is loaded again next.
    """
    cdef int64_t k, at, n = step.shape[0]
    cdef bint unused = False, dropped = False, outside = False
    cdef uint8_t[::1] first = np.zeros(n, np.uint8), seen = np.zeros(n_neurons, np.uint8)  # 1: loaded before, 2: stored live
    need(neuron.shape[0] == n and kind.shape[0] == n and target.shape[0] == source.shape[0], "columns of one length")
    with nogil:
        for k in range(n):
            at = neuron[k]
            if at < 0 or at >= n_neurons or step[k] < 0 or (kind[k] == load and step[k] >= source.shape[0]):
                outside = True
                break
            if kind[k] == load:
                unused |= source[step[k]] != at and target[step[k]] != at
                first[k] = not seen[at] & 1
                seen[at] = 1
            else:
                dropped |= seen[at] & 2
                if kind[k] == live:
                    seen[at] |= 2
        for at in range(n_neurons):
            dropped |= seen[at] & 2
    need(not outside, "moves of steps and neurons that there are")
    wrong = "a row was loaded and not used" if unused else "a live row was stored and never loaded again" if dropped else ""
    return np.asarray(first), wrong


def slots_of(const int32_t[::1] step, const int32_t[::1] neuron, const uint8_t[::1] kind,
             const int32_t[::1] source, const int32_t[::1] target, int64_t n_neurons, uint8_t load):
    """Return (int32[E] slot of each row that moves, int32[K] slots of the source and of the target of each step, slots
    in use at most). A row takes a free slot when it is loaded, and leaves it with its last use or the store behind
    that."""
    cdef int64_t k, e, at, n = step.shape[0], n_steps = source.shape[0], n_free = 0, used = 0
    cdef int side
    cdef bint wrong = False
    need(neuron.shape[0] == n and kind.shape[0] == n and target.shape[0] == n_steps, "columns of one length")
    for k in range(n_steps):
        wrong |= source[k] < 0 or source[k] >= n_neurons or target[k] < 0 or target[k] >= n_neurons
    for e in range(n):
        wrong |= neuron[e] < 0 or neuron[e] >= n_neurons
    need(not wrong, "neurons that there are")
    of_move, of_source, of_target = np.empty(n, np.int32), np.empty(n_steps, np.int32), np.empty(n_steps, np.int32)
    cdef int32_t[::1] moved = of_move, sources = of_source, targets = of_target
    # Of each load, the step of the last use, or -2 - (the move of the last store) where that comes later.
    cdef int64_t[::1] end = np.full(n, -1, np.int64), last = np.full(n_neurons, -1, np.int64)
    cdef int32_t[::1] slot = np.full(n_neurons, -1, np.int32), free = np.empty(n + 1, np.int32)
    with nogil:
        e = n - 1
        for k in range(n_steps, -1, -1):
            if k < n_steps:
                for side in range(2):
                    at = target[k] if side else source[k]
                    if last[at] == -1:
                        last[at] = k
            while e >= 0 and step[e] >= k:
                at = neuron[e]
                if kind[e] == load:
                    end[e], last[at] = last[at], -1
                elif last[at] == -1:
                    last[at] = -2 - e
                e -= 1
        e = 0
        for k in range(n_steps + 1):
            while e < n and step[e] <= k:
                at = neuron[e]
                if kind[e] == load:
                    if n_free:
                        n_free -= 1
                        slot[at] = free[n_free]
                    else:
                        slot[at] = <int32_t>used
                        used += 1
                    last[at] = end[e]
                wrong |= slot[at] < 0
                moved[e] = slot[at]
                if kind[e] != load and last[at] == -2 - e:
                    free[n_free] = slot[at]
                    n_free += 1
                    slot[at] = -1
                e += 1
            if k == n_steps or wrong:
                break
            sources[k], targets[k] = slot[source[k]], slot[target[k]]
            wrong |= sources[k] < 0 or targets[k] < 0
            for side in range(2):
                at = target[k] if side else source[k]
                if last[at] == k and slot[at] >= 0:
                    free[n_free] = slot[at]
                    n_free += 1
                    slot[at] = -1
    need(not wrong, "rows that are loaded before they are used")
    return of_move, of_source, of_target, used
