import time

held = []
for part in range(12):
    held.append(b"x" * (64 << 20))
    print(f"loaded part {part + 1}/12", flush=True)
    time.sleep(0.15)
