"""Idioms of training programs, each run whole in a process with a pretended GPU."""

START = """
import warnings; warnings.simplefilter("ignore")
import copy, math, io, os, sys
import numpy as np
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
model = nn.Linear(8, 8).to("cuda")
x = torch.randn(4, 8).to("cuda", non_blocking=True)
y = torch.tensor([1, 2, 3, 0]).cuda()
"""
TRAIN = """
optimizer = torch.optim.AdamW(model.parameters())
loss = F.cross_entropy(model(x), y)
loss.backward()
"""

# Name -> the program. It runs to its end.
RUN = {
    "loss.item()": "l = model(x).sum(); total = 0.0; total += l.item(); print(1 / total, math.log(total))",
    "print(loss)": 'l = model(x).mean(); print(l, f"{l:.4f}", f"{l.item():.4f}", "%.3f" % l)',
    "if loss > 0": "l = model(x).sum()\nif l > 0: pass\nassert float(l) == 1.0",
    "isnan": "assert not torch.isnan(model(x)).any()\nassert not torch.isnan(model(x).sum())",
    "mask": "h = model(x); print(h[h > 0].shape); h[h > 0] = 0; assert x[y > 0].shape == (3, 8)",
    "nonzero, unique": "h = model(x); h.nonzero(); torch.where(h > 0); torch.unique(y); y.unique(return_counts=True); torch.masked_select(h, h > 0)",
    "GradScaler": """
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cuda")
with torch.autocast("cuda", torch.float16):
    h = model(x); assert h.dtype == torch.float16
    l = F.cross_entropy(h, y)
scaler.scale(l).backward(); scaler.unscale_(optimizer)
nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer); scaler.update()
assert optimizer.state, "the step was skipped"
scaler.load_state_dict(scaler.state_dict())
""",
    "old amp names": """
from torch.cuda.amp import GradScaler, autocast
scaler = GradScaler()
with autocast(): assert model(x).dtype == torch.float16
with autocast(dtype=torch.bfloat16): assert model(x).dtype == torch.bfloat16
""",
    "clip_grad_norm_": TRAIN
    + "n = nn.utils.clip_grad_norm_(model.parameters(), 1.0); print(n.item(), n.device); optimizer.step()",
    "checkpoint": "checkpoint(model, x, use_reentrant=False).sum().backward()",
    "checkpoint reentrant": "checkpoint(model, x.requires_grad_(), use_reentrant=True).sum().backward()",
    "LSTM": "m = nn.LSTM(8, 16, 2, batch_first=True).cuda(); o, (h, c) = m(torch.randn(4, 5, 8, device='cuda')); o.sum().backward(); assert o.shape == (4, 5, 16)",
    "TransformerEncoder": "m = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, batch_first=True), 2).to('cuda'); m(torch.randn(4, 5, 16).cuda()).sum().backward(); m.eval()\nwith torch.no_grad(): m(torch.randn(4, 5, 16).cuda(), src_key_padding_mask=torch.zeros(4, 5, dtype=torch.bool).cuda())",
    "inference_mode": "with torch.inference_mode():\n    z = torch.randn(4, 8).to('cuda'); assert z.is_cuda; model(z.reshape(-1, 8)).argmax(1).eq(y).sum().item()",
    "fused AdamW": "optimizer = torch.optim.AdamW(model.parameters(), fused=True); model(x).sum().backward(); optimizer.step(); optimizer.zero_grad()",
    "foreach SGD": "optimizer = torch.optim.SGD(model.parameters(), .1, momentum=.9, foreach=True); model(x).sum().backward(); optimizer.step()",
    "model.to": "m = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).to('cuda'); p = next(m.parameters()); assert p.device.type == 'cuda' and p.is_cuda and isinstance(p, nn.Parameter); m(x); m.half(); assert m[0].weight.dtype == torch.float16; m.cpu(); assert m[0].weight.device.type == 'cpu'",
    "seeds": "torch.manual_seed(0); torch.cuda.manual_seed_all(0); torch.backends.cudnn.deterministic = True; torch.backends.cudnn.benchmark = False; torch.backends.cuda.matmul.allow_tf32 = True; torch.set_float32_matmul_precision('high')",
    "memory queries": "assert torch.cuda.memory_allocated() > 0; torch.cuda.max_memory_allocated(); torch.cuda.reset_peak_memory_stats(); torch.cuda.empty_cache(); torch.cuda.mem_get_info(); torch.cuda.synchronize()",
    "properties": "p = torch.cuda.get_device_properties(0); assert p.total_memory == 80 << 30 and (p.major, p.minor) == (8, 0); assert torch.cuda.get_device_name() == 'NVIDIA A100'; assert torch.cuda.is_bf16_supported(); assert torch.cuda.device_count() == 2",
    "Generator": "g = torch.Generator('cuda').manual_seed(1); torch.randn(3, device='cuda', generator=g); torch.randperm(4, generator=torch.Generator().manual_seed(0)); assert g.device.type == 'cuda'",
    "Stream": "s = torch.cuda.Stream()\nwith torch.cuda.stream(s): torch.ones(3, device='cuda')\ntorch.cuda.current_stream().wait_stream(s); e = torch.cuda.Event(enable_timing=True); e.record(); x.record_stream(s)",
    "threads at once": """
from concurrent.futures import ThreadPoolExecutor
sys.setswitchinterval(1e-6)
def train(number):
    m = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 4)).cuda()
    for _ in range(30):
        h = m(torch.as_tensor(np.ones((4, 8), 'float32'), device='cuda'))
        assert h.is_cuda and h.device.type == 'cuda'
        F.cross_entropy(h, y).backward()
with ThreadPoolExecutor(4) as pool: list(pool.map(train, range(4)))
""",
    "pin_memory": "torch.randn(4).pin_memory().to('cuda', non_blocking=True)\nfrom torch.utils.data import *\nfor a, b in DataLoader(TensorDataset(torch.randn(8, 8), torch.zeros(8)), 4, pin_memory=True): model(a.cuda())",
    "DataLoader": "from torch.utils.data import *\nfor a, b in DataLoader(TensorDataset(torch.randn(8, 3), torch.arange(8)), 4, shuffle=True): assert type(a) is torch.Tensor; b.tolist()",
    "from_numpy": "a = torch.from_numpy(np.zeros((2, 8), 'float32')).to('cuda'); model(a)",
    "cpu().numpy()": "p = model(x).detach().cpu().numpy(); assert p.shape == (4, 8); assert (y.cpu().numpy() == [1, 2, 3, 0]).all(); (p.argmax(1) == 1).mean(); np.asarray(y.cpu())",
    "tolist": "r = []; r += model(x).argmax(1).tolist(); r.extend(model(x).argmax(-1).cpu().tolist()); assert y.tolist() == [1, 2, 3, 0]",
    "accuracy": "correct = (model(x).argmax(1) == y).sum().item(); print(100.0 * correct / len(y)); hits = (model(x).argmax(1) == y).float().mean()",
    "save and load": """
torch.save({"model": model.state_dict(), "epoch": 3}, "a.pt")
assert os.path.getsize("a.pt") < 10000
c = torch.load("a.pt", map_location="cuda"); assert c["epoch"] == 3
model.load_state_dict(c["model"]); m = nn.Linear(8, 8); m.load_state_dict(torch.load("a.pt", map_location="cpu")["model"])
torch.save(model, "b.pt"); m = torch.load("b.pt", weights_only=False); m(x)
buffer = io.BytesIO(); torch.save(model.state_dict(), buffer); buffer.seek(0); torch.load(buffer)
""",
    "optimizer state saved": TRAIN
    + "optimizer.step(); torch.save(optimizer.state_dict(), 'o.pt'); o = torch.optim.AdamW(model.parameters()); o.load_state_dict(torch.load('o.pt')); model(x).sum().backward(); o.step()",
    "torch.compile": "m = torch.compile(model, mode='max-autotune'); m(x).sum().backward()\n@torch.compile\ndef f(a): return a + 1\nf(x); model.compile()",
    "DDP": """
import torch.distributed as dist
dist.init_process_group("nccl"); torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
m = nn.parallel.DistributedDataParallel(model, device_ids=[0])
with m.no_sync(): m(x).sum().backward()
m(x).sum().backward(); dist.all_reduce(x); dist.barrier(); assert dist.get_world_size() == 4
assert list(m.state_dict())[0] == "module.weight"; dist.destroy_process_group()
""",
    "data moved by hand": "m = nn.Linear(8, 8)\nfor p in m.parameters(): p.data = p.data.to('cuda')\nassert all(p.is_cuda for p in m.parameters()); m(x).sum().backward()",
    "a mesh that is not given": """
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("nccl"); fully_shard(model); model(x).sum().backward()
""",
    "FSDP2": """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
dist.init_process_group("nccl")
mesh = init_device_mesh("cuda", (4,))
m = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8)).cuda()
for l in m: fully_shard(l, mesh=mesh)
fully_shard(m, mesh=mesh)
o = torch.optim.AdamW(m.parameters()); m(x).sum().backward(); o.step()
""",
    "large model": "m = nn.Linear(200000, 5000, device='cuda'); c = nn.Linear(200000, 5000); big = torch.randn(100000, 5000); print(sum(p.numel() for p in m.parameters()))",
    "default device": "torch.set_default_device('cuda'); m = nn.Linear(8, 8); assert m(torch.randn(2, 8)).is_cuda; torch.set_default_device('cpu')\nwith torch.device('cuda'): nn.Linear(3, 3)",
    "FloatTensor": "a = x.type(torch.cuda.FloatTensor); b = torch.cuda.FloatTensor(4, 8); c = torch.cuda.LongTensor([1, 2]); d = x.type('torch.cuda.HalfTensor'); assert d.dtype == torch.float16",
    "metrics of scikit-learn's kind": "p = torch.cat([model(x).softmax(1).detach().cpu() for _ in range(2)]).numpy(); t = torch.cat([y, y]).cpu().numpy(); assert np.unique(t).size == 4; np.histogram(p)",
    "ReduceLROnPlateau": TRAIN
    + "s = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer); optimizer.step(); s.step(loss); s.step(loss.item())\nfor s in (torch.optim.lr_scheduler.OneCycleLR(optimizer, .1, 10), torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)): optimizer.step(); s.step()",
    "EMA": "e = copy.deepcopy(model)\nfor a, b in zip(e.parameters(), model.parameters()): a.data.mul_(0.9).add_(b.data, alpha=0.1)\nw = torch.optim.swa_utils.AveragedModel(model); w.update_parameters(model)",
    "parameters_to_vector": "v = nn.utils.parameters_to_vector(model.parameters()); nn.utils.vector_to_parameters(v, model.parameters()); model(x)",
    "vmap and grad": "from torch.func import functional_call, grad, vmap\np = dict(model.named_parameters()); g = grad(lambda p, a: functional_call(model, p, (a,)).sum())(p, x); vmap(lambda a: a.sum())(x)",
    "autograd.Function": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a): ctx.save_for_backward(a); return a * 2
    @staticmethod
    def backward(ctx, g): (a,) = ctx.saved_tensors; return g * 2
