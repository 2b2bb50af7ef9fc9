"""The walk of a sparse forward pass over its memory image: every access with its real bytes."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcpy

cimport cython

import numpy as np


cdef extern from "trace/values.h" nogil:
    float edgewatt_read_neuron(const uint8_t *at, int format)
    void edgewatt_write_neuron(uint8_t *at, float value, int format)
    float edgewatt_activate(float value, int kind)


def neuron_bits(const float[::1] values, int format):
    """Return the bytes uint8[n * size] of neuron values in format 0 fp32, 1 fp16, 2 bf16."""
    cdef Py_ssize_t i, width = 4 if format == 0 else 2
    cdef uint8_t[::1] out = np.empty(len(values) * width, np.uint8)
    for i in range(len(values)):
        edgewatt_write_neuron(&out[i * width], values[i], format)
    return np.asarray(out)


def neuron_values(const uint8_t[::1] image, int format):
    """Return float32[n] from the bytes of n neuron values in format 0 fp32, 1 fp16, 2 bf16."""
    cdef Py_ssize_t i, width = 4 if format == 0 else 2
    cdef float[::1] out = np.empty(len(image) // width, np.float32)
    for i in range(len(out)):
        out[i] = edgewatt_read_neuron(&image[i * width], format)
    return np.asarray(out)


cdef struct Sink:  # where accesses go: the columns of a chunk under way
    uint64_t *address
    uint8_t *size8      # sizes up to 255; NULL where size16 is used
    uint16_t *size16
    uint8_t *op
    uint8_t *stream
    int64_t *payload_offset
    uint8_t *payload
    int64_t *work       # engine accesses made before; NULL where nobody asks
    Py_ssize_t n, capacity


cdef class ForwardWalk:
    """A forward pass in progress: `fill` writes the next accesses and keeps the memory image current.

    One step is one stored connection (or ELLPACK padding). At each step the walk makes, in this order: the structure
    loads that precede it (row pointers and the like), its element loads (ids and value, or the tuple), the load of the
    source's value, the load of the target's partial sum, the multiply-add, the store of the partial sum or, at the
    target's last step, of its activated value. With `registers`, the source's value and the partial sum stay in
    registers while consecutive steps share the neuron. With several lanes a value is a row of that many, all of which
    a step loads, computes and stores.

    The caller has validated all arrays: see traces.access.plan.Plan for their meaning and units.
    """

    cdef const int32_t[::1] source, target
    cdef const float[::1] weight, bias
    cdef const uint8_t[::1] finish          # 0: not the target's last step; 1 + activation kind: its last
    cdef const uint8_t[::1] hand_over       # 1: another engine goes on with this step: registers are empty before it
    cdef const int64_t[:, ::1] slot             # rows of element indices; an element names its row
    cdef const int64_t[::1] event_step, event_offset
    cdef const uint8_t[::1] event_size, event_stream
    cdef const int64_t[:, ::1] element      # rows of (image offset, bits, stream, row of slot)
    cdef uint8_t[::1] image
    cdef uint64_t base
    cdef int64_t neurons, value_bytes, lanes, row_bytes, row_pitch, pass_bytes, n_passes
    cdef int format, registers, input_stream, partial_stream, output_stream
    # where the walk stands
    cdef int64_t number, step, event        # of the pass, of its next step and of its next structure load
    cdef int64_t held_source, held_target
    cdef float[::1] source_value, partial
    cdef int64_t last_byte[4]

    def __init__(self, plan, uint8_t[::1] image, streams):
        self.source, self.target, self.weight, self.bias = plan.source, plan.target, plan.weight, plan.bias
        self.finish, self.slot, self.element = plan.finish, plan.slot, plan.element
        self.hand_over = plan.hand_over
        self.event_step, self.event_offset, self.event_size = plan.event_step, plan.event_offset, plan.event_size
        self.event_stream = plan.event_stream
        self.image = image
        self.base, self.neurons = plan.base_address, plan.neurons_offset
        self.value_bytes, self.lanes, self.row_pitch = plan.value_bytes, plan.lanes, plan.row_pitch
        self.row_bytes, self.pass_bytes, self.n_passes = plan.row_bytes, plan.pass_bytes, plan.n_passes
        self.format, self.registers = plan.neuron_format, plan.registers
        self.input_stream, self.partial_stream, self.output_stream = streams
        self.source_value, self.partial = np.zeros(plan.lanes, np.float32), np.zeros(plan.lanes, np.float32)
        if len(plan.element) > 4:
            raise ValueError("at most 4 arrays are read at each step")
        self._start_pass()

    @cython.final
    cdef void _start_pass(self) noexcept nogil:
        cdef int e
        self.step = self.event = 0
        self.held_source = self.held_target = -1
        for e in range(4):
            self.last_byte[e] = -1

    @property
    def done(self):
        """Whether every pass has been walked to its end."""
        return self.number == self.n_passes

    def fill(self, uint64_t[::1] address, size, uint8_t[::1] op, uint8_t[::1] stream,
             int64_t[::1] payload_offset, uint8_t[::1] payload):
        """Write the next accesses into the buffers; return their number. A buffer of n < 8 accesses makes no progress.

        size: uint8 where no access has more than 255 bytes, else uint16.
        """
        cdef Sink out
        _open_sink(&out, address, size, op, stream, payload_offset, payload)
        with nogil:
            self._fill(&out)
        return out.n

    @cython.final
    cdef void _fill(self, Sink *out) noexcept nogil:
        cdef int64_t n_steps = self.source.shape[0], n_events = self.event_step.shape[0]
        cdef int64_t k, at, source, target, bits
        cdef Py_ssize_t e, n_elements = self.element.shape[0]
        cdef const int64_t *slot[4]
        for e in range(n_elements):
            slot[e] = &self.slot[self.element[e, 3], 0]
        while self.number < self.n_passes:
            while self.step < n_steps:
                k = self.step
                if not self._structure(out, k):
                    return
                if out.n > out.capacity:
                    return
                for e in range(n_elements):
                    bits = self.element[e, 1]
                    at = self.element[e, 0] + ((slot[e][k] * bits) >> 3)
                    if bits >= 8 or at != self.last_byte[e]:  # two 4-bit elements share a byte: one load
                        self.last_byte[e] = at
                        self._emit(out, at, <int>((bits + 7) >> 3), 0, <int>self.element[e, 2])
                source, target = self.source[k], self.target[k]
                if source != self.held_source:
                    self._emit(out, self._row(source), <int>self.row_bytes, 0, self.input_stream)
                if target != self.held_target:
                    self._emit(out, self._row(target), <int>self.row_bytes, 0, self.partial_stream)
                if not self._compute(k):
                    self._emit(out, self._row(target), <int>self.row_bytes, 1,
                               self.output_stream if self.finish[k] else self.partial_stream)
                self.step += 1
            if not self._structure(out, n_steps):  # pointers of empty rows behind the last connection
                return
            self.number += 1
            self._start_pass()

    @cython.final
    cdef inline int64_t _row(self, int64_t neuron) noexcept nogil:
        """Return the image offset of a neuron's row in this pass."""
        return self.neurons + self.number * self.pass_bytes + neuron * self.row_pitch

    @cython.final
    cdef inline bint _structure(self, Sink *out, int64_t k) noexcept nogil:
        """Make the structure loads that precede step k; return False when the buffer is full."""
        while self.event < self.event_step.shape[0] and self.event_step[self.event] <= k:
            if out.n > out.capacity:
                return False
            self._emit(out, self.event_offset[self.event], self.event_size[self.event], 0,
                       self.event_stream[self.event])
            self.event += 1
        return True

    @cython.final
    cdef inline bint _compute(self, int64_t k) noexcept nogil:
        """Multiply and add; return whether the partial sums stay in registers. If not, the image holds them now."""
        cdef int64_t source = self.source[k], target = self.target[k], lane, lanes = self.lanes
        cdef float weight = self.weight[k]
        cdef float *values = &self.source_value[0]
        cdef float *sums = &self.partial[0]
        cdef float value, sum
        cdef bint goes_on = self.registers and k + 1 < self.source.shape[0] and not self.hand_over[k + 1]
        cdef bint keep = goes_on and self.target[k + 1] == target
        if lanes == 1:  # the loops below, in registers
            if source != self.held_source:
                values[0] = edgewatt_read_neuron(&self.image[self._row(source)], self.format)
            sum = sums[0]
            if target != self.held_target:
                sum = edgewatt_read_neuron(&self.image[self._row(target)], self.format)
            sum = sum + weight * values[0]
            if not keep:
                if self.finish[k]:
                    sum = self._activated(sum, k)
                edgewatt_write_neuron(&self.image[self._row(target)], sum, self.format)
            sums[0] = sum
            self.held_source = source if goes_on else -1
            self.held_target = target if keep else -1
            return keep
        if source != self.held_source:
            self._read_row(source, values)
        if target != self.held_target:
            self._read_row(target, sums)
        for lane in range(lanes):
            sums[lane] = sums[lane] + weight * values[lane]
        if not keep:
            if self.finish[k]:
                for lane in range(lanes):
                    sums[lane] = self._activated(sums[lane], k)
            self._write_row(target)
        self.held_source = source if goes_on else -1
        self.held_target = target if keep else -1
        return keep

    @cython.final
    cdef inline float _activated(self, float sum, int64_t k) noexcept nogil:
        if self.finish[k] == 3 and sum == self.bias[self.target[k]]:
            sum = 0  # clipped-relu adds the bias only where the weighted sum is not zero
        return edgewatt_activate(sum, self.finish[k] - 1)

    @cython.final
    cdef inline void _read_row(self, int64_t neuron, float *values) noexcept nogil:
        cdef int64_t lane
        cdef const uint8_t *at = &self.image[self._row(neuron)]
        for lane in range(self.lanes):
            values[lane] = edgewatt_read_neuron(at + lane * self.value_bytes, self.format)

    @cython.final
    cdef inline void _write_row(self, int64_t neuron) noexcept nogil:
        """Round the partial sums in registers into the image."""
        cdef int64_t lane
        cdef uint8_t *at = &self.image[self._row(neuron)]
        for lane in range(self.lanes):
            edgewatt_write_neuron(at + lane * self.value_bytes, self.partial[lane], self.format)

    @cython.final
    cdef inline void _emit(self, Sink *out, int64_t at, int width, int store, int which) noexcept nogil:
        cdef Py_ssize_t n = out.n
        cdef int64_t filled = out.payload_offset[n]
        out.address[n] = self.base + <uint64_t>at
        if out.size8 != NULL:
            out.size8[n] = <uint8_t>width
        else:
            out.size16[n] = <uint16_t>width
        out.op[n] = <uint8_t>store
        out.stream[n] = <uint8_t>which
        memcpy(&out.payload[filled], &self.image[at], width)
        out.payload_offset[n + 1] = filled + width
        out.n = n + 1


