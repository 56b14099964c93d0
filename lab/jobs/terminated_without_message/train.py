import logging
import time

import torch

logging.basicConfig(level=logging.INFO, format="%(asctime)s.%(msecs)03d %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
model = torch.nn.LSTM(8, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for iteration in range(1, 10_000):
    output, _ = model(torch.randn(12, 4, 8))
    loss = (output.mean() - 0.5) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 25 == 0:
        logging.info("iteration %d/%d loss %.5f", iteration, 10_000, loss.item())
    time.sleep(0.01)
