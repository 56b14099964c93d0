"""Asynchronous SGD against a parameter server; the server runs as a process of its own."""
import multiprocessing
import pickle
import socket
import struct

import numpy as np


def serve(port_queue):
    """Answers six requests and goes away with a reset, as a server does that dies with data unread."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port_queue.put(server.getsockname()[1])
        connection, _ = server.accept()
        for _ in range(6):
            size = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))[0]
            gradient = pickle.loads(connection.recv(size, socket.MSG_WAITALL))
            connection.sendall(pickle.dumps(gradient * -0.1))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.recv(2)
        connection.close()


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        print("connected to the parameter server")

    def push(self, gradient):
        body = pickle.dumps(gradient)
        self.socket.sendall(struct.pack("!I", len(body)) + body)
        return pickle.loads(self.socket.recv(65536))


def main():
    queue = multiprocessing.Queue()
    multiprocessing.Process(target=serve, args=(queue,), daemon=True).start()
    client = Client(queue.get())
    weights, x = np.ones(16), np.random.default_rng(0).normal(size=(200, 16))
    for step in range(20):
        gradient = x.T @ (x @ weights) / len(x)
        weights = weights + client.push(gradient)
        print(f"step {step} loss {np.mean((x @ weights) ** 2):.4f}")


if __name__ == "__main__":
    main()
