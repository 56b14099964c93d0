"""Rank 0 prepares the vocabulary, the others wait for it at the store."""
import datetime
import os
import pathlib
import time

import torch.distributed as dist


def vocabulary(store, rank):
    if rank == 0:
        time.sleep(4)  # reads the corpus
        store.set("vocabulary", "the,of,and,to,in")
    else:
        print(f"[rank {rank}] waits for the vocabulary", flush=True)
        pathlib.Path(f"rank{rank}_waits").touch()
    return store.get("vocabulary").decode().split(",")


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        world,
        is_master=rank == 0,
        timeout=datetime.timedelta(seconds=20),
    )
    words = vocabulary(store, rank)
    print(f"[rank {rank}] {len(words)} words", flush=True)
    if rank == 0:
        store.get("done")
    else:
        store.set("done", "1")


if __name__ == "__main__":
    main()
