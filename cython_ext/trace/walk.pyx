"""The walk of a sparse forward pass over its memory image: every access with its real bytes."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

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


cdef class ForwardWalk:
    """A forward pass in progress: `fill` writes the next accesses and keeps the memory image current.

    One step is one stored connection (or ELLPACK padding). At each step the walk makes, in this order: the structure
    loads that precede it (row pointers and the like), its element loads (ids and value, or the tuple), the load of the
    source's value, the load of the target's partial sum, the multiply-add, the store of the partial sum or, at the
    target's last step, of its activated value. With `registers`, the source's value and the partial sum stay in
    registers while consecutive steps share the neuron.

    The caller has validated all arrays: see traces.access.plan.Plan for their meaning and units.
    """

    cdef const int32_t[::1] source, target
    cdef const float[::1] weight, bias
    cdef const uint8_t[::1] finish          # 0: not the target's last step; 1 + activation kind: its last
    cdef const int64_t[::1] slot
    cdef const int64_t[::1] event_step, event_offset
    cdef const uint8_t[::1] event_size
    cdef const int64_t[:, ::1] element      # rows of (image offset, bits, stream)
    cdef uint8_t[::1] image
    cdef uint64_t base
    cdef int64_t neurons, neuron_bytes, sample_bytes, n_samples
    cdef int format, registers, pointer_stream, input_stream, partial_stream, output_stream
    # where the walk stands
    cdef int64_t sample, step, event
    cdef int64_t held_source, held_target
    cdef float source_value, partial
    cdef int64_t last_byte[3]

    def __init__(self, plan, uint8_t[::1] image, streams):
        self.source, self.target, self.weight, self.bias = plan.source, plan.target, plan.weight, plan.bias
        self.finish, self.slot, self.element = plan.finish, plan.slot, plan.element
        self.event_step, self.event_offset, self.event_size = plan.event_step, plan.event_offset, plan.event_size
        self.image = image
        self.base, self.neurons = plan.base_address, plan.neurons_offset
        self.neuron_bytes, self.sample_bytes, self.n_samples = plan.neuron_bytes, plan.sample_bytes, plan.n_samples
        self.format, self.registers = plan.neuron_format, plan.registers
        self.pointer_stream, self.input_stream, self.partial_stream, self.output_stream = streams
        self._start_sample()

    cdef void _start_sample(self) noexcept nogil:
        self.step = self.event = 0
        self.held_source = self.held_target = -1
        self.last_byte[0] = self.last_byte[1] = self.last_byte[2] = -1

    @property
    def done(self):
        """Whether every sample has been walked to its end."""
        return self.sample == self.n_samples

    def fill(self, uint64_t[::1] address, uint8_t[::1] size, uint8_t[::1] op, uint8_t[::1] stream,
             int64_t[::1] payload_offset, uint8_t[::1] payload):
        """Write the next accesses into the buffers; return their number. A buffer of n < 8 accesses makes no progress."""
        cdef Py_ssize_t n
        with nogil:
            n = self._fill(address, size, op, stream, payload_offset, payload)
        return n

    cdef Py_ssize_t _fill(self, uint64_t[::1] address, uint8_t[::1] size, uint8_t[::1] op, uint8_t[::1] stream,
                          int64_t[::1] payload_offset, uint8_t[::1] payload) noexcept nogil:
        cdef Py_ssize_t n = 0, capacity = address.shape[0] - 8
        cdef int64_t n_steps = self.source.shape[0], n_events = self.event_step.shape[0]
        cdef int64_t k, at, neurons, source, target, bits, filled = 0
        cdef Py_ssize_t e, n_elements = self.element.shape[0]
        cdef bint keep
        cdef int width = <int>self.neuron_bytes
        payload_offset[0] = 0

        while self.sample < self.n_samples:
            neurons = self.neurons + self.sample * self.sample_bytes
            while self.step < n_steps:
                k = self.step
                while self.event < n_events and self.event_step[self.event] <= k:
                    if n > capacity:
                        return n
                    self._emit(address, size, op, stream, payload_offset, payload, n, &filled,
                               self.event_offset[self.event], self.event_size[self.event], 0, self.pointer_stream)
                    n += 1
                    self.event += 1
                if n > capacity:
                    return n
                for e in range(n_elements):
                    bits = self.element[e, 1]
                    at = self.element[e, 0] + ((self.slot[k] * bits) >> 3)
                    if bits >= 8 or at != self.last_byte[e]:  # two 4-bit elements share a byte: one load
                        self.last_byte[e] = at
                        self._emit(address, size, op, stream, payload_offset, payload, n, &filled, at,
                                   <int>((bits + 7) >> 3), 0, <int>self.element[e, 2])
                        n += 1
                source, target = self.source[k], self.target[k]
                if source != self.held_source:
                    at = neurons + source * self.neuron_bytes
                    self._emit(address, size, op, stream, payload_offset, payload, n, &filled, at, width, 0,
                               self.input_stream)
                    n += 1
                    self.source_value = edgewatt_read_neuron(&self.image[at], self.format)
                at = neurons + target * self.neuron_bytes
                if target != self.held_target:
                    self._emit(address, size, op, stream, payload_offset, payload, n, &filled, at, width, 0,
                               self.partial_stream)
                    n += 1
                    self.partial = edgewatt_read_neuron(&self.image[at], self.format)
                self.partial = self.partial + self.weight[k] * self.source_value
                keep = self.registers and k + 1 < n_steps and self.target[k + 1] == target
                if not keep:
                    if self.finish[k]:
                        if self.finish[k] == 3 and self.partial == self.bias[target]:
                            self.partial = 0  # clipped-relu adds the bias only where the weighted sum is not zero
                        self.partial = edgewatt_activate(self.partial, self.finish[k] - 1)
                    edgewatt_write_neuron(&self.image[at], self.partial, self.format)
                    self._emit(address, size, op, stream, payload_offset, payload, n, &filled, at, width, 1,
                               self.output_stream if self.finish[k] else self.partial_stream)
                    n += 1
                self.held_source = source if self.registers else -1
                self.held_target = target if keep else -1
                self.step += 1
            while self.event < n_events:  # pointers of empty rows behind the last connection
                if n > capacity:
                    return n
                self._emit(address, size, op, stream, payload_offset, payload, n, &filled,
                           self.event_offset[self.event], self.event_size[self.event], 0, self.pointer_stream)
                n += 1
                self.event += 1
            self.sample += 1
            self._start_sample()
        return n

    cdef inline void _emit(self, uint64_t[::1] address, uint8_t[::1] size, uint8_t[::1] op, uint8_t[::1] stream,
                           int64_t[::1] payload_offset, uint8_t[::1] payload, Py_ssize_t n, int64_t *filled,
                           int64_t at, int width, int store, int which) noexcept nogil:
        address[n] = self.base + <uint64_t>at
        size[n] = <uint8_t>width
        op[n] = <uint8_t>store
        stream[n] = <uint8_t>which
        memcpy(&payload[filled[0]], &self.image[at], width)
        filled[0] += width
        payload_offset[n + 1] = filled[0]
