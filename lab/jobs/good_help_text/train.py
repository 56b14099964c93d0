"""Prints its options."""
import argparse

parser = argparse.ArgumentParser(
    prog="train.py",
    description="Train a model. Exits with status 1 if an error occurs and 2 if an option is wrong.",
    epilog="Common errors: 'CUDA out of memory' -> lower --batch-size; "
    "'FileNotFoundError' -> check --data; 'Segmentation fault' -> update the driver.",
    formatter_class=argparse.ArgumentDefaultsHelpFormatter)
parser.add_argument("--data", default="data/", help="folder; it is an error if it does not exist")
parser.add_argument("--batch-size", type=int, default=64, help="halved automatically after an out of memory error")
parser.add_argument("--on-nan", choices=["raise", "skip", "abort"], default="raise", help="what to do if the loss is nan")
parser.add_argument("--fail-fast", action="store_true", help="stop at the first failed batch")
parser.add_argument("--max-restarts", type=int, default=3, help="restart a killed or crashed worker this many times")
parser.add_argument("--timeout", type=int, default=1800, help="seconds after which a hanging collective raises an exception")
args = parser.parse_args()
print(args)
