/* The float kernel for one SIMD level; included once per level (runs.h), which defines
 *   LEVEL SUFFIX, TARGET attribute, V vector type, WIDTH floats of it, LOAD STORE SET1 FMA ADD MAX MIN, and
 *   NOT_ZERO(sum, value): value where sum is not 0, else 0;
 *   QUAD: four weights at a time, LOAD_QUAD_F32 / LOAD_QUAD_BF16 (pointer), PICK(quad, 0..3): one of them in all lanes.
 *
 * Loads limit the inner loop, so weights and source offsets are loaded four at a time, one quad ahead, across runs.
 * Partial sums stay in registers for a whole run. Rows of fewer than 8 vectors use SETS independent sums per value to
 * cover the latency of the additions; they are added at the end of the run.
 */
#define EW_CAT2(a, b) a##b
#define EW_CAT(a, b) EW_CAT2(a, b)
#define EW_NAME(name) EW_CAT(name, LEVEL)

#define EW_EACH _Pragma("GCC unroll 16") for (int v = 0; v < NV; v++)
#define EW_ROW(offset) ((const float *)(from + (size_t)(offset) * EW_UNIT))
#define EW_ADD_ROW(sum, offset, set, weight) \
    do { \
        const float *row = EW_ROW(offset); \
        const V factor = (weight); \
        EW_EACH sum[(set) * NV + v] = FMA(factor, LOAD(row + v * WIDTH), sum[(set) * NV + v]); \
    } while (0)
/* The same for two targets: the row is loaded once. */
#define EW_ADD_SHARED_ROW(offset, set, weight, other_weight) \
    do { \
        const float *row = EW_ROW(offset); \
        const V factor = (weight), other_factor = (other_weight); \
        EW_EACH { \
            const V value = LOAD(row + v * WIDTH); \
            sum[(set) * NV + v] = FMA(factor, value, sum[(set) * NV + v]); \
            other[(set) * NV + v] = FMA(other_factor, value, other[(set) * NV + v]); \
        } \
    } while (0)

/* Sets offset[0..3], in units, and the quad of weights to those that were loaded last, and loads the next. */
#define EW_TAKE_QUAD \
    size_t offset[4]; \
    ew_four_offsets(offset, pair, NARROW); \
    const V w0 = PICK(quad, 0), w1 = PICK(quad, 1), w2 = PICK(quad, 2), w3 = PICK(quad, 3); \
    EW_LOAD_QUAD
#define EW_LOAD_WEIGHTS (BF16 ? LOAD_QUAD_BF16((const uint16_t *)weights) : LOAD_QUAD_F32((const float *)weights))
#define EW_LOAD_QUAD \
    memcpy(pair, offsets, NARROW ? 8 : 16); \
    quad = EW_LOAD_WEIGHTS; \
    EW_SKIP_QUAD
#define EW_SKIP_QUAD \
    offsets += NARROW ? 8 : 16; \
    weights += BF16 ? 8 : 16;

#define EW_ADD_QUAD(sum) \
    do { \
        EW_TAKE_QUAD \
        EW_ADD_ROW(sum, offset[0], 0, w0); \
        EW_ADD_ROW(sum, offset[1], 1 % SETS, w1); \
        EW_ADD_ROW(sum, offset[2], 2 % SETS, w2); \
        EW_ADD_ROW(sum, offset[3], 3 % SETS, w3); \
    } while (0);

#define EW_ADD_SHARED_QUAD \
    do { \
        const QUAD others = EW_LOAD_WEIGHTS; \
        EW_SKIP_QUAD \
        EW_TAKE_QUAD \
        EW_ADD_SHARED_ROW(offset[0], 0, w0, PICK(others, 0)); \
        EW_ADD_SHARED_ROW(offset[1], 1 % SETS, w1, PICK(others, 1)); \
        EW_ADD_SHARED_ROW(offset[2], 2 % SETS, w2, PICK(others, 2)); \
        EW_ADD_SHARED_ROW(offset[3], 3 % SETS, w3, PICK(others, 3)); \
    } while (0);

/* What the target of a run starts from: its bias, or what it has become so far. */
#define EW_START(sum, run) \
    do { \
        if ((run)->head & EW_FIRST) { \
            const V bias = SET1(EW_ACTIVATION((run)->head) == EW_CLIPPED ? 0.0f : (run)->start); \
            EW_EACH sum[v] = bias; \
        } else { \
            const float *target = (const float *)(values + (size_t)(run)->target * EW_UNIT); \
            EW_EACH sum[v] = LOAD(target + v * WIDTH); \
        } \
        _Pragma("GCC unroll 16") for (int v = NV; v < NV * SETS; v++) sum[v] = SET1(0.0f); \
    } while (0);

