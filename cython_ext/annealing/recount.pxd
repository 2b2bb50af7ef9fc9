"""What connection_moves.h, recount.h and recount_min.h declare: an order that changes, and the I/Os that it costs."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

cdef extern from "annealing/recount_min.h" nogil:
    ctypedef struct cr_move:
        int32_t edge
    ctypedef struct cr_edge:
        int32_t next, prev, source, target
        int64_t label
        int32_t out_index, in_index, name
        uint8_t mark
    ctypedef struct cr_order:
        int64_t w, n
        cr_edge *edges
        cr_edge *spare
        int32_t *number
        int32_t *renamed
        const int64_t *out_start
        const int64_t *in_start
        int32_t *out_edges
        int32_t *in_edges
        int64_t *first_key
        int64_t runs
        int32_t *window
        int64_t n_window
        cr_move *moves
        int64_t n_moves
        int32_t *points
        int64_t n_points
        int left, keyed
    ctypedef struct cr_change:
        int64_t access
    ctypedef struct cr_counter:
        int64_t total, capacity
        int pin_both
        uint8_t *flags
        int32_t *use_misses
        const uint8_t *free_write
        cr_change *journal
        int64_t n_journal
        uint8_t *moved_flags
        int64_t n_old
        int64_t *stamp
        int64_t now, mark
        int64_t *last
        int32_t *log
        int32_t *old_log
        uint64_t *salt
        uint64_t power
        int64_t played
    ctypedef struct cr_span:
        int64_t start, end
        int32_t neuron
    ctypedef struct cr_min:
        int32_t *victim
        int32_t *moved_victim
        uint16_t *in_ "in"
        int32_t *only_new
        int32_t *only_new_at
        int32_t *member
        int32_t *last
        int64_t *key
        int64_t *block_key
        int64_t block_shift, n_blocks
        int32_t *place
        int32_t *free_slots
        cr_span *spans
        cr_span *hot
        int64_t n_spans, every, n_checkpoints
        int32_t *checkpoint
        int32_t *hook
        int32_t *saved
        int32_t *saved_size
        uint8_t *version
        int32_t *rewritten
        int32_t *unhooked
    uint64_t CR_BASE
    int CR_POINT
    int32_t cr_first(const cr_order *)
    void cr_relabel(cr_order *)
    void cr_renumber(cr_order *)
    void cr_propose(cr_order *, int32_t, int64_t, int)
    void cr_undo(cr_order *)
    void cr_find_points(cr_order *)
    void cr_clear_points(cr_order *)
    void cr_renumber_records(const cr_order *, void *, void *, int64_t)
    void cr_restore(cr_counter *, const cr_order *)
    void cr_count_changes(cr_counter *, const cr_order *, int)
    void cr_lru_segment(cr_counter *, const cr_order *, int32_t, int64_t *)
    void cr_rr_segment(cr_counter *, const cr_order *, int32_t, int64_t *)
    void cr_min_changes(cr_counter *, cr_min *, const cr_order *)
    void cr_min_restore(cr_counter *, cr_min *, const cr_order *)
    int32_t cr_min_segment(cr_counter *, cr_min *, const cr_order *, int32_t, int64_t *)
    void cr_min_checkpoints(cr_counter *, cr_min *, const cr_order *)
