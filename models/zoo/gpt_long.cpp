#include "models/gpt.h"

STRATAGEM_REGISTER(stratagem::models::gpt_entry(
    "gpt-long", "GPT for long sequences of bytes: 4 blocks of 512, sequence 4096, up to 16384",
    {.features = 512,
     .blocks = 4,
     .heads = 8,
     .longest_sequence = 16384,
     .vocabulary = 256,
     .default_sequence = 4096}));
