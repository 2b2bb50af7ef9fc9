"""Sources of members that more than one test installs as another author's."""

BACKWARDS_INSIDE = """
from edgewatt.plugins import TUPLE_ORDERS, TupleOrderMethod


class Backwards(TupleOrderMethod):
    layouts = frozenset({"csr"})

    def order(self, problem, order, first, last, seed, parameters, progress):
        for k in range(first, last):
            start, stop = problem.bounds[k], problem.bounds[k + 1]
            order[start:stop] = order[start:stop][::-1].copy()


TUPLE_ORDERS.register("backwards", summary="each stride the other way round")(Backwards())
"""
DENSE_TEXT = """
import numpy as np
from edgewatt.plugins import NETWORK_READERS, Matrix, MatrixReader


class Dense(MatrixReader):
    suffixes = (".dense",)

    def matrices(self, path, names):
        values = np.loadtxt(path, ndmin=2)
        rows, columns = np.nonzero(values)
        return [Matrix(rows, columns, values[rows, columns], values.shape, str(path))]


NETWORK_READERS.register("dense-text", summary="one row of numbers per line")(Dense())
"""
OWN_TRACE = """
from edgewatt.plugins import TRACE_READERS, TextReader


def parse(words):
    if len(words) != 3 or words[0] != "access":
        raise ValueError("no access")
    return int(words[1], 16), 0, int(words[2] == "out"), -1


TRACE_READERS.register("own-trace", summary="access ADDRESS in|out")(TextReader(parse))
"""
OWN_LINES = """
from edgewatt.plugins import TRACE_WRITERS, TraceWriter, columns


class Own(TraceWriter):
    def write(self, trace, stream, line_bytes):
        written = 0
        for _, address, size, op, cycle in columns(trace):
            stream.write("".join(f"{'wr'[not o]} {a:x}\\n" for o, a in zip(op, address)).encode())
            written += len(address)
        return written


TRACE_WRITERS.register("own-lines", summary="r or w, address")(Own())
"""
C_POLICY = """
#include "cache/policy.h"
static int64_t victim(edgewatt_sets *sets, uint64_t set) { (void)sets, (void)set; return 0; }
static void note(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) {
    (void)sets, (void)set, (void)way, (void)next;
}
const edgewatt_policy first_way = {EDGEWATT_POLICY_VERSION, 0, 0, 0, 0, note, note, victim};
"""
