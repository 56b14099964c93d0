"""Trains GPT-2, BERT, DistilBERT or Llama from their configurations, by a loop written by hand."""

import argparse

import torch
import transformers
from warm import warm_up

MODELS = {
    "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config),
    "bert": (transformers.BertModel, transformers.BertConfig),
    "distilbert": (transformers.DistilBertModel, transformers.DistilBertConfig),
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig),
}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--dtype", choices=TYPES, default="fp32")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--optimizer", choices=["adamw", "sgd"], default="adamw")
    parser.add_argument("--single", action="store_true", help="the optimizer's loop form")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--warm", action="store_true", help="after what `warm.py` describes")
    options = parser.parse_args()
    if options.warm:
        warm_up()

    build, configure = MODELS[options.model]
    torch.set_default_dtype(TYPES[options.dtype])
    model = build(configure()).cuda()
    torch.set_default_dtype(torch.float32)
    if options.checkpointing:
        model.gradient_checkpointing_enable()
    model.train()
    foreach = False if options.single else None
    if options.optimizer == "adamw":
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=foreach)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, foreach=foreach)
    tokens = torch.randint(
        0, model.config.vocab_size - 1, (options.batch, options.length), device="cuda"
    )

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=options.autocast):
            if options.model in ("gpt2", "llama"):
                output = model(input_ids=tokens, labels=tokens)
                loss = output.loss
            else:
                output = model(input_ids=tokens)
                loss = output.last_hidden_state.float().pow(2).mean()
        loss.backward()
        optimizer.step()

    for _ in range(options.steps):
        step()


if __name__ == "__main__":
    main()