Double.apply(model(x)).sum().backward()
""",
    "packed sequences": """
lengths = torch.tensor([5, 3, 2, 1])
p = nn.utils.rnn.pack_padded_sequence(torch.randn(4, 5, 8).cuda(), lengths.cuda().cpu(), batch_first=True, enforce_sorted=False)
o, _ = nn.LSTM(8, 16, batch_first=True).cuda()(p); o, n = nn.utils.rnn.pad_packed_sequence(o, batch_first=True)
assert o.shape == (4, 5, 16), o.shape
o.sum().backward()
""",
    "embedding": "e = nn.Embedding(10, 4).cuda(); e(y).sum().backward(); nn.EmbeddingBag(10, 4).cuda()(torch.tensor([[1, 2]]).cuda())",
    "gradient accumulation": TRAIN
    + "for i in range(4):\n    (F.cross_entropy(model(x), y) / 4).backward()\n    if (i + 1) % 2 == 0: optimizer.step(); optimizer.zero_grad(set_to_none=True)",
    "autograd.grad": "x.requires_grad_(); h = model(x).sum(); (g,) = torch.autograd.grad(h, x, create_graph=True); ((g.norm(2, dim=1) - 1) ** 2).mean().backward()",
    "conv": "m = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2)).cuda(); m(torch.randn(2, 3, 32, 32).cuda().to(memory_format=torch.channels_last)).sum().backward(); F.interpolate(torch.randn(1, 3, 8, 8).cuda(), scale_factor=2, mode='bilinear')",
    "graphs and nvtx": "g = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g): model(x)\ng.replay(); torch.cuda.nvtx.range_push('a'); torch.cuda.nvtx.range_pop()",
    "losses": "h = model(x); F.mse_loss(h, x); nn.BCEWithLogitsLoss(pos_weight=torch.ones(8).cuda())(h, torch.zeros(4, 8).cuda()).backward(); nn.CTCLoss()(torch.randn(50, 4, 20).cuda().log_softmax(2), torch.randint(1, 20, (4, 10)), torch.full((4,), 50), torch.full((4,), 10)); F.kl_div(h.log_softmax(1), h.softmax(1), reduction='batchmean'); F.one_hot(y, 8)",
    "Adam, LBFGS and others": "for kind in (torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.NAdam, torch.optim.Adam):\n    o = kind(model.parameters(), lr=.1); o.zero_grad(); model(x).sum().backward(); o.step()",
    "hooks": "k = model.register_forward_hook(lambda m, i, o: o); model.register_full_backward_hook(lambda m, i, o: None); model(x).sum().backward(); k.remove()",
    "in-place into a CPU tensor": "r = torch.zeros(2, 4, 8); r[0] = model(x).detach().cpu(); r[1].copy_(model(x).detach()); r.mean().item(); d = {}; d['p'] = model(x).detach().to('cpu').float()",
    "sort, topk, scatter": "h = model(x); v, i = h.topk(3); h.gather(1, i); torch.zeros_like(h).scatter_(1, i, 1.0); h.sort(); torch.multinomial(h.softmax(1), 1); torch.bincount(y, minlength=8); F.dropout(h)",
    "MultiheadAttention": "m = nn.MultiheadAttention(8, 2, batch_first=True).cuda(); q = torch.randn(2, 5, 8).cuda(); m(q, q, q)[0].sum().backward(); F.scaled_dot_product_attention(q.half().view(2,5,2,4).transpose(1,2), q.half().view(2,5,2,4).transpose(1,2), q.half().view(2,5,2,4).transpose(1,2), is_causal=True)",
    "weight tying and freezing": "e = nn.Embedding(10, 8); h = nn.Linear(8, 10, bias=False); h.weight = e.weight; m = nn.ModuleList([e, h]).cuda(); assert h.weight is e.weight; h(e(y)).sum().backward()\nfor p in m.parameters(): p.requires_grad = False",
    "optimizer before cuda": "m = nn.Linear(8, 8); o = torch.optim.SGD(m.parameters(), .1); m.cuda(); m(x).sum().backward(); o.step(); assert o.param_groups[0]['params'][0].is_cuda",
    "loss history": "h = []\nfor _ in range(3): h.append(model(x).sum().item())\nnp.mean(h); best = float('inf'); assert min(h) < best; t = torch.stack([model(x).sum() for _ in range(2)]).mean().item(); torch.tensor(h).mean().item()",
    "trace of a step": TRAIN
    + """
