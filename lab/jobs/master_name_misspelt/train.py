"""Joins the master's parameter service, then trains."""
import argparse
import logging
import socket

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("train")


def join(master, port):
    log.info("joining %s:%d", master, port)
    connection = socket.create_connection((master, port), timeout=10)
    connection.sendall(b"JOIN\n")
    return connection


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", required=True)
    parser.add_argument("--port", type=int, default=29734)
    args = parser.parse_args()
    connection = join(args.master, args.port)
    log.info("joined as %s", connection.recv(16))


if __name__ == "__main__":
    main()
