#include "models/gpt.h"

STRATAGEM_REGISTER(stratagem::models::gpt_entry(
    "gpt-tiny", "a GPT for tests: 2 blocks of 64, sequence 32, bytes",
    {.features = 64, .blocks = 2, .heads = 4, .longest_sequence = 32, .vocabulary = 256}));
