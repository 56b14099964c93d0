import threading
import time

threads = [threading.Thread(target=time.sleep, args=(1,)) for _ in range(200)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("200 files read")
