// `--model script:FILE`: a TorchScript module.
#include "models/script_layer.h"

STRATAGEM_REGISTER(stratagem::models::ModelFormat{
    .name = "script",
    .summary = "a TorchScript file that tools/python/export_model.py wrote",
    .load = stratagem::models::read_script_model});
