"""Hypothesis strategies of byte streams and bus geometries."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def streams(draw):
    """Bytes with runs, zeros and noise, long enough to reach the wide kernels now and then."""
    n = draw(st.integers(0, 90) | st.integers(120, 700))
    kind = draw(st.sampled_from(("noise", "zeros", "smooth")))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "zeros":
        return (rng.integers(0, 256, n) * (rng.random(n) < 0.3)).astype(np.uint8)
    if kind == "smooth":
        return np.cumsum(rng.integers(-2, 3, n)).astype(np.uint8)
    return rng.integers(0, 256, n, dtype=np.uint8)


geometries = st.tuples(
    st.sampled_from((1, 2, 4, 8)), st.sampled_from((1, 2, 3, 4, 8, 16)), st.sampled_from((8, 16, 24, 32, 64, 128))
)
