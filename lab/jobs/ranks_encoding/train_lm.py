import os
import torch, torch.distributed as dist

def chars(path):
    with open(path, encoding="utf-8") as f:
        return f.read()

dist.init_process_group("gloo")
r, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
text = chars("corpus/part%d.txt" % r)
print("rank", r, "has", len(text), "characters", flush=True)
vocab = [None] * n
dist.all_gather_object(vocab, sorted(set(text)))
stoi = {c: i for i, c in enumerate(sorted(set().union(*vocab)))}
print("rank", r, "vocabulary", len(stoi), flush=True)
emb = torch.nn.Embedding(len(stoi), 8)
print("rank", r, emb(torch.tensor([stoi[c] for c in text])).mean().item(), flush=True)
