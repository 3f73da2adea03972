#include "models/gpt.h"

STRATAGEM_REGISTER(stratagem::models::gpt_entry(
    "gpt2-xl",
    "GPT-2 XL's dimensions, 1.64 billion parameters with a head of its own: 48 blocks of 1600",
    {.features = 1600, .blocks = 48, .heads = 25, .longest_sequence = 1024, .vocabulary = 50257}));
