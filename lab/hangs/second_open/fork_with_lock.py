"""Ranks: 2. Rank 1 forks an evaluation while a thread holds the lock of its log."""

import multiprocessing
import threading
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
lock = threading.Lock()


def log():
    while True:
        with lock:
            time.sleep(0.2)
        time.sleep(0.001)


def evaluate():
    with lock:
        print("evaluated", flush=True)


if rank == 1:
    threading.Thread(target=log, daemon=True).start()
for step in range(100):
    dist.all_reduce(torch.ones(4))
    if rank == 0:
        print(f"step {step}", flush=True)
    if rank == 1 and step == 25:
        time.sleep(0.1)
        process = multiprocessing.get_context("fork").Process(target=evaluate)
        process.start()
        process.join()  # <- waits
