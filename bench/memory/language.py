"""Trains GPT-2, BERT, DistilBERT or Llama from their configurations, or runs inference, by a loop written by hand."""

import argparse
import contextlib
import os

import torch
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel
from warm import warm_up

MODELS = {
    "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config, {}),
    "bert": (transformers.BertModel, transformers.BertConfig, {}),
    "distilbert": (transformers.DistilBertModel, transformers.DistilBertConfig, {}),
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig, {}),
    # The shape of Llama 3.2 1B.
    "llama1b": (
        transformers.LlamaForCausalLM,
        transformers.LlamaConfig,
        {
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_hidden_layers": 16,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128_256,
            "tie_word_embeddings": True,
        },
    ),
}
HEADLESS = ("bert", "distilbert")
"""Models without a head that computes a loss."""
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
BACKENDS = {
    "math": SDPBackend.MATH,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--dtype", choices=TYPES, default="fp32")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--half", action="store_true", help="float16 with a gradient scaler")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--optimizer", choices=["adamw", "adamw8bit", "sgd"], default="adamw")
    parser.add_argument("--single", action="store_true", help="the optimizer's loop form")
    parser.add_argument("--fused", action="store_true", help="the optimizer's fused form")
    parser.add_argument("--accumulate", type=int, default=1, help="batches before a step")
    parser.add_argument("--attention", choices=[*BACKENDS, "eager"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--lora", action="store_true", help="train adapters of rank 16 only")
    parser.add_argument("--fsdp", action="store_true", help="shard over one device")
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--generate", type=int, default=0, help="tokens to generate, with a cache")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--warm", action="store_true", help="after what `warm.py` describes")
    options = parser.parse_args()
    if options.warm:
        warm_up()

    build, configure, shape = MODELS[options.model]
    eager = {"attn_implementation": "eager"} if options.attention == "eager" else {}
    torch.set_default_dtype(TYPES[options.dtype])
    model = build(configure(**shape, **eager)).cuda()
    torch.set_default_dtype(torch.float32)
    if options.checkpointing:
        model.gradient_checkpointing_enable()
    if options.lora:
        import peft

        adapters = peft.LoraConfig(r=16, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])
        model = peft.get_peft_model(model, adapters)
    if options.fsdp:
        shard(model)
    vocabulary = model.config.vocab_size
    tokens = torch.randint(0, vocabulary - 1, (options.batch, options.length), device="cuda")
    run = torch.compile(model) if options.compile else model
    backend = BACKENDS.get(options.attention)
    kernel = sdpa_kernel(backend) if backend is not None else contextlib.nullcontext()
    with kernel:
        if options.inference:
            infer(options, model.eval(), run, tokens)
        else:
            train(options, model.train(), run, tokens)


def shard(model: torch.nn.Module) -> None:
    from torch.distributed.fsdp import fully_shard

    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29512")
    os.environ.setdefault("RANK", "0")
    os.environ.setdefault("WORLD_SIZE", "1")
    torch.distributed.init_process_group("nccl")
    for layer in model.transformer.h:
        fully_shard(layer)
    fully_shard(model)


def infer(options, model, run, tokens) -> None:
    with (
        torch.no_grad(),
        torch.autocast("cuda", dtype=torch.bfloat16, enabled=options.autocast),
    ):
        for _ in range(options.steps):
            if options.generate:
                model.generate(
                    tokens,
                    max_new_tokens=options.generate,
                    min_new_tokens=options.generate,
                    do_sample=False,
                    pad_token_id=0,
                )
            else:
                run(input_ids=tokens)


def train(options, model, run, tokens) -> None:
    forms = {"foreach": False} if options.single else {"fused": True} if options.fused else {}
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if options.optimizer == "adamw":
        optimizer = torch.optim.AdamW(parameters, lr=1e-5, **forms)
    elif options.optimizer == "adamw8bit":
        import bitsandbytes

        optimizer = bitsandbytes.optim.AdamW8bit(parameters, lr=1e-5)
    else:
        optimizer = torch.optim.SGD(parameters, lr=1e-5, **forms)
    scaler = torch.amp.GradScaler("cuda", enabled=options.half)
    dtype = torch.float16 if options.half else torch.bfloat16
    mixed = options.autocast or options.half

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for _ in range(options.accumulate):
            with torch.autocast("cuda", dtype=dtype, enabled=mixed):
                if options.model in HEADLESS:
                    output = run(input_ids=tokens)
                    loss = output.last_hidden_state.float().pow(2).mean()
                else:
                    loss = run(input_ids=tokens, labels=tokens).loss
            scaler.scale(loss / options.accumulate).backward()
        scaler.step(optimizer)
        scaler.update()

    for _ in range(options.steps):
        step()


if __name__ == "__main__":
    main()
