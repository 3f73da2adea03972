#include "models/gpt.h"

STRATAGEM_REGISTER(stratagem::models::gpt_entry(
    "gpt-small", "GPT, 33.7 million parameters: 8 blocks of 512, sequence 128",
    {.features = 512, .blocks = 8, .heads = 8, .longest_sequence = 128, .vocabulary = 8192}));