/* n connections. */
#define EW_ADD(sum, n) \
    do { \
        for (; n >= 4; n -= 4) EW_ADD_QUAD(sum) \
        if (n) { \
            EW_TAKE_QUAD \
            (void)w3; \
            if (n == 1) { \
                EW_ADD_ROW(sum, offset[0], 0, w0); \
            } else if (n == 2) { \
                EW_ADD_ROW(sum, offset[0], 0, w0); \
                EW_ADD_ROW(sum, offset[1], 1 % SETS, w1); \
            } else { \
                EW_ADD_ROW(sum, offset[0], 0, w0); \
                EW_ADD_ROW(sum, offset[1], 1 % SETS, w1); \
                EW_ADD_ROW(sum, offset[2], 2 % SETS, w2); \
            } \
        } \
    } while (0);

#define EW_FINISH(sum, run) \
    do { \
        const uint32_t kind = EW_ACTIVATION((run)->head); \
        float *target = (float *)(values + (size_t)(run)->target * EW_UNIT); \
        _Pragma("GCC unroll 4") for (int s = 1; s < SETS; s++) EW_EACH sum[v] = ADD(sum[v], sum[s * NV + v]); \
        if ((run)->head & EW_LAST) { \
            const V zero = SET1(0.0f); \
            if (kind == EW_RELU) { \
                EW_EACH sum[v] = MAX(sum[v], zero); \
            } else if (kind == EW_CLIPPED) { \
                const V bias = SET1((run)->start), most = SET1(EW_CLIP); \
                EW_EACH sum[v] = NOT_ZERO(sum[v], MIN(MAX(ADD(sum[v], bias), zero), most)); \
            } \
        } \
        EW_EACH STORE(target + v * WIDTH, sum[v]); \
    } while (0);

TARGET EW_INLINE void EW_NAME(ew_stream_)(
    const ew_run *run, const ew_run *end, const char *offsets, const char *weights, char *values, const char *inputs,
    const int NV, const int SETS, const int BF16, const int NARROW) {
    uint64_t pair[2];
    QUAD quad;
    offsets += (size_t)run->quad * (NARROW ? 8 : 16);
    weights += (size_t)run->quad * (BF16 ? 8 : 16);
    EW_LOAD_QUAD
    for (; run < end; run++) {
        V sum[16];
        const char *const from = run->head & EW_OUTSIDE ? inputs : values;
        uint32_t n = run->head & EW_MAX_RUN;
        EW_START(sum, run)
        if (EW_PAIRS && run->head & EW_PAIRED) {
            V other[16];
            const uint32_t shared = run[1].quad;
            EW_START(other, run + 1)
            for (uint32_t left = shared; left; left--) EW_ADD_SHARED_QUAD
            n -= 4 * shared;
            EW_ADD(sum, n)
            EW_FINISH(sum, run)
            run++;
            n = (run->head & EW_MAX_RUN) - 4 * shared;
            EW_ADD(other, n)
            EW_FINISH(other, run)
            continue;
        }
        EW_ADD(sum, n)
        EW_FINISH(sum, run)
    }
}

#define EW_ARGUMENTS \
    const ew_run *run, const ew_run *end, const char *offsets, const char *weights, char *values, const char *inputs
#define EW_STREAM(NV, SETS, BF16, NARROW, name) \
    TARGET static void EW_NAME(name)(EW_ARGUMENTS) { \
        EW_NAME(ew_stream_)(run, end, offsets, weights, values, inputs, NV, SETS, BF16, NARROW); \
    }
#define EW_WIDTHS(BF16, NARROW, name) \
    EW_STREAM(8, 1, BF16, NARROW, EW_CAT(name, 8_)) \
    EW_STREAM(4, 2, BF16, NARROW, EW_CAT(name, 4_)) \
    EW_STREAM(2, 4, BF16, NARROW, EW_CAT(name, 2_)) \
    EW_STREAM(1, 4, BF16, NARROW, EW_CAT(name, 1_)) \
    static void EW_NAME(name)(EW_ARGUMENTS, int64_t vectors) { \
        (vectors == 8   ? EW_NAME(EW_CAT(name, 8_)) \
         : vectors == 4 ? EW_NAME(EW_CAT(name, 4_)) \
         : vectors == 2 ? EW_NAME(EW_CAT(name, 2_)) \
                        : EW_NAME(EW_CAT(name, 1_)))(run, end, offsets, weights, values, inputs); \
    }
EW_WIDTHS(0, 0, ew_f32_)
EW_WIDTHS(1, 0, ew_bf16_)
EW_WIDTHS(0, 1, ew_f32_narrow_)
EW_WIDTHS(1, 1, ew_bf16_narrow_)

/* Works through runs for `columns` floats of every row from `values` on, at most 8 vectors at a time. */
static void EW_NAME(ew_columns_)(EW_ARGUMENTS, int64_t columns, int kind) {
    for (int64_t left = columns / WIDTH; left > 0;) {
        const int64_t now = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        (kind == EW_F32    ? EW_NAME(ew_f32_)
         : kind == EW_BF16 ? EW_NAME(ew_bf16_)
         : kind & EW_BF16  ? EW_NAME(ew_bf16_narrow_)
                           : EW_NAME(ew_f32_narrow_))(run, end, offsets, weights, values, inputs, now);
        values += now * WIDTH * sizeof(float);
        inputs += now * WIDTH * sizeof(float);
        left -= now;
    }
}

/* Those of a level; the others are the same at each. */
#undef EW_PAIRS
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