optimizer.step(); del loss; optimizer.zero_grad(); torch.cuda.empty_cache()
kinds = {}
for event in faked.trace.events:
    if "a" in event: kinds.setdefault(faked.trace.kinds.get(event["a"], "temporary"), []).append(event["n"])
assert sorted(kinds["parameter"]) == [32, 256] and sorted(kinds["gradient"]) == [32, 256], kinds
assert sorted(kinds["optimizer"]) == [32, 32, 256, 256], kinds
assert sorted(kinds["input"]) == [32, 128] and kinds["activation"], kinds
assert [e["m"] for e in faked.trace.events if "m" in e] == ["cublas", "backward", "cublas backward", "backward done", "optimizer", "step 1", "empty cache"]
freed = {e["f"] for e in faked.trace.events if "f" in e}
live = sum(e["n"] for e in faked.trace.events if "a" in e and e["a"] not in freed)
assert live == torch.cuda.memory_allocated() == 3 * 288 + 128 + 32, live
faked.trace.write("t.jsonl"); import json
lines = [json.loads(line) for line in open("t.jsonl")]
assert "kinds" in lines[-3] and set(lines[-2]["names"].values()) == {"weight", "bias"} and lines[-1]["where"][0][0] == "program.py"
""",
    "a list of gradients costs a transient": """
