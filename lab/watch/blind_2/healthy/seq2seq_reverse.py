"""An encoder-decoder transformer learns to reverse words of different lengths; slow until attention forms, then it drops."""

from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence


@dataclass
class Config:
    vocab: int = 12
    d_model: int = 32
    heads: int = 4
    max_len: int = 8
    batch: int = 64
    steps: int = 700
    lr: float = 3e-3
    warmup: int = 80
    pad: int = 0
    bos: int = 1
    eos: int = 2


class Seq2Seq(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.tok = nn.Embedding(cfg.vocab, cfg.d_model, padding_idx=cfg.pad)
        self.pos = nn.Embedding(cfg.max_len + 2, cfg.d_model)
        self.core = nn.Transformer(
            cfg.d_model, cfg.heads, 1, 1, dim_feedforward=64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(cfg.d_model, cfg.vocab)

    def embed(self, ids):
        return self.tok(ids) + self.pos(torch.arange(ids.size(1)))

    def forward(self, src, tgt):
        causal = torch.triu(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool), diagonal=1)
        pad = src == self.cfg.pad
        out = self.core(
            self.embed(src),
            self.embed(tgt),
            tgt_mask=causal,
            src_key_padding_mask=pad,
            memory_key_padding_mask=pad,
        )
        return self.head(out)


def make_batch(cfg, n):
    words = [torch.randint(3, cfg.vocab, (int(k),)) for k in torch.randint(2, cfg.max_len + 1, (n,))]
    src = pad_sequence(words, batch_first=True, padding_value=cfg.pad)
    wrapped = [torch.cat([torch.tensor([cfg.bos]), w.flip(0), torch.tensor([cfg.eos])]) for w in words]
    return src, pad_sequence(wrapped, batch_first=True, padding_value=cfg.pad)


@torch.no_grad()
def exact_match(model, cfg, n=200):
    model.eval()
    src, tgt = make_batch(cfg, n)
    ids = torch.full((n, 1), cfg.bos)
    for _ in range(tgt.size(1) - 1):
        nxt = model(src, ids)[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, nxt], dim=1)
    model.train()
    real = tgt != cfg.pad
    return ((ids == tgt) | ~real).all(1).float().mean().item()


def main():
    torch.manual_seed(5)
    cfg = Config()
    model = Seq2Seq(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.98))
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) / cfg.warmup, 1.0))
    loss_fn = nn.CrossEntropyLoss(ignore_index=cfg.pad)
    for step in range(1, cfg.steps + 1):
        src, tgt = make_batch(cfg, cfg.batch)
        logits = model(src, tgt[:, :-1])
        loss = loss_fn(logits.flatten(0, 1), tgt[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        if step % 100 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} exact_match {exact_match(model, cfg):.3f}")


if __name__ == "__main__":
    main()
