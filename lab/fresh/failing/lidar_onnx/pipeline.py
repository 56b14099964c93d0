import argparse
import time

import stages


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stages", default="train")
    parser.add_argument("--points", required=True)
    parser.add_argument("--work", default="/scratch/lidar")
    parser.add_argument("--epochs", type=int, default=150)
    args = parser.parse_args()
    state = stages.State(args)
    for name in args.stages.split(","):
        began = time.time()
        stages.STAGES[name](state)
        print(f"{name}: {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
