#include "models/resnet.h"

STRATAGEM_REGISTER(stratagem::models::resnet_entry(
    "resnet50", "ResNet-50 v1.5: 16 bottleneck blocks, 25.6 million parameters",
    stratagem::models::ResidualKind::bottleneck, {3, 4, 6, 3}));
