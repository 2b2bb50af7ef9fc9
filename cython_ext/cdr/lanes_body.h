/* Included once per SIMD level by cdr/lanes.h, which defines CDR_TARGET, CDR_NAME, CDR_WIDE (words of a register) and, for
 * AVX2, CDR_NARROW. `skip` is how many lengths come before those in the register. */
#define CDR_INLINE CDR_TARGET static inline __attribute__((always_inline))

typedef int64_t CDR_NAME(cdr_lane) __attribute__((vector_size(8 * CDR_WIDE)));
typedef int64_t CDR_NAME(cdr_unaligned) __attribute__((vector_size(8 * CDR_WIDE), aligned(8), may_alias));
typedef uint8_t CDR_NAME(cdr_bytes) __attribute__((vector_size(8 * CDR_WIDE)));
#define CDR_LANE CDR_NAME(cdr_lane)
#define CDR_BYTES CDR_NAME(cdr_bytes)
#define CDR_AT(p) (*(CDR_NAME(cdr_unaligned) *)(p))

/* Ones on the wires for each byte, as cdr_ones in cdr/cost.h counts them. */
CDR_INLINE CDR_BYTES CDR_NAME(cdr_byte_ones)(CDR_LANE x, int64_t cap) {
#ifdef CDR_NARROW
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i weight = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3,
                                            2, 3, 3, 4);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16((__m256i)x, 4), low);
    __m256i w = _mm256_add_epi8(_mm256_shuffle_epi8(weight, _mm256_and_si256((__m256i)x, low)),
                                _mm256_shuffle_epi8(weight, high));
    return (CDR_BYTES)_mm256_min_epu8(w, _mm256_sub_epi8(_mm256_set1_epi64x(cap), w));
#else
    const __m512i w = _mm512_popcnt_epi8((__m512i)x);
    return (CDR_BYTES)_mm512_min_epu8(w, _mm512_sub_epi8(_mm512_set1_epi64(cap), w));
#endif
}

/* The sum of each word's bytes. */
CDR_INLINE CDR_LANE CDR_NAME(cdr_summed)(CDR_BYTES x) {
#ifdef CDR_NARROW
    return (CDR_LANE)_mm256_sad_epu8((__m256i)x, _mm256_setzero_si256());
#else
    return (CDR_LANE)_mm512_sad_epu8((__m512i)x, _mm512_setzero_si512());
#endif
}
CDR_INLINE CDR_LANE CDR_NAME(cdr_lane_ones)(CDR_LANE x, int64_t cap) {
    return CDR_NAME(cdr_summed)(CDR_NAME(cdr_byte_ones)(x, cap));
}

/* A bit for each word whose top bit is set. */
CDR_INLINE int CDR_NAME(cdr_bits)(CDR_LANE x) {
#ifdef CDR_NARROW
    return _mm256_movemask_pd((__m256d)x);
#else
    return _mm512_movepi64_mask((__m512i)x);
#endif
}

CDR_INLINE CDR_LANE CDR_NAME(cdr_all)(int64_t x) { return x - (CDR_LANE){0}; }

/* All ones where a bit is set. */
CDR_INLINE CDR_LANE CDR_NAME(cdr_mask)(int bits, int skip) {
#ifdef CDR_NARROW
    const CDR_LANE each = {1, 2, 4, 8};
    return (CDR_NAME(cdr_all)(bits >> skip) & each) == each;
#else
    (void)skip;
    return (CDR_LANE)_mm512_movm_epi64((__mmask8)bits);
#endif
}

/* p[slot] of each length; slopes are -1, 0 and 1 and known when this is compiled. */
CDR_INLINE CDR_LANE CDR_NAME(cdr_load)(const int64_t *p, cdr_line f, int skip) {
    if (f.slope == 0) return CDR_NAME(cdr_all)(p[f.at]);
    if (f.slope == 1) return CDR_AT(p + f.at + 1 + skip);
    const CDR_LANE up = CDR_AT(p + f.at - CDR_WIDE - skip);
#ifdef CDR_NARROW
    return __builtin_shufflevector(up, up, 3, 2, 1, 0);
#else
    return __builtin_shufflevector(up, up, 7, 6, 5, 4, 3, 2, 1, 0);
#endif
}
#define CDR_LOAD(p, slot) CDR_NAME(cdr_load)(p, slot, skip)

