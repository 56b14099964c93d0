import argparse
import math
import random


def lr_at(step, warmup, total, peak):
    if step <= warmup:
        return peak * step / warmup
    progress = (step - warmup) / max(1, total - warmup)
    return peak * (1 + math.cos(math.pi * progress)) / 2


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--samples", type=int, default=120)
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--accumulate", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--warmup-ratio", type=float, default=0.1)
    cfg = ap.parse_args()

    steps_per_epoch = cfg.samples // (cfg.batch_size * cfg.accumulate)
    total = steps_per_epoch * cfg.epochs
    warmup = int(total * cfg.warmup_ratio)
    print(f"***** Running training *****\n  Num examples = {cfg.samples}\n  Total optimization steps = {total}\n  Warmup steps = {warmup}")
    weight = 1.0
    for step in range(total):
        lr = lr_at(step, warmup, total, peak=0.5)
        weight -= lr * (weight - random.random())
        print(f"step {step} lr {lr:.4f} weight {weight:.3f}")


if __name__ == "__main__":
    main()
