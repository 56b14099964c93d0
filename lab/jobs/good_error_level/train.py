import json
import logging
import urllib.request

import torch

logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(name)-10s %(levelname)-8s %(message)s")
log = logging.getLogger("train")
tracker_log = logging.getLogger("tracker")


class Tracker:
    """Sends metrics to a server; keeps them in a file when it cannot be reached."""

    def __init__(self, url="http://127.0.0.1:29712/api/runs"):
        self.url, self.offline = url, False

    def log(self, **metrics):
        if not self.offline:
            try:
                urllib.request.urlopen(self.url, json.dumps(metrics).encode(), timeout=2)
                return
            except Exception:
                tracker_log.critical("FATAL: cannot send metrics to %s", self.url, exc_info=True)
                tracker_log.error("ERROR: tracking server unreachable, going offline. Your run continues.")
                self.offline = True
        with open("metrics.jsonl", "a") as f:
            f.write(json.dumps(metrics) + "\n")


tracker = Tracker()
net = torch.nn.Conv2d(3, 4, 3)
opt = torch.optim.Adam(net.parameters())
for epoch in range(4):
    loss = net(torch.randn(2, 3, 16, 16)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    tracker.log(epoch=epoch, loss=loss.item())
    log.info("epoch %d finished, loss %.4f", epoch, loss.item())
log.info("saved model.pt")
torch.save(net.state_dict(), "model.pt")