/* What it costs that the tuple now in slot y follows the one in slot x, in a slot: at most 18 for each byte of a word. */
CDR_INLINE CDR_BYTES CDR_NAME(cdr_joint)(const cdr_slots *q, int skip, cdr_line x, cdr_line y, cdr_line slot, const int words) {
    CDR_BYTES sum = {0};
    for (int w = 0; w < words; w++) {
        const CDR_LANE sent = (CDR_LOAD(q->out[w], x) & CDR_LOAD(q->keep[w], slot)) ^
                              CDR_LOAD(q->in[w], y);
        sum += CDR_NAME(cdr_byte_ones)(sent, q->cap);
    }
    return sum;
}

/* What the base in slot k costs more than a slot inside a block, for segments of `lengths` (bits) laid down from `at`
 * on. */
CDR_INLINE CDR_LANE CDR_NAME(cdr_base)(const cdr_slots *q, int skip, int k, int lengths, cdr_line at, cdr_line first,
                                       const int reversed) {
    const int c = q->class_at[k];
    const cdr_line y = reversed ? cdr_shift(cdr_plus(first, at), 1 - k) : cdr_shift(cdr_minus(first, at), k);
    return CDR_LOAD(reversed ? q->turned[c] : q->ahead[c], y) & CDR_NAME(cdr_mask)(lengths, skip);
}

/* The bases inside a segment of each length, laid down from slot `at` on (`first` is the slot that it comes from, turned
 * round or not): what they cost more than inside a block. `few`: no eight slots in a row hold two bases. */
CDR_INLINE CDR_LANE CDR_NAME(cdr_bases)(const cdr_slots *q, int skip, cdr_line at, cdr_line first, const int reversed, const int few) {
    const int low = at.slope ? at.at - CDR_LANES + 1 : at.at + 1, high = low + CDR_LANES - 2;
    if (few) { /* without a branch, which could not be foretold: no length reaches a base that is too far off */
        const int off = at.slope ? q->to_last[high] : q->to_next[low];
        return CDR_NAME(cdr_base)(q, skip, at.slope ? high - off : low + off, 254 << off & 255, at, first, reversed);
    }
    CDR_LANE sum = {0};
    for (int k = q->next_special[low > 1 ? low : 1]; k <= high && k <= q->n; k = q->next_special[k + 1])
        sum += CDR_NAME(cdr_base)(q, skip, k, 254 << (at.slope ? high - k : k - low) & 255, at, first, reversed);
    return sum;
}

/* What the bases inside a segment add: those it is laid on, less those it held in slots from... */
CDR_INLINE CDR_LANE CDR_NAME(cdr_inside)(const cdr_slots *q, int skip, cdr_line at, cdr_line from, cdr_line to, const int reversed,
                                         const int few) {
    return CDR_NAME(cdr_bases)(q, skip, at, reversed ? to : from, reversed, few) - CDR_NAME(cdr_bases)(q, skip, from, from, 0, few);
}

/* The same for what lies between two segments: up to CDR_REACH slots, which move by one length. */
CDR_INLINE CDR_LANE CDR_NAME(cdr_between)(const cdr_slots *q, int skip, cdr_line at, cdr_line from, cdr_line to) {
    const cdr_line until = cdr_plus(at, cdr_minus(to, from));
    int low = cdr_low(at) + 1, high = cdr_high(until) < q->n ? cdr_high(until) : q->n;
    CDR_LANE sum = {0};
    for (int k = q->next_special[low > 1 ? low : 1]; k <= high; k = q->next_special[k + 1])
        sum += CDR_LOAD(q->ahead[q->class_at[k]], cdr_shift(cdr_minus(from, at), k)) &
               CDR_NAME(cdr_mask)(cdr_within(at, k - 1) & ~cdr_within(until, k - 1), skip);
    low = cdr_low(from) + 1, high = cdr_high(to) < q->n ? cdr_high(to) : q->n;
    for (int k = q->next_special[low > 1 ? low : 1]; k <= high; k = q->next_special[k + 1])
        sum -= CDR_NAME(cdr_all)(q->now[k] - q->plain[k]) &
               CDR_NAME(cdr_mask)(cdr_within(from, k - 1) & ~cdr_within(to, k - 1), skip);
    return sum;
}

/* The exchange of [i, i + a) and [j, j + b), each reversed or not, for eight lengths: see cdr_exchange in cdr/search.h. `few`
 * as in cdr_bases. */
