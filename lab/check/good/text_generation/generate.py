import argparse
import logging
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", level=logging.INFO)
logger = logging.getLogger(__name__)

PREFIX = """In 1991, the remains of the family were found."""
PREPARE = {"gpt2": None, "ctrl": lambda args, text: "Links " + text}


def read_prompts(args):
    if args.prompt:
        return [args.prompt]
    if args.prompt_file == "-":
        return [line.strip() for line in sys.stdin]
    with open(args.prompt_file) as handle:
        return handle.read().splitlines()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="gpt2")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt")
    source.add_argument("--prompt-file")
    parser.add_argument("--max-new-tokens", type=int, default=20)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--fp16", action="store_true")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model)
    if args.fp16:
        model.half()
    model.to(device).eval()
    logger.info(args)
    for prompt in read_prompts(args):
        prepare = PREPARE.get(args.model)
        text = prepare(args, prompt) if prepare is not None else prompt
        inputs = tokenizer(text, return_tensors="pt").to(device)
        out = model.generate(
            **inputs,
            max_new_tokens=args.max_new_tokens,
            temperature=args.temperature,
            top_k=args.top_k,
            do_sample=True,
        )
        print("=== %s" % tokenizer.decode(out[0], skip_special_tokens=True))


if __name__ == "__main__":
    main()
