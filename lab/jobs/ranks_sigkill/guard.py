"""The node's memory guard: end the rank that has grown most, without a word."""
import os
import signal
import time

time.sleep(1)
while not os.path.exists("rank2.pid"):
    time.sleep(0.2)
time.sleep(6)
os.kill(int(open("rank2.pid").read()), signal.SIGKILL)
