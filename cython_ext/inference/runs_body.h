/* The float kernel for one SIMD level; included once per level (runs.h), which defines
 *   LEVEL SUFFIX, TARGET attribute, V vector type, WIDTH floats of it, LOAD STORE SET1 FMA ADD MAX MIN, and
 *   NOT_ZERO(sum, value): value where sum is not 0, else 0;
 *   QUAD: four weights at a time, LOAD_QUAD_F32 / LOAD_QUAD_BF16 (pointer), PICK(quad, 0..3): one of them in all places.
 *
 * What limits the inner loop is loads (two vectors of 64 bytes, or four smaller ones, per cycle on Zen 5), so weights
 * are loaded four at a time and spread by shuffles, and so are source offsets (two at a time where they need 32 bits).
 * Partial sums stay in registers
 * for a whole run. Rows of fewer than 8 vectors use SETS independent sums per place to cover the latency of the
 * additions; they are added at the end of the run.
 */
#define EW_CAT2(a, b) a##b
#define EW_CAT(a, b) EW_CAT2(a, b)
#define EW_NAME(name) EW_CAT(name, LEVEL)

#define EW_EACH _Pragma("GCC unroll 16") for (int v = 0; v < NV; v++)
#define EW_ADD_ROW(place, set, weight)                                                       \
    do {                                                                                     \
        const float *row = (const float *)(from + (size_t)(place) * EW_UNIT);              \
        const V factor = (weight);                                                           \
        EW_EACH sum[(set) * NV + v] = FMA(factor, LOAD(row + v * WIDTH), sum[(set) * NV + v]); \
    } while (0)

TARGET static inline __attribute__((always_inline)) void EW_NAME(ew_run_)(
    const uint32_t *p, uint32_t n, char *values, const char *inputs, const int NV, const int SETS, const int BF16, const int NARROW) {
    V sum[16];
    const uint32_t head = p[1], kind = EW_ACTIVATION(head);
    const float start = ew_float(p[2]);
    float *target = (float *)(values + (size_t)p[0] * EW_UNIT);
    const char *const from = head & EW_OUTSIDE ? inputs : values;
    const uint32_t *wide = p + EW_HEADER;
    const uint16_t *narrow = (const uint16_t *)wide;
    const float *f32 = (const float *)(wide + (NARROW ? (n + 1) / 2 : n));
    const uint16_t *bf16 = (const uint16_t *)f32;
    if (head & EW_FIRST) {
        const V bias = SET1(kind == EW_CLIPPED ? 0.0f : start);
        EW_EACH sum[v] = bias;
    } else {
        EW_EACH sum[v] = LOAD(target + v * WIDTH);
    }
    _Pragma("GCC unroll 16") for (int v = NV; v < NV * SETS; v++) sum[v] = SET1(0.0f);
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const QUAD quad = BF16 ? LOAD_QUAD_BF16(bf16 + i) : LOAD_QUAD_F32(f32 + i);
        size_t place[4];
        ew_four_places(place, wide + i, narrow + i, NARROW);
        EW_ADD_ROW(place[0], 0, PICK(quad, 0));
        EW_ADD_ROW(place[1], 1 % SETS, PICK(quad, 1));
        EW_ADD_ROW(place[2], 2 % SETS, PICK(quad, 2));
        EW_ADD_ROW(place[3], 3 % SETS, PICK(quad, 3));
    }
    for (; i < n; i++)
        EW_ADD_ROW(NARROW ? (size_t)narrow[i] * EW_LINE_UNITS : wide[i], 0, SET1(BF16 ? ew_bf16(bf16 + i) : f32[i]));
    _Pragma("GCC unroll 4") for (int s = 1; s < SETS; s++) EW_EACH sum[v] = ADD(sum[v], sum[s * NV + v]);
    if (head & EW_LAST) {
        const V zero = SET1(0.0f);
        if (kind == EW_RELU) {
            EW_EACH sum[v] = MAX(sum[v], zero);
        } else if (kind == EW_CLIPPED) {
            const V bias = SET1(start), most = SET1(EW_CLIP);
            EW_EACH sum[v] = NOT_ZERO(sum[v], MIN(MAX(ADD(sum[v], bias), zero), most));
        }
    }
    EW_EACH STORE(target + v * WIDTH, sum[v]);
}

#define EW_STREAM(NVEC, SETS, BF16, NARROW, name)                                                \
    TARGET static void EW_NAME(name)(const uint32_t *p, const uint32_t *end, char *values, const char *inputs) { \
        while (p < end) {                                                                        \
            const uint32_t n = p[1] & EW_MAX_RUN;                                                \
            EW_NAME(ew_run_)(p, n, values, inputs, NVEC, SETS, BF16, NARROW);                            \
            p += EW_HEADER + (NARROW ? (n + 1) / 2 : n) + (BF16 ? (n + 1) / 2 : n);              \
        }                                                                                        \
    }
#define EW_WIDTHS(BF16, NARROW, name)              \
    EW_STREAM(8, 1, BF16, NARROW, EW_CAT(name, 8_)) \
    EW_STREAM(4, 2, BF16, NARROW, EW_CAT(name, 4_)) \
    EW_STREAM(2, 4, BF16, NARROW, EW_CAT(name, 2_)) \
    EW_STREAM(1, 4, BF16, NARROW, EW_CAT(name, 1_)) \
    static void EW_NAME(name)(const uint32_t *p, const uint32_t *end, char *values, const char *inputs,              \
                              int64_t vectors) {                                                                     \
        (vectors == 8   ? EW_NAME(EW_CAT(name, 8_))                                                                  \
         : vectors == 4 ? EW_NAME(EW_CAT(name, 4_))                                                                  \
         : vectors == 2 ? EW_NAME(EW_CAT(name, 2_))                                                                  \
                        : EW_NAME(EW_CAT(name, 1_)))(p, end, values, inputs);                                                \
    }
EW_WIDTHS(0, 0, ew_f32_)
EW_WIDTHS(1, 0, ew_bf16_)
EW_WIDTHS(0, 1, ew_f32_narrow_)
EW_WIDTHS(1, 1, ew_bf16_narrow_)

/* Works through the stream for `columns` floats of every row from `values` on, at most 8 vectors at a time. */
static void EW_NAME(ew_columns_)(const uint32_t *p, const uint32_t *end, char *values, const char *inputs,
                                 int64_t columns, int kind) {
    for (int64_t left = columns / WIDTH; left > 0;) {
        const int64_t now = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        (kind == EW_F32    ? EW_NAME(ew_f32_)
         : kind == EW_BF16 ? EW_NAME(ew_bf16_)
         : kind & EW_BF16  ? EW_NAME(ew_bf16_narrow_)
                           : EW_NAME(ew_f32_narrow_))(p, end, values, inputs, now);
        values += now * WIDTH * sizeof(float);
        inputs += now * WIDTH * sizeof(float);
        left -= now;
    }
}

#undef EW_WIDTHS
#undef EW_STREAM
#undef EW_ADD_ROW
#undef EW_EACH
#undef EW_NAME
#undef EW_CAT
#undef EW_CAT2
#undef LEVEL
#undef TARGET
#undef V
#undef WIDTH
#undef LOAD
#undef STORE
#undef SET1
#undef FMA
#undef ADD
#undef MAX
#undef MIN
#undef NOT_ZERO
#undef QUAD
#undef LOAD_QUAD_F32
#undef LOAD_QUAD_BF16
#undef PICK
