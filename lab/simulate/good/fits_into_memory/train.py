import time

held = [b"x" * (50 << 20) for _ in range(4)]
time.sleep(0.5)
print(sum(map(len, held)) >> 20, "MiB")
