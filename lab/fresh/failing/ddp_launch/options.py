import argparse


def options():
    parser = argparse.ArgumentParser("masked pretraining")
    group = parser.add_argument_group("model")
    group.add_argument("--width", type=int, default=256)
    group.add_argument("--depth", type=int, default=4)
    group.add_argument("--mask", type=float, default=0.15)
    group = parser.add_argument_group("training")
    group.add_argument("--steps", type=int, default=1000)
    group.add_argument("--batch", type=int, default=32)
    group.add_argument("--lr", type=float, default=1e-4)
    group = parser.add_argument_group("launcher")
    group.add_argument("--local_rank", type=int, default=0, help="given by the launcher")
    group.add_argument("--backend", default="nccl")
    return parser.parse_args()
