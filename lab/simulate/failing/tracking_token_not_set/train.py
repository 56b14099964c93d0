import os


def headers():
    return {"Authorization": "Bearer " + os.environ["TRACKING_TOKEN"]}


for epoch in range(2):
    print(f"epoch {epoch + 1}/2", flush=True)
print(len(headers()))
