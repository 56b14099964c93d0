"""The storage server of rank 1's shard accepts requests and stops answering after the first blocks."""

import socket
import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
mine, server = socket.socketpair()
blocks = 3 if rank == 1 else 100
served = threading.Thread(target=lambda: [server.sendall(bytes(1024)) for _ in range(blocks)])
served.start()


def read_block():
    data = b""
    while len(data) < 1024:
        data += mine.recv(1024 - len(data))  # <- waits
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).float()


for step in range(100):
    dist.all_reduce(read_block())
    if rank == 0:
        print(f"step {step}", flush=True)
