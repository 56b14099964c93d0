import os

path = f"/dev/shm/batches-{os.getpid()}"
try:
    with open(path, "wb") as file:
        for batch in range(16):
            file.write(bytes(1 << 19))
            file.flush()
    print("16 batches shared")
finally:
    os.remove(path)
