"""The directory of a pretrained model lacks a file that is loaded from it."""

from __future__ import annotations

from epochzero.check.paths.faults import Faulty, data_check
from epochzero.check.rules.base import Case, Rule


def _fix(faulty: Faulty) -> str:
    return (
        "Copy the complete directory, as save_pretrained of the model and of its tokenizer "
        "wrote it, or pass the path of the correct directory."
    )


_MODEL = (
    "from transformers import AutoModel\nmodel = AutoModel.from_pretrained('./bert', use_cache=1)\n"
)
_TOKENIZER = "from transformers import AutoTokenizer\nAutoTokenizer.from_pretrained('./bert')\n"
_SAVED = (
    "from transformers import AutoModel\nmodel = AutoModel.from_pretrained('bert-base')\n"
    "model.save_pretrained('out')\nAutoModel.from_pretrained('./out')\n"
)
_ADAPTER = (
    "from peft import PeftModel\nfrom transformers import AutoModel\n"
    "PeftModel.from_pretrained(AutoModel.from_pretrained('gpt2'), './adapter')\n"
)
_INDEX = '{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}'
_EMPTY = "\x02\0\0\0\0\0\0\0{}"

RULE = Rule(
    title="The directory of a pretrained model lacks a file",
    category="path_not_found",
    why="The directory exists but does not contain the model: only the weights were saved and no "
    "configuration, only the model and no tokenizer, one shard was not copied, or the path "
    "is that of the parent directory. Often only the evaluation reads it.",
    fix="Copy the complete directory, as save_pretrained wrote it.",
    source="Transformers documentation, PreTrainedModel.from_pretrained; PEFT documentation, "
    "PeftModel.from_pretrained",
    check=data_check("incomplete", _fix),
    catches=(
        Case({"train.py": _MODEL, "bert/model.safetensors": _EMPTY}, line=2),
        Case({"train.py": _MODEL, "bert/config.json": "{}"}, line=2),
        Case({"train.py": _TOKENIZER, "bert/config.json": "{}"}, line=2),
        Case({"train.py": _ADAPTER, "adapter/adapter_model.safetensors": _EMPTY}, line=3),
        Case(
            {
                "train.py": _MODEL,
                "bert/config.json": "{}",
                "bert/model.safetensors.index.json": _INDEX,
                "bert/model-1.safetensors": _EMPTY,
            },
            line=2,
        ),
    ),
    leaves=(
        Case({"train.py": _MODEL, "bert/config.json": "{}", "bert/model.safetensors": _EMPTY}),
        Case({"train.py": _MODEL, "bert/adapter_config.json": "{}"}),
        Case({"train.py": _TOKENIZER, "bert/tokenizer.json": "{}"}),
        Case({"train.py": _SAVED, "out/notes.txt": "x"}),
        Case({"train.py": _ADAPTER, "adapter/adapter_config.json": "{}"}),
        Case(
            {
                "train.py": _MODEL.replace("use_cache=1", "subfolder='encoder'"),
                "bert/notes.txt": "x",
            }
        ),
    ),
)
