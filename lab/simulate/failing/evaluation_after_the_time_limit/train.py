import time

for epoch in range(1, 5):
    time.sleep(0.5)
    print(f"epoch {epoch}/4 saved checkpoint to epoch-{epoch}.pt", flush=True)
print("evaluating", flush=True)
time.sleep(4)
print("accuracy 0.91")
