import os
import socket
import time

server = socket.socket()
server.bind(("127.0.0.1", 29871))
server.listen()
print("metrics of rank", os.environ.get("RANK", "0"), flush=True)
time.sleep(3)
