"""Ranks: 3. Rank 1 asks a service for its next batch; the service accepts the connection and never answers."""

import socket

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
service = socket.create_server(("127.0.0.1", 0))


def fetch(step):
    if step < 10 or rank != 1:
        return torch.randn(16)
    with socket.create_connection(service.getsockname()) as connection:
        connection.sendall(b"GET /batch HTTP/1.1\r\n\r\n")
        answer = connection.recv(4096)  # <- waits
    return torch.frombuffer(bytearray(answer), dtype=torch.uint8).float()


model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
for step in range(100):
    model(fetch(step)).sum().backward()
    if rank == 0:
        print(f"step {step}", flush=True)
