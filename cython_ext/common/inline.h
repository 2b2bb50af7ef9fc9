/* Part of each of its callers: compiled for the constants it is called with, without a call on the way. */
#pragma once

#define EW_INLINE static inline __attribute__((always_inline))
