"""The walk of a sparse forward pass over its memory image (trace/walk.h), and neuron values as bytes."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

import numpy as np

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport within32


cdef extern from "trace/values.h" nogil:
    float ew_read_neuron(const uint8_t *at, int format)
    void ew_write_neuron(uint8_t *at, float value, int format)


def neuron_bits(const float[::1] values, int format):
    """Return the bytes uint8[n * size] of neuron values in format 0 fp32, 1 fp16, 2 bf16."""
    cdef Py_ssize_t i, width = 4 if format == 0 else 2
    cdef uint8_t[::1] out = np.empty(len(values) * width, np.uint8)
    for i in range(len(values)):
        ew_write_neuron(&out[i * width], values[i], format)
    return np.asarray(out)


def neuron_values(const uint8_t[::1] image, int format):
    """Return float32[n] from the bytes of n neuron values in format 0 fp32, 1 fp16, 2 bf16."""
    cdef Py_ssize_t i, width = 4 if format == 0 else 2
    cdef float[::1] out = np.empty(len(image) // width, np.float32)
    for i in range(len(out)):
        out[i] = ew_read_neuron(&image[i * width], format)
    return np.asarray(out)


cdef int _check_steps(plan, const int32_t[::1] source, const int32_t[::1] target, const float[::1] weight,
                      const float[::1] bias, const uint8_t[::1] finish, const uint8_t[::1] hand_over) except -1:
    cdef int64_t n = source.shape[0]
    need(target.shape[0] == n and weight.shape[0] == n and finish.shape[0] == n and hand_over.shape[0] == n,
         "arrays of one length, a step each")
    need(within32(source, 0, bias.shape[0]) and within32(target, 0, bias.shape[0]), "neurons that are there")
    need(plan.value_bytes == {0: 4, 1: 2, 2: 2, 3: 1}.get(plan.neuron_format) and plan.lanes > 0,
         "values of a format, and lanes")
    need((plan.integers is None) == (plan.neuron_format != 3), "integers for int8, and for no other format")
    return 0


cdef int64_t _check_places(plan, const uint8_t[::1] image, int64_t n_neurons, const int64_t[:, ::1] slot,
                           const int64_t[:, ::1] element, const int64_t[::1] event_step, const int64_t[::1] event_offset,
                           const uint8_t[::1] event_size, const uint8_t[::1] event_stream) except -1:
    """Raise ValueError for what lies outside the image; return the bytes of the widest access."""
    cdef int64_t k, n = event_step.shape[0], bytes = image.shape[0], widest = 8
    cdef bint inside = True
    value, sum_value = plan.value_bytes, 4 if plan.neuron_format == 3 else plan.value_bytes
    for at, pitch, each, width, of_value in (
        (plan.neurons_offset, plan.row_pitch, plan.pass_bytes, plan.row_bytes, value),
        (plan.sums_offset, plan.sum_pitch, plan.sum_pass_bytes, plan.sum_row_bytes, sum_value),
    ):
        need(width == plan.lanes * of_value and min(at, pitch, each) >= 0, "rows of a value a lane")
        last = int(at) + max(0, int(plan.n_passes) - 1) * int(each) + max(0, n_neurons - 1) * int(pitch) + int(width)
        need(last <= bytes, "rows inside the image")
        widest = max(widest, width)
    for at, bits, _, row in np.asarray(element).tolist():
        need(0 <= row < slot.shape[0] and slot.shape[1] == len(plan.source), "a slot for each step")
        of_step = np.asarray(slot)[row]
        need(at >= 0 and bits > 0 and of_step.min(initial=0) >= 0
             and at + (int(of_step.max(initial=0)) * bits >> 3) + (bits + 7 >> 3) <= bytes, "elements inside the image")
        widest = max(widest, bits + 7 >> 3)
    need(event_offset.shape[0] == n and event_size.shape[0] == n and event_stream.shape[0] == n, "columns of one length")
    for k in range(n):
        inside &= 0 <= event_offset[k] <= bytes - event_size[k]
        widest = max(widest, event_size[k])
    need(inside, "structure loads inside the image")
    return widest


cdef class ForwardWalk:
    """A forward pass in progress: `fill` writes the next accesses and keeps the memory image current.

    What a step makes is written in trace/walk.h; see traces.trace.plan.Plan for the meaning and units of the arrays.
    Raises ValueError where one leads out of another or out of the image. streams: numbers of the streams of sources,
    partial sums and finished values.
    """

    def __init__(self, plan, uint8_t[::1] image, streams):
        cdef const int32_t[::1] source = plan.source, target = plan.target
        cdef const float[::1] weight = plan.weight, bias = plan.bias, slope = plan.slope
        cdef const uint8_t[::1] finish = plan.finish, hand_over = plan.hand_over
        cdef const uint8_t[::1] event_size = plan.event_size, event_stream = plan.event_stream
        cdef const int64_t[:, ::1] slot = plan.slot, element = plan.element
        cdef const int64_t[::1] event_step = plan.event_step, event_offset = plan.event_offset
        rows, whole = np.zeros((2, plan.lanes), np.float32), np.zeros(plan.lanes, np.int32)
        cdef const float[::1] multiplier
        cdef const int32_t[::1] zero
        cdef int32_t[::1] integers = whole
        cdef float[:, ::1] row = rows
        cdef ew_walk *walk = &self.walk
        cdef Py_ssize_t e
        need(element.shape[0] <= EDGEWATT_MOST_ELEMENTS and (element.shape[0] == 0 or element.shape[1] == 4),
             f"at most {EDGEWATT_MOST_ELEMENTS} arrays of four numbers are read at each step")
        need(slope.shape[0] == bias.shape[0], "a slope for each neuron")
        _check_steps(plan, source, target, weight, bias, finish, hand_over)
        self.widest = _check_places(plan, image, bias.shape[0], slot, element, event_step, event_offset, event_size,
                                    event_stream)
        self.owners = source, target, weight, bias, slope, finish, hand_over, event_size, event_stream, slot, event_step, event_offset, \
            rows, whole, image, plan.integers
        walk.n_steps, walk.n_events, walk.n_elements = len(source), len(event_step), len(element)
        if walk.n_steps:
            walk.source, walk.target, walk.weight = &source[0], &target[0], &weight[0]
            walk.bias, walk.slope = &bias[0], &slope[0]
            walk.finish, walk.hand_over = &finish[0], &hand_over[0]
            for e in range(len(element)):
                walk.element[e].offset, walk.element[e].bits = element[e, 0], element[e, 1]
                walk.element[e].stream, walk.element[e].slot = element[e, 2], &slot[element[e, 3], 0]
        if walk.n_events:
            walk.event_step, walk.event_offset = &event_step[0], &event_offset[0]
            walk.event_size, walk.event_stream = &event_size[0], &event_stream[0]
        walk.image, walk.base, walk.neurons = &image[0], plan.base_address, plan.neurons_offset
        walk.value_bytes, walk.lanes, walk.row_pitch = plan.value_bytes, plan.lanes, plan.row_pitch
        walk.row_bytes, walk.pass_bytes, walk.n_passes = plan.row_bytes, plan.pass_bytes, plan.n_passes
        walk.format, walk.registers = plan.neuron_format, plan.registers
        walk.input_stream, walk.partial_stream, walk.output_stream = streams
        walk.source_row, walk.sums, walk.integers = &row[0, 0], &row[1, 0], &integers[0]
        walk.sums_at, walk.sum_pitch, walk.sum_pass_bytes = plan.sums_offset, plan.sum_pitch, plan.sum_pass_bytes
        walk.sum_row_bytes = plan.sum_row_bytes
        if plan.integers is not None:
            multiplier, zero = plan.integers.multiplier, plan.integers.zero
            need(multiplier.shape[0] == bias.shape[0] == zero.shape[0], "a multiplier and a zero point for each neuron")
            walk.multiplier, walk.zero = &multiplier[0], &zero[0]
        ew_start_pass(walk)

    @property
    def done(self):
        """Whether every pass has been walked to its end."""
        return self.walk.number == self.walk.n_passes

    def fill(self, uint64_t[::1] address, size, uint8_t[::1] op, uint8_t[::1] stream,
             int64_t[::1] payload_offset, uint8_t[::1] payload):
        """Write the next accesses into the buffers; return their number. A buffer of n < 8 accesses makes no progress.

        size: uint8 where no access has more than 255 bytes, else uint16.
        """
        cdef ew_sink out
        open_sink(&out, self.widest, address, size, op, stream, payload_offset, payload)
        with nogil:
            ew_fill(&self.walk, &out)
        return out.n


cdef int open_sink(ew_sink *out, int64_t widest, uint64_t[::1] address, size, uint8_t[::1] op, uint8_t[::1] stream,
                    int64_t[::1] payload_offset, uint8_t[::1] payload) except -1:
    """widest: bytes of the widest access."""
    cdef int64_t n = address.shape[0]
    need(n > 0 and len(size) == n and op.shape[0] == n and stream.shape[0] == n and payload_offset.shape[0] > n
         and payload.shape[0] // widest >= n and widest < 1 << 8 * size.itemsize, "columns with room for all accesses")
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
    return 0
