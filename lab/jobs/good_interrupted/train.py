import logging
import time
import torch

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
net = torch.nn.Linear(8, 8)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
step = 0
try:
    while True:
        loss = net(torch.randn(16, 8)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 10 == 0:
            logging.info("step %d loss %.5f", step, loss.item())
        time.sleep(0.02)
except KeyboardInterrupt:
    logging.warning("KeyboardInterrupt at step %d: saving a checkpoint before leaving", step, exc_info=True)
    torch.save({"step": step, "net": net.state_dict()}, "interrupted.pt")
    logging.info("saved interrupted.pt, good bye")
