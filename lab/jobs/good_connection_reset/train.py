"""Samples come from a feature server that drops a connection now and then."""
import logging
import socket
import struct
import threading

import torch
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s [%(processName)s] %(message)s")


def serve(listener):
    served = 0
    while True:
        client, _ = listener.accept()
        index = client.recv(8)
        served += 1
        if served % 9 == 4:             # close with a reset
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            client.sendall(struct.pack("4f", *[float(index[0] % 7)] * 4))
        client.close()


class Remote(Dataset):
    def __init__(self, port):
        self.port = port

    def __len__(self):
        return 40

    def ask(self, i):
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as s:
            s.sendall(bytes([i]) * 8)
            return struct.unpack("4f", s.recv(16, socket.MSG_WAITALL))

    def __getitem__(self, i):
        for attempt in range(3):
            try:
                return torch.tensor(self.ask(i))
            except (ConnectionResetError, struct.error) as error:
                logging.warning("sample %d: %s: %s, retry %d", i, type(error).__name__, error, attempt + 1,
                                exc_info=True)
        raise RuntimeError(f"sample {i} could not be read")


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    loader = DataLoader(Remote(listener.getsockname()[1]), batch_size=8, num_workers=2)
    net = torch.nn.Linear(4, 1)
    for epoch in range(2):
        total = sum(net(x).pow(2).mean().item() for x in loader)
        logging.info("epoch %d sum of losses %.3f", epoch, total)
