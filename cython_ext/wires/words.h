/* What the wires do at each place of a window, whoever sends there: a word of four bytes, which bits are one, flip and rise, and
 * those three of the flag. */
#ifndef EDGEWATT_WORDS_H
#define EDGEWATT_WORDS_H

#include "wires/window.h"

enum { EW_FLAGS = 3, EW_TAKEN = 8 }; /* byte of a word, after EW_ONES, EW_TOGGLES and EW_RISING; a bit of it that is always set */

/* The first segment from k on before which the bus rests. */
static inline int64_t ew_next_rest(const ew_sent *sent, int64_t k) {
    if (!sent->idles) return sent->segments;
    while (k < sent->segments && !sent->idles[k]) k++;
    return k;
}

/* The words of 64 places: of their bytes and those before them on their lanes, and, bit by place, of those flags. */
static inline void ew_words_plain(uint8_t *to, const uint8_t *now, const uint8_t *before, uint64_t bits, uint64_t past) {
    uint8_t flags[64];
    for (int k = 0; k < 64; k += 8) {
        const uint64_t x = ew_spread_byte(bits >> k) | ew_spread_byte((bits ^ past) >> k) << 1 |
                           ew_spread_byte((bits & ~past) >> k) << 2;
        memcpy(flags + k, &x, 8);
    }
    for (int j = 0; j < 64; j++) {
        to[4 * j + EW_ONES] = now[j];
        to[4 * j + EW_TOGGLES] = now[j] ^ before[j];
        to[4 * j + EW_RISING] = now[j] & (uint8_t)~before[j];
        to[4 * j + EW_FLAGS] = flags[j] | EW_TAKEN;
    }
}

/* The words of all places up to `end`, and some more. */
#define EW_LOOK(target, level)                                                                                       \
    target static inline void ew_look_##level(const ew_window *w, uint8_t *word, int64_t end, int64_t lanes) {       \
        for (int64_t place = 0; place < end; place += 64) {                                                          \
            const uint8_t *now = w->byte + 64 + place;                                                               \
            uint64_t bits = 0, past = 0;                                                                             \
            if (w->flagged) bits = ew_word_at(w->flag, 64 + place), past = ew_word_at(w->flag, 64 + place - lanes);  \
            ew_words_##level(word + 4 * place, now, now - lanes, bits, past);                                        \
        }                                                                                                            \
    }
EW_LOOK(, plain)

#if EDGEWATT_X86
/* Unpacking goes by 16 bytes: where those have the dwords dealt out to them, it gives vectors of words in order. */
EDGEWATT_AVX2 static inline void ew_words_avx2(uint8_t *to, const uint8_t *now, const uint8_t *before, uint64_t bits,
                                               uint64_t past_bits) {
    const __m256i deal = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    /* the flag's byte, by what the flag is and, two places on, was */
    const __m256i of = _mm256_set1_epi32(EW_TAKEN | (EW_TAKEN + 7) << 8 | (EW_TAKEN + 2) << 16 | (EW_TAKEN + 1) << 24);
    for (int k = 0; k < 64; k += 32) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(now + k)), past = _mm256_loadu_si256((const __m256i *)(before + k));
        __m256i f = _mm256_set1_epi8(EW_TAKEN);
        if (bits | past_bits) {
            f = _mm256_or_si256(ew_spread_half((uint32_t)(bits >> k), 1), ew_spread_half((uint32_t)(past_bits >> k), 2));
            f = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(of, f), deal);
        }
        x = _mm256_permutevar8x32_epi32(x, deal);
        past = _mm256_permutevar8x32_epi32(past, deal);
        const __m256i toggles = _mm256_xor_si256(x, past), rises = _mm256_andnot_si256(past, x);
        const __m256i a = _mm256_unpacklo_epi8(x, toggles), b = _mm256_unpacklo_epi8(rises, f);
        const __m256i c = _mm256_unpackhi_epi8(x, toggles), d = _mm256_unpackhi_epi8(rises, f);
        _mm256_store_si256((__m256i *)(to + 4 * k), _mm256_unpacklo_epi16(a, b));
        _mm256_store_si256((__m256i *)(to + 4 * k + 32), _mm256_unpackhi_epi16(a, b));
        _mm256_store_si256((__m256i *)(to + 4 * k + 64), _mm256_unpacklo_epi16(c, d));
        _mm256_store_si256((__m256i *)(to + 4 * k + 96), _mm256_unpackhi_epi16(c, d));
    }
}
EW_LOOK(EDGEWATT_AVX2, avx2)

EDGEWATT_MASKS static inline void ew_words_avx512(uint8_t *to, const uint8_t *now, const uint8_t *before, uint64_t bits,
                                                  uint64_t past_bits) {
    const __m512i deal = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i x = _mm512_permutexvar_epi32(deal, _mm512_loadu_si512(now));
    const __m512i past = _mm512_permutexvar_epi32(deal, _mm512_loadu_si512(before));
    const __m512i toggles = _mm512_xor_si512(x, past), rises = _mm512_andnot_si512(past, x);
    __m512i f = _mm512_set1_epi8(EW_TAKEN);
    if (bits | past_bits) {
        f = _mm512_or_si512(_mm512_or_si512(f, _mm512_maskz_set1_epi8(bits, 1)),
                            _mm512_or_si512(_mm512_maskz_set1_epi8(bits ^ past_bits, 2),
                                            _mm512_maskz_set1_epi8(bits & ~past_bits, 4)));
        f = _mm512_permutexvar_epi32(deal, f);
    }
    const __m512i a = _mm512_unpacklo_epi8(x, toggles), b = _mm512_unpacklo_epi8(rises, f);
    const __m512i c = _mm512_unpackhi_epi8(x, toggles), d = _mm512_unpackhi_epi8(rises, f);
    _mm512_store_si512(to, _mm512_unpacklo_epi16(a, b));
    _mm512_store_si512(to + 64, _mm512_unpackhi_epi16(a, b));
    _mm512_store_si512(to + 128, _mm512_unpacklo_epi16(c, d));
    _mm512_store_si512(to + 192, _mm512_unpackhi_epi16(c, d));
}
EW_LOOK(EDGEWATT_MASKS, avx512)
#endif
#endif