CDR_INLINE uint64_t CDR_NAME(cdr_exchanges)(const cdr_slots *q, int skip, cdr_line i, cdr_line a, cdr_line j, cdr_line b, int reversed,
                                           const int few, const int words) {
    const int reverse_a = reversed & 1, reverse_b = reversed & 2, shifts = a.slope != b.slope;
    const cdr_line end = cdr_plus(j, b), middle = cdr_plus(i, a), to_a = cdr_minus(end, a), to_middle = cdr_plus(i, b);
    const cdr_line last_a = cdr_shift(middle, -1), last_b = cdr_shift(end, -1), last = cdr_shift(j, -1);
    int possible = ~cdr_within(i, 0) & cdr_within(end, q->n + 1), touching = 0;
    if (shifts) possible &= cdr_within(cdr_minus(middle, j), -1) & cdr_within(cdr_minus(j, i), CDR_REACH);
    if (!shifts) { /* nothing between the two: left to the exact price */
        possible &= cdr_within(cdr_minus(middle, j), 0);
        touching = ~cdr_within(cdr_minus(middle, j), -1);
    }
    if (shifts && !possible) return 0; /* often; else it is not worth a branch */
    const CDR_BYTES counted = (CDR_BYTES)CDR_LOAD(q->counted, end);
    CDR_BYTES joints = b.slope ? CDR_NAME(cdr_joint)(q, skip, reverse_b ? j : last_b, middle, to_middle, words)
                               : CDR_NAME(cdr_joint)(q, skip, cdr_shift(i, -1), middle, i, words);
    CDR_LANE sum = -CDR_LOAD(q->now, middle) - CDR_LOAD(q->now, end);
    if (a.slope) {
        joints += CDR_NAME(cdr_joint)(q, skip, last, reverse_a ? last_a : i, to_a, words);
        joints += CDR_NAME(cdr_joint)(q, skip, reverse_a ? i : last_a, end, end, words) & counted;
        sum += CDR_NAME(cdr_inside)(q, skip, to_a, i, last_a, reverse_a, few) - CDR_LOAD(q->now, i);
    } else {
        joints += CDR_NAME(cdr_joint)(q, skip, last, end, end, words) & counted;
    }
    if (b.slope) {
        joints += CDR_NAME(cdr_joint)(q, skip, cdr_shift(i, -1), reverse_b ? last_b : j, i, words);
        sum += CDR_NAME(cdr_inside)(q, skip, i, j, last_b, reverse_b, few) - CDR_LOAD(q->now, j);
    }
    if (shifts) sum += CDR_NAME(cdr_between)(q, skip, to_middle, middle, last);
    sum += CDR_NAME(cdr_summed)(joints);
    return (uint64_t)((CDR_NAME(cdr_bits)(sum) << skip | touching) & possible);
}

/* For each of the moves by which cdr_join puts the tuple of slot j next to that of slot i: the lengths worth pricing. The
 * slopes are known here, so that every load is one instruction. */
CDR_INLINE uint64_t CDR_NAME(cdr_moves_of)(const cdr_slots *q, int skip, int i, int j, const int before, const int turned,
                                           const int few, const int words) {
    const cdr_line none = {0, 0}, some = {0, 1};
    const cdr_line gap = {before ? i : i + 1, 0}, there = {before ? i : i + 1, before ? -1 : 0}; /* slots at tuple b */
    const cdr_line plain = {before ? j + 1 : j, before ? -1 : 0}, round = {before ? j : j + 1, before ? 0 : -1};
    const cdr_line own = {before ? i : i + 1, before ? 0 : -1};
    const cdr_line behind = {before ? j + 1 : j, 0}, beyond = {before ? j + 1 : j, before ? 0 : -1};
#define CDR_SWAP(...) CDR_NAME(cdr_exchanges)(q, skip, __VA_ARGS__, few, words)
    if (j > i)
        return CDR_SWAP(gap, none, plain, some, 0) | CDR_SWAP(there, some, plain, some, 0) << 8 |
               CDR_SWAP(own, some, behind, none, 0) << 16 | CDR_SWAP(own, some, beyond, some, 0) << 24 |
               (turned ? CDR_SWAP(gap, none, round, some, 2) << 32 | CDR_SWAP(there, some, round, some, 2) << 40 : 0);
    return CDR_SWAP(plain, some, gap, none, 0) | CDR_SWAP(plain, some, there, some, 0) << 8 |
           CDR_SWAP(behind, none, own, some, 0) << 16 | CDR_SWAP(beyond, some, own, some, 0) << 24 |
           (turned ? CDR_SWAP(round, some, gap, none, 1) << 32 | CDR_SWAP(round, some, there, some, 1) << 40 : 0);
#undef CDR_SWAP
}

