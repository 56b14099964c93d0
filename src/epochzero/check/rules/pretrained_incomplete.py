"""The directory of a pretrained model lacks a file."""

from epochzero.check.paths.faults import Faulty
from epochzero.check.rule import Case, Rule
from epochzero.check.rules.path_claims import data_check


def _fix(faulty: Faulty) -> str:
    return (
        "Copy the complete directory, as save_pretrained of the model and of its tokenizer "
        "wrote it, or pass the path of the correct directory."
    )


RULE = Rule(
    category="path_not_found",
    why="The directory exists but does not contain the complete model. The configuration or the "
    "tokenizer may not have been saved, a shard may not have been copied, or the path may name the "
    "parent directory. Often only the evaluation loads the model.",
    fix="Copy the complete directory that save_pretrained wrote.",
    source="Transformers documentation, PreTrainedModel.from_pretrained; PEFT documentation, "
    "PeftModel.from_pretrained",
    check=data_check("incomplete", _fix),
    examples=r"""
            from transformers import AutoModel
            model = AutoModel.from_pretrained('./bert', use_cache=1)  # <-
            ==> bert/config.json <==
            {}
            \ No newline at end of file
            ---- ignored if
            -==> bert/config.json <==
            +==> bert/adapter_config.json <==
            ----
            from transformers import AutoTokenizer
            AutoTokenizer.from_pretrained('./bert')  # <-
            ==> bert/config.json <==
            {}
            \ No newline at end of file
            ---- ignored if
            -==> bert/config.json <==
            +==> bert/tokenizer.json <==
            ----
            from transformers import AutoModel
            model = AutoModel.from_pretrained('bert-base')
            model.save_pretrained('out')
            AutoModel.from_pretrained('./out')
            ==> out/notes.txt <==
            x
            \ No newline at end of file
            ----
            from peft import PeftModel
            from transformers import AutoModel
            PeftModel.from_pretrained(AutoModel.from_pretrained('gpt2'), './adapter')
            ==> adapter/adapter_config.json <==
            {}
            \ No newline at end of file
            ----
            from transformers import AutoModel
            model = AutoModel.from_pretrained('./bert', subfolder='encoder')
            ==> bert/notes.txt <==
            x
            \ No newline at end of file
        """,
    further_cases=(
        Case(
            {
                "train.py": "from transformers import AutoModel\nmodel = AutoModel.from_pretrained('./bert', use_cache=1)\n",
                "bert/model.safetensors": "\x02\x00\x00\x00\x00\x00\x00\x00{}",
            },
            line=2,
        ),
        Case(
            {
                "train.py": "from peft import PeftModel\nfrom transformers import AutoModel\nPeftModel.from_pretrained(AutoModel.from_pretrained('gpt2'), './adapter')\n",
                "adapter/adapter_model.safetensors": "\x02\x00\x00\x00\x00\x00\x00\x00{}",
            },
            line=3,
        ),
        Case(
            {
                "train.py": "from transformers import AutoModel\nmodel = AutoModel.from_pretrained('./bert', use_cache=1)\n",
                "bert/config.json": "{}",
                "bert/model.safetensors.index.json": '{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}',
                "bert/model-1.safetensors": "\x02\x00\x00\x00\x00\x00\x00\x00{}",
            },
            line=2,
        ),
        Case(
            {
                "train.py": "from transformers import AutoModel\nmodel = AutoModel.from_pretrained('./bert', use_cache=1)\n",
                "bert/config.json": "{}",
                "bert/model.safetensors": "\x02\x00\x00\x00\x00\x00\x00\x00{}",
            }
        ),
    ),
)