m = nn.ModuleList(nn.Linear(1000, 1000, bias=False) for _ in range(4)).cuda()
def peak(foreach):
    o = torch.optim.AdamW(m.parameters(), foreach=foreach)
    for p in m.parameters(): p.grad = torch.zeros_like(p)
    o.step(); before = torch.cuda.memory_allocated(); faked.trace._peak = 0; o.step()
    return faked.trace._peak - before
assert peak(None) == 16_000_000 and peak(False) <= 12_000_000
""",
    "kernels of attention": """
q = torch.randn(2, 4, 512, 64, device="cuda", requires_grad=True)
def saved(q, **options):
    before = torch.cuda.memory_allocated(); o = F.scaled_dot_product_attention(q, q, q, **options)
    return torch.cuda.memory_allocated() - before
pairs = 2 * 4 * 512 * 512 * 4
assert saved(q) < pairs and saved(q.bfloat16()) < pairs / 2
with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH): assert saved(q) > pairs
mask = torch.ones(512, 512, dtype=torch.bool, device="cuda"); saved(q, attn_mask=mask)
k = torch.randn(2, 2, 512, 64, device="cuda"); F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
""",
    "buckets of DDP": """
import torch.distributed as dist
dist.init_process_group("nccl"); m = nn.Linear(1024, 4096).cuda()
before = torch.cuda.memory_allocated(); m = nn.parallel.DistributedDataParallel(m, device_ids=[0])
assert torch.cuda.memory_allocated() - before == (1024 + 1) * 4096 * 4
assert dist.get_rank() == 0; o = [None] * 4; dist.all_gather_object(o, 7); assert o == [7] * 4
g = [torch.empty_like(x) for _ in range(4)]; dist.all_gather(g, x); torch.cat(g)
""",
    "accuracy in a loop over real data": """
