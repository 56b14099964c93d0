import argparse
import gzip
import json
import multiprocessing as mp
import os
import shutil
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=None)
def alphabet():
    return "abcdefghij"


def write_shard(job):
    folder, number = job
    path = Path(folder, f"part-{number:05d}.jsonl.gz")
    with gzip.open(path, "wt") as out:
        for row in range(100):
            out.write(json.dumps({"id": row, "text": alphabet()[row % 10] * (number + 1)}) + "\n")
    return path.name


def shard(args):
    shutil.rmtree(args.folder, ignore_errors=True)
    os.makedirs(args.folder)
    jobs = [(args.folder, number) for number in range(args.count)]
    with mp.Pool(min(args.count, os.cpu_count() or 1)) as pool:
        names = list(pool.imap_unordered(write_shard, jobs))
    Path(args.folder, "index.json").write_text(json.dumps(sorted(names)))
    count(args)


def count(args):
    index = json.loads(Path(args.folder, "index.json").read_text())
    total = 0
    for name in index:
        with gzip.open(os.path.join(args.folder, name), "rt") as lines:
            total += sum(1 for _ in lines)
    print(f"{total:,} rows in {len(index)} shards")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("shard", shard), ("count", count)):
        sub = commands.add_parser(name)
        sub.add_argument("--folder", default="shards")
        sub.set_defaults(function=function)
        if name == "shard":
            sub.add_argument("--count", type=int, default=8)
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
