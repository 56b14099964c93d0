import time

for step in range(1, 31):
    print(f"step {step}/30", flush=True)
    time.sleep(0.25)
