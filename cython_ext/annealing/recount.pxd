"""What connection_moves.h, recount.h and recount_min.h declare: an order that changes, and the I/Os that it costs."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

cdef extern from "annealing/recount_min.h" nogil:
    ctypedef struct ew_move:
        int32_t edge
    ctypedef struct ew_link:
        int32_t next, prev, source, target
    ctypedef struct ew_edge:
        int64_t label
        int32_t out_index, in_index, name
    ctypedef struct ew_order:
        int64_t w, n
        ew_link *links
        ew_link *spare_links
        ew_edge *edges
        ew_edge *spare
        uint8_t *mark
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
        ew_move *moves
        int64_t n_moves
        int32_t *points
        int64_t n_points
        int left, keyed
    ctypedef struct ew_change:
        int64_t access
    ctypedef struct ew_counter:
        int64_t total, most, capacity
        int given_up, pin_both
        uint8_t *flags
        int32_t *use_misses
        const uint8_t *free_write
        ew_change *journal
        int64_t n_journal
        uint8_t *moved_flags
        int64_t n_old
        int64_t *stamp
        int64_t now, mark
        int64_t *last
        int32_t *log
        int32_t *old_log
        int64_t played
    ctypedef struct ew_span:
        int64_t start, end
        int32_t neuron
    ctypedef struct ew_min_set:
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
        ew_span *spans
        ew_span *hot
        int64_t n_spans, every, n_checkpoints
        int32_t *checkpoint
        int32_t *hook
        int32_t *saved
        int32_t *saved_size
        uint8_t *version
        int32_t *rewritten
        int32_t *unhooked
    int EW_POINT, EW_SPARE
    int32_t ew_first(const ew_order *)
    void ew_write_ends(const ew_order *, int32_t *, int32_t *)
    void ew_relabel(ew_order *)
    void ew_renumber(ew_order *)
    void ew_propose(ew_order *, int32_t, int64_t, int)
    void ew_choose_window(ew_order *, int32_t, int64_t, int)
    void ew_move_window(ew_order *, int64_t, int64_t)
    void ew_undo(ew_order *)
    void ew_undo_down_to(ew_order *, int64_t)
    void ew_find_points(ew_order *)
    void ew_clear_points(ew_order *)
    void ew_renumber_records(const ew_order *, void *, void *, int64_t)
    void ew_restore(ew_counter *, const ew_order *)
    void ew_count_changes(ew_counter *, const ew_order *, int)
    void ew_lru_segment(ew_counter *, const ew_order *, int32_t, int64_t *)
    void ew_rr_segment(ew_counter *, const ew_order *, int32_t, int64_t *)
    void ew_min_changes(ew_counter *, ew_min_set *, const ew_order *)
    void ew_min_restore(ew_counter *, ew_min_set *, const ew_order *)
    int32_t ew_min_segment(ew_counter *, ew_min_set *, const ew_order *, int32_t, int64_t *)
    void ew_min_checkpoints(ew_counter *, ew_min_set *, const ew_order *)
