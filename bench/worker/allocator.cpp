// jemalloc's settings, which the library reads at its start from this symbol. Freed memory is kept
// and mapped with huge pages: a training step allocates the same large activations every time, and
// giving them back would mean page faults in every step. The largest ones have no arena of their
// own: sharing one lets freed memory be used again a step sooner. Without jemalloc the symbol is
// unused.
//
// Measured figures: docs/explanation/cpu_performance.md.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf =
    "thp:always,retain:true,dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0,"
    "lg_extent_max_active_fit:63";
}
