#include "models/resnet.h"

STRATAGEM_REGISTER(stratagem::models::resnet_entry(
    "resnet18", "ResNet-18: 8 basic blocks, 11.7 million parameters",
    stratagem::models::ResidualKind::basic, {2, 2, 2, 2}));
