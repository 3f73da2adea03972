#include "models/gpt.h"

STRATAGEM_REGISTER(stratagem::models::gpt_entry(
    "gpt2", "GPT-2's dimensions, 163 million parameters with a head of its own: 12 blocks of 768",
    {.features = 768, .blocks = 12, .heads = 12, .longest_sequence = 1024, .vocabulary = 50257}));