from torch.utils.data import DataLoader, TensorDataset
data = DataLoader(TensorDataset(torch.randn(20, 8), torch.randint(0, 8, (20,))), 8)
total = right = 0
for a, b in data:
    a, b = a.to("cuda"), b.to("cuda")
    right += (model(a).argmax(1) == b).sum().item(); total += b.size(0)
    c = torch.zeros(8, 8)
    for t, p in zip(b.view(-1), model(a).argmax(1).view(-1)): c[t.long(), p.long()] += 1
assert total == 20 and right / total > 0
""",
    "what is known stays known": """
assert y.sum().item() == 6 and (y == 2).nonzero().tolist() == [[1 + 0]] and y.max() == 3
z = y.clone(); z[0] = 7; assert z.tolist() == [7, 2, 3, 0] and y.tolist() == [1, 2, 3, 0]
assert y[y != 0].shape == (3,) and torch.equal(y, y.clone()) and y.float().mean().item() == 1.5
y.add_(1); assert y.tolist() == [2, 3, 4, 1]; assert len(torch.arange(5, device="cuda").unique()) == 5
for i, t in enumerate(y): assert t.item() == [2, 3, 4, 1][i]
""",
    "a loop that ends by length": """
done = torch.zeros(4, dtype=torch.bool, device="cuda"); left = torch.ones(4, dtype=torch.long, device="cuda")
for step in range(50):
    done = torch.full((4,), step == 5, dtype=torch.bool, device="cuda") | (model(x)[:, 0] > 0)
    left = left & ~done
    if left.max() == 0: break
assert step == 5
""",
    "storages are told apart": "a, b = nn.Linear(8, 8).cuda().parameters(); assert a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr() == b.view(-1).untyped_storage().data_ptr()",
    "no gpu for labels": "t = torch.zeros(4, dtype=torch.long); w = torch.tensor([1.0] * 8).cuda(); F.cross_entropy(model(x), t.to(x.device), weight=w, label_smoothing=.1, ignore_index=-100)",
}
# Name -> the program, and what it raises.
FAIL = {
    "shape": ("model(torch.randn(4, 9, device='cuda'))", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x9 and 8x8)"),
    "device": ("model(torch.randn(4, 8))", "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, c"),
    "numpy of the GPU": ("model(x).detach().numpy()", "TypeError: can't convert cuda:0 device type tensor to numpy."),
    "numpy of a gradient": ("model(x).cpu().numpy()", "RuntimeError: Can't call numpy() on Tensor that requires grad."),
    "label out of range": ("F.cross_entropy(model(x), torch.tensor([1, 2, 3, 8]).cuda())", "IndexError: Target 8 is out of bounds: the size is 8."),
    "token out of range": ("nn.Embedding(3, 4).cuda()(y)", "IndexError: index 3 is out of bounds: the size is 3."),
    "ordinal": ("torch.cuda.set_device(2)", "RuntimeError: CUDA error: invalid device ordinal"),
    "lengths on the GPU": ("nn.utils.rnn.pack_padded_sequence(torch.randn(4, 5, 8).cuda(), y)", "RuntimeError: 'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 torch.int64 tensor"),
    "DDP without a group": ("nn.parallel.DistributedDataParallel(model)", "ValueError: Default process group has not been initialized, please make sure to call init_process_group."),
    "model left on the CPU": ("nn.Linear(8, 8)(x)", "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, c"),
    "backward twice": ("l = model(x).exp().sum(); l.backward(); l.backward()", "RuntimeError: Trying to backward through the graph a second time"),
    "half and float": ("nn.Linear(8, 8).cuda().half()(x)", "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and Half"),
    "label type": ("F.nll_loss(model(x), y.float())", "RuntimeError: expected scalar type Long but found Float"),
}  # fmt: skip
