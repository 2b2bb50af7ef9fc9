"""What all kernels share: the SIMD level, and checks of arguments.

Names with an underscore, here and in the other folders, follow ids, pointers and addresses as they are given: wrong
ones read and write outside arrays, and their callers in edgewatt check them. All others look at their arguments first
and raise ValueError.
"""
