"""Writes a PyTorch model as a file that `stratagem run --model script:FILE` trains.

    model = torch.nn.Sequential(...)  # its children are the layers that can be cut
    export_model(model, "model.pt", sample_shape=[3, 224, 224], outputs=1000)
    export_model(gpt, "gpt.pt", sequence_length=512, outputs=50257)
"""

import json

import torch


def export_model(model: torch.nn.Module, path: str, outputs: int, **sample: object) -> None:
    """Write `model` and the sizes of a sample to `path` as TorchScript.

    `sample` is `sample_shape` ([channels, side, side] or [features]) or `sequence_length` (the
    longest one); `outputs` is the number of classes, real values or vocabulary entries. The children
    of the model take one tensor each and are called in the order of their definition.
    """
    for module in model.modules():
        if hasattr(module, "inplace"):
            module.inplace = False  # a stage may not overwrite the input that it received
    facts = json.dumps({"outputs": outputs, **sample})
    script = torch.jit.script(model)
    torch.jit.save(script, path, _extra_files={"stratagem.json": facts})
