import faulthandler
import queue
import threading
import time

import torch
from torch import nn

faulthandler.dump_traceback_later(9, exit=True)  # the job is to take three seconds


def produce(batches, n):
    for _ in range(n):
        batches.put(torch.randn(16, 4))
        time.sleep(0.02)


def consume(batches, n):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(n):
        loss = model(batches.get()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print("step", step, "loss", round(loss.item(), 5))


batches = queue.Queue(maxsize=8)
producer = threading.Thread(target=produce, args=(batches, 99), daemon=True)
producer.start()
consume(batches, 100)
faulthandler.cancel_dump_traceback_later()