cdef void _open_sink(Sink *out, uint64_t[::1] address, size, uint8_t[::1] op, uint8_t[::1] stream,
                     int64_t[::1] payload_offset, uint8_t[::1] payload):
    cdef uint8_t[::1] size8
    cdef uint16_t[::1] size16
    out.size8, out.size16, out.work = NULL, NULL, NULL
    if size.dtype == np.uint8:
        size8 = size
        out.size8 = &size8[0]
    else:
        size16 = size
        out.size16 = &size16[0]
    out.address, out.op, out.stream = &address[0], &op[0], &stream[0]
    out.payload_offset, out.payload = &payload_offset[0], &payload[0]
    out.n, out.capacity = 0, address.shape[0] - 8
    payload_offset[0] = 0


cdef class TransferWalk(ForwardWalk):
    """The same forward pass on a scratchpad: what is fetched and written back, not what the engine touches there.

    Neuron rows move as `moves` says: arrays step (ascending), neuron, kind (0 load; 1, 2 stores) and, for loads that
    bring a bias as a scalar, the image offset to read it from (else -1). Before a step come the pieces of the
    connection arrays that it needs and then its moves; moves of step W come after the last one.
    arrays: int64[P, 4] rows of (image offset, end, bytes of a piece, stream), each read from its start to its end,
    piece by piece. element_array, event_array: which array an element or structure load lies in; scalar_array: the one
    with bias scalars. row_accesses: engine accesses that one row takes. `counts`: engine accesses to rows (reads,
    writes, whole rows each), and to the connections, so far.
    """

    cdef const int32_t[::1] move_step, move_neuron
    cdef const uint8_t[::1] move_kind
    cdef const int64_t[::1] move_scalar
    cdef const int64_t[:, ::1] arrays
    cdef const int64_t[::1] element_array, event_array
    cdef int64_t[::1] fetched
    cdef uint8_t[::1] finished
    cdef const uint8_t[::1] is_computed
    cdef int64_t move, scalar_array, row_accesses
    cdef int64_t row_reads, row_writes, connection_accesses

    def __init__(self, plan, uint8_t[::1] image, streams, moves, scalars, arrays, element_array, event_array,
                 int64_t scalar_array, int64_t row_accesses):
        self.arrays, self.element_array, self.event_array = arrays, element_array, event_array
        self.is_computed = plan.is_computed.astype(np.uint8)
        self.finished = np.zeros(len(plan.is_computed), np.uint8)
        self.fetched = np.zeros(len(arrays), np.int64)
        self.move_step, self.move_neuron, self.move_kind = moves
        self.move_scalar = scalars
        self.scalar_array, self.row_accesses = scalar_array, row_accesses
        self.row_reads = self.row_writes = self.connection_accesses = 0
        ForwardWalk.__init__(self, plan, image, streams)
        self._start_arrays()

    @cython.final
    cdef void _start_arrays(self) noexcept nogil:
        cdef Py_ssize_t p
        self.move = 0
        for p in range(self.arrays.shape[0]):
            self.fetched[p] = self.arrays[p, 0]
        for p in range(self.finished.shape[0]):
            self.finished[p] = not self.is_computed[p]

    @property
    def counts(self):
        """Engine accesses so far: rows read, rows written, and accesses to connections."""
        return self.row_reads, self.row_writes, self.connection_accesses

    @property
    def accesses(self):
        """Engine accesses so far, a row counted as often as it takes."""
        return (self.row_reads + self.row_writes) * self.row_accesses + self.connection_accesses

    def fill_transfers(self, uint64_t[::1] address, size, uint8_t[::1] op, uint8_t[::1] stream,
                       int64_t[::1] payload_offset, uint8_t[::1] payload, int64_t[::1] work):
        """Write the next transfers into the buffers; return their number. work: engine accesses made before each."""
        cdef Sink out
        _open_sink(&out, address, size, op, stream, payload_offset, payload)
        out.work = &work[0]
        with nogil:
            self._fill_transfers(&out)
        return out.n

    @cython.final
    cdef void _fill_transfers(self, Sink *out) noexcept nogil:
        cdef int64_t n_steps = self.source.shape[0], k, at, bits
        cdef Py_ssize_t e
        while self.number < self.n_passes:
            while self.step < n_steps:
                k = self.step
                if not self._fetch_structure(out, k):
                    return
                for e in range(self.element.shape[0]):
                    bits = self.element[e, 1]
                    at = self.element[e, 0] + ((self.slot[self.element[e, 3], k] * bits) >> 3)
                    if not self._fetch(out, self.element_array[e], at + ((bits + 7) >> 3)):
                        return
                if not self._make_moves(out, k):
                    return
                for e in range(self.element.shape[0]):
                    bits = self.element[e, 1]
                    at = self.element[e, 0] + ((self.slot[self.element[e, 3], k] * bits) >> 3)
                    if bits >= 8 or at != self.last_byte[e]:
                        self.last_byte[e] = at
                        self.connection_accesses += 1
                self.row_reads += (self.source[k] != self.held_source) + (self.target[k] != self.held_target)
                if not self._compute(k):
                    self.row_writes += 1
                if self.finish[k]:
                    self.finished[self.target[k]] = 1
                self.step += 1
            if not self._fetch_structure(out, n_steps) or not self._make_moves(out, n_steps):
                return
            self.number += 1
            self._start_pass()
            self._start_arrays()

    @cython.final
    cdef bint _fetch_structure(self, Sink *out, int64_t k) noexcept nogil:
        while self.event < self.event_step.shape[0] and self.event_step[self.event] <= k:
            if not self._fetch(out, self.event_array[self.event],
                               self.event_offset[self.event] + self.event_size[self.event]):
                return False
            self.connection_accesses += 1
            self.event += 1
        return True

    @cython.final
    cdef bint _fetch(self, Sink *out, int64_t array, int64_t end) noexcept nogil:
        """Fetch an array's pieces up to `end`; return False when the buffer is full."""
        cdef int64_t start, stop
        while self.fetched[array] < end:
            if out.n > out.capacity:
                return False
            start = self.fetched[array]
            stop = min(start + self.arrays[array, 2], self.arrays[array, 1])
            self._transfer(out, start, <int>(stop - start), 0, <int>self.arrays[array, 3])
            self.fetched[array] = stop
        return True

    @cython.final
    cdef bint _make_moves(self, Sink *out, int64_t k) noexcept nogil:
        cdef int64_t neuron, scalar
        while self.move < self.move_step.shape[0] and self.move_step[self.move] <= k:
            neuron, scalar = self.move_neuron[self.move], self.move_scalar[self.move]
            if scalar >= 0:
                if not self._fetch(out, self.scalar_array, scalar + 4):
                    return False
            elif out.n > out.capacity:
                return False
            elif self.move_kind[self.move] == 0:
                self._transfer(out, self._row(neuron), <int>self.row_bytes, 0,
                               self.input_stream if self.finished[neuron] else self.partial_stream)
            else:
                if neuron == self.held_target:  # its sum is in registers: it leaves with it
                    self._write_row(neuron)
                    self.held_target = -1
                self._transfer(out, self._row(neuron), <int>self.row_bytes, 1,
                               self.output_stream if self.finished[neuron] else self.partial_stream)
            self.move += 1
        return True

    @cython.final
    cdef inline void _transfer(self, Sink *out, int64_t at, int width, int store, int which) noexcept nogil:
        out.work[out.n] = (self.row_reads + self.row_writes) * self.row_accesses + self.connection_accesses
        self._emit(out, at, width, store, which)
