import sys
import urllib.request

for epoch in range(3):
    print(f"epoch {epoch + 1}/3", flush=True)
request = urllib.request.Request(sys.argv[1] + "/runs", data=b"loss=0.25", method="POST")
with urllib.request.urlopen(request, timeout=5) as answer:
    print("logged", answer.status)