CDR_TARGET static uint64_t CDR_NAME(cdr_moves)(const cdr_slots *q, int i, int j, int before, int turned) {
    uint64_t found = 0;
    for (int skip = 0; skip < CDR_LANES; skip += CDR_WIDE) {
        const uint64_t asked = (uint64_t)(((1 << CDR_WIDE) - 1) << skip) * 0x010101010101;
#define CDR_MOVES(...) CDR_NAME(cdr_moves_of)(q, skip, i, j, __VA_ARGS__)
#define CDR_EITHER(...) (before ? CDR_MOVES(1, turned, __VA_ARGS__) : CDR_MOVES(0, turned, __VA_ARGS__))
        if (q->words > 1 || !q->apart)
            found |= asked & CDR_EITHER(0, q->words);
        else
            found |= asked & CDR_EITHER(1, 1);
#undef CDR_EITHER
#undef CDR_MOVES
    }
    return found;
}

/* Past `to` this writes what is there, or into the margin. */
CDR_TARGET static void CDR_NAME(cdr_refresh)(const cdr_slots *q, int from, int to) {
    const int skip = 0;
    for (int k = from; k <= to; k += CDR_WIDE) {
        CDR_LANE now = {0}, plain = {0}, turned = {0}, ahead[CDR_CLASSES] = {{0}}, behind[CDR_CLASSES] = {{0}};
        for (int w = 0; w < q->words; w++) {
            const cdr_line slot = {k - 1, 1}, before = {k - 2, 1};
            const CDR_LANE out = CDR_LOAD(q->out[w], before), in = CDR_LOAD(q->in[w], slot);
            const CDR_LANE back = CDR_LOAD(q->out[w], slot), to_back = CDR_LOAD(q->in[w], before);
            now += CDR_NAME(cdr_lane_ones)((out & CDR_LOAD(q->keep[w], slot)) ^ in, q->cap);
            plain += CDR_NAME(cdr_lane_ones)(out ^ in, q->cap);
            turned += CDR_NAME(cdr_lane_ones)(back ^ to_back, q->cap);
            for (int c = 0; c < q->classes; c++) {
                const CDR_LANE keep = CDR_NAME(cdr_all)((int64_t)q->masks[q->class_of[c]][w]);
                ahead[c] += CDR_NAME(cdr_lane_ones)((out & keep) ^ in, q->cap);
                behind[c] += CDR_NAME(cdr_lane_ones)((back & keep) ^ to_back, q->cap);
            }
        }
        CDR_AT(q->now + k) = now & CDR_AT(q->counted + k);
        CDR_AT(q->plain + k) = plain;
        for (int c = 0; c < q->classes; c++) {
            CDR_AT(q->ahead[q->class_of[c]] + k) = ahead[c] - plain;
            CDR_AT(q->turned[q->class_of[c]] + k) = behind[c] - turned;
        }
    }
}

CDR_TARGET static void CDR_NAME(cdr_row_of)(const cdr_stride *s, int c, int64_t first, int behind, int64_t start, int64_t count,
                                         uint8_t *cost) {
    const int words = s->words;
    const int64_t cap = cdr_cap(s);
    const int64_t *const each = (const int64_t *)(behind ? s->out : s->in);
    const uint64_t *const one = (behind ? s->in : s->out) + first * words;
    const int each_time = CDR_WIDE / words;
    int64_t b = 0;
    CDR_LANE y, keep;
    for (int k = 0; k < CDR_WIDE; k++) y[k] = (int64_t)one[k % words], keep[k] = (int64_t)s->keep[c][k % words];
    for (; b + each_time <= count; b += each_time) {
        const CDR_LANE x = CDR_AT(each + (start + b) * words);
        const CDR_LANE ones = CDR_NAME(cdr_lane_ones)(behind ? (x & keep) ^ y : x ^ (y & keep), cap);
        if (words == 1) {
            typedef uint8_t narrow __attribute__((vector_size(CDR_WIDE)));
            const narrow bytes = __builtin_convertvector(ones, narrow);
            memcpy(cost + b, &bytes, sizeof bytes);
        } else {
            for (int k = 0; k < each_time; k++) cost[b + k] = (uint8_t)(ones[2 * k] + ones[2 * k + 1]);
        }
    }
    for (; b < count; b++)
        cost[b] = (uint8_t)(behind ? cdr_compute(s, c, start + b, first) : cdr_compute(s, c, first, start + b));
}
#undef CDR_INLINE
#undef CDR_LANE
#undef CDR_BYTES
#undef CDR_AT
#undef CDR_LOAD
