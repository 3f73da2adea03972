#include "models/llama.h"

STRATAGEM_REGISTER(stratagem::models::llama_entry(
    "llama-tiny", "a Llama for tests: 2 blocks of 64, sequence 32, bytes",
    {.features = 64,
     .blocks = 2,
     .heads = {.groups = 2, .queries = 2},
     .hidden = 176,
     .longest_sequence = 32,
     .vocabulary = 256}));

STRATAGEM_REGISTER(stratagem::models::llama_entry(
    "llama-small", "Llama, 32.0 million parameters: 8 blocks of 512, sequence 128",
    {.features = 512,
     .blocks = 8,
     .heads = {.groups = 4, .queries = 2},
     .hidden = 1408,
     .longest_sequence = 128,
     .vocabulary = 8192}));

STRATAGEM_REGISTER(stratagem::models::llama_entry(
    "llama3-8b", "Llama 3, 8.0 billion parameters: 32 blocks of 4096, sequence 8192",
    {.features = 4096,
     .blocks = 32,
     .heads = {.groups = 8, .queries = 4},
     .hidden = 14336,
     .longest_sequence = 8192,
     .vocabulary = 128256,
     .rotary_base = 500'000}));
