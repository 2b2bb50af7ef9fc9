import numpy as np

import edgewatt as ew


def test_a_half_has_at_most_two_ones() -> None:
    data = np.arange(256, dtype=np.uint8)
    sent = ew.encode(data, "nibble-dbi", element_bytes=1)
    halves = np.concatenate((sent.data & 15, sent.data >> 4))
    assert max(int(half).bit_count() for half in halves) == 2
    assert sent.extra_wires == 4, "two lanes with two flag wires each"
    flags = 2 * 16 * sum(n.bit_count() > 2 for n in range(16))
    assert sent.ones == sum(int(byte).bit_count() for byte in sent.data) + flags
    assert (ew.decode(sent, "nibble-dbi", element_bytes=1) == data).all()
