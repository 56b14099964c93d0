import time

for step in range(1, 5):
    print(f"step {step}/4", flush=True)
    time.sleep(0.2)
