"""What a kernel asks of its arguments before it reads memory by them. No assert: `python -O` removes those."""


cdef inline int need(bint holds, str what) except -1:
    """Raise ValueError unless it holds. what: the condition, in words."""
    if not holds:
        raise ValueError(what)
    return 0
