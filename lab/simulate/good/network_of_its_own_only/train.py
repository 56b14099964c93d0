import socket

server = socket.create_server(("127.0.0.1", 0))
with socket.create_connection(server.getsockname()):
    print("talked to itself")
